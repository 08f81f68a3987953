/* step.c -- see step.h. */
#include <train/step.h>

#include "run/fields.h"

#include <string.h>

const char train_norm_name[] = "norm of all gradients";

/* ---- memory ---- */

/* Of an array that states may quantise. */
static uint64_t array_bytes(const mpsim_states *s, const mpsim_state *array, uint64_t n, uint64_t each)
{
    return n && s && mpsim_states_apply(s, array, n) ? mpsim_state_bytes(array, n) : n * each;
}

static uint64_t moment_bytes(const train_placement *l, const mpsim_optim *o, uint64_t n)
{
    const mpsim_states *s = l->states;
    const uint64_t each = s && s->binary32 ? 4 : mpsim_format_code_bytes(&l->state);
    return array_bytes(s, s ? s->m : NULL, mpsim_optim_elements(o, MPSIM_OPTIM_M, n), each) +
           array_bytes(s, s ? s->v : NULL, mpsim_optim_elements(o, MPSIM_OPTIM_V, n), each) +
           array_bytes(s, s ? s->v : NULL, mpsim_optim_elements(o, MPSIM_OPTIM_VMAX, n), each);
}

void train_bytes_add(train_bytes *b, const train_placement *l, train_master master, const mpsim_optim *o, uint64_t n,
                     uint64_t quantised)
{
    const size_t stored = mpsim_format_code_bytes(&l->storage), kept = mpsim_format_code_bytes(&l->kept);
    const unsigned needs = mpsim_optim_needs(o, &l->kept);
    const mpsim_state *array = l->states ? l->states->kept : NULL;
    const int has_master = !mpsim_format_same(&l->kept, &l->storage) || (quantised && stored == 4);
    b->weights += quantised ? quantised : array_bytes(l->states, has_master ? NULL : array, n, stored);
    if (has_master)
        b->master += master == TRAIN_SPLIT_MASTER ? 2 * n : array_bytes(l->states, array, n, kept);
    /* binary32 parameters have binary32 gradients, whatever backward rounded them to */
    b->gradients += n * (stored < 4 ? mpsim_format_code_bytes(&l->format[TRAIN_WGRAD]) : 4);
    b->state += moment_bytes(l, o, n);
    if (needs & MPSIM_OPTIM_KAHAN)
        b->state += n * mpsim_format_code_bytes(&l->kept);
}

/* ---- from plan to plan ---- */

static int same_fields(const train_fields *all, const void *a, const void *b)
{
    static const size_t sizes[] = {[FLAG] = 1, [WORD] = 1, [I16] = 2, [U32] = 4, [U64] = 8, [F64] = 8};
    for (size_t i = 0; i < all->n; i++) {
        const train_field *f = &all->list[i];
        if (memcmp((const char *)a + f->offset, (const char *)b + f->offset, sizes[f->type]) != 0)
            return 0;
    }
    return 1;
}

int train_same_scaler(const mpsim_scaler_config *a, const mpsim_scaler_config *b)
{
    return strcmp(a->name, b->name) == 0 && same_fields(&train_scaler_fields, a, b);
}

int train_same_history(const mpsim_delayed_config *a, const mpsim_delayed_config *b)
{
    return a->fp8_max == b->fp8_max && same_fields(&train_history_fields, a, b);
}
