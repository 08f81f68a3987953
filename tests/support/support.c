/* support.c -- see support.h. */
#include "support.h"
#include "sanitized.h"

#include <fenv.h>
#include <inttypes.h>
#include <math.h>
#include <mpsim/isa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

uint64_t test_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

/* By Box and Muller. */
void test_normal_pair(uint64_t *state, double *x)
{
    const double u = ((double)(test_random(state) >> 11) + 1) * 0x1p-53;
    const double v = (double)(test_random(state) >> 11) * 0x1p-53;
    const double radius = sqrt(-2 * log(u)), turn = 6.283185307179586 * v;
    x[0] = radius * cos(turn);
    x[1] = radius * sin(turn);
}

uint32_t bits_of_f32(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

uint64_t bits_of_f64(double x)
{
    uint64_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}

uint64_t code_load(const void *p, size_t bytes)
{
    uint8_t c8;
    uint16_t c16;
    uint32_t c32;
    uint64_t c64;
    switch (bytes) {
    case 1:
        memcpy(&c8, p, 1);
        return c8;
    case 2:
        memcpy(&c16, p, 2);
        return c16;
    case 4:
        memcpy(&c32, p, 4);
        return c32;
    default:
        memcpy(&c64, p, 8);
        return c64;
    }
}

void code_store(void *p, size_t bytes, uint64_t code)
{
    const uint8_t c8 = (uint8_t)code;
    const uint16_t c16 = (uint16_t)code;
    const uint32_t c32 = (uint32_t)code;
    memcpy(p,
           bytes == 1   ? (const void *)&c8
           : bytes == 2 ? (const void *)&c16
           : bytes == 4 ? (const void *)&c32
                        : (const void *)&code,
           bytes);
}

uint32_t narrowed(double x)
{
    if (!isnan(x))
        return bits_of_f32((float)x);
    const uint64_t u = bits_of_f64(x);
    return (uint32_t)(u >> 63) << 31 | 0x7f800000 | ((uint32_t)(u >> 29) & 0x7fffff);
}

/* Timeouts are there to end what hangs, not to measure: a loaded machine or a sanitizer must not
 * trip them. */
TCase *test_case(const char *name, double timeout)
{
    const double slow = SANITIZED_MEMORY || SANITIZED_THREADS ? 20 : 4;
    TCase *t = tcase_create(name);
    const double m = test_multiplier();
    tcase_set_timeout(t, timeout * slow * (m > 1 ? m : 1));
    return t;
}

int test_direction(size_t i)
{
    static const int directions[] = {
        FE_TONEAREST,
#ifdef FE_DOWNWARD
        FE_DOWNWARD,
#endif
#ifdef FE_UPWARD
        FE_UPWARD,
#endif
#ifdef FE_TOWARDZERO
        FE_TOWARDZERO,
#endif
    };
    return i < sizeof directions / sizeof directions[0] ? directions[i] : -1;
}

int test_isa_use(size_t i)
{
    const char *name = mpsim_isa_at(i), *wanted = getenv("MPSIM_ISA");
    return (!wanted || !*wanted || strcmp(name, wanted) == 0) && mpsim_isa_use(name) == MPSIM_OK;
}

int test_isa_count(void)
{
    int n = 0;
    while (mpsim_isa_at((size_t)n))
        n++;
    return n;
}

/* ---- tests that register themselves ---- */

static test_entry *entries; /* in the order of lines */

void test_enter(test_entry *e)
{
    test_entry **at = &entries;
    while (*at && (*at)->line < e->line)
        at = &(*at)->next;
    e->next = *at;
    *at = e;
}

TCase *const *test_cases(void)
{
    enum { MOST = 16 };
    static TCase *cases[MOST + 1];
    static const char *names[MOST];
    size_t now = 0, n = 0;
    for (test_entry *e = entries; e; e = e->next) {
        if (!e->name) {
            e->add(cases[now]);
            continue;
        }
        for (now = 0; now < n && strcmp(names[now], e->name) != 0; now++)
            ;
        if (now == n && n < MOST) {
            names[n] = e->name;
            cases[n++] = test_case(e->name, e->timeout);
        }
    }
    return cases;
}

int test_main(const char *suite, TCase *const *cases)
{
    const char *isa = getenv("MPSIM_ISA");
    if (isa && *isa && mpsim_isa_use(isa) != MPSIM_OK) {
        printf("1..0 # SKIP MPSIM_ISA=%s: %s\n", isa, mpsim_status_string(mpsim_isa_use(isa)));
        return EXIT_SUCCESS;
    }
    printf("# instruction set: %s\n", mpsim_isa_active());
    test_seed(); /* printed once, before Check forks */
    Suite *s = suite_create(suite);
    for (; *cases; cases++)
        suite_add_tcase(s, *cases);
    SRunner *r = srunner_create(s);
    srunner_run_all(r, CK_ENV);
    const int failed = srunner_ntests_failed(r);
    srunner_free(r);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

const char *test_source_path(const char *path)
{
    static char ring[4][4096];
    static unsigned turn;
    const char *top = getenv("MPSIM_SRCDIR");
    char *p = ring[turn++ % 4];
    snprintf(p, sizeof ring[0], "%s/%s", top && *top ? top : ".", path);
    return p;
}

int test_under_valgrind(void)
{
    const char *preload = getenv("LD_PRELOAD"); /* valgrind sets it */
    return preload && strstr(preload, "vgpreload");
}
