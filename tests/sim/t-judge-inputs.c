/* t-judge-inputs.c -- mpsim_judge_inputs: a set separates as many rows as a long random search does. MPSIM_JUDGE_SEARCH=N repeats the search
 * with N times as many random sets as the table says, each of the size of the set, and prints rows for the table. */
#include "support/support.h"

#include "../../sim/judge/inputs.h"

#include <mpsim/judge.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PRODUCT = 12, ARITH = 33 };

/* rows and classes of the set, and the classes that a search of as many random sets as the column says has found: MPSIM_JUDGE_SEARCH. */
static const struct {
    const char *row, *from;
    size_t rows, classes, found, sets;
} known[] = {
    {"e4m3", NULL, 1626, 180, 180, 60},
    {"e5m2", NULL, 858, 362, 362, 60},
    {"fp16", NULL, 858, 356, 356, 60},
    {"bf16", NULL, 858, 398, 398, 60},
    {"e2m1", NULL, 666, 57, 57, 60},
    {"e8m0", NULL, 7002, 259, 205, 60},
    {"e4m3fnuz", NULL, 282, 62, 62, 60},
    {"e4m3", "bf16", 1620, 172, 172, 60},
    {"e5m2", "fp16", 852, 398, 398, 60},
    {"tf32", NULL, 858, 394, 338, 60},
    {"binary32", NULL, 864, 352, 352, 60},
    {"mxfp8", NULL, 16, 10, 10, 40},
    {"mxfp4", NULL, 8, 6, 6, 40},
    {"mxfp8", "bf16", 16, 10, 9, 40},
    {"nvfp4", NULL, 3, 3, 3, 40},
    {"te-current", NULL, 4, 4, 3, 40},
    {"te-block-1x128", NULL, 3, 3, 3, 40},
    {"deepseek-128x128", NULL, 3, 3, 3, 8},
    {"torchao-rowwise", NULL, 1, 1, 1, 40},
    {"quantise", NULL, 66, 52, 51, 8},
    {"fma", NULL, 132, 93, 92, PRODUCT},
    {"hopper-bf16-fp32", NULL, 142, 114, 90, PRODUCT},
    {"hopper-fp16-fp32", NULL, 178, 102, 102, PRODUCT},
    {"hopper-fp16-fp16", NULL, 178, 106, 106, PRODUCT},
    {"hopper-wgmma-fp8-fp32", NULL, 142, 91, 91, PRODUCT},
    {"attention", NULL, 161, 92, 92, 10},
    {"eager:model=hopper-bf16-fp32:p=bf16:causal", NULL, 584, 186, 65, 10},
    {"flash:model=hopper-wgmma-fp8-fp32:p=e4m3", NULL, 429, 107, 76, 10},
    {"add", NULL, 864, 360, 192, ARITH},
    {"mul", NULL, 864, 648, 320, ARITH},
    {"div", NULL, 1728, 908, 592, ARITH},
    {"sqrt", NULL, 864, 56, 56, ARITH},
    {"arith:fma", "bf16", 3456, 1782, 784, ARITH},
    {"mul:up", "e4m3", 864, 436, 360, ARITH},
};
enum { KNOWN = sizeof known / sizeof known[0] };

static const mpsim_format *from_of(size_t i)
{
    return known[i].from ? mpsim_format_find(known[i].from) : NULL;
}

/* ---- random sets ---- */

static double spread(uint64_t *state, int low, int high)
{
    const uint64_t r = test_random(state);
    const int bits = (int)(test_random(state) % 53);
    const uint64_t cut = r >> 12 & ~(((uint64_t)1 << bits) - 1); /* few bits: ties */
    return ldexp(1 + (double)cut * 0x1p-52, (int)(test_random(state) % (uint64_t)(high - low)) + low) *
           (r & 1 ? -1 : 1);
}

static double number(mpsim_judge_kind kind, size_t line, uint64_t *state)
{
    static const int lows[] = {-1, -2, -4, -8, -14, -20, -60, -127};
    const int far = 1 << test_random(state) % 8;
    if (kind == MPSIM_JUDGE_ATTENTION)
        return spread(state, lows[line % 3], lows[line % 3] + 2 + (int)(line % 4));
    if (kind == MPSIM_JUDGE_PRODUCT)
        return spread(state, lows[line % 8], line / 8 % 2 ? -lows[line % 4] : 1);
    if (kind == MPSIM_JUDGE_ARITH)
        return spread(state, -2 * far, far) * ldexp(1, lows[test_random(state) % 8]);
    return kind == MPSIM_JUDGE_CAST ? spread(state, -far, far)
                                    : spread(state, -8, 8) * ldexp(1, (int)(line * 7 % 37) - 18);
}

static void fill(const mpsim_judge_set *set, size_t i, uint64_t *state, int infinities)
{
    const mpsim_judge_array *a = &set->array[i];
    const mpsim_format *f = a->format;
    const size_t bytes = mpsim_format_code_bytes(f);
    const uint64_t mask = f->bits == 64 ? UINT64_MAX : ((uint64_t)1 << f->bits) - 1;
    static const uint64_t rare[MPSIM_JUDGE_KINDS] = {[MPSIM_JUDGE_CAST] = 2,
                                                     [MPSIM_JUDGE_PRODUCT] = 100,
                                                     [MPSIM_JUDGE_QUANTISE] = 2000,
                                                     [MPSIM_JUDGE_ARITH] = 6,
                                                     [MPSIM_JUDGE_ATTENTION] = 100};
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = set->kind != MPSIM_JUDGE_CAST;
    for (size_t k = 0; k < a->rows * a->columns; k++) {
        const size_t line = i == 0 ? k / a->columns : k % a->columns;
        uint64_t code = mpsim_encode_f64(f, &r, number(set->kind, line, state), 0, NULL);
        const int may = set->kind < MPSIM_JUDGE_PRODUCT || set->kind == MPSIM_JUDGE_ARITH || line % 16 == 15;
        if (may && test_random(state) % rare[set->kind] == 0) {
            const uint64_t any = test_random(state) & mask;
            if (infinities && test_random(state) % 32 == 0)
                code = mpsim_encode_f64(f, &r, test_random(state) % 2 ? INFINITY : -INFINITY, 0, NULL);
            else
                code = infinities || mpsim_classify(f, any) == MPSIM_CLASS_NAN ? any : code;
        }
        code_store((char *)(uintptr_t)a->codes + k * bytes, bytes, code);
    }
}

static int has_infinity(const mpsim_judge_set *set)
{
    const mpsim_judge_array *a = &set->array[0];
    for (size_t i = 0; i < a->rows * a->columns; i++)
        if (mpsim_classify(a->format, code_load((const char *)a->codes + i * mpsim_format_code_bytes(a->format),
                                                mpsim_format_code_bytes(a->format))) == MPSIM_CLASS_INF)
            return 1;
    return 0;
}

/* Rows that the search tells apart and the set does not. */
static void compare(const mpsim_judge_set *found, const mpsim_judge_set *set)
{
    for (size_t i = 0; i < found->rows; i++)
        for (size_t k = 0; k < i; k++)
            if (found->class_of[i] != found->class_of[k] && set->class_of[i] == set->class_of[k]) {
                printf("#   only the search separates %s and %s\n", set->row[k], set->row[i]);
                k = i;
            }
}

static size_t search(size_t i, size_t sets, const mpsim_judge_set *made)
{
    mpsim_judge_set set = {.format = calloc(MPSIM_JUDGE_SET_FORMATS, sizeof *set.format)};
    judge_inputs w = {&set, known[i].row, NULL, NULL, 0};
    uint64_t state = 1;
    ck_assert_int_eq(judge_inputs_open(&w, known[i].row, from_of(i)), MPSIM_OK);
    ck_assert_int_eq(judge_inputs_make(&w), MPSIM_OK);
    ck_assert_int_eq(judge_inputs_rows(&w), MPSIM_OK);
    const int infinities = has_infinity(&set);
    uint64_t *hashes = calloc(set.rows, sizeof *hashes);
    for (size_t n = 0; n < sets; n++) {
        for (size_t k = 0; k < set.arrays; k++)
            fill(&set, k, &state, infinities);
        ck_assert_int_eq(judge_inputs_sign(&w, hashes), MPSIM_OK);
    }
    ck_assert_int_eq(judge_inputs_classes(&w, hashes), MPSIM_OK);
    const size_t classes = set.classes;
    if (set.rows == made->rows)
        compare(&set, made);
    free(hashes);
    judge_set_clear(&set);
    return classes;
}

CASE("sets", 60);

TESTS(a_set_separates_what_a_search_separates, KNOWN)
{
    mpsim_judge_set set;
    char why[256] = "";
    const char *asked = getenv("MPSIM_JUDGE_SEARCH");
    if ((known[_i].sets == PRODUCT || known[_i].sets == ARITH) && !asked && !test_in_whole_part((uint64_t)_i, 5))
        return; /* a second or two each: one a day */
    ck_assert_msg(mpsim_judge_inputs(&set, known[_i].row, from_of((size_t)_i), NULL, why, sizeof why) == MPSIM_OK,
                  "%s: %s", known[_i].row, why);
    if (asked) {
        const size_t sets = (size_t)strtoul(asked, NULL, 10) * known[_i].sets;
        printf("# {\"%s\", %s%s%s, %zu, %zu, %zu, %zu}, %zu elements\n", known[_i].row, known[_i].from ? "\"" : "",
               known[_i].from ? known[_i].from : "NULL", known[_i].from ? "\"" : "", set.rows, set.classes,
               search((size_t)_i, sets, &set), sets,
               set.array[0].rows * set.array[0].columns +
                   (set.arrays > 1 ? set.array[1].rows * set.array[1].columns : 0));
        fflush(stdout);
    }
    ck_assert_uint_ge(set.rows, known[_i].rows);
    ck_assert_uint_ge(set.classes, known[_i].classes);
    ck_assert_uint_ge(set.classes, known[_i].found);
    mpsim_judge_set_clear(&set);
}

TEST_MAIN("judge-inputs");
