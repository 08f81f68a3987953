/* scaled.c -- torch._scaled_mm of devices: which ways, with scales applied to what, give the same bits, in the sample first, then
 * in all elements. */
#include "ways.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct scaled {
    const json_t *c;
    size_t m, n, k;
    const char *forms[2], *kind, *words;
    const mpsim_format *out;
    uint64_t streams[4];
    int guess; /* at parts of the depth: no device's */
} scaled;

static const int range[2] = {-6, 6}; /* of exponents */

/* Scales of a block of the depth, in row and column. */
static void scales_at(const scaled *s, size_t row, size_t column, size_t block, float *x, float *y)
{
    const size_t blocks = s->k / 128;
    uint64_t i = 0, j = 0;
    if (strcmp(s->kind, "one") == 0) {
        *x = *y = 1;
        return;
    }
    if (strcmp(s->kind, "rows") == 0) {
        i = row;
        j = column;
    } else if (strstr(s->kind, "128")) {
        const int wide = strstr(s->kind, "128x128") != NULL;
        i = row * blocks + block;
        j = wide ? block * (s->n / 128) + column / 128 : block * s->n + column;
    }
    *x = device_number("float32", -1, 2, s->streams[2], i);
    *y = device_number("float32", -1, 2, s->streams[3], j);
}

/* Where their product is one number, zero is added, as cuBLAS adds beta c: none becomes -0. */
static float apply(const way *w, float sum, float x, float y)
{
    return w->scales == SCALES_PRODUCT ? sum * (x * y) + 0.0f : w->scales == SCALES_A_FIRST ? sum * x * y : sum * y * x;
}

/* A block's sum times its scales, added. */
static float add_block(const way *w, float sum, float one, float x, float y)
{
    return !w->contracted                ? sum + apply(w, one, x, y)
           : w->scales == SCALES_PRODUCT ? __builtin_fmaf(one, x * y, sum)
           : w->scales == SCALES_A_FIRST ? __builtin_fmaf(one * x, y, sum)
                                         : __builtin_fmaf(one * y, x, sum);
}

static float scaled_sum(const way *w, const scaled *s, const element *e, size_t row, size_t column)
{
    float x, y, sum = 0;
    if (!strstr(s->kind, "128")) {
        scales_at(s, row, column, 0, &x, &y);
        return w->scales == SCALES_BEFORE ? ways_whole_scaled(w, e, x, y) : apply(w, ways_whole(w, e), x, y);
    }
    for (size_t block = 0; block < s->k / 128; block++) {
        const float one = ways_dot(w, e, block * 128, 128);
        scales_at(s, row, column, block, &x, &y);
        sum = add_block(w, sum, one, x, y);
    }
    return sum;
}

static void scaled_element(const scaled *s, size_t at, element *e)
{
    e->fa = device_format(s->forms[0]);
    e->fb = device_format(s->forms[1]);
    e->k = s->k;
    for (size_t k = 0; k < s->k; k++) {
        e->a[k] = device_number(s->forms[0], range[0], range[1], s->streams[0], at / s->n * s->k + k);
        e->b[k] = device_number(s->forms[1], range[0], range[1], s->streams[1], k * s->n + at % s->n);
    }
    ways_encode(e);
}

/* A row, with the depth in parts where scales are not those of blocks. */
static void add_scaled(candidates *all, const mpsim_model *m, const scaled *s, int order)
{
    cut cuts[WAYS_CUTS] = {{0}};
    const int blocks = strstr(s->kind, "128") != NULL;
    const size_t n = blocks ? 1 : ways_cuts(s->c, s->k, s->guess, cuts);
    for (size_t i = 0; i < n; i++)
        for (int contracted = 0; contracted <= blocks; contracted++)
            ways_add(all, (way){.m = *m, .cut = cuts[i], .scales = order, .contracted = contracted});
}

static void collect_scaled(candidates *all, const scaled *s, const char *arch, int software)
{
    mpsim_model m;
    const int blocks = strstr(s->kind, "128") != NULL, one = strcmp(s->kind, "one") == 0;
    all->n = 0;
    for (size_t i = mpsim_model_count(); i-- > 0;) {
        if (mpsim_model_at(&m, i) != MPSIM_OK || (m.architecture == NULL) != software ||
            !ways_has(&m, arch, device_format(s->forms[0]), device_format(s->forms[1])))
            continue;
        /* What multiplies first is software, and has no blocks. */
        const int orders = one ? 1 : blocks || m.architecture ? SCALES_BEFORE : SCALES_ORDERS;
        for (int order = 0; order < orders; order++)
            add_scaled(all, &m, s, order);
    }
}

/* What a case says; 0: it cannot be understood. */
static int read_scaled(const json_t *head, const json_t *c, scaled *s)
{
    *s = (scaled){.c = c,
                  .guess = strcmp(device_text(head, "kind"), "cuda") != 0,
                  .words = device_text(c, "d"),
                  .m = (size_t)device_integer(c, "m"),
                  .n = (size_t)device_integer(c, "n"),
                  .k = (size_t)device_integer(c, "k"),
                  .kind = device_text(c, "scales"),
                  .out = mpsim_format_find(strstr(device_text(c, "case"), " bfloat16 ") ? "bf16" : "binary32")};
    for (size_t i = 0; i < 2; i++) {
        const char *form = json_string_value(json_array_get(json_object_get(c, "forms"), i));
        s->forms[i] = form ? form : "";
    }
    for (size_t i = 0; i < 4; i++)
        s->streams[i] = (uint64_t)json_integer_value(json_array_get(json_object_get(c, "streams"), i));
    return device_format(s->forms[0]) && device_format(s->forms[1]) && s->k > 0 && s->k <= WAYS_DEPTH && s->m > 0 &&
           s->n > 0 && *s->words && *device_text(c, "digest");
}

/* Which candidates give the elements of the sample. */
static void judge_sample(candidates *all, const scaled *s)
{
    static element e;
    for (size_t i = 0; i < device_codes(s->words) && ways_left(all) > 0; i++) {
        const size_t at = device_place(s->c, i);
        scaled_element(s, at, &e);
        for (size_t j = 0; j < all->n; j++)
            if (!all->out[j])
                all->out[j] = device_encode(s->out, scaled_sum(&all->w[j], s, &e, at / s->n, at % s->n)) !=
                              device_code(s->words, i);
    }
}

/* ---- all elements ---- */

static void draw_line(const void *of, int right, size_t line, float *x)
{
    const scaled *s = of;
    device_numbers(s->forms[right], range, s->streams[right], right ? line : line * s->k, right ? s->n : 1, s->k, x);
}

/* Scales of rows from `row` and columns from `column` on. */
static void scales_of(const scaled *s, const operands *o, size_t row, size_t column, size_t block, float *x, float *y)
{
    float other;
    for (size_t i = 0; i < o->m; i++)
        scales_at(s, row + i, column, block, &x[i], &other);
    for (size_t j = 0; j < o->n; j++)
        scales_at(s, row, column + j, block, &other, &y[j]);
}

/* Lines of k codes as binary32 times their scales; to be freed. */
static unsigned char *scale_lines(const mpsim_format *f, const unsigned char *codes, const float *scales, size_t lines,
                                  size_t k)
{
    float *x = malloc(lines * k * sizeof *x);
    device_need(x && mpsim_decode_array_f32(f, x, codes, lines * k) == MPSIM_OK);
    for (size_t i = 0; i < lines * k; i++)
        x[i] *= scales[i / k];
    return (unsigned char *)x;
}

static void multiply_scaled(const way *w, const operands *o, const float *x, const float *y, float *sums)
{
    const mpsim_format *f = mpsim_format_find("binary32");
    operands of = *o;
    of.fa = of.fb = f;
    of.a = scale_lines(o->fa, o->a, x, o->m, o->k);
    of.b = scale_lines(o->fb, o->b, y, o->n, o->k);
    ways_multiply(w, &of, sums);
    free(of.a);
    free(of.b);
}

static void multiply_blocks(const scaled *s, const way *w, const operands *o, size_t row, size_t column, float *sums)
{
    float *one = malloc((o->m * o->n + o->m + o->n) * sizeof *one);
    device_need(one != NULL);
    float *x = one + o->m * o->n, *y = x + o->m;
    memset(sums, 0, o->m * o->n * sizeof *sums);
    for (size_t block = 0; block < s->k / 128; block++) {
        ways_multiply_range(w, o, block * 128, 128, one);
        scales_of(s, o, row, column, block, x, y);
        for (size_t i = 0; i < o->m * o->n; i++)
            sums[i] = add_block(w, sums[i], one[i], x[i / o->n], y[i % o->n]);
    }
    free(one);
}

static void multiply(const void *of, const way *w, const operands *o, size_t row, size_t column, float *sums)
{
    const scaled *s = of;
    if (strstr(s->kind, "128")) {
        multiply_blocks(s, w, o, row, column, sums);
        return;
    }
    float *x = malloc((o->m + o->n) * sizeof *x), *y = x + o->m;
    device_need(x != NULL);
    scales_of(s, o, row, column, 0, x, y);
    if (w->scales == SCALES_BEFORE)
        multiply_scaled(w, o, x, y, sums);
    else
        ways_multiply(w, o, sums);
    for (size_t i = 0; i < o->m * o->n && w->scales != SCALES_BEFORE; i++)
        sums[i] = apply(w, sums[i], x[i / o->n], y[i % o->n]);
    free(x);
}

/* What follows the row's name. */
static void name_scales(const scaled *s, const way *w, char *how, size_t size)
{
    static const char *const orders[] = {" by a's scale first", " by b's scale first", " by their product",
                                         " of scaled operands"};
    snprintf(how, size, "%s%s", strcmp(s->kind, "one") == 0 ? "" : orders[w->scales], w->contracted ? " and fma" : "");
}

static void name_way(const void *of, const way *w, char *name, size_t size)
{
    char how[80];
    name_scales(of, w, how, sizeof how);
    ways_name(w, how, name, size);
}

static product_case case_of(const scaled *s)
{
    static char inputs[200];
    const mpsim_format *a = device_format(s->forms[0]), *b = device_format(s->forms[1]);
    snprintf(inputs, sizeof inputs, "scaled %s %s %s %s %zux%zux%zu of %" PRIu64 ", %" PRIu64, a->name, b->name,
             s->out->name, s->kind, s->m, s->n, s->k, s->streams[0], s->streams[1]);
    return (product_case){.c = s->c,
                          .of = s,
                          .inputs = inputs,
                          .m = s->m,
                          .n = s->n,
                          .k = s->k,
                          .fa = a,
                          .fb = b,
                          .out = s->out,
                          .draw = draw_line,
                          .multiply = multiply,
                          .name = name_way};
}

/* ---- a case ---- */

static void name_fits(const candidates *all, const scaled *s, device_fits *fits)
{
    char how[80];
    for (size_t j = 0; j < all->n; j++)
        if (!all->out[j]) {
            name_scales(s, &all->w[j], how, sizeof how);
            ways_fit(&all->w[j], how, fits);
        }
}

void device_scaled(const json_t *head, const json_t *c, char *answer)
{
    static candidates all;
    device_fits fits = {.all = 1};
    scaled s;
    if (!read_scaled(head, c, &s)) {
        device_say(answer, "not understood");
        return;
    }
    const product_case x = case_of(&s);
    for (int software = 0; software < 2 && fits.count == 0; software++) {
        collect_scaled(&all, &s, ways_architecture(head), software);
        judge_sample(&all, &s);
        fits.sample = !ways_reads_digest(&x, ways_left(&all));
        if (!fits.sample)
            ways_judge_digest(&all, &x);
        name_fits(&all, &s, &fits);
    }
    device_say_fits(answer, &fits);
}
