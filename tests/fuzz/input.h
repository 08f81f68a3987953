/* input.h -- what the fuzz targets share: the bytes of an input as a file or as text, and what every message
 * must be. With FUZZ_STANDALONE there is also a main that runs the files given as arguments. */
#pragma once

#include <stddef.h>
#include <stdint.h>

/* The target: any bytes. 0. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* must -- abort, which a fuzzer reports, unless it is true. */
void must(int true_always);

/* input_path -- the path of the one file, in memory where there is such a thing, that now holds these bytes. */
const char *input_path(const uint8_t *data, size_t n);
/* input_path_of -- the same of one of several files, from 0 on. */
enum { INPUT_FILES = 3 };
const char *input_path_of(size_t which, const uint8_t *data, size_t n);

/* input_text -- the bytes and a zero, on the heap, with nothing behind; to be freed. */
char *input_text(const uint8_t *data, size_t n);

/* input_pieces -- visit is called for each piece of the bytes, which zero bytes part: many small texts are one input. A fuzzer
 * goes no further than INPUT_PIECES of them, since inputs of the same length with more take many times as long. */
enum { INPUT_PIECES = 8 };
void input_pieces(const uint8_t *data, size_t n, void (*visit)(const uint8_t *piece, size_t n));

/* input_with_digest -- the bytes, a new line if they do not end in one, and a line of `before` and their digest
 * (mpsim_digest_bytes), *size bytes in all; to be freed. */
char *input_with_digest(const uint8_t *data, size_t n, const char *before, size_t *size);

/* must_be_line -- the text is one line that a terminal can be shown, and is not empty. */
void must_be_line(const char *text);

/* short_room -- `size` bytes for a text that may need more. must_be_short -- one is in them, which ends, and nothing behind
 * them was written. */
char *short_room(size_t size);
void must_be_short(void);

/* messages_begin, messages_check -- around what prints messages: each must be a line "mpsim: ..."; after an
 * exit code (2, 3 or 4) there is exactly one that is no note, after 0 there is none. */
void messages_begin(void);
void messages_check(int code);
