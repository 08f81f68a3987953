/* suggestion.h -- a guess at what a misspelt word was meant to be. */
#pragma once

#include <stddef.h>

/* The nearest of the words considered, at most two letters away; several if they are equally near. */
typedef struct suggestion {
    char word[64]; /* folded: lower case, '_' for '-' */
    size_t distance;
    int count;
    char text[160]; /* "stat", "fp64 or fp16" */
} suggestion;

void suggestion_init(suggestion *s, const char *word);
void suggestion_consider(suggestion *s, const char *candidate);
/* suggestion_end -- ": did you mean stat?", or `otherwise` if nothing was near. */
const char *suggestion_end(suggestion *s, const char *otherwise);

/* fold_word -- `text` in lower case with '_' for '-', cut to `size`. */
void fold_word(char *out, size_t size, const char *text);
