/* generate.h -- operands of attention with a property: integers of a random generator times powers of two, so that they
 * are the same everywhere. */
#pragma once

#include "heads.h"

/* What can be generated: word and what it is, for people; NULL: there is no such. */
typedef struct generated_values {
    const char *word, *label;
} generated_values;
const generated_values *attention_generate_find(const char *word);

/* attention_generate_operands -- makes of normal numbers of h what `how` says. */
void attention_generate_operands(attention_heads *h, const generated_values *how, uint64_t seed);
