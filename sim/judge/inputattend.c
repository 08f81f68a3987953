/* inputattend.c -- queries, keys and values that tell rows of attention apart: one head, largest scores that grow from tile to tile, sharp and
 * flat rows, a line of NaN. What roundings leave shows in results of few bits where larger numbers cancel:
 * products of a score, and values of keys that are the same. */
#include "attendsearch.h"
#include "inputs.h"

#include "../array/want.h"
#include "../operand/element.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { QUERIES = 48, KEYS = 140, DIM = 40, SIZE = 24, ORDINARY = 32, FAR = 32 };

int judge_inputs_is_attend(const char *text)
{
    attend_row row;
    return judge_attend_parse(&row, text) == 0;
}

/* The arrays of a set, as they are computed from. */
static attend_arrays arrays_of(const mpsim_judge_set *set)
{
    return (attend_arrays){.q = &set->array[0], .k = &set->array[1], .v = &set->array[2], .masks = 1, .biases = 1};
}

/* A format of operands that the row takes: binary32, or the first one of its model that is also one of P. */
static mpsim_status formats(judge_inputs *w, const mpsim_format *from)
{
    static const char *const names[] = {"binary32", "bf16", "fp16", "e4m3", "e5m2"};
    mpsim_judge_set *set = w->set;
    attend_row row;
    for (size_t i = 0; i < (from ? 1 : sizeof names / sizeof names[0]); i++) {
        const mpsim_format *f = from ? from : mpsim_format_find(names[i]);
        const mpsim_judge_array a = {"q", f, NULL, 0, DIM};
        const attend_arrays x = {.q = &a, .k = &a, .v = &a};
        if (f->mbits > 23 || (w->row && (judge_attend_parse(&row, w->row) || !judge_attend_takes(&row, &x))))
            continue;
        set->format[0] = set->format[1] = set->format[2] = *f;
        return MPSIM_OK;
    }
    return judge_inputs_fail(w, MPSIM_ERANGE, "'%s' does not take these operands", w->row ? w->row : from->name);
}

typedef struct fill {
    const mpsim_judge_array *to;
    uint64_t state;
} fill;

static void put(const fill *f, size_t line, size_t i, double x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    element_put_code((void *)(uintptr_t)f->to->codes, mpsim_format_code_bytes(f->to->format), line * f->to->columns + i,
                     mpsim_encode_f64(f->to->format, &r, x, 0, NULL));
}

/* A number of either sign whose magnitude is between these powers of two. */
static double any(fill *f, double low, double high)
{
    const uint64_t r = judge_inputs_random(&f->state);
    const double part = (double)(r >> 12 & 0xffffffffff) * 0x1p-40;
    return exp2(low + (high - low) * part) * (r & 1 ? -1 : 1);
}

/* In each fourth line elements 2 c and 2 c + 1 are equal, up to ORDINARY: their products cancel. */
static void fill_queries(fill *f)
{
    static const double size[] = {0, 1, -1, 2, -3};
    for (size_t i = 0; i < QUERIES; i++)
        for (size_t c = 0; c < DIM; c++) {
            const int pairs = i % 4 == 0 && c < ORDINARY;
            const double high = pairs ? (double)(i / 4 % 6) + 1 : size[i % 5], x = any(f, high - 2, high);
            put(f, i, c, x);
            if (pairs)
                put(f, i, ++c, x);
        }
    put(f, QUERIES - 1, 3, f->to->format->nan ? NAN : 0);
}

/* The first of two keys that are the same: of eight, two pairs of neighbours and two keys that are there again FAR keys later. */
static size_t first_of(size_t key)
{
    return key % 8 < 4 ? key & ~(size_t)1 : key % 8 < 6 && key / FAR % 2 ? key - FAR : key;
}

static int is_alone(size_t key)
{
    return key % 8 >= 6 || (key % 8 >= 4 && key / FAR % 2 == 0 && key + FAR >= KEYS);
}

/* Later keys are larger; elements 2 c and 2 c + 1 are opposite, up to ORDINARY. */
static void fill_keys(fill *f)
{
    for (size_t i = 0; i < KEYS; i++) {
        const double high = (double)first_of(i) / (KEYS / 2.0) - 1;
        f->state = 1000 + first_of(i);
        for (size_t c = 0; c < DIM; c++) {
            const double x = any(f, high - 2, high);
            put(f, i, c, x);
            if (c < ORDINARY)
                put(f, i, ++c, -x);
        }
    }
}

/* Values of two keys that are the same cancel: they are larger from column to column. */
static void fill_values(fill *f)
{
    for (size_t i = 0; i < KEYS; i++) {
        f->state = 2000 + first_of(i);
        for (size_t c = 0; c < SIZE; c++) {
            const double x = any(f, -1, 0), large = ldexp(x, (int)(c % 12 + (c < 12 ? 0 : 4)));
            put(f, i, c, c == 0 ? 1 : is_alone(i) ? x : first_of(i) == i ? large : -large);
        }
    }
}

static mpsim_status make(judge_inputs *w)
{
    mpsim_judge_set *set = w->set;
    if (!judge_inputs_array(set, 0, "q", QUERIES, DIM) || !judge_inputs_array(set, 1, "k", KEYS, DIM) ||
        !judge_inputs_array(set, 2, "v", KEYS, SIZE))
        return MPSIM_ENOMEM;
    fill_queries(&(fill){&set->array[0], 1});
    fill_keys(&(fill){&set->array[1], 2});
    fill_values(&(fill){&set->array[2], 3});
    return MPSIM_OK;
}

/* ---- rows ---- */

typedef struct names {
    mpsim_judge_set *set;
    int bad;
} names;

static void add_name(void *to, const char *text)
{
    names *n = to;
    n->bad = n->bad || judge_inputs_name(n->set, text);
}

static mpsim_status rows(judge_inputs *w)
{
    attend_row known = {.causal = ATTEND_ALL};
    names n = {w->set, 0};
    const attend_arrays x = arrays_of(w->set);
    const attend_search search = {&x, KEYS, &known, add_name, &n};
    if (w->row && judge_attend_parse(&known, w->row))
        return MPSIM_ENOTFOUND;
    judge_attend_search(&search);
    if (w->row)
        add_name(&n, w->row);
    return n.bad ? MPSIM_ENOMEM : MPSIM_OK;
}

/* ---- results ---- */

/* Results have the format of the operands; those of FP8 have bf16. */
static mpsim_status sign(const mpsim_judge_set *set, const char *name, uint64_t *hash)
{
    static const attend_shape shape = {1, 1, 1, QUERIES, KEYS, DIM, SIZE};
    const mpsim_format *f = set->format[0].bits < 16 ? mpsim_format_find("bf16") : &set->format[0];
    const attend_arrays x = arrays_of(set);
    attend_row row;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    float *y = want_memory(QUERIES * SIZE, sizeof *y);
    void *codes = want_memory(QUERIES * SIZE, mpsim_format_code_bytes(f));
    mpsim_status s = y && codes ? MPSIM_OK : MPSIM_ENOMEM;
    if (s == MPSIM_OK && judge_attend_parse(&row, name))
        s = MPSIM_ENOTFOUND;
    s = s == MPSIM_OK ? judge_attend_compute(&row, &shape, &x, 0, 0, QUERIES, y, NULL) : s;
    s = s == MPSIM_OK ? mpsim_encode_array_f32(f, &r, NULL, codes, y, QUERIES * SIZE, NULL) : s;
    if (s == MPSIM_OK)
        *hash = judge_inputs_mix_codes(*hash, f, codes, QUERIES * SIZE, 1);
    free(y);
    free(codes);
    return s;
}

const judge_inputs_kind judge_inputs_attend = {formats, make, rows, sign};
