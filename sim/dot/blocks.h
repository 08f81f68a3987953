/* blocks.h -- operands of dot products quantised in blocks along K: MXFP8, MXFP6, MXFP4, NVFP4. */
#pragma once

#include "models.h"
#include "operand.h"

/* dot_operand_quantise -- codes and scales of o->x by the recipe, and its numbers without the tensor's scale as bf16, which
 * has them all. 0, or an exit code after a message. */
int dot_operand_quantise(operand *o, const mpsim_block_recipe *recipe);

/* dot_blocks_models -- leave the models that take such operands: those with scales of these blocks, as they are, and those of
 * bf16, which multiply the numbers. 0, or an exit code after a message. */
int dot_blocks_models(model_list *l, const operand *a, const operand *b);

/* dot_blocks_gemm -- a model over products first to first + depth - 1 of all pairs; d: codes of its result. */
mpsim_status dot_blocks_gemm(const mpsim_model *m, const operand *a, const operand *b, size_t first, size_t depth,
                             void *d, const mpsim_pool *pool);
