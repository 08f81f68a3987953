/* main.c -- mpsim-gpu-statistics [--quick] [--untimed] [--output FILE]: libmpsim-cuda judged on a device (check.h). Exit: 0; 1: something
 * differs; 2: usage; 4: the device or the file failed. */
#include "check.h"

#include <string.h>

int main(int argc, char **argv)
{
    stats_check_plan plan = {100000000, 100000000, 15, stdout, NULL, NULL};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            plan.largest = plan.timed = 4000000;
        } else if (strcmp(argv[i], "--untimed") == 0) {
            plan.timed = 0;
        } else if (strcmp(argv[i], "--output") == 0 && i + 1 < argc) {
            plan.json = fopen(argv[++i], "w");
            if (!plan.json) {
                perror(argv[i]);
                return 4;
            }
        } else {
            fprintf(stderr, "usage: mpsim-gpu-statistics [--quick] [--untimed] [--output FILE]\n");
            return 2;
        }
    }
    const int differing = stats_check(&plan);
    if (plan.json && fclose(plan.json))
        return 4;
    return differing < 0 ? 4 : differing > 0;
}
