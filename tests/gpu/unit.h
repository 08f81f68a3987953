/* unit.h -- a made-up special function unit, for tests: tables and quadratic interpolation in fixed point, of the kind that
 * Oberman and Siu describe (ARITH-17, 2005) with index bits, widths and coefficients that no device has. What it gives proves
 * that the reader and the fitter work, and nothing about a device.
 *
 * Also what is known without a device: what ptxas writes around the unit's instruction (sm_90), and how a result follows from
 * a function of the unit. */
#pragma once

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The result of an operation (gpu/functions/functions.h) by the made-up unit. */
uint32_t test_unit(int operation, uint32_t a, uint32_t b);

/* MUFU of the made-up unit, of a function; sin and cos: with the product by 1 / (2 pi) before it. */
uint32_t test_unit_mufu(int function, uint32_t x);

/* An operation of binary32 as ptxas writes it around MUFU. mufu: 0, or -1: not known, and so is the result. */
typedef int test_mufu(const void *of, int function, uint32_t x, uint32_t *y);
int test_around_mufu(int operation, uint32_t a, uint32_t b, test_mufu *mufu, const void *of, uint32_t *y);

#ifdef __cplusplus
}
#endif
