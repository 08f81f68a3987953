/* pieces.h -- work in at most so many pieces, on threads that are lent: what a piece is depends on the work alone. */
#pragma once

#include <mpsim/dot.h>

enum { MPSIM_PIECES = 64 };

/* Things first to first + n - 1, as one piece of all. */
typedef void mpsim_piece(void *job, size_t piece, size_t first, size_t n);

/* mpsim_pieces -- n things in pieces of a multiple of `unit` (0: one piece); `cost`: elements of a thing. */
void mpsim_pieces(const mpsim_pool *pool, size_t n, size_t unit, double cost, mpsim_piece *task, void *job);
