/* t-judge-attention.c -- mpsim/judge.h: attention. Results and faults are made here, by loops of C. */
#include "support/judged.h"
#include "support/support.h"

#include <mpsim/judge.h>
#include <mpsim/layer.h>

#include <math.h>

enum { HEADS = 4, KV = 2, QUERIES = 12, KEYS = 24, DIM = 16, N = HEADS * QUERIES * DIM };

static float q[N], k[KV * KEYS * DIM], v[KV * KEYS * DIM], o[N], heads[2] = {HEADS, KV};
static uint8_t mask[QUERIES * KEYS];
static mpsim_judgement j;

static void fill(float *x, size_t n, uint64_t state)
{
    for (size_t i = 0; i < n; i += 2) {
        double pair[2];
        test_normal_pair(&state, pair);
        x[i] = (float)(2 * pair[0]);
        x[i + 1] = (float)(2 * pair[1]);
    }
}

static void make(void)
{
    fill(q, N, 3);
    fill(k, KV * KEYS * DIM, 5);
    fill(v, KV * KEYS * DIM, 7);
    for (size_t i = 0; i < QUERIES * KEYS; i++)
        mask[i] = i * 7 % 5 != 0;
}

static mpsim_status ask_with(const char *like, int with_mask, size_t of_v)
{
    const mpsim_format *f = mpsim_format_find("binary32");
    const mpsim_judge_array arrays[] = {
        {"q", f, q, HEADS * QUERIES, DIM}, {"k", f, k, KV * KEYS, DIM}, {"v", f, v, of_v, DIM},
        {"o", f, o, HEADS * QUERIES, DIM}, {"heads", f, heads, 1, 2},   {"mask", NULL, mask, QUERIES, KEYS}};
    char why[512] = "";
    const mpsim_status s = mpsim_judge(&j, MPSIM_JUDGE_ATTENTION, arrays, with_mask ? 6 : 5, like, NULL, why,
                                       sizeof why);
    ck_assert_msg((s == MPSIM_OK) == (why[0] == '\0'), "%d: %s", s, why);
    return s;
}

static void ask(const char *like)
{
    ck_assert_int_eq(ask_with(like, 0, KV * KEYS), MPSIM_OK);
}

static float chain(const float *a, const float *b, size_t n, size_t step)
{
    float s = 0;
    for (size_t i = 0; i < n; i++) {
        const volatile float p = a[i] * b[i * step];
        s += p;
    }
    return s;
}

static const float *key_of(size_t head, size_t key)
{
    return k + (head / (HEADS / KV) * KEYS + key) * DIM;
}

static const float *values_of(size_t head)
{
    return v + head / (HEADS / KV) * KEYS * DIM;
}

/* Whole rows in binary32: each query sees the keys before `seen`. */
static void eager(int causal)
{
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < QUERIES; i++) {
            const size_t seen = causal ? i + 1 + KEYS - QUERIES : KEYS;
            float x[KEYS] = {0}, e[KEYS] = {0}, most = -HUGE_VALF;
            for (size_t t = 0; t < seen; t++)
                most = fmaxf(most, x[t] = 0.25f * chain(q + (h * QUERIES + i) * DIM, key_of(h, t), DIM, 1));
            for (size_t t = 0; t < seen; t++)
                e[t] = mpsim_exp(x[t] - most);
            const float z = mpsim_sum_lanes(NULL, e, KEYS, 1, MPSIM_LANES_ROW);
            for (size_t t = 0; t < seen; t++)
                e[t] /= z;
            for (size_t c = 0; c < DIM; c++)
                o[(h * QUERIES + i) * DIM + c] = chain(e, values_of(h) + c, KEYS, DIM);
        }
}

/* Tiles of 16 keys in binary32, the products one after the other into the accumulator. */
static void flash(void)
{
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < QUERIES; i++) {
            float sum = 0, most = -HUGE_VALF, y[DIM] = {0};
            for (size_t first = 0; first < KEYS; first += 16) {
                const size_t n = KEYS - first < 16 ? KEYS - first : 16;
                float x[16], e[16], next = most;
                for (size_t t = 0; t < n; t++)
                    next = fmaxf(next, x[t] = 0.25f * chain(q + (h * QUERIES + i) * DIM, key_of(h, first + t), DIM, 1));
                const float again = mpsim_exp(most - next);
                for (size_t t = 0; t < n; t++)
                    e[t] = mpsim_exp(x[t] - next);
                sum = sum * again + mpsim_sum_lanes(NULL, e, n, 1, MPSIM_LANES_ROW);
                most = next;
                for (size_t c = 0; c < DIM; c++) {
                    y[c] *= again;
                    for (size_t t = 0; t < n; t++) {
                        const volatile float p = e[t] * values_of(h)[(first + t) * DIM + c];
                        y[c] += p;
                    }
                }
            }
            for (size_t c = 0; c < DIM; c++)
                o[(h * QUERIES + i) * DIM + c] = y[c] / sum;
        }
}

/* What a fault of attention in binary64 is. */
typedef struct fault {
    size_t first, last; /* keys that are seen; last counts from the end */
    int causal;         /* 0: none; 1: the last query belongs to the last key; 2: the first to the first */
    int more;           /* keys that causal attention sees beyond its own */
    double scale, plus; /* plus: added to the sum */
    double filled;      /* so many keys of zeros behind the last one */
    int modulo, first_head, swapped, masked, inverted, zero, powers, rescale;
} fault;

static double score(const fault *f, size_t h, size_t i, size_t t)
{
    const size_t kv = f->modulo ? h % KV : f->first_head ? 0 : h / (HEADS / KV);
    const float *of_k = (f->swapped ? v : k) + (kv * KEYS + t) * DIM;
    double s = 0;
    for (size_t c = 0; c < DIM; c++)
        s += (double)q[(h * QUERIES + i) * DIM + c] * (double)of_k[c];
    return s * f->scale;
}

static int sees(const fault *f, size_t i, size_t t)
{
    const size_t own = (f->causal == 2 ? i : i + KEYS - QUERIES) + (size_t)f->more;
    return t >= f->first && t < KEYS - f->last && (!f->causal || t <= own) &&
           (!f->masked || (mask[i * KEYS + t] != 0) != f->inverted);
}

static void play(const fault *f)
{
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < QUERIES; i++) {
            double x[KEYS], most = -HUGE_VAL, known = -HUGE_VAL, sum = f->plus, y[DIM] = {0};
            const size_t kv = f->modulo ? h % KV : f->first_head ? 0 : h / (HEADS / KV);
            for (size_t t = 0; t < KEYS; t++)
                most = fmax(most, x[t] = sees(f, i, t) ? score(f, h, i, t) : f->zero ? 0 : -HUGE_VAL);
            sum += f->filled * exp(-most);
            for (size_t t = 0; t < KEYS; t++) {
                for (size_t u = t; t % 16 == 0 && u < t + 16 && u < KEYS; u++)
                    known = fmax(known, x[u]);
                sum += exp(x[t] - most);
                for (size_t c = 0; c < DIM; c++)
                    y[c] += exp(x[t] - (f->rescale ? known : most)) *
                            (double)(f->swapped ? k : v)[(kv * KEYS + t) * DIM + c];
            }
            for (size_t c = 0; c < DIM; c++)
                o[(h * QUERIES + i) * DIM + c] = (float)(y[c] / (f->powers ? 1 : sum));
        }
}

CASE("attention", 30);

TEST(rows_of_scores)
{
    make();
    eager(0);
    ask(NULL);
    ck_assert_msg(j.differ == 0 && judged_in_class(&j, "eager:model=sequential"), "%s: %d", j.row, (int)j.differ);
    eager(1);
    ask(NULL);
    ck_assert_msg(j.differ == 0 && judged_in_class(&j, "eager:model=sequential:causal"), "%s: %d", j.row,
                  (int)j.differ);
    ask("eager:causal");
    ck_assert_int_eq((int)j.differ, 0);
}

TEST(tiles)
{
    make();
    flash();
    ask(NULL);
    ck_assert_msg(j.differ == 0 && judged_in_class(&j, "flash:model=sequential:tile=16"), "%s: %d", j.row,
                  (int)j.differ);
    ask("flash:tile=32");
    ck_assert_str_eq(j.nearest, "flash:model=sequential:tile=16");
    ck_assert_int_eq((int)j.nearest_differ, 0);
}

TEST(faults)
{
    static const struct {
        fault f;
        const char *like, *cause, *words;
    } cases[] = {
        {{.scale = 0.25}, "eager", "rounding", "near the exact ones"},
        {{.scale = 0.25, .causal = 1}, "flash:causal:tile=64", "rounding", "near the exact ones"},
        {{.scale = 0.25}, "eager:causal", "mask", "is left out"},
        {{.scale = 0.25, .causal = 2}, "eager:causal", "mask", "begins at the other end"},
        {{.scale = 0.25, .causal = 1, .more = 1}, "eager:causal", "mask", "one key more"},
        {{.scale = 0.25, .causal = 1, .more = -1}, "eager:causal", "mask", "one key less"},
        {{.scale = 1}, "eager", "scale", "is left out"},
        {{.scale = 0.0625}, "eager", "scale", "twice"},
        {{.scale = 0.25}, "eager:scale=0.3", "scale", "1 / sqrt(dim)"},
        {{.scale = 0.25, .modulo = 1}, "eager", "heads", "modulo"},
        {{.scale = 0.25, .first_head = 1}, "eager", "heads", "first head"},
        {{.scale = 0.25, .swapped = 1}, "eager", "operands", "keys and values"},
        {{.scale = 0.25, .last = 1}, "eager", "tail", "the last key"},
        {{.scale = 0.25, .last = 8}, "eager", "tail", "do not fill a tile of 16"},
        {{.scale = 0.25, .first = 1}, "eager", "tail", "the first key"},
        {{.scale = 0.25, .filled = 8}, "eager", "tail", "behind the last one, which fill a tile of 16"},
        {{.scale = 0.25, .plus = 1}, "eager", "formula", "one is added"},
        {{.scale = 0.25, .powers = 1}, "eager", "formula", "not normalised"},
        {{.scale = 0.25, .rescale = 1}, "flash:tile=16", "formula", "tiles of 16"},
    };
    make();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        play(&cases[i].f);
        ask(cases[i].like);
        judged_has(&j, cases[i].cause, cases[i].words);
    }
}

TEST(masks)
{
    static const fault right = {.scale = 0.25, .masked = 1}, none = {.scale = 0.25},
                       zero = {.scale = 0.25, .masked = 1, .zero = 1},
                       inverted = {.scale = 0.25, .masked = 1, .inverted = 1};
    make();
    play(&right);
    ck_assert_int_eq(ask_with("eager", 1, KV * KEYS), MPSIM_OK);
    judged_has(&j, "rounding", "near");
    play(&none);
    ck_assert_int_eq(ask_with("eager", 1, KV * KEYS), MPSIM_OK);
    judged_has(&j, "mask", "the mask is left out");
    play(&zero);
    ck_assert_int_eq(ask_with("eager", 1, KV * KEYS), MPSIM_OK);
    judged_has(&j, "mask", "are 0");
    play(&inverted);
    ck_assert_int_eq(ask_with("flash", 1, KV * KEYS), MPSIM_OK);
    judged_has(&j, "mask", "inverted");
    for (size_t t = 0; t < KEYS; t++) /* the first query sees no key */
        mask[t] = 0;
    play(&right);
    ck_assert(isnan(o[0]));
    ck_assert_int_eq(ask_with("eager", 1, KV * KEYS), MPSIM_OK);
    judged_has(&j, "nan", "have NaN, not 0");
}

TEST(refusals)
{
    make();
    ck_assert_int_eq(ask_with("eager:tile=16", 0, KV * KEYS), MPSIM_ENOTFOUND);
    ck_assert_int_eq(ask_with("flash:model=none", 0, KV * KEYS), MPSIM_ENOTFOUND);
    ck_assert_int_eq(ask_with("flash", 0, KEYS), MPSIM_EINVAL);
    ck_assert_int_eq(ask_with("eager:model=hopper-bf16-fp32", 0, KV * KEYS), MPSIM_ERANGE);
    heads[1] = 3;
    ck_assert_int_eq(ask_with("flash", 0, KV * KEYS), MPSIM_EINVAL);
    heads[1] = KV;
}

TEST_MAIN("judge-attention");
