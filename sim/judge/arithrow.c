/* arithrow.c -- see arithrow.h. */
#include "arithrow.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../text/words.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

const char *const judge_arith_nans[ARITH_NANS] = {
    "signed", "positive", "payload", "ones", "ones-signed", "minus-ones", "ones-or-cut", "x86", "arm", "last", "any"};
const char *const judge_arith_flushes[ARITH_FLUSHES] = {"keep", "flush-results", "flush-tiny", "flush-before"};

static int find(uint8_t *to, const char *const *words, size_t n, const char *word)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(words[i], word) == 0) {
            *to = (uint8_t)i;
            return 0;
        }
    return -1;
}

static int set_switch(arith_row *row, const char *word)
{
    mpsim_round_mode mode;
    uint8_t bits;
    if (strcmp(word, "flush-inputs") == 0)
        return (row->flush_inputs = 1) - 1;
    if ((strcmp(word, "separate") == 0 && row->op == MPSIM_OP_FMA) ||
        (strcmp(word, "reciprocal") == 0 && row->op == MPSIM_OP_DIV))
        return (row->twice = 1) - 1;
    if (find(&row->flush, judge_arith_flushes + 1, ARITH_FLUSHES - 1, word) == 0)
        return row->flush++, 0;
    if (mpsim_round_mode_parse(&mode, &bits, word) != MPSIM_OK || mode >= MPSIM_ROUND_STOCHASTIC_A)
        return -1;
    row->mode = (uint8_t)mode;
    return 0;
}

static int set_word(void *context, const char *word, const char *value)
{
    arith_row *row = context;
    if (!value)
        return set_switch(row, word);
    if (strcmp(word, "nan") == 0)
        return find(&row->nans, judge_arith_nans, ARITH_NANS, value);
    if (strcmp(word, "via") == 0)
        return mpsim_format_parse(&row->via, value) == MPSIM_OK ? 0 : -1;
    return strcmp(word, "overflow") == 0 && strcmp(value, "max") == 0 ? (row->overflow = MPSIM_OVERFLOW_MAX) - 1 : -1;
}

int judge_arith_read(void *to, char *text)
{
    arith_row *row = to;
    char *end = strchr(text, ':');
    row->nans = ARITH_ANY;
    if (end)
        *end = '\0';
    if (mpsim_op_parse(&row->op, text) != MPSIM_OK || row->op == MPSIM_OP_CONVERT)
        return -1;
    if (end)
        *end = ':';
    return judge_words(text, set_word, row);
}

int judge_arith_row_parse(arith_row *row, const char *text)
{
    char copy[MPSIM_JUDGE_ROW];
    memset(row, 0, sizeof *row);
    if (strlen(text) >= sizeof copy)
        return -1;
    snprintf(copy, sizeof copy, "%s", text);
    return judge_arith_read(row, copy);
}

/* ---- which there are ---- */

static void add_row(const arith_rows *r, const char *text, const char *word, const char *value)
{
    char name[MPSIM_JUDGE_ROW] = "";
    if (text_add(name, sizeof name, "%s%s%s", text, word, value) == 0)
        r->add(r->to, name);
}

/* A NaN rule that results without NaN do not show is not searched. */
static void add_nans(const arith_rows *r, const char *text)
{
    static const uint8_t rules[] = {MPSIM_NANS_POSITIVE, ARITH_X86,         ARITH_ARM,  MPSIM_NANS_PAYLOAD,
                                    MPSIM_NANS_ONES,     MPSIM_NANS_SIGNED, ARITH_LAST, MPSIM_NANS_MINUS_ONES};
    for (size_t i = 0; i < sizeof rules && r->nans; i++)
        add_row(r, text, ":nan=", judge_arith_nans[rules[i]]);
    add_row(r, text, "", "");
}

static void add_flushes(const arith_rows *r, const char *text, const char *way)
{
    for (int in = 0; in < 1 + r->tiny_operands; in++)
        for (int out = 0; out < (r->tiny_results ? ARITH_FLUSHES : 1); out++)
            for (int most = 0; most < 1 + r->large_results; most++) {
                char name[MPSIM_JUDGE_ROW] = "";
                (void)text_add(name, sizeof name, "%s%s%s%s%s%s", text, way, in ? ":flush-inputs" : "", out ? ":" : "",
                               out ? judge_arith_flushes[out] : "", most ? ":overflow=max" : "");
                add_nans(r, name);
            }
}

/* Whether a rounding to `way` before the last one can change results: of what is not fma, only where an operand is that wide. */
static int shows_way(const arith_rows *r, mpsim_op op, const mpsim_format *way)
{
    return way->mbits > r->result->mbits && (op == MPSIM_OP_FMA || way->mbits == r->operand->mbits);
}

/* One rounding; then those that take two. */
void judge_arith_rows(const arith_rows *r, mpsim_op op, mpsim_round_mode mode)
{
    const char *const wide[] = {"binary32", "binary64"};
    char name[MPSIM_JUDGE_ROW] = "", way[48];
    (void)text_add(name, sizeof name, "%s%s%s", mpsim_op_name(op), mode ? ":" : "",
                   mode ? mpsim_round_mode_name(mode) : "");
    add_flushes(r, name, "");
    if (op == MPSIM_OP_FMA || op == MPSIM_OP_DIV)
        add_flushes(r, name, op == MPSIM_OP_FMA ? ":separate" : ":reciprocal");
    for (size_t i = 0; i < sizeof wide / sizeof wide[0]; i++)
        if (shows_way(r, op, mpsim_format_find(wide[i]))) {
            snprintf(way, sizeof way, ":via=%s", wide[i]);
            add_flushes(r, name, way);
        }
}

/* ---- NaNs ---- */

static uint64_t code_of(const arith_operand *x, size_t i)
{
    return element_code(x->codes, mpsim_format_code_bytes(x->format), i);
}

static int is_nan(const arith_operand *x, size_t i)
{
    return x->format && mpsim_classify(x->format, code_of(x, i)) == MPSIM_CLASS_NAN;
}

static int is_signalling(const arith_operand *x, size_t i)
{
    return is_nan(x, i) && x->format->mbits && !(code_of(x, i) >> (x->format->mbits - 1) & 1);
}

/* The operand whose NaN the result is; NULL: there is none. */
static const arith_operand *nan_operand(const arith_row *row, const arith_operand x[ARITH_OPERANDS], size_t i)
{
    static const uint8_t orders[][ARITH_OPERANDS] = {{0, 1, 2}, {2, 0, 1}, {2, 1, 0}};
    const uint8_t *order = orders[row->nans - ARITH_X86];
    for (int k = 0; k < ARITH_OPERANDS && row->nans == ARITH_ARM; k++)
        if (is_signalling(&x[order[k]], i))
            return &x[order[k]];
    for (int k = 0; k < ARITH_OPERANDS; k++)
        if (is_nan(&x[order[k]], i))
            return &x[order[k]];
    return NULL;
}

/* Arm: zero times infinity is an operation without a value, also where c is a quiet NaN. */
static int is_product_invalid(const arith_row *row, const arith_operand x[ARITH_OPERANDS], size_t i)
{
    mpsim_arith o;
    unsigned flags = 0;
    if (row->nans != ARITH_ARM || !x[2].format || is_signalling(&x[2], i))
        return 0;
    mpsim_arith_init(&o, MPSIM_OP_MUL, x[0].format, MPSIM_ROUND_NEAREST_EVEN);
    o.operand[1] = *x[1].format;
    (void)mpsim_arith_apply(&o, code_of(&x[0], i), code_of(&x[1], i), 0, 0, &flags);
    return (flags & MPSIM_FLAG_INVALID) != 0;
}

static uint64_t nan_of(const arith_row *row, const mpsim_format *f, const arith_operand x[ARITH_OPERANDS], size_t i)
{
    const arith_operand *from = is_product_invalid(row, x, i) ? NULL : nan_operand(row, x, i);
    mpsim_arith o;
    mpsim_arith_init(&o, MPSIM_OP_CONVERT, f, MPSIM_ROUND_NEAREST_EVEN);
    o.rounding.nan = from ? MPSIM_NANS_PAYLOAD : MPSIM_NANS_POSITIVE;
    if (from) {
        o.operand[0] = *from->format;
        return mpsim_arith_apply(&o, code_of(from, i), 0, 0, 0, NULL);
    }
    const uint64_t nan = mpsim_encode_f64(f, &o.rounding, NAN, 0, NULL);
    return row->nans == ARITH_X86 ? nan | (uint64_t)1 << (f->bits - 1) : nan;
}

static void put_nans(const arith_row *row, const mpsim_format *f, const arith_operand x[ARITH_OPERANDS], size_t n,
                     void *y)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    for (size_t i = 0; i < n; i++)
        if (mpsim_classify(f, element_code(y, bytes, i)) == MPSIM_CLASS_NAN)
            element_put_code(y, bytes, i, nan_of(row, f, x, i));
}

/* ---- results ---- */

static void flush_tiny(const mpsim_arith *o, arith_flush flush, const arith_operand x[ARITH_OPERANDS], size_t n,
                       void *y)
{
    const mpsim_format *f = &o->result;
    const size_t bytes = mpsim_format_code_bytes(f);
    const double least = mpsim_format_min_normal(f);
    const unsigned tiny = flush == ARITH_FLUSH_TINY ? MPSIM_TINY_AFTER : MPSIM_TINY_BEFORE;
    for (size_t i = 0; i < n; i++) {
        const uint64_t code = element_code(y, bytes, i);
        uint64_t c[ARITH_OPERANDS] = {0, 0, 0};
        if (!(fabs(mpsim_decode(f, code)) <= least))
            continue;
        for (int k = 0; k < mpsim_op_operands(o->op); k++)
            c[k] = code_of(&x[k], i);
        if (mpsim_arith_tiny(o, c[0], c[1], c[2], 0) & tiny)
            element_put_code(y, bytes, i, code & (uint64_t)1 << (f->bits - 1));
    }
}

/* One operation, rounded once. last: what becomes of subnormal results is that of the row. */
static mpsim_status step(const arith_row *row, mpsim_op op, const mpsim_format *f,
                         const arith_operand x[ARITH_OPERANDS], int last, size_t n, void *y)
{
    mpsim_arith o;
    mpsim_arith_init(&o, op, f, (mpsim_round_mode)row->mode);
    for (int k = 0; k < mpsim_op_operands(op); k++)
        o.operand[k] = *x[k].format;
    o.rounding.nan = row->nans < MPSIM_NAN_RULES ? row->nans : MPSIM_NANS_POSITIVE;
    o.rounding.overflow = row->overflow;
    o.rounding.flush_input = row->flush_inputs;
    o.rounding.flush_output = last && row->flush == ARITH_FLUSH_RESULTS;
    const mpsim_status s = mpsim_arith_array(&o, NULL, y, x[0].codes, x[1].codes, x[2].codes, n, NULL);
    if (s == MPSIM_OK && row->nans > MPSIM_NAN_RULES - 1 && row->nans < ARITH_ANY)
        put_nans(row, f, x, n, y);
    if (s == MPSIM_OK && last && row->flush > ARITH_FLUSH_RESULTS)
        flush_tiny(&o, (arith_flush)row->flush, x, n, y);
    return s;
}

/* The product and then the sum; or one over b, and then the product. */
static mpsim_status two_steps(const arith_row *row, const mpsim_format *f, const arith_operand x[ARITH_OPERANDS],
                              size_t n, void *y)
{
    const int fma = row->op == MPSIM_OP_FMA;
    const size_t bytes = mpsim_format_code_bytes(f);
    void *between = want_memory(n + 1, bytes), *ones = want_memory(n + 1, bytes);
    mpsim_status s = between && ones ? MPSIM_OK : MPSIM_ENOMEM;
    mpsim_rounding exact;
    mpsim_rounding_init(&exact, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < n && s == MPSIM_OK; i++)
        element_put_code(ones, bytes, i, mpsim_encode_f64(f, &exact, 1, 0, NULL));
    const arith_operand one = {f, ones}, half = {f, between}, none = {NULL, NULL};
    const arith_operand first[ARITH_OPERANDS] = {fma ? x[0] : one, x[1], none},
                        second[ARITH_OPERANDS] = {fma ? half : x[0], fma ? x[2] : half, none};
    s = s == MPSIM_OK ? step(row, fma ? MPSIM_OP_MUL : MPSIM_OP_DIV, f, first, 1, n, between) : s;
    s = s == MPSIM_OK ? step(row, fma ? MPSIM_OP_ADD : MPSIM_OP_MUL, f, second, 1, n, y) : s;
    free(between);
    free(ones);
    return s;
}

static mpsim_status by_way(const arith_row *row, const mpsim_format *f, const arith_operand x[ARITH_OPERANDS], size_t n,
                           void *y)
{
    void *between = want_memory(n + 1, mpsim_format_code_bytes(&row->via));
    if (!between)
        return MPSIM_ENOMEM;
    const arith_operand half[ARITH_OPERANDS] = {{&row->via, between}, {NULL, NULL}, {NULL, NULL}};
    mpsim_status s = step(row, row->op, &row->via, x, 0, n, between);
    s = s == MPSIM_OK ? step(row, MPSIM_OP_CONVERT, f, half, 1, n, y) : s;
    free(between);
    return s;
}

mpsim_status judge_arith_compute(const arith_row *row, const mpsim_format *f, const arith_operand x[ARITH_OPERANDS],
                                 size_t n, void *codes)
{
    return row->twice       ? two_steps(row, f, x, n, codes)
           : *row->via.name ? by_way(row, f, x, n, codes)
                            : step(row, row->op, f, x, 1, n, codes);
}
