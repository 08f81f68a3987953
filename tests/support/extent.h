/* extent.h -- how much of a test runs. Without Check, for tests in C++, too.
 *
 * Environment
 *   MPSIM_TEST_SEED        seed of all random test inputs; fixed by default, 0 = from the time
 *   MPSIM_TEST_MULTIPLIER  a positive number that scales the random loops and, below 1, the parts of the long
 *                          enumerations; default 1, in make check 0.2
 *   MPSIM_TEST_PART        a number that says which part of the long enumerations runs; default: the number of
 *                          today, so that the parts take turns; printed with the seed. "all": all parts
 *   MPSIM_TEST_EXPENSIVE   1: run what takes minutes, and all parts (set by make check-wide) */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

uint64_t test_seed(void); /* printed once, as a TAP comment                   */
double test_multiplier(void);
size_t test_scaled(size_t n); /* n * multiplier, at least 1                       */
int test_expensive(void);

/* Whether item `index` of a long enumeration, cut into `parts`, is in the part that runs: the index modulo
 * parts is MPSIM_TEST_PART modulo parts. With a multiplier of 0.2 there are five times as many parts. Always where all
 * parts run. What boundaries and special values prove is not asked for here, so that it runs each time. */
int test_in_part(uint64_t index, unsigned parts);
int test_all_parts(void);                               /* nothing waits for its day */
int test_in_whole_part(uint64_t index, unsigned parts); /* as many parts whatever the multiplier: each says something */
uint64_t test_part_seed(void); /* another seed for each part: of random inputs that are compared exactly */

#ifdef __cplusplus
}
#endif
