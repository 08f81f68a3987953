/* bytes.h -- numbers and texts as bytes that are the same on every machine, and back. */
#pragma once

#include "../array/array.h"

#include <stdint.h>

/* ---- putting: memory that grows; what fails is told at the end ---- */

void stat_bytes_put_count(array_bytes *b, uint64_t x);      /* 7 bits a byte, the lowest first */
void stat_bytes_put_signed(array_bytes *b, int64_t x);      /* the sign in the lowest bit      */
void stat_bytes_put_word(array_bytes *b, uint32_t x);       /* 4 bytes, little-endian          */
void stat_bytes_put_double(array_bytes *b, double x);       /* its 8 bytes, little-endian      */
void stat_bytes_put_digest(array_bytes *b, uint64_t x);     /* 8 bytes, little-endian          */
void stat_bytes_put_text(array_bytes *b, const char *text); /* its length, it, a zero byte */
void stat_bytes_clear(array_bytes *b);                      /* free the memory                 */

/* ---- taking: what is missing or malformed sets `bad`, and gives 0 or "" ---- */

typedef struct taker {
    const unsigned char *p, *end;
    int bad;
} taker;

uint64_t stat_take_count(taker *t);
int64_t stat_take_signed(taker *t);
uint32_t stat_take_word(taker *t);
double stat_take_double(taker *t);
uint64_t stat_take_digest(taker *t);
const char *stat_take_text(taker *t); /* it lies where the bytes are; no zero byte within */
/* stat_take_number -- a count that is at most `most`. */
uint64_t stat_take_number(taker *t, uint64_t most);
/* stat_take_end -- 0 if everything was taken and nothing was bad; -1 otherwise. */
int stat_take_end(const taker *t);
