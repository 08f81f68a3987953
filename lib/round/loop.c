/* loop.c -- <mpsim/loop.h>: arrays with strides, through pieces that lie together. */
#include <mpsim/loop.h>

#include "scalar.h"

enum { PIECE = 1024 }; /* elements */

static mpsim_status cast(const mpsim_loop *l, void *y, const void *x, size_t n)
{
    const mpsim_format *f = &l->format;
    const mpsim_rounding *r = &l->rounding;
    switch ((mpsim_loop_kind)l->kind) {
    case MPSIM_LOOP_ROUND_F32:
        return mpsim_round_array_f32(f, r, NULL, y, x, n, NULL);
    case MPSIM_LOOP_ROUND_F64:
        return mpsim_round_array_f64(f, r, NULL, y, x, n, NULL);
    case MPSIM_LOOP_ENCODE_F32:
        return mpsim_encode_array_f32(f, r, NULL, y, x, n, NULL);
    case MPSIM_LOOP_ENCODE_F64:
        return mpsim_encode_array_f64(f, r, NULL, y, x, n, NULL);
    case MPSIM_LOOP_DECODE_F32:
        return mpsim_decode_array_f32(f, y, x, n);
    case MPSIM_LOOP_DECODE_F64:
        return mpsim_decode_array(f, y, x, n);
    case MPSIM_LOOP_KINDS:
        break;
    }
    return MPSIM_EINVAL;
}

mpsim_status mpsim_loop_init(mpsim_loop *l, mpsim_loop_kind kind, const mpsim_format *f, const mpsim_rounding *r)
{
    const int decodes = kind == MPSIM_LOOP_DECODE_F32 || kind == MPSIM_LOOP_DECODE_F64;
    if (!l || (unsigned)kind >= MPSIM_LOOP_KINDS || mpsim_format_check(f) != MPSIM_OK || (!decodes && !r))
        return MPSIM_EINVAL;
    const uint8_t code = (uint8_t)mpsim_format_code_bytes(f), value = kind % 2 ? 8 : 4;
    mpsim_loop made = {.format = *f, .kind = (uint8_t)kind, .from = decodes ? code : value};
    made.to = kind == MPSIM_LOOP_ENCODE_F32 || kind == MPSIM_LOOP_ENCODE_F64 ? code : value;
    mpsim_rounding_init(&made.rounding, MPSIM_ROUND_NEAREST_EVEN);
    if (!decodes)
        made.rounding = *r;
    const mpsim_status status = cast(&made, NULL, NULL, 0);
    if (status == MPSIM_OK)
        *l = made;
    return status;
}

/* n elements of `size` bytes: memcpy knows the sizes that there are */
static void gather(unsigned char *to, ptrdiff_t to_step, const unsigned char *from, ptrdiff_t from_step, size_t n,
                   size_t size)
{
    for (size_t i = 0; i < n; i++, to += to_step, from += from_step) {
        if (size == 4)
            memcpy(to, from, 4);
        else if (size == 1)
            *to = *from;
        else if (size == 2)
            memcpy(to, from, 2);
        else
            memcpy(to, from, 8);
    }
}

void mpsim_loop_run(char **arrays, const ptrdiff_t *n, const ptrdiff_t *steps, void *loop)
{
    const mpsim_loop *l = loop;
    const unsigned char *x = (const unsigned char *)arrays[0];
    unsigned char *y = (unsigned char *)arrays[1];
    const int whole_x = steps[0] == l->from, whole_y = steps[1] == l->to;
    if (whole_x && whole_y) {
        (void)cast(l, y, x, (size_t)n[0]);
        return;
    }
    unsigned char from[PIECE * 8], to[PIECE * 8];
    for (ptrdiff_t i = 0, m; i < n[0]; i += m, x += m * steps[0], y += m * steps[1]) {
        m = n[0] - i < PIECE ? n[0] - i : PIECE;
        if (!whole_x)
            gather(from, l->from, x, steps[0], (size_t)m, l->from);
        (void)cast(l, whole_y ? y : to, whole_x ? x : from, (size_t)m);
        if (!whole_y)
            gather(y, steps[1], to, l->to, (size_t)m, l->to);
    }
}
