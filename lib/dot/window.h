/* window.h -- the windows of a convolution over a tensor: what a position of the result reads, tap by tap. */
#pragma once

#include <stddef.h>

/* Position j of a dimension reads by tap i the number j step + shift + i dilation, or +0 outside of the tensor. */
typedef struct mpsim_axis {
    size_t extent, positions, taps;
    ptrdiff_t step, shift, dilation;
} mpsim_axis;

/* A tensor of codes as windows see it. */
typedef struct mpsim_window {
    mpsim_axis axis[3];
    const unsigned char *codes;
    size_t bytes;
    ptrdiff_t image, channel, stride[3]; /* from one to the next, in codes            */
    size_t columns;                      /* of a row, what is behind them reads +0; 0: none */
} mpsim_window;

/* Codes that a position reads by one tap, n channels from the first on, side by side. */
typedef struct mpsim_run {
    ptrdiff_t at;       /* from the place of the position, in codes   */
    ptrdiff_t place[3]; /* from it in each dimension                   */
    size_t n, tap[3], channel;
} mpsim_run;

/* How taps and channels take turns: runs of up to `block` channels, all taps for each block where blocks_first is 1, else all
 * blocks for each tap. */
typedef struct mpsim_turns {
    size_t channels, block;
    int blocks_first;
} mpsim_turns;

/* mpsim_window_taps -- how many there are. */
size_t mpsim_window_taps(const mpsim_window *w);

/* mpsim_window_count_runs, mpsim_window_runs -- the runs of a position, in their order. */
size_t mpsim_window_count_runs(const mpsim_window *w, const mpsim_turns *t);
void mpsim_window_runs(const mpsim_window *w, const mpsim_turns *t, mpsim_run *runs);

/* mpsim_window_gather -- what n positions from `first` on read (row-major, images the slowest) from channel `channel` on: a
 * line each of n_runs runs, `width` codes. */
void mpsim_window_gather(const mpsim_window *w, const mpsim_run *runs, size_t n_runs, size_t width, size_t channel,
                         size_t first, size_t n, unsigned char *to);
