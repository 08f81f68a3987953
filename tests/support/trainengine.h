/* trainengine.h -- an engine under test, and naive words for what it holds: numbers of a format,
 * drawn and rounded by the scalar functions, and tensors made of them. */
#pragma once

#include "support.h"

#include <train/engine.h>

#include <stdint.h>
#include <string.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])
enum { MOST = 36000, NAMES = 9 };

/* The CPU engine, open during a test, and the state of its random numbers. */
extern train_engine engine;
extern const train_ops *ops;
extern uint64_t seed;

/* engine_main -- run tests, each with an engine of its own; `add` adds them. */
int engine_main(const char *name, void (*add)(TCase *t));

#define OK(call) ck_assert_msg((call) == 0, "line %d: %s", __LINE__, engine.error)
/* -1, and a line about it. */
#define FAILS(call, words)                                                                     \
    do {                                                                                       \
        engine.error[0] = '\0';                                                                \
        ck_assert_msg((call) == -1, "line %d: no error", __LINE__);                            \
        ck_assert_msg(strncmp(engine.error, "cpu: ", 5) == 0 && strstr(engine.error, words) && \
                          !strchr(engine.error, '\n'),                                         \
                      "line %d: '%s'", __LINE__, engine.error);                                \
    } while (0)

/* ---- numbers ---- */

extern const char *const names[NAMES]; /* formats of all sorts */
const mpsim_format *format(const char *name);
/* rounded -- RN, and what it does; c may be NULL. */
float rounded(const mpsim_format *f, float x, train_counts *c);
/* engine_draw -- a number around 2^(exponent - spread) to 2^exponent; with specials, some are odd. */
float engine_draw(const mpsim_format *f, int exponent, int spread, int specials);
void fill(const mpsim_format *f, float *x, size_t n, int exponent, int spread, int specials);
/* engine_same -- equal bits; NaNs are one class. */
void engine_same(const char *what, const float *got, const float *want, size_t n);
void same_counts(const char *what, const train_counts *a, const train_counts *b);

/* ---- tensors: at most MOST elements ---- */

train_tensor make(const mpsim_format *f, size_t rows, size_t cols, const float *values);
train_tensor any(const char *name, size_t rows, size_t cols, int specials);
const float *get(const train_tensor *x); /* its values, kept during the next 31 calls */
void drop(train_tensor *x);
