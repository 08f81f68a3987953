/* ggml.h -- the blocks of GGUF's quantised types: codes and scales of a run of elements, packed together. Pure functions.
 *
 * Sources: ggml's struct definitions (ggml-common.h) and dequantize_row functions (ggml-quants.c), and the package gguf
 * 0.19 (quants.py), whose `dequantize` gives the same bits. Types whose codes are indices into grids of ggml (IQ1, IQ2,
 * IQ3), and those that are only operands of products (Q8_1), have no row. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct ggml_form {
    const char *type;      /* "Q4_K"                                                   */
    const char *element;   /* what a code is: "int4", "e2m1", "a table of 16"           */
    const char *scale;     /* and the scales: "fp16", "fp16 over int6"                  */
    uint16_t block, bytes; /* of a block: elements, bytes                              */
    uint16_t group;        /* elements that share a scale                              */
    uint16_t at;           /* of the numbers of 16 bits in it, which follow each other */
    uint8_t numbers;       /* how many: d, and a minimum or else                       */
    void (*read)(const struct ggml_form *f, float *x, const unsigned char *b);
} ggml_form;

/* quant_ggml_form_find -- of a type's name; NULL: there is no row. */
const ggml_form *quant_ggml_form_find(const char *type);
/* quant_ggml_read -- n blocks, in the byte order `big` of the file, as numbers. A NaN has one code. */
void quant_ggml_read(const ggml_form *f, float *x, const unsigned char *blocks, size_t n, int big);
