/* ways.c -- what a way gives; see ways.h. */
#include "ways.h"

#include "support/support.h"

#include <stdio.h>
#include <string.h>

#define X86 "x86"

const char *ways_architecture(const json_t *head)
{
    static const struct {
        int major, minor;
        const char *name;
    } known[] = {{7, 0, "volta"}, {7, 5, "turing"}, {8, 0, "ampere"},     {8, 6, "ampere"},
                 {8, 9, "ada"},   {9, 0, "hopper"}, {10, 0, "blackwell"}, {12, 0, "rtx-blackwell"}};
    const json_t *c = json_object_get(head, "capability");
    if (json_is_string(c)) /* of a CPU, which may have AMX beside it */
        return strcmp(json_string_value(c), "AVX512") == 0 ? X86 : NULL;
    const int major = (int)json_integer_value(json_array_get(c, 0));
    const int minor = (int)json_integer_value(json_array_get(c, 1));
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        if (known[i].major == major && known[i].minor == minor)
            return known[i].name;
    return NULL;
}

int ways_has(const mpsim_model *m, const char *arch, const mpsim_format *a, const mpsim_format *b)
{
    if (!m->architecture)
        return strcmp(m->name, "chunked") != 0;
    const int x86 = strcmp(m->architecture, "avx512") == 0 || strcmp(m->architecture, "amx") == 0;
    return arch && (strcmp(m->architecture, arch) == 0 || (x86 && strcmp(arch, X86) == 0)) &&
           mpsim_model_accepts(m, a, b);
}

static void encode(const mpsim_format *f, unsigned char *codes, const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        code_store(codes + i * mpsim_format_code_bytes(f), mpsim_format_code_bytes(f), device_encode(f, x[i]));
}

void ways_encode(element *e)
{
    encode(e->fa, e->ca, e->a, e->k);
    encode(e->fb, e->cb, e->b, e->k);
}

/* Products first to first + n - 1, added to c. */
static float dot_from(const way *w, const element *e, size_t first, size_t n, uint64_t c)
{
    uint64_t d = 0;
    const mpsim_status s = mpsim_dot(&w->m, e->fa, e->ca + first * mpsim_format_code_bytes(e->fa), e->fb,
                                     e->cb + first * mpsim_format_code_bytes(e->fb), n, c, NULL, &d);
    return s == MPSIM_OK ? (float)mpsim_decode(&w->m.result.format, d) : 0.0f / 0.0f;
}

float ways_dot(const way *w, const element *e, size_t first, size_t n)
{
    const size_t rest = w->cut.tile ? n % w->cut.tile : 0;
    const uint64_t begin = first == 0 ? device_encode(&w->m.result.format, e->start) : 0;
    if (rest == 0 || rest == n)
        return dot_from(w, e, first, n, begin);
    const float c = dot_from(w, e, first, rest, begin);
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

float ways_whole(const way *w, const element *e)
{
    const size_t part = w->cut.part;
    if (part == 0)
        return ways_dot(w, e, 0, e->k);
    float sum = e->onto;
    const element *x = w->cut.turn ? by_turns(e, w->cut.turn, e->k / part) : e;
    for (size_t k = 0; k < e->k; k += part) {
        const float one = ways_dot(w, x, k, k + part < e->k ? part : e->k - k);
        sum = k == 0 && e->onto == 0 ? one : sum + one;
        if (w->partial)
            sum = device_round(e->out, sum);
    }
    return sum;
}

float ways_whole_scaled(const way *w, const element *e, float x, float y)
{
    static element scaled;
    scaled.fa = scaled.fb = mpsim_format_find("binary32");
    scaled.k = e->k;
    for (size_t k = 0; k < e->k; k++) {
        scaled.a[k] = e->a[k] * x;
        scaled.b[k] = e->b[k] * y;
    }
    ways_encode(&scaled);
    return ways_whole(w, &scaled);
}

void ways_add(candidates *all, way w)
{
    if (all->n == WAYS_MOST)
        return;
    all->w[all->n] = w;
    all->out[all->n++] = 0;
}

size_t ways_left(const candidates *all)
{
    size_t left = 0;
    for (size_t j = 0; j < all->n; j++)
        left += !all->out[j];
    return left;
}

void ways_name(const way *w, const char *how, char *name, size_t size)
{
    char text[80] = "";
    if (w->cut.part)
        snprintf(text, sizeof text, " in parts of %zu%s%s%s", w->cut.part, w->cut.turn ? " by turns of 8" : "",
                 w->cut.tile && w->cut.part % w->cut.tile ? " (the rest of a tile first)" : "",
                 w->partial ? " in 16 bits" : "");
    snprintf(name, size, "%s%s%s", w->m.name, text, how);
}

void ways_fit(const way *w, const char *how, device_fits *fits)
{
    char name[200];
    ways_name(w, how, name, sizeof name);
    device_fit(fits, "%s", name);
}
