/* pack.h -- results kept in few bits: differences from what is expected of them, coded by a range coder whose
 * probabilities follow the two differences before. Plain C, the same bytes everywhere.
 *
 * Codes of one format become integers in the order of their values. A table begins with a byte that says what its differences
 * are of: the correctly rounded results, the result before, or how much one of both grew from the operand before. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* gpu_pack -- n results of `bits` (32 or 16) beside the exact ones, by the way that takes fewest bytes. How many bytes; 0: more than
 * `room`. */
size_t gpu_pack(const uint32_t *results, const uint32_t *exact, size_t n, int bits, uint8_t *to, size_t room);

/* gpu_unpack -- the results again. 0; -1: these bytes are not n results (which damage rarely shows: compare digests). */
int gpu_unpack(uint32_t *results, const uint32_t *exact, size_t n, int bits, const uint8_t *from, size_t size);

#ifdef __cplusplus
}
#endif
