/* products.c -- matrix products of devices: which model row, with the depth in which parts, adds up to
 * the same bits. The few elements of the sample are computed, each from its row and column. */
#include "device.h"

#include "support/support.h"

#include <mpsim/dot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 16384, CUTS = 96, MOST_WAYS = 1024 };

/* ---- candidates ---- */

/* The architecture whose rows are tried; NULL: software alone. */
static const char *architecture(const json_t *head)
{
    static const struct {
        int major, minor;
        const char *name;
    } known[] = {{7, 0, "volta"}, {7, 5, "turing"}, {8, 0, "ampere"},     {8, 6, "ampere"},
                 {8, 9, "ada"},   {9, 0, "hopper"}, {10, 0, "blackwell"}, {12, 0, "rtx-blackwell"}};
    const json_t *c = json_object_get(head, "capability");
    const int major = (int)json_integer_value(json_array_get(c, 0));
    const int minor = (int)json_integer_value(json_array_get(c, 1));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].major == major && known[i].minor == minor)
            return known[i].name;
    return NULL;
}

/* Software rows but "chunked", and those of the architecture that take the operands. */
static int is_candidate(const mpsim_model *m, const char *arch, const mpsim_format *a, const mpsim_format *b)
{
    if (!m->architecture)
        return strcmp(m->name, "chunked") != 0;
    return arch && strcmp(m->architecture, arch) == 0 && mpsim_model_accepts(m, a, b);
}

/* How the depth is cut. part: products a part, 0: all. tile: of the depth; where a part is no multiple of it, the
 * rest is its first chunk (CUTLASS). turn: parts take chunks of so many by turns; 0: they are ranges. */
typedef struct cut {
    size_t part, tile, turn;
} cut;

/* One way: a row, a cut; what scales are applied to. */
typedef struct way {
    mpsim_model m;
    cut cut;
    int partial;            /* 1: parts are rounded to the result's 16 bits before they are added */
    int scales, contracted; /* SCALES_*: BEFORE: operands are multiplied, in binary32; of blocks: 1:
                               what is multiplied last, and their sum, by fma                     */
} way;

enum { SCALES_A_FIRST, SCALES_B_FIRST, SCALES_PRODUCT, SCALES_BEFORE, SCALES_ORDERS };

/* The operands of one element, as numbers and as codes of the model's formats. */
typedef struct element {
    const mpsim_format *fa, *fb, *out;
    size_t k;
    float a[MOST], b[MOST];
    unsigned char ca[MOST * 4], cb[MOST * 4];
} element;

static void encode(const mpsim_format *f, unsigned char *codes, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        code_store(codes + i * mpsim_format_code_bytes(f), mpsim_format_code_bytes(f), device_encode(f, x[i]));
}

/* Products first to first + n - 1, added to c. */
static float dot_from(const way *w, const element *e, size_t first, size_t n, uint64_t c)
{
    uint64_t d = 0;
    const mpsim_status s = mpsim_dot(&w->m, e->fa, e->ca + first * mpsim_format_code_bytes(e->fa), e->fb,
                                     e->cb + first * mpsim_format_code_bytes(e->fb), n, c, NULL, &d);
    return s == MPSIM_OK ? (float)mpsim_decode(&w->m.result.format, d) : 0.0f / 0.0f;
}

static float dot(const way *w, const element *e, size_t first, size_t n)
{
    const size_t rest = w->cut.tile ? n % w->cut.tile : 0;
    if (rest == 0 || rest == n)
        return dot_from(w, e, first, n, 0);
    const float c = dot_from(w, e, first, rest, 0);
    return dot_from(w, e, first + rest, n - rest, device_encode(&w->m.result.format, c));
}

/* The chunks of each part side by side; a part keeps its size. */
static const element *by_turns(const element *e, size_t turn, size_t parts)
{
    static element turned;
    const size_t a = mpsim_format_code_bytes(e->fa), b = mpsim_format_code_bytes(e->fb);
    size_t at = 0;
    turned = *e;
    for (size_t part = 0; part < parts; part++)
        for (size_t k = part * turn; k < e->k; k += parts * turn, at += turn) {
            memcpy(turned.ca + at * a, e->ca + k * a, turn * a);
            memcpy(turned.cb + at * b, e->cb + k * b, turn * b);
        }
    return &turned;
}

/* All products; parts are added one after the other in binary32. */
static float whole(const way *w, const element *e)
{
    const size_t part = w->cut.part;
    if (part == 0)
        return dot(w, e, 0, e->k);
    float sum = 0;
    const element *x = w->cut.turn ? by_turns(e, w->cut.turn, e->k / part) : e;
    for (size_t k = 0; k < e->k; k += part) {
        const float one = dot(w, x, k, k + part < e->k ? part : e->k - k);
        sum = k == 0 ? one : sum + one;
        if (w->partial)
            sum = device_round(e->out, sum);
    }
    return sum;
}

/* The same operands times their scales, in binary32. */
static float dot_of_scaled(const way *w, const element *e, float x, float y)
{
    static element scaled;
    scaled.fa = scaled.fb = mpsim_format_find("binary32");
    scaled.k = e->k;
    for (size_t k = 0; k < e->k; k++) {
        scaled.a[k] = e->a[k] * x;
        scaled.b[k] = e->b[k] * y;
    }
    encode(scaled.fa, scaled.ca, scaled.a, e->k);
    encode(scaled.fb, scaled.cb, scaled.b, e->k);
    return whole(w, &scaled);
}

static void add_cut(cut *cuts, size_t *n, cut c, size_t k)
{
    if (c.part >= k || *n == CUTS)
        return;
    for (size_t i = 0; i < *n; i++)
        if (cuts[i].part == c.part)
            return;
    cuts[(*n)++] = c;
}

/* Where kernels are not known: powers of two, and the depth in 2 to 8 parts of whole 16s. */
static void guess_cuts(cut *cuts, size_t *n, size_t k)
{
    for (size_t p = 16; p <= 2048; p *= 2)
        add_cut(cuts, n, (cut){.part = p}, k);
    for (size_t s = 2; s <= 8; s++)
        add_cut(cuts, n, (cut){.part = ((k + s - 1) / s + 15) / 16 * 16}, k);
}

/* What the names of kernels leave open is the number of parts. Of CUTLASS a name ends in the tile's depth and its
 * stages, "_32x6_nt_align4"; nvjet's tiles are 64 deep; xmma's kernels take chunks of 8 by turns. */
static size_t cuts_of(const json_t *c, size_t k, int guess, cut *cuts)
{
    static const struct kernel {
        const char *mark;
        size_t unit, turn;
        int named; /* the tile's depth is in the name */
    } known[] = {{"nvjet_", 64, 0, 0}, {"execute_split_k", 8, 8, 0}, {"cutlass_80_", 4, 0, 1}};
    const json_t *names = json_object_get(c, "kernels");
    size_t n = 1, tile = 0;
    int divided = 0, waits = 0;
    const struct kernel *of = NULL;
    cuts[0] = (cut){.part = 0};
    for (size_t i = 0; i < json_array_size(names); i++) {
        const char *name = json_string_value(json_array_get(names, i));
        divided |= strstr(name, "split") != NULL;
        waits |= strstr(name, "Memset") != NULL; /* of CUTLASS's semaphores: parts wait for their turn */
        for (size_t j = 0; j < sizeof known / sizeof known[0]; j++)
            if (strstr(name, known[j].mark)) {
                const char *at = known[j].named ? strchr(name, 'x') : NULL;
                of = &known[j];
                if (at && (at = strchr(at, '_')))
                    tile = strtoul(at + 1, NULL, 10);
            }
    }
    divided |= waits && of && of->named;
    if (guess || (divided && !of))
        guess_cuts(cuts, &n, k);
    for (size_t s = 2; divided && of && s <= 64; s++)
        if (!of->turn || k % (s * of->turn) == 0)
            add_cut(cuts, &n, (cut){((k + s - 1) / s + of->unit - 1) / of->unit * of->unit, tile, of->turn}, k);
    return n;
}

/* ---- products of torch.mm ---- */

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
    encode(e->fa, e->ca, e->a, e->k);
    encode(e->fb, e->cb, e->b, e->k);
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

typedef struct candidates {
    way w[MOST_WAYS];
    size_t n;
    int out[MOST_WAYS]; /* 1: another sum was found */
} candidates;

static void add_row(candidates *all, const mpsim_model *m, const product *p, int partial)
{
    cut cuts[CUTS];
    const size_t n = cuts_of(p->c, p->k, !json_object_get(p->c, "kernels"), cuts);
    for (size_t i = 0; i < n && all->n < MOST_WAYS; i++) {
        if (partial && cuts[i].part == 0)
            continue;
        all->w[all->n] = (way){.m = *m, .cut = cuts[i], .partial = partial};
        all->out[all->n++] = 0;
    }
}

/* software: rows of no architecture. */
static void collect(candidates *all, const product *p, const char *arch, int software)
{
    mpsim_model m;
    all->n = 0;
    for (size_t i = mpsim_model_count(); i-- > 0;) {
        if (mpsim_model_at(&m, i) != MPSIM_OK || !is_candidate(&m, arch, p->operand, p->operand) ||
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
                all->out[j] = device_encode(p->out, whole(&all->w[j], &e)) != device_code(p->words, i);
    }
}

/* `how` follows the row's name. */
static void name_way(const way *w, const char *how, device_fits *fits)
{
    char text[80] = "";
    if (w->cut.part)
        snprintf(text, sizeof text, " in parts of %zu%s%s%s", w->cut.part, w->cut.turn ? " by turns of 8" : "",
                 w->cut.tile && w->cut.part % w->cut.tile ? ", the rest of a tile first" : "",
                 w->partial ? " in 16 bits" : "");
    device_fit(fits, "%s%s%s", w->m.name, text, how);
}

static void name_fits(const candidates *all, const char *operands, device_fits *fits)
{
    for (size_t j = 0; j < all->n; j++)
        if (!all->out[j])
            name_way(&all->w[j], operands, fits);
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
    return p->operand && p->out && p->k > 0 && p->k <= MOST && p->n > 0;
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
            collect(&all, &p, architecture(head), software);
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
                 (unsigned)device_encode(p.out, whole(&w, &e)));
    }
    json_object_set_new(c, "d", json_string(words));
}

/* ---- products of torch._scaled_mm ---- */

typedef struct scaled {
    const json_t *c;
    size_t m, n, k;
    const char *forms[2], *kind;
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
        return w->scales == SCALES_BEFORE ? dot_of_scaled(w, e, x, y) : apply(w, whole(w, e), x, y);
    }
    for (size_t block = 0; block < s->k / 128; block++) {
        const float one = dot(w, e, block * 128, 128);
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
    encode(e->fa, e->ca, e->a, e->k);
    encode(e->fb, e->cb, e->b, e->k);
}

/* A row, with the depth in parts where scales are not those of blocks. */
static void add_scaled(candidates *all, const mpsim_model *m, const scaled *s, int order)
{
    cut cuts[CUTS] = {{0}};
    const int blocks = strstr(s->kind, "128") != NULL;
    const size_t n = blocks ? 1 : cuts_of(s->c, s->k, s->guess, cuts);
    for (size_t i = 0; i < n; i++)
        for (int contracted = 0; contracted <= blocks; contracted++) {
            if (all->n == MOST_WAYS)
                return;
            all->w[all->n] = (way){.m = *m, .cut = cuts[i], .scales = order, .contracted = contracted};
            all->out[all->n++] = 0;
        }
}

static void collect_scaled(candidates *all, const scaled *s, const char *arch, int software)
{
    mpsim_model m;
    const int blocks = strstr(s->kind, "128") != NULL, one = strcmp(s->kind, "one") == 0;
    all->n = 0;
    for (size_t i = mpsim_model_count(); i-- > 0;) {
        if (mpsim_model_at(&m, i) != MPSIM_OK || (m.architecture == NULL) != software ||
            !is_candidate(&m, arch, device_format(s->forms[0]), device_format(s->forms[1])))
            continue;
        /* What multiplies first is software, and has no blocks. */
        const int orders = one ? 1 : blocks || m.architecture ? SCALES_BEFORE : SCALES_ORDERS;
        for (int order = 0; order < orders; order++)
            add_scaled(all, &m, s, order);
    }
}

void device_scaled(const json_t *head, const json_t *c, char *answer)
{
    static const char *const orders[] = {" by a's scale first", " by b's scale first", " by their product",
                                         " of scaled operands"};
    static candidates all;
    static element e;
    device_fits fits = {"", 0};
    char how[80];
    const char *words = device_text(c, "d");
    scaled s = {.c = c,
                .guess = strcmp(device_text(head, "kind"), "cuda") != 0,
                .m = (size_t)device_integer(c, "m"),
                .n = (size_t)device_integer(c, "n"),
                .k = (size_t)device_integer(c, "k"),
                .kind = device_text(c, "scales")};
    for (size_t i = 0; i < 2; i++) {
        const char *form = json_string_value(json_array_get(json_object_get(c, "forms"), i));
        s.forms[i] = form ? form : "";
    }
    for (size_t i = 0; i < 4; i++)
        s.streams[i] = (uint64_t)json_integer_value(json_array_get(json_object_get(c, "streams"), i));
    if (!device_format(s.forms[0]) || !device_format(s.forms[1]) || s.k == 0 || s.k > MOST || s.n == 0 || !*words) {
        device_say(answer, "not understood");
        return;
    }
    const mpsim_format *out = mpsim_format_find(strstr(device_text(c, "case"), " bfloat16 ") ? "bf16" : "binary32");
    for (int software = 0; software < 2 && fits.count == 0; software++) {
        collect_scaled(&all, &s, architecture(head), software);
        for (size_t i = 0; i < device_codes(words); i++) {
            const size_t at = device_place(c, i);
            scaled_element(&s, at, &e);
            for (size_t j = 0; j < all.n; j++)
                if (!all.out[j])
                    all.out[j] = device_encode(out, scaled_sum(&all.w[j], &s, &e, at / s.n, at % s.n)) !=
                                 device_code(words, i);
        }
        for (size_t j = 0; j < all.n; j++)
            if (!all.out[j]) {
                snprintf(how, sizeof how, "%s%s", strcmp(s.kind, "one") == 0 ? "" : orders[all.w[j].scales],
                         all.w[j].contracted ? ", and fma" : "");
                name_way(&all.w[j], how, &fits);
            }
    }
    device_say_fits(answer, &fits);
}
