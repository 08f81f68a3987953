/* judged.h -- what a judgement must have. */
#pragma once

#include "support.h"

#include <mpsim/judge.h>

/* judged_has -- a finding of this cause, whose sentence has these words. */
static inline void judged_has(const mpsim_judgement *j, const char *cause, const char *words)
{
    for (size_t i = 0; i < j->findings; i++)
        if (strcmp(j->finding[i].cause, cause) == 0 && strstr(j->finding[i].text, words))
            return;
    ck_abort_msg("no finding '%s' with '%s', but '%s'", cause, words, j->findings ? j->finding[0].text : "none");
}

/* judged_in_class -- whether the row is one of those that give the same results. */
static inline int judged_in_class(const mpsim_judgement *j, const char *row)
{
    for (size_t i = 0; i < j->same && i < MPSIM_JUDGE_ROWS; i++)
        if (strcmp(j->class_rows[i], row) == 0)
            return 1;
    return 0;
}

/* judged_found -- whether there is a finding of this cause, a word of mpsim_judge_causes. */
static inline int judged_found(const mpsim_judgement *j, const char *cause)
{
    const char *const *word = mpsim_judge_causes();
    while (*word && strcmp(*word, cause) != 0)
        word++;
    ck_assert_msg(*word != NULL, "%s", cause);
    for (size_t i = 0; i < j->findings; i++)
        if (strcmp(j->finding[i].cause, cause) == 0)
            return 1;
    return 0;
}

/* judged_bf16 -- a finite number, to nearest even. */
static inline float judged_bf16(float v)
{
    uint32_t u;
    memcpy(&u, &v, sizeof u);
    u = (u + 0x7fff + (u >> 16 & 1)) & 0xffff0000u;
    memcpy(&v, &u, sizeof u);
    return v;
}
