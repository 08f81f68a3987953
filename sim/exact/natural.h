/* natural.h -- natural numbers of up to 32,768 bits: what exact arithmetic on typed numbers needs. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { NATURAL_WORDS = 1024 };

/* n words, the lowest first; the highest is not 0. Zero has none. */
typedef struct natural {
    size_t n;
    uint32_t word[NATURAL_WORDS];
} natural;

/* The result may be an operand only where that is said. What does not fit ends in an assertion: exact.h bounds it. */
void natural_set(natural *x, uint64_t value);
/* natural_grow -- x = x m + a. */
void natural_grow(natural *x, uint32_t m, uint32_t a);
/* natural_shift -- x = x 2^n. */
void natural_shift(natural *x, size_t n);
/* natural_halve -- x = floor(x / 2). */
void natural_halve(natural *x);
void natural_multiply(natural *z, const natural *a, const natural *b);
/* natural_add, natural_subtract -- a = a + b; a = a - b, where b is at most a. */
void natural_add(natural *a, const natural *b);
void natural_subtract(natural *a, const natural *b);
/* natural_compare -- negative, 0 or positive, as a is less than, equal to or more than b. */
int natural_compare(const natural *a, const natural *b);
/* natural_bits -- how many bits x has; of zero 0. natural_zeros -- how many zeros it ends in; of zero 0. */
size_t natural_bits(const natural *x);
size_t natural_zeros(const natural *x);
/* natural_drop -- x = x / 2^n, which is a natural number. */
void natural_drop(natural *x, size_t n);
