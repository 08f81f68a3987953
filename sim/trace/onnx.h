/* onnx.h -- what the readers of an ONNX model share: onnx.c walks through its graphs, onnxtensor.c reads a tensor there, onnxdata.c knows
 * where the elements are. */
#pragma once

#include "protowalk.h"

enum { ONNX_PATH = 4096, ONNX_BUFFER = 8 << 10 };

/* Where the elements of a tensor are: trace_entry.at. From ONNX_OUTSIDE on: a file beside the model. */
enum { ONNX_MODEL, ONNX_DECODED, ONNX_OUTSIDE };

/* What a model keeps while it is open. */
typedef struct onnx_data onnx_data;

typedef struct onnx {
    bytewalk w;
    trace *t;
    const trace_options *options;
    char path[ONNX_PATH];              /* of the graph: the nodes and attributes that lead to it */
    unsigned char buffer[ONNX_BUFFER]; /* of what is decoded */
    size_t fill;
} onnx;

/* trace_onnx_text -- the first field of that number that is not empty, of the message that ends at `end`: as text, "" if there is none or if
 * it is too long for `size`; w->at is as it was. */
int trace_onnx_text(onnx *x, uint64_t end, uint64_t number, char *text, size_t size);

/* onnxtensor.c: all return 0, or -1 with *x->w.error filled. */

/* trace_onnx_tensor -- the TensorProto that ends at `end`, under its own name, or where `name` is not NULL under that. */
int trace_onnx_tensor(onnx *x, uint64_t end, const char *name);
/* trace_onnx_sparse -- a SparseTensorProto: its values, and its indices under "NAME/indices". */
int trace_onnx_sparse(onnx *x, uint64_t end, const char *name);
/* trace_onnx_numbers -- field `number` of the message that ends at `end`, numbers of an attribute, as a tensor: FLOAT or INT64; of rank 1 if
 * the field is repeated, else 0. */
int trace_onnx_numbers(onnx *x, uint64_t end, uint64_t number, int is_float, size_t rank, const char *name);
/* trace_onnx_name -- a name below the path: trace_alloc'ed; NULL without memory. */
const char *trace_onnx_name(const onnx *x, const char *last);

/* onnxdata.c */

int trace_onnx_data_begin(trace *t, trace_error *error);
void trace_onnx_data_close(trace *t);
/* trace_onnx_decode -- bytes of the current tensor, behind those before: *at is where the first of a tensor is put. trace_onnx_decoded -- all are
 * there. */
uint64_t trace_onnx_decode_begin(const onnx *x);
int trace_onnx_decode(onnx *x, const void *bytes, size_t n);
int trace_onnx_decoded(onnx *x);
/* trace_onnx_external -- the elements of entry i are in a file beside the model: `length` bytes, UINT64_MAX if that is not said. */
int trace_onnx_external(trace *t, size_t i, const char *location, uint64_t offset, uint64_t length, trace_error *error);
/* trace_onnx_outside -- after the last tensor: these files are there, with what the model says; those that are not leave their tensors
 * unread. */
int trace_onnx_outside(trace *t, const trace_options *options, trace_error *error);
int trace_onnx_codes(const trace *t, const trace_entry *e, uint64_t first, void *codes, size_t n, trace_error *error);
const char *trace_onnx_file(const trace *t, const trace_entry *e);
/* trace_onnx_unread -- the tensor is listed, and this is why its elements are not read. */
int trace_onnx_unread(trace *t, trace_entry *e, const char *why, trace_error *error);
