/* suggestion.h -- a guess at what a misspelt word was meant to be. */
#pragma once

#include <stddef.h>

/* The nearest of the words considered, at most two letters away; several if they are equally near. Where none is but one
 * letter away, and the word begins others, or is a part of them between '-', these: fp16-static and megatron-fp16 for fp16. */
enum { SUGGESTION_KIN = 3 };
typedef struct suggestion {
    char word[64]; /* folded: lower case, '_' for '-' */
    size_t distance;
    int count;
    char text[256];               /* "stat", "fp64 or fp16"                                  */
    char kin[SUGGESTION_KIN][64]; /* those that begin with the word first, by the alphabet   */
    int kin_count;                /* all of them                                             */
} suggestion;

void suggestion_init(suggestion *s, const char *word);
void suggestion_consider(suggestion *s, const char *candidate);
/* suggestion_end -- ": did you mean stat?", or `otherwise` if nothing was near. */
const char *suggestion_end(suggestion *s, const char *otherwise);

/* fold_word -- `text` in lower case with '_' for '-', cut to `size`. */
void fold_word(char *out, size_t size, const char *text);
