/* dotsets.c -- inputs of sets of dot products for another emulator, and its results compared: see dotset.h.
 *
 *   dotsets inputs  FIRST COUNT MODEL FORMAT_A FORMAT_B K SEED [SCALE] > FILE
 *   dotsets compare FIRST COUNT MODEL FORMAT_A FORMAT_B K SEED [SCALE] > PIPE < PIPE
 *
 * inputs: the codes of all a, all b, all scales of a, of b, and all c, each in the bytes of its format.
 * compare: the same, then reads the codes of all results, and tells how many differ, from mpsim_dot and from mpsim_gemm, and
 * the first.
 * NANS=any in the environment: all NaNs are the same. */
#include "dotset.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* COUNT cases, up to a whole block of them, or NULL without memory. */
static dot_case *cases(const dot_set *s, uint64_t first, uint64_t count)
{
    const uint64_t all = (count + DOT_SET_BLOCK - 1) / DOT_SET_BLOCK * DOT_SET_BLOCK;
    dot_case *x = calloc(all + 1, sizeof *x);
    for (uint64_t i = 0; x && i < all; i++)
        dot_set_case(s, first + i, &x[i]);
    return x;
}

static int inputs(const dot_set *s, const dot_case *x, uint64_t count)
{
    static const size_t at[] = {offsetof(dot_case, a), offsetof(dot_case, b), offsetof(dot_case, scales_a),
                                offsetof(dot_case, scales_b), offsetof(dot_case, c)};
    const size_t q = dot_set_scales(s), each[] = {s->k, s->k, q, q, 1};
    const mpsim_format *formats[] = {&s->fa, &s->fb, &s->scale, &s->scale, &s->m.result.format};
    uint64_t packed[DOT_SET_DEPTH];
    int bad = 0;
    for (int k = 0; k < 5; k++)
        for (uint64_t i = 0; each[k] && i < count; i++) {
            dot_pack(formats[k], packed, 0, (const uint64_t *)((const char *)&x[i] + at[k]), each[k]);
            bad |= fwrite(packed, mpsim_format_code_bytes(formats[k]), each[k], stdout) != each[k];
        }
    return fflush(stdout) != 0 || bad;
}

static void show(const dot_set *s, const dot_case *x, uint64_t i, uint64_t got, uint64_t want)
{
    printf("case %" PRIu64 " (%s): %" PRIx64 ", theirs %" PRIx64 "; c = %" PRIx64 "\n", i,
           verify_kinds_name((int)(i % KINDS)), got, want, x->c);
    for (size_t k = 0; k < s->k; k++)
        printf("  %" PRIx64 " %" PRIx64 " (%a %a)", x->a[k], x->b[k], mpsim_decode(&s->fa, x->a[k]),
               mpsim_decode(&s->fb, x->b[k]));
    for (size_t k = 0; k < dot_set_scales(s); k++)
        printf("  scales %" PRIx64 " %" PRIx64, x->scales_a[k], x->scales_b[k]);
    printf("\n");
}

static int compare(const dot_set *s, const dot_case *x, uint64_t first, uint64_t count)
{
    const int any_nan = getenv("NANS") && strcmp(getenv("NANS"), "any") == 0;
    const size_t bytes = mpsim_format_code_bytes(&s->m.result.format);
    uint64_t wrong[2] = {0, 0}, dropped = 0, packed[DOT_SET_BLOCK] = {0}, got[DOT_SET_BLOCK];
    for (uint64_t i = 0; i < count; i += DOT_SET_BLOCK, x += DOT_SET_BLOCK) {
        const size_t n = count - i < DOT_SET_BLOCK ? (size_t)(count - i) : DOT_SET_BLOCK;
        if (fread(packed, bytes, n, stdin) != n)
            return 1;
        dot_set_gemm(s, x, got);
        for (size_t j = 0; j < n; j++) {
            const uint64_t want = dot_unpack(&s->m.result.format, packed, j), one = dot_set_dot(s, &x[j]);
            const int bad[2] = {!dot_set_same(s, one, want, any_nan), !dot_set_same(s, got[j], want, any_nan)};
            if (bad[0] && bad[1] && one == got[j] && dot_set_dropped(s, &x[j], want)) {
                dropped++;
                continue;
            }
            if ((bad[0] && !wrong[0]) || (bad[1] && !wrong[1]))
                show(s, &x[j], first + i + j, bad[0] ? one : got[j], want);
            wrong[0] += (uint64_t)bad[0];
            wrong[1] += (uint64_t)bad[1];
        }
    }
    printf("%s %s %s: %" PRIu64 " cases, %" PRIu64 " differ from mpsim_dot, %" PRIu64 " from mpsim_gemm, %" PRIu64
           " leave out an accumulator that is not finite\n",
           s->m.name, s->fa.name, s->fb.name, count, wrong[0], wrong[1], dropped);
    return wrong[0] || wrong[1];
}

int main(int argc, char **argv)
{
    dot_set s;
    if (argc < 9 || argc > 10) {
        fprintf(stderr, "usage: dotsets inputs|compare FIRST COUNT MODEL FORMAT_A FORMAT_B K SEED [SCALE]\n");
        return 2;
    }
    const char *wrong = dot_set_parse(&s, argv[4], argv[5], argv[6], argv[7], argv[8], argc > 9 ? argv[9] : NULL);
    if (wrong) {
        fprintf(stderr, "dotsets: %s\n", wrong);
        return 2;
    }
    const uint64_t first = strtoull(argv[2], NULL, 10), count = strtoull(argv[3], NULL, 10);
    dot_case *x = cases(&s, first, count);
    const int bad = !x || inputs(&s, x, count) || (strcmp(argv[1], "compare") == 0 && compare(&s, x, first, count));
    free(x);
    return bad;
}
