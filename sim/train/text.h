/* text.h -- what a transformer trains on, from a file: bytes as tokens, or tokens in the layout of llm.c. */
#pragma once

#include "../trace/trace.h"

#include <train/train.h>

typedef struct text_file {
    train_text text; /* bytes 0: none was read */
    char name[64];
    void *bytes; /* of the file */
} text_file;

/* train_text_file_tokens -- the tokens of a file, of which the last tenth is held back. tokens: 1: as llm.c has
 * them; else a byte is one. vocabulary: every token is below it; 0: of bytes 256, of files of llm.c that of
 * their tokenizer. 0, or -1 with *error. The text lasts as long as *x stays where it is. */
int train_text_file_tokens(text_file *x, const char *path, int tokens, uint32_t vocabulary, trace_error *error);
void train_text_file_clear(text_file *x);
