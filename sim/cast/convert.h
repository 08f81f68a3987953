/* convert.h -- elements of one format as elements of another: what cast does with the codes of a tensor. */
#pragma once

#include "../operand/target.h"

/* From the codes of `source` to those of `out`, which is the target's format or holds its numbers. */
typedef struct converter {
    struct converter *next; /* the owner's */
    const mpsim_format *source, *to, *out;
    mpsim_rounding rounding;
    enum { CONVERT_WIDE, CONVERT_NARROW, CONVERT_TABLE } path;
    float *table; /* CONVERT_TABLE: binary32 of every code */
} converter;

/* cast_converter_init -- what it is made of must outlive it. */
void cast_converter_init(converter *c, const target *t, const mpsim_format *source, const mpsim_format *out);
void cast_converter_clear(converter *c);

/* cast_converter_run -- n codes, in the byte order of the host, become n codes in that of files. `rng` is that
 * of the first element, `counts` may be NULL. Threads may share a converter. */
void cast_converter_run(const converter *c, const mpsim_rng *rng, void *to, const void *from, size_t n,
                        mpsim_counts *counts);

void cast_counts_add(mpsim_counts *to, const mpsim_counts *from);

/* widened -- the format that holds every number of f, of those that other tools read. */
const mpsim_format *cast_widened(const mpsim_format *f);
