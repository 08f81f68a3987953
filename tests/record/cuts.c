/* cuts.c -- in which parts kernels may cut the depth of a product; see ways.h. */
#include "ways.h"

#include <stdlib.h>
#include <string.h>

static void add_cut(cut *cuts, size_t *n, cut c, size_t k)
{
    if (c.part >= k || *n == WAYS_CUTS)
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
size_t ways_cuts(const json_t *c, size_t k, int guess, cut *cuts)
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
