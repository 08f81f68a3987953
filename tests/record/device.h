/* device.h -- what devices answered through PyTorch (data/vectors/device), read again.
 *
 * data/record/device/session.py says how inputs are drawn; here they are drawn again. A reader looks
 * at one case of a question and says in words what of the library gives the same bits. */
#pragma once

#include <jansson.h>
#include <mpsim/format.h>
#include <stddef.h>
#include <stdint.h>

enum { DEVICE_ANSWER = 1 << 14 };

/* Of multiply-adds: whole results of larger products are not worked out, and their digests not read. An answer says then
 * what "sample fits". */
extern double device_most_products;

/* head: the first line of the file; c: the case. The answer begins with "fits" where the library has
 * something that gives the same. */
typedef void device_reader(const json_t *head, const json_t *c, char *answer);
device_reader device_casts, device_functions, device_division, device_reductions, device_optimizers, device_products,
    device_scaled, device_fused, device_pointwise, device_matrices, device_autocast, device_attention, device_training,
    device_doubles, device_segments, device_batched, device_convolutions, device_grouped, device_integers,
    device_attention_raw;

/* Puts into a case of products what a device would answer that multiplies by this row, the depth in
 * these parts (0: whole). */
void device_play_products(json_t *c, const char *row, size_t part);

/* The same where the first tiles are whole, and the others cut in two at this product of the depth. */
void device_play_segments(json_t *c, const char *row, size_t whole, size_t at);

/* Devices that rows play, for the readers of stacks and integers: the way is found, a changed digit, too. */
typedef void device_ok(int passed, const char *format, const char *a, const char *b);
void device_check_plays(device_ok *ok);

/* Attention that the library plays: its way is found, and one changed code. */
void device_check_attention(device_ok *ok);

/* Ends the program where there is no memory, or the library refuses what it must not. */
void device_need(int given);

/* Members of a case: 0, "" where there is none. */
uint64_t device_integer(const json_t *o, const char *key);
const char *device_text(const json_t *o, const char *key);

/* Of a list of hexadecimal words: the i-th; how many there are. */
uint64_t device_code(const char *words, size_t i);
size_t device_codes(const char *words);

int device_same_digest(const json_t *o, const char *key, uint64_t digest);

/* Names that fit, collected, the first few in words, or all; at the end the answer. */
enum { DEVICE_FITS = 6 };
typedef struct device_fits {
    char names[DEVICE_ANSWER - 40];
    size_t count;
    int all, sample; /* sample: no digest was read */
} device_fits;
void device_fit(device_fits *f, const char *format, ...) __attribute__((format(printf, 2, 3)));
void device_say(char *answer, const char *format, ...) __attribute__((format(printf, 2, 3)));
void device_say_fits(char *answer, const device_fits *f);

/* mpsim's format of a name of torch. */
const mpsim_format *device_format(const char *torch);

/* Number i of a stream, as Session.draw draws it. */
float device_number(const char *torch, int low, int high, uint64_t stream, uint64_t i);
/* Numbers first, first + step, ... */
void device_numbers(const char *torch, const int range[2], uint64_t stream, size_t first, size_t step, size_t n,
                    float *x);
uint64_t device_word(uint64_t stream, uint64_t i);

/* Place i of Session.sample, whose "places" are in the case; behind those that "at" names, if it does. */
size_t device_place(const json_t *c, size_t i);

/* The norm of a list of one tensor, as ATen for CUDA adds it up. */
float device_list_norm(const float *x, size_t n);

/* How threads of ATen's Reduce.cuh share the n numbers of one output of a matrix: along x and y of a block, and blocks. */
typedef struct device_order {
    size_t n, x, y, blocks, step, y_stride, block_stride;
    int vectors; /* four neighbours at a time */
} device_order;
device_order device_order_of(size_t rows, size_t columns, int over_columns);
float device_sum(const device_order *o, const float *x, size_t stride, size_t shift);

/* x rounded to f to nearest. */
float device_round(const mpsim_format *f, float x);
uint64_t device_encode(const mpsim_format *f, float x);
