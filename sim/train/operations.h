/* operations.h -- the multiply-adds of a step by the formats of their operands: what a device would spend. */
#pragma once

#include <train/train.h>

enum { OPERATION_KINDS = 16 }; /* pairs by name; all further ones are "others", the last row */

typedef struct train_operations {
    struct {
        char name[128]; /* "bf16 x bf16", "mxfp8 x mxfp8" */
        uint64_t n;
    } rows[OPERATION_KINDS + 1];
    size_t count;
} train_operations;

/* train_operations_count -- of the forward and backward passes of one step under plan i of a transformer's run, its
 * micro-batches and ranks included. Operands of recipes with one scale have the format of their elements, others
 * the recipe's name. */
void train_operations_count(train_operations *o, const train_run *r, size_t i);

/* train_tokens_per_step -- of all micro-batches and ranks. */
uint64_t train_tokens_per_step(const train_settings *s);

/* train_operand -- what a layer multiplies: the format of a role, that of its quantised form, or tf32. */
const mpsim_format *train_operand(const train_settings *s, const train_placement *p, train_role role);
