/* positions.c -- see positions.h.
 *
 * Rotary angles are p times 10000^(-2 i / 128), i = 0 to 63: heads of 128 columns, as Llama's. The first is the
 * position in radians, the last the slowest. */
#include "positions.h"
#include "../text/screen.h"

#include <math.h>
#include <string.h>

enum { PAIRS = 64 };

typedef struct loss {
    const char *format;
    uint64_t positions;
    uint64_t distinct;           /* different positions that are left      */
    uint64_t collision;          /* the first that became that before it                 */
    const uint64_t *collides;    /* collision; NULL: none                                */
    char same[64];               /* for people                                           */
    double position;             /* largest error of a position            */
    double of_positions, of_all; /* largest error of an angle, in radians: positions in the format; positions,
                                    frequencies and their product in it */
} loss;

#define AT(member) offsetof(loss, member)
static const record_field loss_fields[] = {
    FIELD(TEXT, "format", IN_ALL, AT(format), NULL, .title = "<format"),
    FIELD(COUNT, "positions", IN_ALL, AT(positions), "Positions from 0 on."),
    FIELD(CHARS, NULL, 0, AT(same), NULL, .title = ">first the same"),
    FIELD(COUNT, "distinct", IN_ALL, AT(distinct), "Different positions that are left.", .title = ">different"),
    FIELD(COUNT, "first_collision", IN_ALL | FIELD_POINTER | FIELD_NULL, AT(collides),
          "The first position that becomes the one before it; null: none."),
    FIELD(REAL, "max_position_error", IN_ALL, AT(position), "The largest error of a position.",
          .title = ">position off", .format = "%.4g"),
    FIELD(REAL, "max_angle_error_positions", IN_ALL, AT(of_positions),
          "The largest error of an angle, in radians, with positions in the format.", .title = ">angle off, radians",
          .format = "%.4g"),
    FIELD(REAL, "max_angle_error_all", IN_ALL, AT(of_all),
          "The largest error of an angle, in radians, with positions, frequencies and their product in the format.",
          .title = ">all in format", .format = "%.4g"),
    {0}};
#undef AT
static const record_kind loss_record = {"loss", "What a format does to positions.", sizeof(loss), loss_fields};
const report_kind formats_positions_kind = {
    "mpsim.positions/1", "mpsim formats --positions: positions",
    "Which positions of tokens formats tell apart, and what is lost of rotary angles. $defs/line is a line of --ndjson, which "
    "names no schema.",
    REPORT_ROWS("formats", &loss_record)};

static double rounded(const target *t, double x)
{
    return mpsim_decode(&t->format, mpsim_encode_f64(&t->format, &t->rounding, x, 0, NULL));
}

/* NaN and infinities are as far off as can be. */
static double farther(double most, double error)
{
    return isfinite(error) ? fmax(most, fabs(error)) : HUGE_VAL;
}

static void add_angles(loss *l, const target *t, double p, double q, const double *frequency, const double *narrow)
{
    for (int i = 0; i < PAIRS; i++) {
        l->of_positions = farther(l->of_positions, (q - p) * frequency[i]);
        l->of_all = farther(l->of_all, rounded(t, q * narrow[i]) - p * frequency[i]);
    }
}

static loss look(uint64_t n, const target *t)
{
    loss l = {.format = t->label, .collision = n};
    double frequency[PAIRS], narrow[PAIRS], before = -1;
    for (int i = 0; i < PAIRS; i++) {
        frequency[i] = pow(10000, -2.0 * i / (2 * PAIRS));
        narrow[i] = rounded(t, frequency[i]);
    }
    for (uint64_t p = 0; p < n; p++) {
        const double q = rounded(t, (double)p);
        const int same = q == before || (isnan(q) && isnan(before));
        l.distinct += !same;
        l.collision = same && l.collision == n ? p : l.collision;
        l.position = farther(l.position, q - (double)p);
        add_angles(&l, t, (double)p, q, frequency, narrow);
        before = q;
    }
    return l;
}

static void write_row(record_writer *w, uint64_t n, const target *t)
{
    loss l = look(n, t);
    char a[32], b[32];
    l.positions = n;
    l.collides = l.collision < n ? &l.collision : NULL;
    if (l.collides)
        snprintf(l.same, sizeof l.same, "%s as %s", text_count(a, l.collision), text_count(b, l.collision - 1));
    else
        strcpy(l.same, "none");
    record_row(w, &l);
}

static void print_rows(const record_writer *w, uint64_t n)
{
    char a[32];
    fprintf(w->to, "Positions 0 to %s\n\n", text_count(a, n - 1));
    table_print(w->rows, w->to, "");
    screen_text(
        w->to, screen_columns(w->to),
        "\nPositions that become the same have one rotary angle. Angles: position times 10000^(-2 i / 128) of heads "
        "of 128\ncolumns, the largest error of any; with positions alone in the format, and with positions, frequencies and\n"
        "their product.\n");
}

void formats_positions_print(uint64_t n, const target_list *list, report_style style, FILE *to)
{
    record_writer w = {.kind = &formats_positions_kind, .to = to, .style = style};
    record_begin(&w);
    for (size_t i = 0; i < list->count; i++)
        write_row(&w, n, &list->items[i]);
    if (style == REPORT_TEXT)
        print_rows(&w, n);
    record_end(&w);
}
