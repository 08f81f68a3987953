/* subjects.h -- what casts are proven for: formats, roundings, instruction sets. */
#pragma once

#include <mpsim/round.h>
#include <mpsim/rng.h>
#include <stddef.h>
#include <stdint.h>

enum { SUBJECTS_MOST = 160 };

/* subjects -- the rows of the table, P3109 and eXmY formats at the ends of what there is (far outside of
 * binary32, one exponent bit, no significand, 64 bits), and `random` ones drawn. Returns how many. */
size_t subjects(mpsim_format list[SUBJECTS_MOST], size_t random, uint64_t *state);

/* subject_rounding -- turn 0: the default; 1: the presets in turn; 2: any choices, with a scale that is a power
 * of two; from 3 on: with any scale. The scales lie where the format's numbers meet those of the source
 * type of `width` bits, or anywhere. */
mpsim_rounding subject_rounding(const mpsim_format *f, int mode, size_t turn, int width, uint64_t *state);

/* subject_text -- every field, for messages; valid until the next call. */
const char *subject_text(const mpsim_format *f, const mpsim_rounding *r);

/* subject_isa -- use instruction set number i: 1; 0: it is not on this machine (said once); -1: past the end. */
int subject_isa(size_t i);

/* subject_rng -- an index of the generator where its words of 32 bits carry over, or it begins again, or another one. subject_piece -- how
 * many of n elements come next: few, none, many. */
mpsim_rng subject_rng(uint64_t *state);
size_t subject_piece(size_t n, uint64_t *state);

/* subject_enter -- a floating-point environment that a caller may have: 0: the default; directed roundings, and where
 * the machine has them flush-to-zero and denormals-are-zero, up to SUBJECT_ENVIRONMENTS - 1. subject_leave -- back
 * to the default; 0 if it was not as it was entered. */
enum { SUBJECT_ENVIRONMENTS = 6 };
void subject_enter(int k);
int subject_leave(void);

/* subject_random -- 1 for the three modes that take random bits. */
int subject_random(int mode);

/* subject_count -- counts of flags, as every array function and every summary adds them. subject_counts -- as text;
 * valid until the fourth call after this one. */
void subject_count(mpsim_counts *n, unsigned flags);
const char *subject_counts(const mpsim_counts *n);
