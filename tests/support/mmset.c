/* mmset.c -- see mmset.h. */
#include "mmset.h"

#include <stdlib.h>
#include <string.h>

const char *mm_set_parse(mm_set *s, char *const *words)
{
    memset(s, 0, sizeof *s);
    s->m = (size_t)strtoul(words[0], NULL, 10);
    s->n = (size_t)strtoul(words[1], NULL, 10);
    s->k = (size_t)strtoul(words[2], NULL, 10);
    if (mpsim_format_parse(&s->fa, words[3]) != MPSIM_OK || mpsim_format_parse(&s->fb, words[4]) != MPSIM_OK)
        return "no such format";
    s->kind = atoi(words[5]);
    s->seed = strtoull(words[6], NULL, 10);
    return s->m && s->n && s->fa.bits == 8 && s->fb.bits == 8 && s->kind >= 0 && s->kind < KINDS ? NULL
                                                                                                 : "out of range";
}

/* Lines of codes of one kind, each with a sequence of its own. */
static unsigned char *lines(const mpsim_format *f, size_t count, size_t k, int kind, uint64_t seed)
{
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    unsigned char *codes = malloc(count * k + 1);
    uint64_t *x = malloc((k + 1) * sizeof *x), *y = malloc((k + 1) * sizeof *y);
    for (size_t i = 0; codes && x && y && i < count; i++) {
        uint64_t state = seed + ((uint64_t)i << 32);
        verify_kinds_fill(f, x, f, y, k, binary32, kind, &state);
        for (size_t j = 0; j < k; j++)
            codes[i * k + j] = (unsigned char)x[j];
    }
    free(x);
    free(y);
    return codes;
}

void mm_set_fill(mm_set *s)
{
    s->a = lines(&s->fa, s->m, s->k, s->kind, s->seed);
    s->b = lines(&s->fb, s->n, s->k, s->kind, ~s->seed);
    if (!s->a || !s->b)
        abort();
}

void mm_set_clear(mm_set *s)
{
    free(s->a);
    free(s->b);
}

mpsim_status mm_set_run(const mm_set *s, const mpsim_scaled_mm *p, float scale_a, float scale_b,
                        const char *scale_result, void *d)
{
    const mpsim_matrix a = {&s->fa, s->a, s->k, 0}, b = {&s->fb, s->b, s->k, 1};
    const float scale = scale_result ? strtof(scale_result, NULL) : 1;
    return mpsim_scaled_mm_run(p, s->m, s->n, s->k, &a, &b, scale_a, scale_b, scale_result ? &scale : NULL, d, NULL);
}
