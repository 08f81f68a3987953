/* products.c -- torch.mm of devices: which ways give the same bits. The few elements of the sample are computed, each from
 * its row and column. */
#include "ways.h"

#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct product {
    const json_t *c;
    const char *form, *words;
    size_t n, k, places;
    const mpsim_format *operand, *out;
    uint64_t streams[2];
} product;

/* Row i / n of a, column i % n of b; `nearer` makes tf32 of binary32. */
static void product_element(const product *p, size_t at, element *e, float (*nearer)(float x))
{
    const size_t row = at / p->n, column = at % p->n;
    e->fa = e->fb = p->operand;
    e->out = p->out;
    e->k = p->k;
    for (size_t k = 0; k < p->k; k++) {
        e->a[k] = nearer(device_number(p->form, -6, 4, p->streams[0], row * p->k + k));
        e->b[k] = nearer(device_number(p->form, -6, 4, p->streams[1], k * p->n + column));
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

/* Which candidates give every element of the sample. */
static void judge(candidates *all, const product *p, float (*nearer)(float x))
{
    static element e;
    for (size_t i = 0; i < p->places; i++) {
        int left = 0;
        for (size_t j = 0; j < all->n; j++)
            left |= !all->out[j];
        if (!left)
            return;
        product_element(p, device_place(p->c, i), &e, nearer);
        for (size_t j = 0; j < all->n; j++)
            if (!all->out[j])
                all->out[j] = device_encode(p->out, ways_whole(&all->w[j], &e)) != device_code(p->words, i);
    }
}

static void name_fits(const candidates *all, const char *operands, device_fits *fits)
{
    for (size_t j = 0; j < all->n; j++)
        if (!all->out[j])
            ways_fit(&all->w[j], operands, fits);
}

/* How binary32 becomes tf32 where that is allowed; else the operands as they are. */
static const struct {
    const char *text;
    float (*nearer)(float x);
    int tf32;
} operands_as[] = {{"", as_it_is, 0},
                   {" of truncated tf32", truncated, 1},
                   {" of tf32 to nearest, ties away", ties_away, 1},
                   {" of tf32 to nearest even", to_nearest, 1}};

/* What a case says; 0: it cannot be understood. */
static int read_product(const json_t *c, product *p)
{
    *p = (product){.c = c,
                   .form = device_text(c, "form"),
                   .words = device_text(c, "d"),
                   .n = (size_t)device_integer(c, "n"),
                   .k = (size_t)device_integer(c, "k"),
                   .operand = strstr(device_text(c, "case"), "tf32") ? mpsim_format_find("tf32")
                                                                     : device_format(device_text(c, "form")),
                   .out = device_format(device_text(c, "out"))};
    for (size_t i = 0; i < 2; i++)
        p->streams[i] = (uint64_t)json_integer_value(json_array_get(json_object_get(c, "streams"), i));
    p->places = device_codes(p->words);
    if (p->out && p->out->bits == 16 && p->k > 1024 && p->places > 16)
        p->places = 16; /* where many ways fit, all would take seconds a case, and tell no more */
    return p->operand && p->out && p->k > 0 && p->k <= WAYS_DEPTH && p->n > 0;
}

void device_products(const json_t *head, const json_t *c, char *answer)
{
    static candidates all;
    device_fits fits = {"", 0};
    product p;
    if (!read_product(c, &p) || p.places == 0) {
        device_say(answer, "not understood");
        return;
    }
    const int rounds = strstr(device_text(c, "case"), "as tf32") != NULL;
    for (int software = 0; software < 2 && fits.count == 0; software++)
        for (size_t i = 0; i < 4; i++) {
            if (operands_as[i].tf32 > rounds)
                continue;
            collect(&all, &p, ways_architecture(head), software);
            judge(&all, &p, operands_as[i].nearer);
            name_fits(&all, operands_as[i].text, &fits);
        }
    device_say_fits(answer, &fits);
    if (json_is_false(json_object_get(c, "again")))
        strncat(answer, "; not the same again", DEVICE_ANSWER - strlen(answer) - 1);
}

void device_play_products(json_t *c, const char *row, size_t part)
{
    static element e;
    char words[64 * 9 + 1] = "";
    product p;
    way w = {.cut = {.part = part}};
    const size_t places = (size_t)json_integer_value(json_array_get(json_object_get(c, "places"), 0));
    device_need(read_product(c, &p) && places <= 64 && mpsim_model_parse(&w.m, row) == MPSIM_OK);
    for (size_t i = 0; i < places; i++) {
        product_element(&p, device_place(c, i), &e, as_it_is);
        snprintf(words + strlen(words), sizeof words - strlen(words), "%s%0*x", i ? " " : "", p.out->bits / 4,
                 (unsigned)device_encode(p.out, ways_whole(&w, &e)));
    }
    json_object_set_new(c, "d", json_string(words));
}
