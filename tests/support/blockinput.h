/* blockinput.h -- numbers that the tests of block quantisation cast. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* Numbers of the size of a tensor's, with an exponent range of `spread`. */
float ordinary(uint64_t *state, int centre, int spread);

/* Kinds of matrices, and the element i of one. */
enum { ORDINARY, FEW_BITS, WIDE, ANY, SMALL, HUGE_ONES, SPECIALS, ZEROS, FILLS };

float block_input(int fill, size_t i, uint64_t *state);
