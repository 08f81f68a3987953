/* main.c -- mpsim-gpu-statistics: libmpsim-cuda judged on a device (check.h).
 *
 *   mpsim-gpu-statistics [--quick] [--small] [--untimed] [--piece I/N] [--output FILE]
 *
 * --quick: the largest array has 4 million elements, not 100; --small: no large arrays, no times; --piece I/N: each
 * N-th array from the I-th on, for sanitizers. Exit: 0; 1: something differs; 2: usage; 4: the device or the file
 * failed; 77: no device. */
#include "check.h"

#include <string.h>

static int usage(void)
{
    fprintf(stderr, "usage: mpsim-gpu-statistics [--quick] [--small] [--untimed] [--piece I/N] [--output FILE]\n");
    return 2;
}

/* "2/8": the second of eight. 0, or -1. */
static int parse_piece(stats_check_plan *plan, const char *text)
{
    char more;
    if (sscanf(text, "%u/%u%c", &plan->piece, &plan->pieces, &more) != 2 || plan->piece < 1 ||
        plan->piece > plan->pieces)
        return -1;
    plan->piece--;
    return 0;
}

/* 0, or an exit status: a line was written. */
static int parse(stats_check_plan *plan, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--quick") == 0) {
            plan->largest = plan->timed = 4000000;
        } else if (strcmp(argv[i], "--small") == 0) {
            plan->largest = plan->timed = 0;
        } else if (strcmp(argv[i], "--untimed") == 0) {
            plan->timed = 0;
        } else if (strcmp(argv[i], "--piece") == 0 && i + 1 < argc && parse_piece(plan, argv[i + 1]) == 0) {
            i++;
        } else if (strcmp(argv[i], "--output") == 0 && i + 1 < argc) {
            plan->json = fopen(argv[++i], "w");
            if (!plan->json) {
                perror(argv[i]);
                return 4;
            }
        } else {
            return usage();
        }
    }
    return 0;
}

int main(int argc, char **argv)
{
    stats_check_plan plan = {100000000, 100000000, 15, stdout, NULL, NULL, NULL, 0, 0};
    const int bad = parse(&plan, argc, argv);
    if (bad)
        return bad;
    const int differing = stats_check(&plan);
    if (plan.json && fclose(plan.json))
        return 4;
    if (differing == STATS_CHECK_NO_DEVICE)
        return 77;
    return differing < 0 ? 4 : differing > 0;
}
