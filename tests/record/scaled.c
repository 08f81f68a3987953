/* scaled.c -- torch._scaled_mm of devices: which ways, with scales applied to what, give the same bits. */
#include "ways.h"

#include <stdio.h>
#include <string.h>

typedef struct scaled {
    const json_t *c;
    size_t n, k;
    const char *forms[2], *kind, *words;
    const mpsim_format *out;
    uint64_t streams[4];
    int guess; /* at parts of the depth: no device's */
} scaled;

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

static float apply(const way *w, float sum, float x, float y)
{
    return w->scales == SCALES_PRODUCT ? sum * (x * y) : w->scales == SCALES_A_FIRST ? sum * x * y : sum * y * x;
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
        sum = !w->contracted                ? sum + apply(w, one, x, y)
              : w->scales == SCALES_PRODUCT ? __builtin_fmaf(one, x * y, sum)
              : w->scales == SCALES_A_FIRST ? __builtin_fmaf(one * x, y, sum)
                                            : __builtin_fmaf(one * y, x, sum);
    }
    return sum;
}

static void scaled_element(const scaled *s, size_t at, element *e)
{
    e->fa = device_format(s->forms[0]);
    e->fb = device_format(s->forms[1]);
    e->k = s->k;
    for (size_t k = 0; k < s->k; k++) {
        e->a[k] = device_number(s->forms[0], -6, 6, s->streams[0], at / s->n * s->k + k);
        e->b[k] = device_number(s->forms[1], -6, 6, s->streams[1], k * s->n + at % s->n);
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
    return device_format(s->forms[0]) && device_format(s->forms[1]) && s->k > 0 && s->k <= WAYS_DEPTH && s->n > 0 &&
           *s->words;
}

/* Which candidates give every element of the sample. */
static void judge_scaled(candidates *all, const scaled *s)
{
    static element e;
    for (size_t i = 0; i < device_codes(s->words); i++) {
        const size_t at = device_place(s->c, i);
        scaled_element(s, at, &e);
        for (size_t j = 0; j < all->n; j++)
            if (!all->out[j])
                all->out[j] = device_encode(s->out, scaled_sum(&all->w[j], s, &e, at / s->n, at % s->n)) !=
                              device_code(s->words, i);
    }
}

static void name_scaled(const candidates *all, const scaled *s, device_fits *fits)
{
    static const char *const orders[] = {" by a's scale first", " by b's scale first", " by their product",
                                         " of scaled operands"};
    char how[80];
    for (size_t j = 0; j < all->n; j++)
        if (!all->out[j]) {
            snprintf(how, sizeof how, "%s%s", strcmp(s->kind, "one") == 0 ? "" : orders[all->w[j].scales],
                     all->w[j].contracted ? ", and fma" : "");
            ways_fit(&all->w[j], how, fits);
        }
}

void device_scaled(const json_t *head, const json_t *c, char *answer)
{
    static candidates all;
    device_fits fits = {"", 0};
    scaled s;
    if (!read_scaled(head, c, &s)) {
        device_say(answer, "not understood");
        return;
    }
    for (int software = 0; software < 2 && fits.count == 0; software++) {
        collect_scaled(&all, &s, ways_architecture(head), software);
        judge_scaled(&all, &s);
        name_scaled(&all, &s, &fits);
    }
    device_say_fits(answer, &fits);
}
