/* support.h -- what the test programs share: random bits, instruction sets, reports.
 *
 * Environment: that of extent.h, and
 *   MPSIM_ISA              the instruction set to use; a program SKIPs if it is not there */
#pragma once

#include "extent.h"

#include <check.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* Check writes each assertion that holds to a file, to name the last one before a crash: that cost more than most
 * tests do. A debugger names it, too. */
#define _mark_point(file, line) ((void)0)

/* splitmix64: test inputs only, shares nothing with the library's generator. */
uint64_t test_random(uint64_t *state);
void test_normal_pair(uint64_t *state, double *x); /* two deviates of a unit normal */

/* Bits and values. */
uint32_t bits_of_f32(float x);
uint64_t bits_of_f64(double x);
uint32_t narrowed(
    double x); /* the bits of a value that binary32 has, a NaN's too, with the leading ones of its payload */

/* Inline always: i386 returns numbers in the x87, in which a signalling NaN becomes quiet. */
__attribute__((always_inline)) static inline float f32_of_bits(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

__attribute__((always_inline)) static inline double f64_of_bits(uint64_t u)
{
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}

/* A code in an array, as an unsigned integer of 1, 2, 4 or 8 bytes at any address. */
uint64_t code_load(const void *p, size_t bytes);
void code_store(void *p, size_t bytes, uint64_t code);

/* Tests are listed nowhere but where they stand. CASE begins a case of the program, with the seconds that a test may take on an idle machine
 * (they are applied generously and scale with the multiplier); the tests below belong to it. TEST is a test, TESTS is run for _i = 0 to n - 1.
 * TEST_MAIN ends the file. A program that has more to do has a main of its own, with test_main(suite, test_cases()).
 *
 *     CASE("numbers", 20);
 *
 *     TEST(one_is_odd)
 *     {
 *         ck_assert(1 % 2);
 *     }
 *
 *     TEST_MAIN("odd");
 */
typedef struct test_entry {
    int line;
    const char *name; /* of a case; NULL: a test */
    double timeout;
    void (*add)(TCase *t);
    struct test_entry *next;
} test_entry;
void test_enter(test_entry *e);

#define TEST_PASTE_(a, b) a##b
#define TEST_ENTER_(id, ...)                                                \
    static test_entry TEST_PASTE_(id, _entry) = {__LINE__, __VA_ARGS__, 0}; \
    __attribute__((constructor)) static void TEST_PASTE_(id, _enter)(void)  \
    {                                                                       \
        test_enter(&TEST_PASTE_(id, _entry));                               \
    }
#define TEST_CASE_(line, name, seconds) TEST_ENTER_(TEST_PASTE_(case_, line), name, seconds, 0) struct test_entry
#define CASE(name, seconds) TEST_CASE_(__LINE__, name, seconds)
#define TESTS(name, n)                                    \
    static const TTest *name;                             \
    static void name##_add(TCase *case_of_)               \
    {                                                     \
        tcase_add_loop_test(case_of_, name, 0, (int)(n)); \
    }                                                     \
    TEST_ENTER_(name, 0, 0, name##_add)                   \
    START_TEST(name)
#define TEST(name) TESTS(name, 1)
#define TEST_MAIN_BY(function, suite)         \
    int main(void)                            \
    {                                         \
        return function(suite, test_cases()); \
    }                                         \
    struct test_entry
#define TEST_MAIN(suite) TEST_MAIN_BY(test_main, suite)

/* A test program: builds the suite from a NULL-terminated list of cases, runs it, returns
 * the exit status. Timeouts are in seconds per test on an idle machine; they are applied
 * generously and scale with the multiplier. */
int test_main(const char *suite, TCase *const *cases);
TCase *const *test_cases(void); /* those of CASE and TEST */
TCase *test_case(const char *name, double timeout);

/* test_direction -- direction i of rounding (<fenv.h>), the default first; -1 past those that the machine has. */
int test_direction(size_t i);

/* Use instruction set number i; 0: it is not on this machine, or MPSIM_ISA wants another. How many there are. */
int test_isa_use(size_t i);
int test_isa_count(void);

/* The path of a file of the source tree, from its path below the top: data/... tests/...
 * The result is valid until the fourth call after this one. */
const char *test_source_path(const char *path);

/* test_under_valgrind -- whether it runs the program: it has memory of its own and knows neither the flags of floating-point
 * exceptions nor FTZ and DAZ. */
int test_under_valgrind(void);
