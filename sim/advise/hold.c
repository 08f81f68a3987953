/* hold.c -- how often the advice is kept in steps that it was not made from; see advise.h. */
#include "advise.h"

static void count(advise_kept *k, const advise_seen *s, int is)
{
    if (!is && k->kept == k->judged) {
        k->tensor = s->tensor;
        k->step = s->step;
    }
    k->judged++;
    k->kept += is != 0;
}

void advise_hold(advise *a)
{
    const int forward = a->recipe ? advise_candidates_find(&a->candidates, a->recipe->forward) : -1;
    const int gradient = a->recipe ? advise_candidates_find(&a->candidates, a->recipe->gradient) : -1;
    const int fp16 = advise_candidates_find(&a->candidates, "fp16");
    for (size_t i = 0; i < a->n_held; i++) {
        const advise_seen *s = &a->held[i];
        const advise_tensor *t = &a->tensors[s->tensor];
        if (!t->steps)
            continue; /* nothing was advised */
        const int scaled = t->gradient && (int)t->choice == fp16;
        count(&a->kept_choice, s, scaled ? (s->scales & t->scales) != 0 : (s->fits >> t->choice & 1) != 0);
        if (t->gradient && t->at_scale)
            count(&a->kept_scale, s, (s->scales >> (a->scale - SCALE_LOW) & 1) != 0);
        if (t->in_recipe)
            count(&a->kept_recipe, s, (s->fits >> (t->role == ROLE_GRAD ? gradient : forward) & 1) != 0);
    }
}
