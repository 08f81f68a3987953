/* products.c -- torch.mm of devices: which ways give the same bits. The few elements of the sample are computed first, each
 * from its row and column, then all for the digest, by the ways that are left. */
#include "ways.h"

#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How binary32 becomes tf32 where that is allowed; else the operands as they are. */
typedef struct conversion {
    const char *text;
    float (*nearer)(float x);
    int tf32;
} conversion;

typedef struct product {
    const json_t *c;
    const char *form, *words;
    size_t m, n, k, places;
    const mpsim_format *operand, *out;
    uint64_t streams[2];
    const conversion *as;
} product;

static const int range[2] = {-6, 4}; /* of exponents */
enum { FEW = 8 };                    /* places, where the digest is read */

/* Row i / n of a, column i % n of b. */
static void product_element(const product *p, size_t at, element *e)
{
    const size_t row = at / p->n, column = at % p->n;
    e->fa = e->fb = p->operand;
    e->out = p->out;
    e->k = p->k;
    for (size_t k = 0; k < p->k; k++) {
        e->a[k] = p->as->nearer(device_number(p->form, range[0], range[1], p->streams[0], row * p->k + k));
        e->b[k] = p->as->nearer(device_number(p->form, range[0], range[1], p->streams[1], k * p->n + column));
    }
    ways_encode(e);
}

static float as_it_is(float x)
{
    return x;
}

static float truncated(float x)
{
    return f32_of_bits(bits_of_f32(x) & ~(uint32_t)0x1fff);
}

static float ties_away(float x)
{
    return f32_of_bits((bits_of_f32(x) + 0x1000) & ~(uint32_t)0x1fff);
}

static float to_nearest(float x)
{
    return device_round(mpsim_format_find("tf32"), x);
}

static const conversion conversions[] = {{"", as_it_is, 0},
                                         {" of truncated tf32", truncated, 1},
                                         {" of tf32 to nearest (ties away)", ties_away, 1},
                                         {" of tf32 to nearest even", to_nearest, 1}};
enum { CONVERSIONS = sizeof conversions / sizeof conversions[0] };

static void add_row(candidates *all, const mpsim_model *m, const product *p, int partial)
{
    cut cuts[WAYS_CUTS];
    const size_t n = ways_cuts(p->c, p->k, !json_object_get(p->c, "kernels"), cuts);
    for (size_t i = 0; i < n; i++)
        if (!partial || cuts[i].part)
            ways_add(all, (way){.m = *m, .cut = cuts[i], .partial = partial});
}

/* software: rows of no architecture. */
static void collect(candidates *all, const product *p, const char *arch, int software)
{
    mpsim_model m;
    all->n = 0;
    for (size_t i = mpsim_model_count(); i-- > 0;) {
        if (mpsim_model_at(&m, i) != MPSIM_OK || !ways_has(&m, arch, p->operand, p->operand) ||
            (m.architecture == NULL) != software)
            continue;
        add_row(all, &m, p, 0);
        if (p->out->bits == 16 && json_object_get(p->c, "kernels"))
            add_row(all, &m, p, 1);
    }
}

/* Which candidates give the elements of the sample: where many ways fit and the digest is read, a few. */
static void judge_sample(candidates *all, const product *p, size_t places)
{
    static element e;
    for (size_t i = 0; i < places && ways_left(all) > 0; i++) {
        product_element(p, device_place(p->c, i), &e);
        for (size_t j = 0; j < all->n; j++)
            if (!all->out[j])
                all->out[j] = device_encode(p->out, ways_whole(&all->w[j], &e)) != device_code(p->words, i);
    }
}

/* ---- all elements ---- */

static void draw_line(const void *of, int right, size_t line, float *x)
{
    const product *p = of;
    device_numbers(p->form, range, p->streams[right], right ? line : line * p->k, right ? p->n : 1, p->k, x);
    for (size_t k = 0; k < p->k && p->as->tf32; k++)
        x[k] = p->as->nearer(x[k]);
}

static void multiply(const void *of, const way *w, const operands *x, size_t row, size_t column, float *sums)
{
    (void)of, (void)row, (void)column;
    ways_multiply(w, x, sums);
}

static void name_way(const void *of, const way *w, char *name, size_t size)
{
    const product *p = of;
    ways_name(w, p->as->text, name, size);
}

static product_case case_of(const product *p)
{
    static char inputs[200];
    snprintf(inputs, sizeof inputs, "mm %s %s %s %zux%zux%zu of %" PRIu64 ", %" PRIu64, p->form, p->operand->name,
             p->out->name, p->m, p->n, p->k, p->streams[0], p->streams[1]);
    return (product_case){.c = p->c,
                          .of = p,
                          .inputs = inputs,
                          .m = p->m,
                          .n = p->n,
                          .k = p->k,
                          .fa = p->operand,
                          .fb = p->operand,
                          .out = p->out,
                          .draw = draw_line,
                          .multiply = multiply,
                          .name = name_way};
}

/* ---- a case ---- */

/* What it says; 0: it cannot be understood. */
static int read_product(const json_t *c, product *p)
{
    *p = (product){.c = c,
                   .form = device_text(c, "form"),
                   .words = device_text(c, "d"),
                   .m = (size_t)device_integer(c, "m"),
                   .n = (size_t)device_integer(c, "n"),
                   .k = (size_t)device_integer(c, "k"),
                   .operand = strstr(device_text(c, "case"), "tf32") ? mpsim_format_find("tf32")
                                                                     : device_format(device_text(c, "form")),
                   .out = device_format(device_text(c, "out")),
                   .as = conversions};
    for (size_t i = 0; i < 2; i++)
        p->streams[i] = (uint64_t)json_integer_value(json_array_get(json_object_get(c, "streams"), i));
    p->places = device_codes(p->words);
    return p->operand && p->out && p->k > 0 && p->k <= WAYS_DEPTH && p->m > 0 && p->n > 0;
}

static void find_fits(const json_t *head, product *p, device_fits *fits, int software)
{
    static candidates all;
    const int rounds = strstr(device_text(p->c, "case"), "as tf32") != NULL;
    for (size_t i = 0; i < CONVERSIONS; i++) {
        p->as = &conversions[i];
        if (p->as->tf32 > rounds)
            continue;
        const product_case x = case_of(p);
        const int digest = ways_reads_digest(&x, 1);
        fits->sample = !digest;
        collect(&all, p, ways_architecture(head), software);
        judge_sample(&all, p, digest && p->places > FEW ? FEW : p->places);
        if (digest)
            ways_judge_digest(&all, &x);
        for (size_t j = 0; j < all.n; j++)
            if (!all.out[j])
                ways_fit(&all.w[j], p->as->text, fits);
    }
}

void device_products(const json_t *head, const json_t *c, char *answer)
{
    device_fits fits = {.all = 1};
    product p;
    if (!read_product(c, &p) || p.places == 0 || !*device_text(c, "digest")) {
        device_say(answer, "not understood");
        return;
    }
    for (int software = 0; software < 2 && fits.count == 0; software++)
        find_fits(head, &p, &fits, software);
    device_say_fits(answer, &fits);
    if (json_is_false(json_object_get(c, "again")))
        strncat(answer, "; not the same again", DEVICE_ANSWER - strlen(answer) - 1);
}

void device_play_products(json_t *c, const char *row, size_t part)
{
    static element e;
    char words[64 * 9 + 1] = "", digest[17];
    product p;
    way w = {.cut = {.part = part}};
    const size_t places = (size_t)json_integer_value(json_array_get(json_object_get(c, "places"), 0));
    device_need(read_product(c, &p) && places <= 64 && mpsim_model_parse(&w.m, row) == MPSIM_OK);
    for (size_t i = 0; i < places; i++) {
        product_element(&p, device_place(c, i), &e);
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s%0*x", i ? " " : "", p.out->bits / 4,
                 (unsigned)device_encode(p.out, ways_whole(&w, &e)));
    }
    json_object_set_new(c, "d", json_string(words));
    const product_case x = case_of(&p);
    snprintf(digest, sizeof digest, "%016" PRIx64, ways_digest(&w, &x));
    json_object_set_new(c, "digest", json_string(digest));
}
