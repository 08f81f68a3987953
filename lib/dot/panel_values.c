/* panel_values.c -- panels of codes that are values. */
#include "panel_parts.h"

enum { BLOCK = 64 /* rows of N values that are looked at once */ };

/* n values to every `step`-th; `next` bytes from one to the next. */
static void scatter_f32(uint32_t *to, size_t step, const unsigned char *from, size_t next, size_t n)
{
    for (size_t i = 0; i < n; i++, from += next) {
        uint32_t value; /* of its own: see spread */
        memcpy(&value, from, sizeof value);
        to[i * step] = value;
    }
}

static void scatter_f64(uint64_t *to, size_t step, const unsigned char *from, size_t next, size_t n)
{
    for (size_t i = 0; i < n; i++, from += next) {
        uint64_t value;
        memcpy(&value, from, sizeof value);
        to[i * step] = value;
    }
}

/* n values of a line from number `at` of the codes on, to every `step`-th. */
static void copy_line(const mpsim_lines *x, void *to, size_t step, size_t at, size_t n)
{
    const unsigned char *from = (const unsigned char *)x->codes + at * x->bytes;
    if (step == 1 && x->next == 1)
        memcpy(to, from, n * x->bytes);
    else if (x->bytes == 4)
        scatter_f32(to, step, from, 4 * x->next, n);
    else
        scatter_f64(to, step, from, 8 * x->next, n);
}

/* Whether one of n values that lie side by side is special. */
static unsigned look_along(const mpsim_lines *x, const unsigned char *values, size_t n)
{
    unsigned char rest[8 * N] = {0};
    memcpy(rest, values + n / N * N * x->bytes, n % N * x->bytes);
    return x->look(values, n / N) | x->look(rest, 1);
}

void mpsim_pack_values_line(const mpsim_lines *x, const mpsim_panels *to, size_t l)
{
    const unsigned char *lying = (const unsigned char *)x->codes + l * x->line * x->bytes;
    unsigned char *values = (unsigned char *)to->values + l * to->padded * x->bytes;
    if (to->values)
        copy_line(x, values, 1, l * x->line, x->depth);
    to->special[l] = x->depth && look_along(x, to->values ? values : lying, x->depth) != 0;
}

/* n lines that lie one after the other; returns 0 where one is special. */
int mpsim_pack_values_together(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n)
{
    const unsigned char *lying = (const unsigned char *)x->codes + first * x->line * x->bytes;
    unsigned char *values = (unsigned char *)to->values + first * to->padded * x->bytes;
    if (x->next != 1 || x->line != x->depth || to->padded != x->depth || look_along(x, lying, n * x->depth))
        return 0;
    if (to->values)
        memcpy(values, lying, n * x->depth * x->bytes);
    memset(to->special + first, 0, n);
    return 1;
}

void mpsim_pack_values_across(const mpsim_lines *x, const mpsim_panels *to, size_t first, size_t n)
{
    unsigned special = 0;
    for (size_t k = 0; k < x->depth; k += BLOCK) {
        const size_t count = x->depth - k < BLOCK ? x->depth - k : BLOCK;
        unsigned char *values = (unsigned char *)to->values + (first * to->padded + k * N) * x->bytes;
        if (n < N)
            memset(values, 0, count * N * x->bytes);
        for (size_t j = 0; x->line != 1 && j < n; j++)
            copy_line(x, values + j * x->bytes, N, (first + j) * x->line + k * x->next, count);
        for (size_t i = 0; x->line == 1 && i < count; i++)
            memcpy(values + i * N * x->bytes, (const unsigned char *)x->codes + (first + (k + i) * x->next) * x->bytes,
                   n * x->bytes);
        special |= x->look(values, count);
    }
    for (size_t j = 0; j < N; j++)
        to->special[first + j] = special >> j & 1;
}
