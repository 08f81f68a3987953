/* attendscore.h -- what becomes of the scores of attention between the products. */
#pragma once

#include "attendrow.h"

/* judge_attend_distance -- from a query's own key to another, by which the slope of a head is multiplied. */
double judge_attend_distance(const attend_row *row, const attend_shape *s, size_t query, size_t key);

/* judge_attend_scale -- n numbers times a factor, rounded to f. */
void judge_attend_scale(float *x, const mpsim_format *f, size_t n, float by);

/* judge_attend_adjust -- what becomes of n scaled scores from key `first` on: soft cap, bias, slope; each step is rounded to f. */
void judge_attend_adjust(const attend_row *row, const attend_shape *s, const attend_arrays *x, const mpsim_format *f,
                         const size_t at[3], size_t n, float *scores);

/* judge_attend_lse -- the largest of n numbers plus the logarithm of the sum of the powers of their distances from it; mask: bytes, or NULL. */
float judge_attend_lse(const float *x, const uint8_t *mask, size_t n);
