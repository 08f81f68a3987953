/* positions.c -- see positions.h.
 *
 * Rotary angles are p times 10000^(-2 i / 128), i = 0 to 63: heads of 128 columns, as Llama's. The first is the
 * position in radians, the last the slowest. */
#include "positions.h"

#include <math.h>

enum { PAIRS = 64 };

typedef struct loss {
    const char *format;
    uint64_t distinct;           /* different positions that are left      */
    uint64_t collision;          /* the first that became that before it; n: none */
    double position;             /* largest error of a position            */
    double of_positions, of_all; /* largest error of an angle, in radians: positions in the format; positions,
                                    frequencies and their product in it */
} loss;

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

static json_t *loss_json(const loss *l, uint64_t n)
{
    return json_pack("{s:s,s:o,s:o,s:o,s:o,s:o,s:o}", "format", l->format, "positions", json_of_count(n), "distinct",
                     json_of_count(l->distinct), "first_collision",
                     l->collision < n ? json_of_count(l->collision) : json_null(), "max_position_error",
                     json_of_double(l->position), "max_angle_error_positions", json_of_double(l->of_positions),
                     "max_angle_error_all", json_of_double(l->of_all));
}

static void print_row(table *t, const loss *l, uint64_t n)
{
    char a[32], b[32];
    table_cell(t, "%s", l->format);
    if (l->collision < n)
        table_cell(t, "%s as %s", text_count(a, l->collision), text_count(b, l->collision - 1));
    else
        table_cell(t, "%s", "none");
    table_cell(t, "%s", text_count(a, l->distinct));
    table_cell(t, "%.4g", l->position);
    table_cell(t, "%.4g", l->of_positions);
    table_cell(t, "%.4g", l->of_all);
}

static void print_csv(FILE *to, const loss *l, uint64_t n)
{
    const double numbers[] = {l->position, l->of_positions, l->of_all};
    csv_text(to, l->format);
    fprintf(to, ",%llu,%llu,", (unsigned long long)n, (unsigned long long)l->distinct);
    if (l->collision < n)
        fprintf(to, "%llu", (unsigned long long)l->collision);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        fputc(',', to);
        csv_double(to, numbers[i]);
    }
    fputc('\n', to);
}

static void print_json(uint64_t n, const target_list *list, report_style style, FILE *to)
{
    const int lines = style == REPORT_NDJSON;
    if (!lines)
        json_begin(to, "mpsim.positions/1");
    fputs(lines ? "" : "\"formats\": [", to);
    for (size_t i = 0; i < list->count; i++) {
        const loss l = look(n, &list->items[i]);
        json_item(to, style, i, loss_json(&l, n));
    }
    fputs(lines ? "" : "]}\n", to);
}

static void print_text(uint64_t n, const target_list *list, FILE *to)
{
    char a[32];
    table *t = table_new("<format|>first the same|>different|>position off|>angle off, radians|>all in format");
    fprintf(to, "Positions 0 to %s\n\n", text_count(a, n - 1));
    for (size_t i = 0; i < list->count; i++) {
        const loss l = look(n, &list->items[i]);
        print_row(t, &l, n);
    }
    table_print(t, to, "");
    table_free(t);
    fputs(
        "\nPositions that become the same have one rotary angle. Angles: position times 10000^(-2 i / 128) of heads "
        "of 128\ncolumns, the largest error of any; with positions alone in the format, and with positions, frequencies and\n"
        "their product.\n",
        to);
}

void positions_print(uint64_t n, const target_list *list, report_style style, FILE *to)
{
    if (style != REPORT_CSV) {
        style == REPORT_TEXT ? print_text(n, list, to) : print_json(n, list, style, to);
        return;
    }
    fputs("format,positions,distinct,first_collision,max_position_error,max_angle_error_positions,"
          "max_angle_error_all\n",
          to);
    for (size_t i = 0; i < list->count; i++) {
        const loss l = look(n, &list->items[i]);
        print_csv(to, &l, n);
    }
}
