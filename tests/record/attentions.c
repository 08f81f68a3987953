/* attentions.c -- codes of attention, forward and backward (data/record/device/attention_raw.py), beside the library's.
 *
 * Of O and logsumexp: mpsim_attention_forward with tiles of many sizes, from the first or the last, e^x or 2^x, a quotient
 * or a reciprocal at the end. Of the gradients: products of the same rows, P and dS rounded to the type of the inputs, tiles
 * added in either order, from zero or on. A way fits that gives every code and the digest of both
 * heads. Where none does the answer says which is closest, and how far. */
#include "device.h"

#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/attention.h>
#include <mpsim/digest.h>
#include <mpsim/layer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 512, WIDE = 128, HEADS = 2, INPUTS = 4 };
enum { Q, K, V, G };

/* ---- the inputs, drawn again, and what follows from them ---- */

typedef struct drawn {
    char type[24];
    size_t length, width;
    int causal, has_scores;
    const mpsim_format *f;
    uint16_t both[INPUTS][HEADS * MOST * WIDE];
    uint64_t digests[INPUTS];                     /* of both heads */
    uint16_t codes[INPUTS][MOST * WIDE];          /* of the head that is at hand: use_head */
    float p[MOST * MOST], ds[MOST * MOST];        /* see find_scores */
    uint16_t p16[MOST * MOST], ds16[MOST * MOST]; /* the same in the type of the inputs */
    double exact[3][MOST * WIDE];                 /* dq, dk, dv in binary64 */
} drawn;

static void draw_input(drawn *d, int which)
{
    const size_t n = HEADS * d->length * d->width;
    uint16_t *both = d->both[which];
    for (size_t i = 0; i < n; i++)
        both[i] = (uint16_t)device_encode(d->f,
                                          device_number(d->type, -3, 1, which == G ? 64 : 60 + (uint64_t)which, i));
    d->digests[which] = mpsim_digest(d->f, both, n, 0);
}

static void use_head(drawn *d, size_t head)
{
    const size_t n = d->length * d->width;
    for (int which = 0; which < INPUTS; which++)
        memcpy(d->codes[which], d->both[which] + head * n, n * sizeof d->codes[0][0]);
    d->has_scores = 0;
}

/* Of a case; NULL where it is not understood. */
static drawn *draw(const json_t *c)
{
    static drawn d;
    const char *type = device_text(c, "type");
    const size_t length = (size_t)device_integer(c, "length"), width = (size_t)device_integer(c, "width");
    const int causal = json_is_true(json_object_get(c, "causal"));
    if (!device_format(type) || device_format(type)->bits != 16 || length == 0 || length > MOST || width == 0 ||
        width > WIDE)
        return NULL;
    if (strcmp(d.type, type) == 0 && d.length == length && d.width == width && d.causal == causal)
        return &d;
    snprintf(d.type, sizeof d.type, "%.20s", type);
    d.f = device_format(type);
    d.length = length;
    d.width = width;
    d.causal = causal;
    for (int which = 0; which < INPUTS; which++)
        draw_input(&d, which);
    use_head(&d, 0);
    return &d;
}

static mpsim_matrix matrix_of(const drawn *d, const uint16_t *codes)
{
    return (mpsim_matrix){d->f, codes, d->width, 0};
}

static const mpsim_model *model_of(const drawn *d)
{
    static mpsim_model m;
    device_need(mpsim_model_parse(&m, strcmp(d->f->name, "fp16") == 0 ? "hopper-fp16-fp32" : "hopper-bf16-fp32") ==
                MPSIM_OK);
    return &m;
}

/* ---- what a line holds ---- */

static int sextet(char c)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    const char *at = c ? strchr(digits, c) : NULL;
    return at ? (int)(at - digits) : -1;
}

/* Codes of `bytes` bytes each from base64; how many, 0 where the text is none. */
static size_t codes_in(const char *text, size_t bytes, uint32_t *codes, size_t most)
{
    size_t n = 0, have = 0;
    uint32_t bits = 0, word = 0;
    int held = 0;
    for (; *text && *text != '='; text++) {
        if (sextet(*text) < 0)
            return 0;
        bits = bits << 6 | (uint32_t)sextet(*text);
        for (held += 6; held >= 8; held -= 8) {
            word |= (bits >> (held - 8) & 0xff) << 8 * have;
            if (++have < bytes)
                continue;
            if (n == most)
                return 0;
            codes[n++] = word;
            have = word = 0;
        }
    }
    return have ? 0 : n;
}

/* The codes of the rows that a case keeps. */
typedef struct kept {
    const mpsim_format *f;
    size_t step, rows, width, n;
    uint32_t codes[MOST * WIDE];
} kept;

static kept *keep(const json_t *c, const drawn *d, int is_lse)
{
    static kept k;
    k.f = is_lse ? mpsim_format_find("binary32") : d->f;
    k.step = (size_t)device_integer(c, "rows");
    k.rows = k.step ? (d->length + k.step - 1) / k.step : 0;
    k.width = is_lse ? 1 : d->width;
    k.n = codes_in(device_text(c, "codes"), k.f->bits / 8, k.codes, MOST * WIDE);
    return k.rows && k.n == k.rows * k.width ? &k : NULL;
}

/* ---- how far codes are apart ---- */

typedef struct distance {
    size_t differ;
    uint64_t most; /* in units of the last place: codes between */
} distance;

static int64_t rank_of(const mpsim_format *f, uint64_t code)
{
    const uint64_t sign = (uint64_t)1 << (f->bits - 1);
    return code & sign ? -(int64_t)(code & (sign - 1)) : (int64_t)code;
}

static distance compare(const kept *k, const uint32_t *codes)
{
    distance apart = {0, 0};
    for (size_t i = 0; i < k->n; i++) {
        const int64_t by = rank_of(k->f, k->codes[i]) - rank_of(k->f, codes[i]);
        apart.differ += codes[i] != k->codes[i];
        apart.most = (uint64_t)llabs(by) > apart.most ? (uint64_t)llabs(by) : apart.most;
    }
    return apart;
}

/* The largest distance from binary64, in root mean squares of the kept numbers: near zero units of the last place say nothing. */
static double beside_exact(const kept *k, const double *exact)
{
    double most = 0, squares = 0;
    for (size_t i = 0; i < k->n; i++) {
        most = fmax(most, fabs(mpsim_decode(k->f, k->codes[i]) - exact[i]));
        squares += exact[i] * exact[i];
    }
    return most / sqrt(squares / (double)k->n);
}

/* ---- forward ---- */

typedef struct way {
    size_t tile;
    int reverse, exp2, reciprocal, separate;
} way;

static const size_t tiles[] = {0, 16, 32, 64, 80, 96, 112, 128, 160, 176, 192, 256};

/* Way i of a length; 0: it is another one, or past the end (*more becomes 0). */
static int way_at(way *w, size_t i, size_t length, int *more)
{
    const size_t n = sizeof tiles / sizeof tiles[0];
    *w = (way){tiles[i / 16 % n], (int)(i & 1), (int)(i >> 1 & 1), (int)(i >> 2 & 1), (int)(i >> 3 & 1)};
    *more = i < 16 * n;
    return *more && (w->tile ? w->tile < length : !w->reverse && !w->separate);
}

static const char *way_name(const way *w)
{
    static char name[160];
    char tile[60] = "all keys at once";
    if (w->tile)
        snprintf(tile, sizeof tile, "tiles of %zu%s%s", w->tile, w->reverse ? " from the last" : "",
                 w->separate ? " each from zero" : "");
    snprintf(name, sizeof name, "%s by %s%s", tile, w->exp2 ? "2^x" : "e^x", w->reciprocal ? " with a reciprocal" : "");
    return name;
}

/* Rows 0, step, 2 step, ... by a way: y and logsumexp. The mask says which keys a row sees, so that any rows can be asked. */
static void run_forward(const drawn *d, const kept *k, const way *w, float *y, float *lse, double *exact)
{
    static uint16_t rows[MOST * WIDE];
    static uint8_t mask[MOST * MOST];
    mpsim_attention a;
    for (size_t i = 0; i < k->rows; i++) {
        memcpy(rows + i * d->width, d->codes[Q] + i * k->step * d->width, d->width * sizeof rows[0]);
        for (size_t j = 0; j < d->length; j++)
            mask[i * d->length + j] = !d->causal || j <= i * k->step;
    }
    const mpsim_attention_shape shape = {k->rows, d->length, d->width, d->width};
    const mpsim_matrix q = matrix_of(d, rows), keys = matrix_of(d, d->codes[K]), values = matrix_of(d, d->codes[V]);
    mpsim_attention_init(&a, d->width);
    a.scores = a.context = model_of(d);
    a.p.format = *d->f;
    a.f = d->f;
    a.mask = mask;
    a.tile = w->tile;
    a.reverse = (uint8_t)w->reverse;
    a.exp2 = (uint8_t)w->exp2;
    a.reciprocal = (uint8_t)w->reciprocal;
    a.separate = (uint8_t)w->separate;
    if (exact)
        device_need(mpsim_attention_exact(&a, &shape, &q, &keys, &values, exact, NULL) == MPSIM_OK);
    else
        device_need(mpsim_attention_forward(&a, &shape, &q, &keys, &values, y, lse, NULL, NULL, NULL, NULL) ==
                    MPSIM_OK);
}

static void encode_all(const mpsim_format *f, uint32_t *codes, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        codes[i] = (uint32_t)device_encode(f, x[i]);
}

/* ---- backward ---- */

static double value_of(const drawn *d, int which, size_t i)
{
    return mpsim_decode(d->f, d->codes[which][i]);
}

/* The gradients of the first head in binary64. */
static void find_exact(drawn *d)
{
    const double scale = 1 / sqrt((double)d->width);
    memset(d->exact, 0, sizeof d->exact);
    for (size_t i = 0; i < d->length; i++) {
        static double p[MOST], dp[MOST];
        const size_t end = d->causal ? i + 1 : d->length;
        double top = -HUGE_VAL, sum = 0, mean = 0;
        for (size_t j = 0; j < end; j++) {
            p[j] = dp[j] = 0;
            for (size_t c = 0; c < d->width; c++) {
                p[j] += value_of(d, Q, i * d->width + c) * value_of(d, K, j * d->width + c);
                dp[j] += value_of(d, G, i * d->width + c) * value_of(d, V, j * d->width + c);
            }
            top = fmax(top, p[j]);
        }
        for (size_t j = 0; j < end; j++)
            sum += p[j] = exp(scale * (p[j] - top));
        for (size_t j = 0; j < end; j++)
            mean += (p[j] /= sum) * dp[j];
        for (size_t j = 0; j < end; j++)
            for (size_t c = 0; c < d->width; c++) {
                const double ds = scale * p[j] * (dp[j] - mean);
                d->exact[0][i * d->width + c] += ds * value_of(d, K, j * d->width + c);
                d->exact[1][j * d->width + c] += ds * value_of(d, Q, i * d->width + c);
                d->exact[2][j * d->width + c] += p[j] * value_of(d, G, i * d->width + c);
            }
    }
}

/* S and dP by the model, P = 2^(l S - lse log2 e), dS = P (dP - sum of g o), in binary32; P and dS are rounded to 16 bits. */
static void find_scores(drawn *d)
{
    static float o[MOST * WIDE], lse[MOST];
    const size_t n = d->length;
    const kept all = {.step = 1, .rows = n};
    const way tiled = {.tile = n > 128 ? 128 : 0, .exp2 = 1};
    const mpsim_matrix q = matrix_of(d, d->codes[Q]), g = matrix_of(d, d->codes[G]);
    const mpsim_matrix k = {d->f, d->codes[K], d->width, 1}, v = {d->f, d->codes[V], d->width, 1};
    const float l = (float)((double)(float)(1 / sqrt((double)d->width)) * 0x1.71547652b82fep+0);
    if (d->has_scores)
        return;
    d->has_scores = 1;
    find_exact(d);
    run_forward(d, &all, &tiled, o, lse, NULL);
    device_need(mpsim_gemm(model_of(d), n, n, d->width, &q, &k, NULL, d->p, n, NULL, NULL) == MPSIM_OK &&
                mpsim_gemm(model_of(d), n, n, d->width, &g, &v, NULL, d->ds, n, NULL, NULL) == MPSIM_OK);
    for (size_t i = 0; i < n; i++) {
        double mean = 0;
        for (size_t c = 0; c < d->width; c++)
            mean += value_of(d, G, i * d->width + c) * (double)o[i * d->width + c];
        for (size_t j = 0; j < n; j++) {
            const size_t at = i * n + j;
            const float p = d->causal && j > i ? 0 : mpsim_exp2(fmaf(d->p[at], l, -(lse[i] * 0x1.715476p+0f)));
            d->p16[at] = (uint16_t)device_encode(d->f, p);
            d->ds16[at] = (uint16_t)device_encode(d->f, p == 0 ? 0 : p * (d->ds[at] - (float)mean));
        }
    }
}

/* Rows of a gradient: tiles of the sum over queries (dk, dv) or keys (dq), in an order, each from zero or on from the last. */
static void run_backward(const drawn *d, const kept *k, int which, const way *w, uint32_t *codes)
{
    static float sum[MOST * WIDE], part[MOST * WIDE];
    static uint16_t rows[MOST * MOST];
    const size_t n = d->length, tile = w->tile ? w->tile : n, count = (n + tile - 1) / tile;
    const uint16_t *from = which == 2 ? d->p16 : d->ds16;
    for (size_t i = 0; i < k->rows; i++)
        for (size_t j = 0; j < n; j++)
            rows[i * n + j] = which == 0 ? from[i * k->step * n + j] : from[j * n + i * k->step];
    memset(sum, 0, sizeof sum);
    for (size_t t = 0; t < count; t++) {
        const size_t first = (w->reverse ? count - 1 - t : t) * tile, depth = n - first < tile ? n - first : tile;
        const mpsim_matrix a = {d->f, rows + first, n, 0};
        const mpsim_matrix b = {d->f, d->codes[which == 0 ? K : which == 1 ? Q : G] + first * d->width, d->width, 0};
        const mpsim_matrix c = {mpsim_format_find("binary32"), sum, d->width, 0};
        device_need(mpsim_gemm(model_of(d), k->rows, d->width, depth, &a, &b, w->separate ? NULL : &c, part, d->width,
                               NULL, NULL) == MPSIM_OK);
        for (size_t i = 0; i < k->n; i++)
            sum[i] = w->separate ? sum[i] + part[i] : part[i];
    }
    for (size_t i = 0; i < k->n; i++)
        codes[i] = (uint32_t)device_encode(d->f, which == 2 ? sum[i] : sum[i] * (float)(1 / sqrt((double)d->width)));
}

/* ---- ways of a tensor ---- */

typedef enum tensor { O, LSE, DQ, DK, DV, TENSORS } tensor;
static const char *const tensor_names[TENSORS] = {"o", "lse", "dq", "dk", "dv"};

static void run_way(drawn *d, const kept *k, tensor t, const way *w, uint32_t *codes)
{
    static float y[MOST * WIDE], lse[MOST];
    if (t >= DQ) {
        find_scores(d);
        run_backward(d, k, (int)(t - DQ), w, codes);
        return;
    }
    run_forward(d, k, w, y, lse, NULL);
    encode_all(k->f, codes, t == LSE ? lse : y, k->n);
}

/* Whether a way can differ from others in this tensor: tiles of gradients that are added on and on are one sum. */
static int concerns(const way *w, tensor t)
{
    return t < DQ || (w->exp2 && !w->reciprocal && (!w->tile || w->reverse || w->separate));
}

enum { FITS = 256 };
typedef struct search {
    way fits[FITS]; /* give every code that is kept */
    uint64_t digests[FITS];
    size_t count;
    distance closest;
    char name[160];
} search;

static void try_way(search *s, drawn *d, const kept *k, tensor t, const way *w)
{
    static uint32_t codes[MOST * WIDE];
    run_way(d, k, t, w, codes);
    const distance apart = compare(k, codes);
    if (apart.differ == 0 && s->count < FITS)
        s->fits[s->count++] = *w;
    if (*s->name &&
        (apart.differ > s->closest.differ || (apart.differ == s->closest.differ && apart.most >= s->closest.most)))
        return;
    s->closest = apart;
    snprintf(s->name, sizeof s->name, "%s", way_name(w));
}

/* The digests of both heads, of all rows, by the ways that fit. */
static void find_digests(search *s, drawn *d, const kept *k, tensor t)
{
    static uint32_t codes[MOST * WIDE];
    static uint16_t narrow[MOST * WIDE];
    const kept all = {.f = k->f, .step = 1, .rows = d->length, .width = k->width, .n = d->length * k->width};
    memset(s->digests, 0, sizeof s->digests);
    for (size_t head = 0; head < HEADS && s->count; head++) {
        use_head(d, head);
        for (size_t i = 0; i < s->count; i++) {
            run_way(d, &all, t, &s->fits[i], codes);
            for (size_t j = 0; j < all.n; j++)
                narrow[j] = (uint16_t)codes[j];
            s->digests[i] += mpsim_digest(k->f, t == LSE ? (const void *)codes : narrow, all.n, head * all.n);
        }
    }
    if (s->count)
        use_head(d, 0);
}

/* Ways that give the codes and the digest; else how far the closest is, and binary64 where it is known (not below 0). */
static void say(char *answer, const search *s, const json_t *c, const kept *k, double exact)
{
    char more[60] = "";
    device_fits fits = {.count = 0};
    for (size_t i = 0; i < s->count; i++)
        if (device_same_digest(c, "digest", s->digests[i]))
            device_fit(&fits, "%s", way_name(&s->fits[i]));
    if (exact >= 0)
        snprintf(more, sizeof more, "; from binary64 by %.2g of the rms", exact);
    if (fits.count)
        device_say_fits(answer, &fits);
    else if (s->count)
        device_say(answer, "none fits: %zu ways give the codes, none the digest of both heads", s->count);
    else
        device_say(answer, "none fits; closest: %s, %zu of %zu codes differ, by %" PRIu64 " ulp at most%s", s->name,
                   s->closest.differ, k->n, s->closest.most, more);
}

static double exact_distance(drawn *d, const kept *k, tensor t)
{
    static double exact[MOST * WIDE];
    const way whole = {0};
    if (t == LSE)
        return -1;
    if (t == O)
        run_forward(d, k, &whole, NULL, NULL, exact);
    else
        find_scores(d);
    for (size_t i = 0; t >= DQ && i < k->n; i++)
        exact[i] = d->exact[t - DQ][i / k->width * k->step * k->width + i % k->width];
    return beside_exact(k, exact);
}

static void look(drawn *d, const json_t *c, const kept *k, tensor t, char *answer)
{
    static search s;
    s.count = 0;
    s.name[0] = '\0';
    for (size_t i = 0, more = 1; more; i++) {
        int go_on;
        way w;
        if (way_at(&w, i, d->length, &go_on) && concerns(&w, t))
            try_way(&s, d, k, t, &w);
        more = (size_t)go_on;
    }
    find_digests(&s, d, k, t);
    say(answer, &s, c, k, s.count ? -1 : exact_distance(d, k, t));
}

/* ---- lines ---- */

static void look_inputs(const json_t *c, const drawn *d, char *answer)
{
    static const char names[INPUTS][2] = {"q", "k", "v", "g"};
    static uint32_t codes[MOST * WIDE];
    const json_t *raw = json_object_get(c, "codes");
    for (int i = 0; i < INPUTS; i++) {
        int same = device_same_digest(c, names[i], d->digests[i]);
        const size_t n = raw ? codes_in(device_text(raw, names[i]), 2, codes, MOST * WIDE) : 0;
        same &= !raw || n == d->length * d->width;
        for (size_t j = 0; j < n; j++)
            same &= codes[j] == d->codes[i][j];
        if (!same) {
            device_say(answer, "none fits: other inputs: %s", names[i]);
            return;
        }
    }
    device_say(answer, "fits inputs%s; gradients: %s", raw ? ", code by code" : "", device_text(c, "mode"));
}

void device_attention_raw(const json_t *head, const json_t *c, char *answer)
{
    const char *name = device_text(c, "tensor");
    drawn *d = draw(c);
    tensor t = O;
    (void)head;
    while (t < TENSORS && strcmp(name, tensor_names[t]) != 0)
        t++;
    const kept *k = d && t < TENSORS ? keep(c, d, t == LSE) : NULL;
    if (d && strcmp(name, "inputs") == 0)
        look_inputs(c, d, answer);
    else if (!d || t == TENSORS)
        device_say(answer, "not understood");
    else if (!*device_text(c, "codes"))
        device_say(answer, "a digest alone%s",
                   json_is_false(json_object_get(c, "again")) ? "; it does not come again" : "");
    else if (!k)
        device_say(answer, "none fits: not the codes of these rows");
    else
        look(d, c, k, t, answer);
}

/* ---- devices that the library plays ---- */

static void encode_base64(char *to, const uint32_t *codes, size_t n, size_t bytes)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    uint32_t bits = 0;
    int held = 0;
    for (size_t i = 0; i < n * bytes; i++) {
        bits = bits << 8 | (codes[i / bytes] >> 8 * (i % bytes) & 0xff);
        for (held += 8; held >= 6; held -= 6)
            *to++ = digits[bits >> (held - 6) & 63];
    }
    if (held)
        *to++ = digits[bits << (6 - held) & 63];
    *to = '\0';
}

/* A case of what a way gives, with one code or the digest changed where that is asked; its answer. */
static void play(char *answer, tensor t, int causal, const way *w, int changed_code, int changed_digest)
{
    static uint32_t codes[MOST * WIDE];
    static char text[8 * MOST * WIDE];
    static search s;
    char hex[17];
    json_t *c = json_pack("{s:s,s:i,s:i,s:b,s:s,s:i}", "type", "bfloat16", "length", 160, "width", 16, "causal", causal,
                          "tensor", tensor_names[t], "rows", 5);
    drawn *d = draw(c);
    kept k = {.f = t == LSE ? mpsim_format_find("binary32") : d->f, .step = 5, .rows = 32, .width = t == LSE ? 1 : 16};
    k.n = k.rows * k.width;
    run_way(d, &k, t, w, codes);
    codes[7] ^= (uint32_t)changed_code;
    encode_base64(text, codes, k.n, k.f->bits / 8);
    s.count = 1;
    s.fits[0] = *w;
    find_digests(&s, d, &k, t);
    snprintf(hex, sizeof hex, "%016" PRIx64, s.digests[0] ^ (uint64_t)changed_digest);
    json_object_set_new(c, "codes", json_string(text));
    json_object_set_new(c, "digest", json_string(hex));
    device_attention_raw(NULL, c, answer);
    json_decref(c);
}

static void check_play(device_ok *ok, tensor t, int causal, const way *w)
{
    char answer[DEVICE_ANSWER] = "", code[DEVICE_ANSWER] = "", digest[DEVICE_ANSWER] = "";
    play(answer, t, causal, w, 0, 0);
    play(code, t, causal, w, 1, 0);
    play(digest, t, causal, w, 0, 1);
    const int is_told = t >= DQ || !strstr(answer, "tiles of 32"); /* of gradients in 16 bits many ways give the same */
    ok(strncmp(answer, "fits", 4) == 0 && is_told && strstr(code, " 1 of ") && strstr(digest, "none the digest"),
       "%s of attention, played by %s: found, a changed code and digest, too", tensor_names[t], way_name(w));
    printf("# %s\n# %s\n# %s\n", answer, code, digest);
}

void device_check_attention(device_ok *ok)
{
    check_play(ok, O, 0, &(way){64, 1, 1, 0, 0});
    check_play(ok, O, 1, &(way){128, 0, 1, 1, 1});
    check_play(ok, LSE, 0, &(way){64, 1, 0, 0, 0});
    check_play(ok, DQ, 1, &(way){64, 0, 1, 0, 1});
    check_play(ok, DK, 0, &(way){64, 1, 1, 0, 0});
    check_play(ok, DV, 0, &(way){128, 1, 1, 0, 1});
}
