/* attendtile.h -- attention in tiles with an online softmax whose scores have a soft cap, a bias, slopes or a sink, which mpsim/attention.h has
 * not. */
#pragma once

#include "attendrow.h"

typedef struct attend_tiles {
    const attend_row *row;
    const attend_shape *s;
    const attend_arrays *x;
    mpsim_matrix q, k, v; /* n queries; keys; values */
    const mpsim_format *p;
    size_t head, first, n, keys; /* queries from `first` on; keys that are there */
    float scale;
    const uint8_t *seen; /* n x keys bytes */
} attend_tiles;

/* judge_attend_tiles -- y: n x size numbers; lse: n numbers, or NULL. As mpsim_attention_forward, but x[j] is the scaled score after
 * judge_attend_adjust, and exp2 takes powers of f32(log2 e) times the distances of x from the largest one. The sink is one more score without a
 * value: in a tile of its own behind the last one, or with sink_first before the first. */
mpsim_status judge_attend_tiles(const attend_tiles *t, float *y, float *lse);
