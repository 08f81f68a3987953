/* check.h -- what operations of an engine are given, checked above all engines; shared by the files of this folder
 * only. A file checks some of the operations: each of its functions is one of train_ops, which calls the engine's
 * own one only if its arguments are as engine.h says. What an engine lacks, it says itself. */
#pragma once

#include <train/engine.h>

/* common.c */
/* -1, with a line in e->error: the engine's name and the message. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int check_fail(train_engine *e, const char *message, ...);

size_t check_size(const train_tensor *x);
int check_is_binary32(const mpsim_format *f);
/* Each 0, or -1 with a line that names the operation: x is a tensor with data for its shape; */
int check_tensor(train_engine *e, const char *operation, const train_tensor *x);
/* and of the given shape; */
int check_shape(train_engine *e, const char *operation, const train_tensor *x, size_t rows, size_t cols);
/* and of binary32; */
int check_floats(train_engine *e, const char *operation, const train_tensor *x, size_t rows, size_t cols);
/* a result is not the operand; */
int check_apart(train_engine *e, const char *operation, const train_tensor *y, const train_tensor *x);
/* formats have the same numbers and codes; */
int check_formats(train_engine *e, const char *operation, const mpsim_format *a, const mpsim_format *b);
/* a list of n is there. */
int check_list(train_engine *e, const char *operation, const void *list, size_t n);

/* Their operations take the place of the engine's. */
void check_tensors(train_ops *to);   /* tensors.c: what tensors hold, casts, blocks             */
void check_products(train_ops *to);  /* products.c                                              */
void check_layers(train_ops *to);    /* layers.c: gather, ReLU, pooling, sums, loss, batch norm */
void check_updates(train_ops *to);   /* updates.c: gradients, the optimizer, ranks              */
void check_tokens(train_ops *to);    /* tokens.c: tables, heads, normalisation, activations     */
void check_attention(train_ops *to); /* attention.c: softmax, tiles                             */
