/* t-isa.c -- the instruction set that runs: chosen as /proc/cpuinfo says, and by name. */
#include "support/support.h"

#include "lib/base/isa.h"

#include <mpsim/isa.h>

#include <stdio.h>
#include <stdlib.h>

enum { LINE = 1 << 14 };

/* Whether the operating system says that the processor has all features of a list; -1: nobody says. */
static int machine_has(const char *const *features)
{
    static char line[LINE];
    FILE *f = fopen("/proc/cpuinfo", "r");
    int flags = 0, all = 1;
    while (f && !flags && fgets(line, LINE, f))
        flags = strncmp(line, "flags", 5) == 0;
    if (f)
        fclose(f);
    for (size_t i = 0; flags && features[i]; i++) {
        char word[32];
        snprintf(word, sizeof word, " %s", features[i]);
        const char *at = strstr(line, word);
        while (at && at[strlen(word)] != ' ' && at[strlen(word)] != '\n')
            at = strstr(at + 1, word);
        all = all && at;
    }
    return flags ? all : -1;
}

static const char *const avx2[] = {"avx2", "fma", "f16c", NULL};
static const char *const avx512[] = {"avx512f", "avx512cd", "avx512dq", "avx512bw", "avx512vl", "fma", "f16c", NULL};
static const char *const popcount[] = {"avx512f", "avx512_vpopcntdq", "fma", "f16c", NULL};

typedef struct set {
    const char *name;
    mpsim_isa isa;
    const char *const *features; /* NULL: every machine has it */
} set;

static const set sets[] = {
    {"avx512", MPSIM_ISA_AVX512, avx512}, {"avx2", MPSIM_ISA_AVX2, avx2},     {"neon", MPSIM_ISA_NEON, NULL},
    {"generic", MPSIM_ISA_GENERIC, NULL}, {"scalar", MPSIM_ISA_SCALAR, NULL},
};

static const set *set_at(size_t i)
{
    const char *name = mpsim_isa_at(i);
    for (size_t k = 0; name && k < sizeof sets / sizeof sets[0]; k++)
        if (strcmp(sets[k].name, name) == 0)
            return &sets[k];
    ck_abort_msg("%s", name ? name : "no name");
    return NULL;
}

static size_t count(void)
{
    size_t n = 0;
    while (mpsim_isa_at(n))
        n++;
    return n;
}

static int there(const set *s)
{
    return s->features && machine_has(s->features) == 0 ? 0 : 1;
}

CASE("isa", 4);

/* The first test: nothing has been used by name yet. */
TEST(the_first_choice_is_the_best_that_the_machine_has)
{
    if (test_under_valgrind() || getenv("MPSIM_ISA"))
        return;
    size_t i = 0;
    while (!there(set_at(i)))
        i++;
    for (int again = 0; again < 2; again++) {
        ck_assert_str_eq(mpsim_isa_active(), mpsim_isa_at(i));
        ck_assert_int_eq(mpsim_isa_choice(), set_at(i)->isa);
    }
    if (machine_has(popcount) >= 0 && strcmp(mpsim_isa_at(0), "avx512") == 0)
        for (int again = 0; again < 2; again++)
            ck_assert_int_eq(mpsim_isa_counts_bits(), machine_has(popcount));
}

TEST(names_end_with_what_every_machine_has)
{
    const size_t n = count();
    ck_assert_uint_ge(n, 2);
    ck_assert_str_eq(mpsim_isa_at(n - 1), "scalar");
    ck_assert_str_eq(mpsim_isa_at(n - 2), "generic");
    ck_assert_ptr_null(mpsim_isa_at(n));
    ck_assert_ptr_null(mpsim_isa_at(n + 1));
    ck_assert_ptr_null(mpsim_isa_at(SIZE_MAX));
}

TEST(each_is_used_by_name_where_the_machine_has_it)
{
    const char *before = mpsim_isa_active();
    for (size_t i = 0; !test_under_valgrind() && i < count(); i++) {
        const set *s = set_at(i);
        const mpsim_status status = mpsim_isa_use(s->name);
        ck_assert_msg(status == (there(s) ? MPSIM_OK : MPSIM_EUNAVAILABLE), "%s: %s", s->name,
                      mpsim_status_string(status));
        if (status == MPSIM_OK) {
            ck_assert_str_eq(mpsim_isa_active(), s->name);
            ck_assert_int_eq(mpsim_isa_choice(), s->isa);
        }
    }
    ck_assert_int_eq(mpsim_isa_use(NULL), MPSIM_EINVAL);
    ck_assert_int_eq(mpsim_isa_use("sse9"), MPSIM_ENOTFOUND);
    ck_assert_int_eq(mpsim_isa_use(""), MPSIM_ENOTFOUND);
    ck_assert_int_eq(mpsim_isa_use(before), MPSIM_OK);
}

TEST_MAIN("isa");
