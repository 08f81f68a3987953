/* words.h -- recorded runs as text: files of data/vectors/scalers, lines of words, comments with
 * '#'.
 *
 * Whatever cannot be read fails the test that runs. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum { WORDS_LINE = 8192, WORDS_MAX = 256 };

/* A line cut into words, comments included. */
typedef struct words {
    char text[WORDS_LINE];
    const char *word[WORDS_MAX];
    size_t count;
} words;

FILE *words_open(const char *file);
int words_next(FILE *f, words *w); /* 0: end of the file          */
int words_skip(const words *w);    /* 1: an empty line, a comment */

/* One word as a number, as an integer, as hexadecimal bits. */
double words_real(const char *word);
int64_t traininglog_words_integer(const char *word);
uint64_t words_bits(const char *word);
