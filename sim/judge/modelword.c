/* modelword.c -- see modelword.h. */
#include "modelword.h"

#include "../text/words.h"

#include <string.h>

int judge_model_word(judge_model_text *t, const char *word, const char *value)
{
    const int begins = strcmp(word, "model") == 0 && value && !*t->text;
    if (!begins && !t->open)
        return 0;
    t->open = 1;
    return !(begins ? text_add(t->text, sizeof t->text, "%s", value)
                    : text_add(t->text, sizeof t->text, ":%s%s%s", word, value ? "=" : "", value ? value : ""));
}

int judge_model_read(mpsim_model *m, const judge_model_text *t, const char *otherwise)
{
    const mpsim_status s = mpsim_model_parse(m, *t->text ? t->text : otherwise);
    return s == MPSIM_OK && m->result.format.mbits <= 23 ? 0 : -1;
}
