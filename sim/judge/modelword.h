/* modelword.h -- the word :model=NAME of a row, with changes of the model behind it: "model=hopper-bf16-fp32:F=14". */
#pragma once

#include "table.h"

/* The text of the model while the words of a row are read. */
typedef struct judge_model_text {
    char text[MPSIM_JUDGE_ROW];
    int open; /* 1: the word before was the model's */
} judge_model_text;

/* judge_model_word -- whether the word is `model`, which begins the text, or a change behind it, which is added to the text. A word that the
 * row itself has is not asked for: judge_model_close. */
int judge_model_word(judge_model_text *t, const char *word, const char *value);

static inline void judge_model_close(judge_model_text *t)
{
    t->open = 0;
}

/* judge_model_read -- the model of the text, else `otherwise`. 0; or -1: it is none, or its results are not numbers of binary32. */
int judge_model_read(mpsim_model *m, const judge_model_text *t, const char *otherwise);
