/* scaledmms.c -- operands of products as torch._scaled_mm for another emulator, and its results compared: see mmset.h.
 *
 *   scaledmms inputs  M N K FORMAT_A FORMAT_B KIND SEED > FILE
 *   scaledmms compare M N K FORMAT_A FORMAT_B KIND SEED NAME SCALE_A SCALE_B [SCALE_RESULT] < FILE
 *
 * inputs: the codes of a, M x K, and of b, N x K. compare: the codes of the results, M x N; tells how many differ from
 * mpsim_scaled_mm_run, and its processor time. */
#include "mmset.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int main(int argc, char **argv)
{
    if (argc < 9) {
        fprintf(stderr, "usage: scaledmms inputs|compare M N K FORMAT_A FORMAT_B KIND SEED [NAME SCALE_A SCALE_B "
                        "[SCALE_RESULT]]\n");
        return 2;
    }
    mm_set s;
    const char *wrong = mm_set_parse(&s, argv + 2);
    if (wrong) {
        fprintf(stderr, "scaledmms: %s\n", wrong);
        return 2;
    }
    mm_set_fill(&s);
    if (strcmp(argv[1], "inputs") == 0) {
        const int bad = fwrite(s.a, 1, s.m * s.k, stdout) != s.m * s.k ||
                        fwrite(s.b, 1, s.n * s.k, stdout) != s.n * s.k;
        mm_set_clear(&s);
        return bad;
    }
    mpsim_scaled_mm p;
    if (argc < 12 || mpsim_scaled_mm_parse(&p, argv[9]) != MPSIM_OK) {
        fprintf(stderr, "scaledmms: compare: a name and two scales\n");
        return 2;
    }
    const size_t bytes = mpsim_format_code_bytes(&p.out), all = s.m * s.n * bytes;
    unsigned char *theirs = malloc(all + 1), *ours = malloc(all + 1);
    if (!theirs || !ours || fread(theirs, 1, all, stdin) != all)
        return 2;
    const clock_t start = clock();
    const mpsim_status status = mm_set_run(&s, &p, strtof(argv[10], NULL), strtof(argv[11], NULL),
                                           argc > 12 ? argv[12] : NULL, ours);
    const double seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    uint64_t differ = 0;
    for (size_t i = 0; i < s.m * s.n; i++)
        if (memcmp(ours + i * bytes, theirs + i * bytes, bytes) != 0 && differ++ == 0)
            printf("row %zu, column %zu: %" PRIx64 ", theirs %" PRIx64 "\n", i / s.n, i % s.n,
                   dot_unpack(&p.out, ours, i), dot_unpack(&p.out, theirs, i));
    printf("%s: %zu results, %" PRIu64 " differ, %.6f seconds%s\n", argv[9], s.m * s.n, differ, seconds,
           status == MPSIM_OK ? "" : ", FAILED");
    free(theirs);
    free(ours);
    mm_set_clear(&s);
    return differ || status != MPSIM_OK;
}
