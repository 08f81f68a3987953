/* decoderinput.h -- weights and text of a transformer from integers, the same as those of
 * data/vectors/decoder/formula.py. */
#pragma once

#include <train/train.h>

/* decoder_weight -- element i of a parameter; what it is (matrix, bias, norm) its name says. */
float decoder_weight(const char *name, size_t i);
/* decoder_text -- the text, its tokens below `vocabulary` (up to 256); valid until the next call. */
const train_text *decoder_text(uint32_t vocabulary);
