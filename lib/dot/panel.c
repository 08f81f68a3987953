/* panel.c -- see panel.h. */
#include "../base/environment.h"
#include "panel_parts.h"

/* Lines first to first + n - 1, each of them k after k. */
static void pack_lines(const mpsim_lines *x, const mpsim_panels *to, int narrow, size_t first, size_t n)
{
    if (x->look ? mpsim_pack_values_together(x, to, first, n) : narrow && mpsim_pack_f32_together(x, to, first, n))
        return;
    for (size_t l = first; l < first + n; l++)
        (x->look ? mpsim_pack_values_line : narrow ? mpsim_pack_f32_line : mpsim_pack_any_line)(x, to, l);
}

void mpsim_panel_pack(const mpsim_lines *x, const mpsim_panels *to, size_t panel)
{
    const size_t first = panel * N, n = x->count - first < N ? x->count - first : N;
    const int narrow = x->u.direct && !x->u.wide && x->u.bytes <= 4;
    const mpsim_environment before = mpsim_environment_default(); /* for x->widen */
    if (!to->k_major)
        pack_lines(x, to, narrow, first, n);
    else if (x->look)
        mpsim_pack_values_across(x, to, first, n);
    else
        (narrow ? mpsim_pack_f32_across : mpsim_pack_any_across)(x, to, first, n);
    mpsim_environment_restore(before);
}
