/* quantised.h -- tensors that a file holds as codes and scales (quantised.c finds them with what quantisedhint.c
 * knows of metadata, quantisedread.c reads them). A table of sim/quant says how files store them. */
#pragma once

#include "../quant/describe.h"
#include "impl.h"

#define QUANTISED_ABSENT UINT32_MAX

enum { QUANTISED_PARTS = 6 };
_Static_assert((int)QUANTISED_PARTS >= (int)QUANT_PARTS && (int)QUANTISED_PARTS <= (int)TRACE_COPIES,
               "room for all parts");

/* What trace_tensor.quantised points to. */
typedef struct quantised {
    trace_quantised said;
    const quant_form *form;          /* NULL: `packed`, or blocks of GGUF (gguf.c)                  */
    const struct packed *packed;     /* packed.h                                                    */
    uint32_t parts[QUANTISED_PARTS]; /* entries of the trace; QUANTISED_ABSENT: there is none       */
    uint32_t block_rows, block_cols; /* for quant_geometry_of                                       */
    int swizzled;
    const char *name; /* and shape of the tensor, until it has an entry                             */
    const uint64_t *shape;
    size_t rank;
} quantised;

/* trace_quantised_codes -- trace.quantised (quantisedread.c). */
int trace_quantised_codes(const trace *t, const trace_entry *entry, uint64_t first, void *codes, size_t n,
                          trace_error *error);

/* ---- what metadata say (quantisedhint.c) ---- */

/* Of one tensor; what is empty is not said. */
typedef struct quantised_hint {
    int known;          /* something is                                                    */
    int described;      /* by mpsim: shape and blocks, too                                 */
    const char *layout; /* NULL: not said                                                  */
    char type[64], element[32];
    int swizzled; /* -1: not said                                                    */
    quant_description mpsim;
} quantised_hint;

/* Metadata in the order of their keys. */
typedef struct quantised_pair {
    const char *key, *value;
} quantised_pair;
typedef struct quantised_index {
    quantised_pair *pairs;
    size_t n;
} quantised_index;

int trace_quantised_index_new(quantised_index *x, const trace *t, trace_error *error);
void trace_quantised_index_free(quantised_index *x);
/* trace_quantised_hints -- of the tensor of that name. -1 and why if what is said of it cannot be understood; -2: no memory. */
int trace_quantised_hints(const quantised_index *x, const char *name, quantised_hint *hint, char *why, size_t size);
