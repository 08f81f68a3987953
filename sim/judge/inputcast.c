/* inputcast.c -- numbers that tell casts apart: around the numbers of a format, where each choice of a cast acts. */
#include "castrow.h"
#include "inputs.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static mpsim_status formats(judge_inputs *w, const mpsim_format *from)
{
    cast_row row;
    const mpsim_format *source = from ? from : mpsim_format_find("binary32");
    w->set->format[0] = *source;
    if (!w->row)
        return MPSIM_OK;
    if (judge_cast_row_parse(&row, w->row, source, w->why, w->size))
        return MPSIM_ENOTFOUND;
    if (!from && row.format.bits >= 32)
        w->set->format[0] = *mpsim_format_find("binary64");
    w->set->format[1] = row.format;
    return MPSIM_OK;
}

/* ---- points ---- */

typedef struct points {
    const mpsim_format *from;
    uint64_t *codes;
    size_t n;
    int bad;
} points;

static void add_code(points *p, uint64_t magnitude)
{
    const uint64_t sign = (uint64_t)1 << (p->from->ebits + p->from->mbits);
    const size_t signs = mpsim_format_is_signed(p->from) ? 2 : 1;
    if (p->bad || (p->bad = want_room(&p->codes, p->n, 2, sizeof *p->codes)))
        return;
    for (size_t i = 0; i < signs; i++)
        p->codes[p->n++] = magnitude | (i ? sign : 0);
}

/* The number of the source nearest to x > 0, and its neighbours. */
static void add(points *p, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    const uint64_t code = mpsim_encode_f64(p->from, &r, x, 0, NULL);
    for (uint64_t c = code ? code - 1 : 0; c <= code + 1 && c <= p->from->max_finite; c++)
        add_code(p, c);
}

/* Around the number of a code, on the way to the next one; the largest has a next one, too. */
static void add_around(points *p, const mpsim_format *f, uint64_t code)
{
    const double x = mpsim_decode(f, code);
    const double next = code < f->max_finite ? mpsim_decode(f, code + 1)
                        : code               ? 2 * x - mpsim_decode(f, code - 1)
                                             : 2 * x;
    for (int i = 0; i < 4; i++)
        add(p, x + (next - x) * i / 4);
    if (f->mbits == 0)
        add(p, sqrt(x) * sqrt(next));
    if (code << (64 - f->mbits) == 0 && f->mbits) { /* fp16 has numbers here, and bf16 has not */
        add(p, x * (1 + 0x1p-10));
        add(p, (x + next) / 2 * (1 + 0x1p-10));
        add(p, (x + next) / 2 * (1 - 0x1p-10));
    }
}

static int is_binade(const mpsim_format *f, uint64_t e)
{
    const uint64_t top = f->max_finite >> f->mbits;
    return top <= 40 || e < 4 || e + 4 > top || e % 16 == 0 || e + 1 == (uint64_t)f->bias || e == (uint64_t)f->bias;
}

static void add_format(points *p, const mpsim_format *f)
{
    const uint64_t units = (uint64_t)1 << f->mbits;
    for (uint64_t e = 0; e <= f->max_finite >> f->mbits; e++)
        for (uint64_t t = 0; t < units && is_binade(f, e); t++) {
            if (f->bits > 8 && t == 4 && units > 16)
                t = units / 2 - 1;
            if (f->bits > 8 && t == units / 2 + 2 && units > 16)
                t = units - 3;
            if ((e << f->mbits | t) <= f->max_finite)
                add_around(p, f, e << f->mbits | t);
        }
    const double least = mpsim_format_min_positive(f), most = mpsim_format_max(f);
    for (int i = 1; i <= 8; i++) {
        add(p, ldexp(least, -i));
        add(p, ldexp(least, -i) * 1.5);
        add(p, ldexp(most, i));
        add(p, mpsim_format_min_normal(f) * (1 - ldexp(1, -f->mbits - i)));
    }
    add(p, ldexp(1, 60) * most);
}

static void add_specials(points *p)
{
    const mpsim_format *f = p->from;
    const uint64_t ones = ((uint64_t)1 << (f->ebits + f->mbits)) - 1;
    add(p, mpsim_format_min_positive(f));
    add(p, mpsim_format_min_normal(f));
    add(p, mpsim_format_min_normal(f) / 2);
    add(p, mpsim_format_max(f));
    for (uint64_t c = f->max_finite + 1; f->inf && c == f->max_finite + 1; c++)
        add_code(p, c);
    if (f->nan == MPSIM_NAN_NEGZERO && !p->bad && !(p->bad = want_room(&p->codes, p->n, 1, sizeof *p->codes)))
        p->codes[p->n++] = f->nan_code;
    for (int bit = 0; f->nan == MPSIM_NAN_TOP && bit < f->mbits; bit++)
        for (int quiet = 0; quiet < 2; quiet++) {
            const uint64_t c = (f->max_finite + 1) | (uint64_t)1 << bit | (quiet ? f->nan_code : 0);
            if (c > f->max_finite + f->inf && c <= ones)
                add_code(p, c);
        }
    for (uint64_t c = ones; f->nan == MPSIM_NAN_TOP && c > f->max_finite + f->inf && c + 4 > ones; c--)
        add_code(p, c);
}

static int compare(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Each once; an odd number, so that vectors have a tail. */
static void sort(points *p)
{
    size_t n = 0;
    qsort(p->codes, p->n, sizeof *p->codes, compare);
    for (size_t i = 0; i < p->n; i++)
        if (n == 0 || p->codes[n - 1] != p->codes[i])
            p->codes[n++] = p->codes[i];
    if (n % 2 == 0 && n)
        p->codes[n++] = p->codes[0];
    p->n = n;
}

static mpsim_status make(judge_inputs *w)
{
    mpsim_judge_set *set = w->set;
    points p = {.from = &set->format[0]};
    for (size_t i = 0; i < mpsim_format_count() && !w->row; i++)
        if (mpsim_format_at(i)->bits < p.from->bits)
            add_format(&p, mpsim_format_at(i));
    if (w->row)
        add_format(&p, &set->format[1]);
    add_specials(&p);
    add_code(&p, 0);
    p.bad = p.bad || want_room(&p.codes, p.n, 1, sizeof *p.codes);
    if (!p.bad)
        sort(&p);
    void *codes = p.bad ? NULL : judge_inputs_array(set, 0, "x", 1, p.n);
    for (size_t i = 0; i < p.n && codes; i++)
        element_put_code(codes, mpsim_format_code_bytes(p.from), i, p.codes[i]);
    free(p.codes);
    return codes ? MPSIM_OK : MPSIM_ENOMEM;
}

/* ---- rows ---- */

/* Whether a choice acts in casts to a format. */
static int acts(const mpsim_format *f, const cast_choice *c)
{
    const struct {
        size_t at;
        int acts;
    } table[] = {{offsetof(cast_row, rounding.negative), !mpsim_format_is_signed(f)},
                 {offsetof(cast_row, rounding.no_zero), f->zero == MPSIM_ZERO_NONE},
                 {offsetof(cast_row, rounding.no_inf), !f->inf},
                 {offsetof(cast_row, nan), f->nan == MPSIM_NAN_TOP},
                 {offsetof(cast_row, rounding.no_nan), f->nan == MPSIM_NAN_NONE},
                 {offsetof(cast_row, rounding.flush_output), f->mbits > 0 && f->zero != MPSIM_ZERO_NONE},
                 {offsetof(cast_row, below), 0},
                 {offsetof(cast_row, via), 0}}; /* routes have rows of their own */
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++)
        if (table[i].at == c->at)
            return table[i].acts;
    return 1;
}

static int add_row(mpsim_judge_set *set, const cast_row *row)
{
    char name[MPSIM_JUDGE_ROW];
    judge_cast_row_name(name, row);
    return judge_inputs_name(set, name);
}

/* All values of the choices from `which` on. */
static int add_choices(mpsim_judge_set *set, cast_row *row, unsigned which)
{
    const cast_choice *c = &judge_cast_choices[which];
    if (which == CAST_CHOICES)
        return add_row(set, row);
    if (!acts(&row->format, c))
        return add_choices(set, row, which + 1);
    for (unsigned v = 0; v < judge_cast_values(c); v++) {
        *judge_cast_choice_at(row, c) = (uint8_t)v;
        if (add_choices(set, row, which + 1))
            return -1;
    }
    return 0;
}

static int add_presets(mpsim_judge_set *set, const mpsim_format *f)
{
    for (size_t i = 0; i < mpsim_preset_count(); i++)
        for (uint8_t mode = 0; mode < CAST_MODES; mode++) {
            cast_row row;
            judge_cast_row_of(&row, f, mpsim_preset_at(i), &set->format[0]);
            row.rounding.mode = mode;
            if (add_row(set, &row))
                return -1;
        }
    return 0;
}

/* Every route with every mode. */
static int add_routes(mpsim_judge_set *set, cast_row *row)
{
    for (uint8_t via = CAST_DIRECT; via < CAST_VIAS; via++)
        for (uint8_t mode = 0; mode < CAST_MODES && judge_cast_via_acts(via, &row->source); mode++) {
            row->via = via;
            row->rounding.mode = mode;
            if (add_row(set, row))
                return -1;
        }
    return 0;
}

static mpsim_status rows(judge_inputs *w)
{
    mpsim_judge_set *set = w->set;
    int bad = 0;
    for (size_t i = 0; i < mpsim_format_count() && !w->row && !bad; i++)
        if (mpsim_format_at(i)->bits < set->format[0].bits)
            bad = add_presets(set, mpsim_format_at(i));
    if (w->row && !(bad = add_presets(set, &set->format[1]))) {
        cast_row row, plain;
        judge_cast_row_of(&plain, &set->format[1], mpsim_preset_at(0), &set->format[0]);
        row = plain;
        bad = add_choices(set, &row, 0) || add_routes(set, &plain) ||
              (judge_cast_row_parse(&row, w->row, &set->format[0], w->why, w->size) == 0 && add_row(set, &row));
    }
    return bad ? MPSIM_ENOMEM : MPSIM_OK;
}

/* ---- results ---- */

static mpsim_status sign(const mpsim_judge_set *set, const char *name, uint64_t *hash)
{
    const mpsim_judge_array *x = &set->array[0];
    const size_t n = x->rows * x->columns;
    cast_row row;
    char why[16];
    if (judge_cast_row_parse(&row, name, x->format, why, sizeof why))
        return MPSIM_ENOTFOUND;
    uint64_t *codes = want_memory(n + 1, sizeof *codes);
    if (!codes)
        return MPSIM_ENOMEM;
    judge_cast_codes(&row, codes, x->format, x->codes, n);
    for (const char *c = row.format.name; *c; c++)
        *hash = judge_inputs_mix(*hash, (unsigned char)*c);
    *hash = judge_inputs_mix_codes(*hash, &row.format, codes, n, 0);
    free(codes);
    return MPSIM_OK;
}

const judge_inputs_kind judge_inputs_cast = {formats, make, rows, sign};
