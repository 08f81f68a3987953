/* segments.c -- parts of a depth, and their sum; see segments.h. */
#include "segments.h"

#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t segments_of(const segments *s, size_t part, size_t depth, size_t *products)
{
    size_t n = 0;
    if (s->turn) {
        for (size_t k = part * s->turn; k < depth; k += s->parts * s->turn)
            for (size_t i = k; i < k + s->turn && i < depth; i++)
                products[n++] = i;
        return n;
    }
    const size_t end = part + 1 < s->parts ? s->ends[part] : depth;
    for (size_t k = part ? s->ends[part - 1] : 0; k < end; k++)
        products[n++] = k;
    return n;
}

float segments_add(const segments *s, const mpsim_format *out, const float *parts)
{
    const int backwards = s->sum == SUM_BACKWARDS;
    float sum = parts[backwards ? s->parts - 1 : 0];
    for (size_t i = 1; i < s->parts; i++) {
        sum += parts[backwards ? s->parts - 1 - i : i];
        if (s->sum != SUM_WIDE)
            sum = device_round(out, sum);
    }
    return sum;
}

float segments_sum(const segments *s, const mpsim_model *m, const element *e)
{
    static size_t products[WAYS_DEPTH];
    static element part;
    const way w = {.m = *m};
    float sums[SEGMENTS_MOST];
    const size_t bytes = mpsim_format_code_bytes(e->fa);
    part.fa = e->fa;
    part.fb = e->fb;
    for (size_t i = 0; i < s->parts; i++) {
        const size_t n = segments_of(s, i, e->k, products);
        for (size_t k = 0; k < n; k++) {
            memcpy(part.ca + k * bytes, e->ca + products[k] * bytes, bytes);
            memcpy(part.cb + k * bytes, e->cb + products[k] * bytes, bytes);
        }
        sums[i] = n ? ways_dot(&w, &part, 0, n) : 0;
    }
    return segments_add(s, e->out, sums);
}

void segments_name(const segments *s, char *text, size_t n)
{
    static const char *const sums[SUMS] = {"", " in binary32", " backwards"};
    if (s->parts == 1)
        snprintf(text, n, "whole");
    else if (s->turn)
        snprintf(text, n, "in %zu parts by turns of %zu%s", s->parts, s->turn, sums[s->sum]);
    else if (s->parts == 2)
        snprintf(text, n, "cut at %zu", s->ends[0]);
    else
        snprintf(text, n, "cut at %zu and %zu%s", s->ends[0], s->ends[1], sums[s->sum]);
}

/* Two parts have one sum. */
static void add(segments *list, size_t *n, segments s)
{
    for (s.sum = 0; s.sum < (s.parts > 2 ? SUMS : 1); s.sum++)
        list[(*n)++] = s;
}

segments *segments_list(size_t depth, size_t unit, size_t *n)
{
    const size_t units = depth / unit + 1;
    segments *list = malloc((units + units * units / 2 + 7 * SEGMENTS_MOST) * SUMS * sizeof *list);
    device_need(list != NULL);
    *n = 0;
    add(list, n, (segments){.parts = 1});
    for (size_t a = unit; a < depth; a += unit)
        add(list, n, (segments){.parts = 2, .ends = {a}});
    for (size_t turn = 16; turn <= 1024; turn *= 2)
        for (size_t parts = 2; parts <= SEGMENTS_MOST && parts * turn <= depth; parts++)
            add(list, n, (segments){.parts = parts, .turn = turn});
    for (size_t a = unit; a < depth; a += unit)
        for (size_t b = a + unit; b < depth; b += unit)
            add(list, n, (segments){.parts = 3, .ends = {a, b}});
    return list;
}
