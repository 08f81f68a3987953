/* shape.h -- the parameters of a model: a number of them, those of a file, or those of a transformer
 * described by its options. */
#pragma once

#include "../input/input.h"

/* A parameter. */
typedef struct shape_tensor {
    const char *layer;   /* "h0.attn.qkv"                                                    */
    int weight_rank;     /* of the layer's weight; -1: not known                             */
    int rank;            /* of itself; 0: its shape is not known                             */
    uint64_t n;          /* elements                                                         */
    uint64_t rows, cols; /* of a matrix: all dimensions but the last, and the last         */
    uint64_t inner;      /* the dimension before the last                                  */
    const char *of;      /* the embedding whose parameter this layer reads too; or NULL    */
} shape_tensor;

/* A transformer as Narayanan et al. 2021 and Korthikanti et al. 2022 count it: layers of attention and
 * an MLP of two matrices, biases everywhere, learnt positions, the output layer tied to the embedding. Of
 * SwiGLU the first matrix of the MLP has gates and values: 2 ffn rows. */
typedef struct shape_transformer {
    uint64_t layers, hidden, heads, kv_heads, ffn, vocab, positions, seq, batch;
    int untied; /* an output layer of its own */
    int swiglu, rmsnorm, no_biases;
} shape_transformer;

typedef struct shape {
    uint64_t parameters;                  /* of the whole model                                       */
    int counted_only;                     /* from --params: one matrix whose shape is not known       */
    const shape_transformer *transformer; /* the parameters are its; or NULL             */
    uint64_t tensor_parallel;
    shape_tensor *tensors; /* of files                                                 */
    char **names;
    size_t count, buffers; /* buffers: tensors that are no parameters                  */
    uint64_t left_out;     /* their elements                                           */
    char uncounted[256];   /* parts of a model of config.json that are not counted, by their keys */
    size_t packed;         /* of them the codes of packed weights, which have no numbers */
    unread_list unread;    /* tensors of files without numbers, and why                 */
} shape;

/* memory_shape_parse_count -- "7e9", "7B", "1.3e9", "125M", "2^33": a whole number of at most 10^15. 0, or -1. */
int memory_shape_parse_count(uint64_t *n, const char *text);

/* Each returns 0 or an exit code after a message. memory_shape_of_files reads directories of tensors, no
 * elements: those of the kind weight, or all where no tensor has a kind; a name counts once. */
int memory_shape_of_files(shape *s, const input_options *o, char **files, int n);
int memory_shape_of_transformer(shape *s, const shape_transformer *t, uint64_t tensor_parallel);
void memory_shape_clear(shape *s);

/* memory_shape_has_layer -- whether a layer has such a name; of a transformer those without parameters, too. */
int memory_shape_has_layer(const shape *s, const char *glob);
/* memory_shape_each -- every parameter as a rank of the tensor parallel group has it; those of a layer follow
 * each other. An output layer that reads the embedding's is visited, too, with `of`. */
void memory_shape_each(const shape *s, void (*visit)(const shape_tensor *t, void *context), void *context);
