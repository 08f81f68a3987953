/* extent.c -- see extent.h. */
#include "extent.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Asked once, before Check forks: a test may last past midnight. */
static uint64_t part;
static unsigned finer; /* how many parts are made of one */
static int all;

uint64_t test_seed(void)
{
    static int known;
    static uint64_t seed = 20261120;
    if (!known) {
        const char *s = getenv("MPSIM_TEST_SEED");
        if (s && *s)
            seed = strtoull(s, NULL, 0);
        if (seed == 0)
            seed = (uint64_t)time(NULL);
        known = 1;
        s = getenv("MPSIM_TEST_PART");
        all = test_expensive() || (s && strcmp(s, "all") == 0);
        part = s && *s ? strtoull(s, NULL, 0) : (uint64_t)time(NULL) / 86400;
        finer = test_multiplier() < 1 ? (unsigned)(1 / test_multiplier() + 0.5) : 1;
        printf("# MPSIM_TEST_SEED=%" PRIu64 " MPSIM_TEST_MULTIPLIER=%g MPSIM_TEST_PART=%" PRIu64 "%s\n", seed,
               test_multiplier(), part, all ? ", all parts" : "");
    }
    return seed;
}

double test_multiplier(void)
{
    const char *s = getenv("MPSIM_TEST_MULTIPLIER");
    const double m = s && *s ? strtod(s, NULL) : 1;
    return m > 0 ? m : 1;
}

size_t test_scaled(size_t n)
{
    const double m = (double)n * test_multiplier();
    return m < 1 ? 1 : (size_t)m;
}

int test_expensive(void)
{
    const char *s = getenv("MPSIM_TEST_EXPENSIVE");
    return s && strcmp(s, "1") == 0;
}

uint64_t test_part_seed(void)
{
    return test_seed() + part * 0x9e3779b97f4a7c15u;
}

int test_all_parts(void)
{
    test_seed();
    return all;
}

int test_in_whole_part(uint64_t index, unsigned parts)
{
    test_seed();
    return all || index % parts == part % parts;
}

int test_in_part(uint64_t index, unsigned parts)
{
    test_seed();
    return test_in_whole_part(index, parts * finer);
}
