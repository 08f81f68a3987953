/* armcpu.c -- the instructions of cpuarm.c on another machine or under an emulator: see armcpu.sh. */
#include "sim/verify/cpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* armcpu RESULTS FILE */
int main(int argc, char **argv)
{
    FILE *record = argc > 2 ? fopen(argv[2], "w") : NULL;
    if (record)
        verify_cpu_record_head(record, argc > 3 ? argv[3] : "an emulator");
    const uint64_t results = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    int wrong = 0;
    for (size_t i = 0; verify_cpu_instruction_at(i); i++) {
        const cpu_instruction *t = verify_cpu_instruction_at(i);
        cpu_result r = {0};
        if (!t->here()) {
            printf("%-16s not there: this machine lacks %s\n", t->name, t->feature);
            continue;
        }
        if (!verify_cpu_compare(t, 1, 0, results / verify_cpu_results(t) + 1, &r))
            return 2;
        printf("%-16s %10" PRIu64 " results %10" PRIu64 " mismatches, digest %016" PRIx64 " %s\n", t->name, r.compared,
               r.mismatches, r.digest, r.first);
        if (record)
            verify_cpu_record(record, t, 1, &r);
        wrong |= r.mismatches != 0;
    }
    if (record)
        fclose(record);
    return wrong;
}
