/* stream.h -- which random bits a tensor gets. */
#pragma once

#include "../trace/trace.h"

/* tensor_stream -- the stream (see mpsim/rng.h) of a tensor: a hash (FNV-1a, 64 bits) of the step
 * and the rank of its file and of its name; of the file's base name where the tensor has none.
 * So it depends on neither the order of the files, nor their folder, nor the selection. */
uint64_t tensor_stream(const trace *t, const trace_tensor *tensor);

/* name_stream -- the same of a step, a rank (or NULL) and a name. */
uint64_t name_stream(int64_t step, const char *rank, const char *name);
