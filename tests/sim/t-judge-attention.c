/* t-judge-attention.c -- mpsim/judge.h: attention. Results and faults are made here, by loops of C. */
#include "support/judged.h"
#include "support/support.h"

#include <mpsim/judge.h>
#include <mpsim/layer.h>
#include <mpsim/transformer.h>

#include <math.h>

enum { HEADS = 4, KV = 2, QUERIES = 12, KEYS = 24, DIM = 16, N = HEADS * QUERIES * DIM };

static float q[N], k[KV * KEYS * DIM], v[KV * KEYS * DIM], o[N], heads[2] = {HEADS, KV};
static uint8_t mask[QUERIES * KEYS];
static float bias[HEADS * QUERIES * KEYS], slopes[HEADS] = {0.5f, 0.25f, 0.125f, 0.0625f},
                                           sinks[HEADS] = {1, -2, 3, 0.5f}, lse[HEADS * QUERIES];
enum { NO_O = 1, WITH_BIAS = 2, WITH_SLOPES = 4, WITH_SINKS = 8, WITH_LSE = 16 };
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
    fill(bias, HEADS * QUERIES * KEYS, 9);
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

/* With other arrays: WITH_BIAS, ... */
static mpsim_status ask_more(const char *like, unsigned more)
{
    const mpsim_format *f = mpsim_format_find("binary32");
    const mpsim_judge_array all[] = {{"o", f, o, HEADS * QUERIES, DIM},
                                     {"bias", f, bias, HEADS * QUERIES, KEYS},
                                     {"slopes", f, slopes, 1, HEADS},
                                     {"sinks", f, sinks, 1, HEADS},
                                     {"lse", f, lse, HEADS, QUERIES}};
    mpsim_judge_array arrays[9] = {{"q", f, q, HEADS * QUERIES, DIM},
                                   {"k", f, k, KV * KEYS, DIM},
                                   {"v", f, v, KV * KEYS, DIM},
                                   {"heads", f, heads, 1, 2}};
    size_t n = 4;
    char why[512] = "";
    for (size_t i = 0; i < 5; i++)
        if ((more >> i & 1) != (i == 0))
            arrays[n++] = all[i];
    const mpsim_status s = mpsim_judge(&j, MPSIM_JUDGE_ATTENTION, arrays, n, like, NULL, why, sizeof why);
    ck_assert_msg((s == MPSIM_OK) == (why[0] == '\0'), "%d: %s", s, why);
    return s;
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

/* A softmax over tiles of keys. */
typedef struct online {
    float sum, most, y[DIM];
} online;

/* n scores, and their values, which a sink has not: products one after the other into the accumulator. */
static void online_add(online *s, const float *x, size_t n, const float *values)
{
    float e[16], next = s->most;
    for (size_t t = 0; t < n; t++)
        next = fmaxf(next, x[t]);
    const float again = mpsim_exp(s->most - next);
    for (size_t t = 0; t < n; t++)
        e[t] = mpsim_exp(x[t] - next);
    const volatile float before = s->sum * again;
    s->sum = before + mpsim_sum_lanes(NULL, e, n, 1, MPSIM_LANES_ROW);
    s->most = next;
    for (size_t c = 0; c < DIM; c++) {
        s->y[c] *= again;
        for (size_t t = 0; t < n && values; t++) {
            const volatile float p = e[t] * values[t * DIM + c];
            s->y[c] += p;
        }
    }
}

/* Tiles of 16 keys in binary32. */
static void flash(void)
{
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < QUERIES; i++) {
            online s = {0, -HUGE_VALF, {0}};
            for (size_t first = 0; first < KEYS; first += 16) {
                const size_t n = KEYS - first < 16 ? KEYS - first : 16;
                float x[16];
                for (size_t t = 0; t < n; t++)
                    x[t] = 0.25f * chain(q + (h * QUERIES + i) * DIM, key_of(h, first + t), DIM, 1);
                online_add(&s, x, n, values_of(h) + first * DIM);
            }
            for (size_t c = 0; c < DIM; c++)
                o[(h * QUERIES + i) * DIM + c] = s.y[c] / s.sum;
        }
}

/* Whole rows in binary32 with a cap, a bias, slopes and sinks; products in chunks of 8 of the depth. */
static float chunks(const float *a, const float *b, size_t n, size_t step)
{
    float s = 0;
    for (size_t i = 0; i < n; i += 8) {
        float part = 0;
        for (size_t c = i; c < i + 8; c++)
            part = fmaf(a[c], b[c * step], part);
        s += part;
    }
    return s;
}

typedef float dot(const float *a, const float *b, size_t n, size_t step);

static float more_score(dot *of, size_t h, size_t i, size_t t, float cap)
{
    const volatile float ratio = 0.25f * of(q + (h * QUERIES + i) * DIM, key_of(h, t), DIM, 1) / cap,
                         product = cap * mpsim_tanh(ratio),
                         less = slopes[h] * fabsf((float)i + KEYS - QUERIES - (float)t);
    return product + bias[(h * QUERIES + i) * KEYS + t] - less;
}

static void eager_more(float cap)
{
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < QUERIES; i++) {
            float x[KEYS + 1], e[KEYS + 1], most = sinks[h];
            for (size_t t = 0; t < KEYS; t++)
                most = fmaxf(most, x[t] = more_score(chunks, h, i, t, cap));
            x[KEYS] = sinks[h];
            for (size_t t = 0; t <= KEYS; t++)
                e[t] = mpsim_exp(x[t] - most);
            const float z = mpsim_sum_lanes(NULL, e, KEYS + 1, 1, MPSIM_LANES_ROW);
            lse[h * QUERIES + i] = most + mpsim_log(z);
            for (size_t t = 0; t < KEYS; t++)
                e[t] /= z;
            for (size_t c = 0; c < DIM; c++)
                o[(h * QUERIES + i) * DIM + c] = chunks(e, values_of(h) + c, KEYS, DIM);
        }
}

/* Tiles of 16 keys; the sink is in front of the first or behind the last one. */
static void flash_more(float cap, int sink_first)
{
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < QUERIES; i++) {
            online s = {0, -HUGE_VALF, {0}};
            if (sink_first)
                online_add(&s, &sinks[h], 1, NULL);
            for (size_t first = 0; first < KEYS; first += 16) {
                const size_t n = KEYS - first < 16 ? KEYS - first : 16;
                float x[16];
                for (size_t t = 0; t < n; t++)
                    x[t] = more_score(chain, h, i, first + t, cap);
                online_add(&s, x, n, values_of(h) + first * DIM);
            }
            if (!sink_first)
                online_add(&s, &sinks[h], 1, NULL);
            lse[h * QUERIES + i] = s.most + mpsim_log(s.sum);
            for (size_t c = 0; c < DIM; c++)
                o[(h * QUERIES + i) * DIM + c] = s.y[c] / s.sum;
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
    size_t window;
    double cap;
    int late;                   /* the cap comes behind bias and slopes; 2: and behind the mask */
    int once, times;            /* the cap is not multiplied; the score is, in its place */
    double bias, slopes, sinks; /* factors of these */
    int next, any;              /* slopes of the head before or behind; the sink of another head */
    double base, sum;           /* lse: divided by the logarithm of base; without the largest score */
} fault;

static double score(const fault *f, size_t h, size_t i, size_t t)
{
    const size_t kv = f->modulo ? h % KV : f->first_head ? 0 : h / (HEADS / KV);
    const float *of_k = (f->swapped ? v : k) + (kv * KEYS + t) * DIM;
    double s = 0;
    for (size_t c = 0; c < DIM; c++)
        s += (double)q[(h * QUERIES + i) * DIM + c] * (double)of_k[c];
    s *= f->scale;
    const double slope = (double)slopes[h] * exp2(-f->next), far = fabs((double)i + KEYS - QUERIES - (double)t),
                 more = f->bias * (double)bias[(h * QUERIES + i) * KEYS + t] - f->slopes * slope * far;
    s += f->late ? more : 0;
    const double turned = f->cap > 0 ? tanh(s / f->cap) : 0;
    s = f->cap > 0 ? (f->once ? 1 : f->times ? s : f->cap) * turned : s;
    return s + (f->late ? 0 : more);
}

static double masked_score(const fault *f)
{
    return f->zero ? 0 : f->late == 2 ? -f->cap : -HUGE_VAL;
}

static int sees(const fault *f, size_t i, size_t t)
{
    const size_t own = (f->causal == 2 ? i : i + KEYS - QUERIES) + (size_t)f->more;
    return t >= f->first && t < KEYS - f->last && (!f->causal || t <= own) && (!f->window || t + f->window > own) &&
           (!f->masked || (mask[i * KEYS + t] != 0) != f->inverted);
}

static void play(const fault *f)
{
    for (size_t h = 0; h < HEADS; h++)
        for (size_t i = 0; i < QUERIES; i++) {
            double x[KEYS], most = -HUGE_VAL, known = -HUGE_VAL, sum = f->plus, y[DIM] = {0};
            const size_t kv = f->modulo ? h % KV : f->first_head ? 0 : h / (HEADS / KV);
            for (size_t t = 0; t < KEYS; t++)
                most = fmax(most, x[t] = sees(f, i, t) ? score(f, h, i, t) : masked_score(f));
            const size_t of_sink = f->any ? (h * QUERIES + i) % HEADS : h;
            sum += f->filled * exp(-most);
            sum += f->sinks * exp((double)sinks[of_sink] - most);
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
            lse[h * QUERIES + i] = (float)((log(sum) + (f->sum > 0 ? 0 : most)) / (f->base > 0 ? log(f->base) : 1));
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

TEST(rows_with_more)
{
    const unsigned all = WITH_BIAS | WITH_SLOPES | WITH_SINKS | WITH_LSE;
    make();
    eager_more(20);
    ck_assert_int_eq(ask_more("eager:model=fma:chunk=8:softcap=20", all), MPSIM_OK);
    ck_assert_msg(j.differ == 0 && j.results == N + HEADS * QUERIES, "%s: %d", j.row, (int)j.differ);
    ck_assert_int_eq(ask_more("eager:model=fma:chunk=8:softcap=20", all | NO_O), MPSIM_OK);
    ck_assert_msg(j.differ == 0 && j.results == HEADS * QUERIES, "%s: %d", j.row, (int)j.differ);
    ck_assert_int_eq(ask_more("eager:model=fma:softcap=20", all), MPSIM_OK);
    judged_has(&j, "rounding", "near the exact ones");
    for (int sink_first = 0; sink_first < 2; sink_first++) {
        flash_more(20, sink_first);
        ck_assert_int_eq(ask_more(NULL, all), MPSIM_OK);
        ck_assert_msg(j.differ == 0 &&
                          judged_in_class(&j, sink_first ? "flash:model=sequential:sink-first:tile=16:softcap=20"
                                                         : "flash:model=sequential:tile=16:softcap=20"),
                      "%s: %d", j.row, (int)j.differ);
    }
}

TEST(faults_of_more)
{
    static const struct {
        fault f;
        unsigned more;
        const char *like, *cause, *words;
    } cases[] = {
        {{.cap = 5}, 0, "eager:softcap=5", "rounding", "near the exact ones"},
        {{.cap = 0}, 0, "eager:softcap=5", "softcap", "is left out"},
        {{.cap = 5, .causal = 1, .late = 2}, 0, "eager:causal:softcap=5", "softcap", "after the mask"},
        {{.cap = 5, .bias = 1, .late = 1}, WITH_BIAS, "eager:softcap=5", "softcap", "after the bias"},
        {{.cap = 5, .once = 1}, 0, "eager:softcap=5", "softcap", "not multiplied"},
        {{.cap = 5, .times = 1}, 0, "flash:softcap=5", "softcap", "score tanh"},
        {{.bias = 1}, WITH_BIAS, "eager", "rounding", "near the exact ones"},
        {{.bias = 0}, WITH_BIAS, "flash:tile=16", "bias", "is left out"},
        {{.bias = 0.25}, WITH_BIAS, "eager", "bias", "before the scale"},
        {{.bias = -1}, WITH_BIAS, "eager", "bias", "subtracted"},
        {{.bias = 2}, WITH_BIAS, "eager", "bias", "twice"},
        {{.slopes = 1, .causal = 1}, WITH_SLOPES, "flash:causal:tile=16", "rounding", "near the exact ones"},
        {{.slopes = 0}, WITH_SLOPES, "eager", "slopes", "left out"},
        {{.slopes = -1, .causal = 1}, WITH_SLOPES, "eager:causal", "slopes", "other sign"},
        {{.slopes = 0.25}, WITH_SLOPES, "eager", "slopes", "by the scale"},
        {{.slopes = 1, .next = -1}, WITH_SLOPES, "eager", "slopes", "the head before"},
        {{.slopes = 1, .next = 1}, WITH_SLOPES, "eager", "slopes", "the next head"},
        {{.sinks = 1}, WITH_SINKS | WITH_LSE, "eager", "rounding", "near the exact ones"},
        {{.sinks = 0}, WITH_SINKS, "flash:sink-first", "sink", "is left out"},
        {{.sinks = 2}, WITH_SINKS | WITH_LSE, "eager", "sink", "counted twice"},
        {{.sinks = 1, .any = 1}, WITH_SINKS, "eager", "sink", "of its place"},
        {{.window = 5, .causal = 1}, WITH_LSE, "eager:causal:window=4", "mask", "one key more"},
        {{.window = 0, .causal = 1}, 0, "eager:causal:window=4", "mask", "the window is left out"},
        {{.base = 2}, WITH_LSE, "eager", "lse", "to base 2"},
        {{.base = 2}, WITH_LSE | NO_O, "flash:exp2", "lse", "to base 2"},
        {{.sum = 1}, WITH_LSE, "eager", "lse", "is not added"},
    };
    make();
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (!test_in_part(i, 4))
            continue;
        fault f = cases[i].f;
        f.scale = 0.25;
        play(&f);
        ck_assert_int_eq(ask_more(cases[i].like, cases[i].more), MPSIM_OK);
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
    ck_assert_int_eq(ask_more("eager:model=fma:nothing", 0), MPSIM_ENOTFOUND);
    ck_assert_int_eq(ask_more("eager:softcap=0", 0), MPSIM_ENOTFOUND);
    ck_assert_int_eq(ask_more("eager:sink-first", 0), MPSIM_ENOTFOUND);
    ck_assert_int_eq(ask_more("eager", NO_O), MPSIM_EINVAL);
    heads[1] = 3;
    ck_assert_int_eq(ask_with("flash", 0, KV * KEYS), MPSIM_EINVAL);
    heads[1] = KV;
}

TEST_MAIN("judge-attention");
