/* quantrow.h -- rows of block quantisers: the recipes of mpsim/block.h, the rules of E8M0 scales for each of the formats of MX,
 * FP8 with a scale of binary32 by tensor, row and block. */
#pragma once

#include <mpsim/block.h>

/* judge_quantise_row_at -- the i-th; 0, or -1 past the last one. Some come twice. */
int judge_quantise_row_at(mpsim_block_recipe *b, size_t i);

/* judge_quantise_is_random -- whether random bits, or a scale that the caller gives, decide results. */
int judge_quantise_is_random(const mpsim_block_recipe *b);
