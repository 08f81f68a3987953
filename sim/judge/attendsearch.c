/* attendsearch.c -- see attendsearch.h. */
#include "attendsearch.h"

#include "../text/words.h"

#include <stdio.h>
#include <string.h>

int judge_attend_parse(attend_row *row, const char *text)
{
    char copy[MPSIM_JUDGE_ROW];
    judge_ending end;
    if (strlen(text) >= sizeof copy)
        return -1;
    memset(row, 0, sizeof *row);
    snprintf(copy, sizeof copy, "%s", text);
    return judge_ending_take(&end, copy) || judge_attend_read(row, copy) ? -1 : 0;
}

/* A row, if its model takes the operands. */
static void add_one(const attend_search *s, const char *text, const char *behind)
{
    char name[MPSIM_JUDGE_ROW] = "";
    attend_row row;
    if (text_add(name, sizeof name, "%s%s", text, behind) == 0 && judge_attend_parse(&row, name) == 0 &&
        judge_attend_takes(&row, s->x))
        s->each(s->to, name);
}

static void add_tiles(const attend_search *s, const char *model, const char *p, const char *behind)
{
    char text[MPSIM_JUDGE_ROW];
    for (size_t tile = 16; tile <= 512; tile *= 2)
        for (int flags = 0; flags < (s->x->sinks ? 8 : 4); flags++) {
            *text = '\0';
            (void)text_add(text, sizeof text, "flash:model=%s%s%s%s%s", model, p, flags & 1 ? ":exp2" : "",
                           flags & 2 ? ":reciprocal" : "", flags & 4 ? ":sink-first" : "");
            if (tile / 2 < s->keys || tile == 16)
                (void)text_add(text, sizeof text, ":tile=%zu", tile), add_one(s, text, behind);
        }
}

/* The rows of a model. narrow: the format of the operands, or NULL for binary32. */
static void add_model(const attend_search *search, const char *model, const char *narrow, const char *behind)
{
    for (int p = 0; p < 1 + (narrow != NULL); p++) {
        char text[MPSIM_JUDGE_ROW], of_p[48] = "";
        if (p)
            (void)text_add(of_p, sizeof of_p, ":p=%s", narrow);
        for (int s = 0; s < 1 + (narrow != NULL); s++)
            for (int on = 0; on < ATTEND_SCALED; on++) {
                *text = '\0';
                (void)text_add(text, sizeof text, "eager:model=%s%s", model, of_p);
                if (s)
                    (void)text_add(text, sizeof text, ":s=%s", narrow);
                if (on)
                    (void)text_add(text, sizeof text, ":scale-on=%s%s", judge_attend_scaled[on],
                                   narrow && !p ? ":upcast" : "");
                add_one(search, text, behind);
            }
        add_tiles(search, model, of_p, behind);
    }
}

void judge_attend_search(const attend_search *s)
{
    const mpsim_format *f = s->x->q->format;
    const attend_row *known = s->known;
    char behind[96] = "";
    mpsim_model m;
    (void)text_add(behind, sizeof behind, "%s%s", known->causal ? ":" : "", judge_attend_causals[known->causal]);
    if (known->window)
        (void)text_add(behind, sizeof behind, ":window=%zu", known->window);
    if (known->scale > 0)
        (void)text_add(behind, sizeof behind, ":scale=%.9g", known->scale);
    if (known->softcap > 0)
        (void)text_add(behind, sizeof behind, ":softcap=%.9g", known->softcap);
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++)
        if (!m.block && m.result.format.mbits == 23)
            add_model(s, m.name, f->mbits < 23 ? f->name : NULL, behind);
}
