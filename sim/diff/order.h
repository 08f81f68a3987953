/* order.h -- the order in which a training computes the tensors of a step. */
#pragma once

#include "side.h"

/* diff_order_group -- sort the tensors of a step: what its beginning finds (optimizer state, masters, weights: made by
 * the update of the step before), then inputs and outputs of the modules as they are called, then gradients in
 * the opposite order. Modules are in the order of the metadata "mpsim.order"; without it in that of the file. Where the
 * file has its names sorted, also within each dtype, as safetensors writes them, that tells nothing: then embeddings come
 * first, layers by their numbers, in a layer attention before the MLP where their names are known, other names as
 * strverscmp sorts them (fc2 before fc10), logits last, and g->sorted says that the order of execution is not known. */
void diff_order_group(side_group *g);
