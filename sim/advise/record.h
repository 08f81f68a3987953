/* record.h -- the records of mpsim advise. */
#pragma once

#include "../record/record.h"
#include "advise.h"

typedef struct advise_window {
    int low, high; /* exponents */
} advise_window;

typedef struct advise_weights {
    int known;
    size_t told; /* the same */
    const char *why, *worst;
    advise_stall of;
} advise_weights;

typedef struct advise_scale {
    size_t is; /* there is a window */
    advise_window window;
    int exponent; /* or FIELD_NONE */
    uint64_t gradients, fit;
} advise_scale;

/* A part of the advice in steps that were held back. */
typedef struct advise_kept_row {
    advise_kept of;
    size_t is_broken;
    const char *name; /* the first tensor that breaks it */
} advise_kept_row;

typedef struct advise_held {
    uint64_t steps;
    advise_kept_row choice, scale, recipe;
} advise_held;

/* A tensor in a format. */
typedef struct advise_tried {
    const char *format, *recipe, *why_not;
    int fits;
    char reason[128]; /* why_not */
    advise_evidence of;
} advise_tried;

/* A tensor. */
typedef struct advise_row {
    const char *name, *kind, *layer, *recorded, *evidence, *narrowest, *why_not;
    const char *shown; /* narrowest, for people */
    uint64_t elements, steps, broken, roundoff;
    double bits;
    advise_evidence worst;
    size_t has_window;
    advise_window window;
    char underflow[32], sqnr[32], why[260], scales[40]; /* for people */
    uint8_t in_recipe;
    const advise_tried *formats; /* formats_of */
    size_t n_formats;
    advise_tried formats_of[CANDIDATES_MOST];
} advise_row;

/* All but the tensors. */
typedef struct advise_document {
    const advise *a;
    const char *const *inputs;
    size_t n_inputs;
    uint64_t steps;
    const char *compute, *recipe, *no_recipe;
    advise_weights weights;
    advise_scale scale;
    const advise_layer *layers;
    size_t n_layers;
    unread_list unread;
    size_t holds; /* `held` says something */
    advise_held held;
} advise_document;

extern const report_kind advise_report; /* an advise_document of advise_rows */
extern const record_kind advise_row_record;

void advise_row_fill(advise_row *row, const advise *a, const advise_tensor *t);
