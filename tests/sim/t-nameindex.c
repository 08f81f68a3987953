/* t-nameindex.c -- the table of names: what it finds, and that names cannot be chosen that make it slow. */
#include "sim/input/names.h"
#include "support/support.h"

#include <stdint.h>
#include <stdio.h>
#include <time.h>

enum { NAMES = 20000, LENGTH = 12 };

static char names[NAMES][LENGTH];

/* CPU seconds that all names take; each is found under its number, and others are not. */
static double seconds(void)
{
    nameindex x = {NULL};
    int wrong = 0;
    const clock_t begin = clock();
    for (size_t i = 0; i < NAMES; i++) {
        wrong |= nameindex_find(&x, names[i]) != -1;
        nameindex_add(&x, names[i], i);
    }
    for (size_t i = 0; i < NAMES; i++)
        wrong |= nameindex_find(&x, names[i]) != (ptrdiff_t)i;
    wrong |= nameindex_find(&x, "") != -1 || nameindex_find(&x, "nobody") != -1;
    const double taken = (double)(clock() - begin) / CLOCKS_PER_SEC;
    nameindex_clear(&x);
    ck_assert(!wrong);
    return taken;
}

/* FNV-1a, folded, by which the names of a file could be made to meet: 15,000 took two seconds in diff. */
static uint64_t fnv(const char *s)
{
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * UINT64_C(0x100000001b3);
    return h ^ h >> 32;
}

CASE("names", 20);

TEST(bug_20261123_names_that_meet)
{
    for (unsigned i = 0; i < NAMES; i++)
        snprintf(names[i], LENGTH, "%x", i);
    const double plain = seconds();
    for (unsigned i = 0, n = 0; n < NAMES; i++) {
        snprintf(names[n], LENGTH, "%x", i);
        n += (fnv(names[n]) & 0xffff) < 512;
    }
    const double chosen = seconds();
    ck_assert_msg(chosen < 8 * plain + 0.05, "%.3f s, of other names %.3f s", chosen, plain);
}

TEST_MAIN("nameindex");
