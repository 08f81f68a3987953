/* inputs.h -- sets of inputs that tell rows apart (mpsim/judge.h), in steps: which kind, the arrays, the rows, the classes. */
#pragma once

#include "judge.h"

#include <stdint.h>

/* A set that is being made; its formats are in memory. row: NULL: all of the kind. */
typedef struct judge_inputs {
    mpsim_judge_set *set;
    const char *row;
    const mpsim_pool *pool;
    char *why;
    size_t size;
} judge_inputs;

/* What a kind does. formats: of the arrays, from the row. make: the arrays. rows: the names. sign: the results of a row for the arrays,
 * added to a hash. */
typedef struct judge_inputs_kind {
    mpsim_status (*formats)(judge_inputs *w, const mpsim_format *from);
    mpsim_status (*make)(judge_inputs *w);
    mpsim_status (*rows)(judge_inputs *w);
    mpsim_status (*sign)(const mpsim_judge_set *set, const char *row, uint64_t *hash);
} judge_inputs_kind;
extern const judge_inputs_kind judge_inputs_cast, judge_inputs_quantise, judge_inputs_product, judge_inputs_attend,
    judge_inputs_arith;
/* judge_inputs_is_attend -- whether this is a row of attention. */
int judge_inputs_is_attend(const char *text);
/* judge_inputs_is_arith -- whether this is a row of arithmetic. */
int judge_inputs_is_arith(const char *name);

/* judge_inputs_open -- the kind and the formats; judge_inputs_make -- the arrays; judge_inputs_rows -- the names of rows. */
mpsim_status judge_inputs_open(judge_inputs *w, const char *row, const mpsim_format *from);
mpsim_status judge_inputs_make(judge_inputs *w);
mpsim_status judge_inputs_rows(judge_inputs *w);
/* judge_inputs_sign -- adds the results of all rows to their hashes; rows that have none are left out.
 * judge_inputs_classes -- rows with the same hash are a class. */
mpsim_status judge_inputs_sign(judge_inputs *w, uint64_t *hashes);
mpsim_status judge_inputs_classes(judge_inputs *w, const uint64_t *hashes);

/* judge_inputs_run -- all of it: mpsim_judge_inputs. */
mpsim_status judge_inputs_run(mpsim_judge_set *set, const char *row, const mpsim_format *from, const mpsim_pool *pool,
                              char *error, size_t size);
void judge_set_clear(mpsim_judge_set *set);

/* ---- what the kinds have of one another ---- */

mpsim_status judge_inputs_fail(const judge_inputs *w, mpsim_status status, const char *text, const char *name);
/* judge_inputs_name -- one more row; one that is there already, or whose name is cut, is left out. 0, or -1 without memory. */
int judge_inputs_name(mpsim_judge_set *set, const char *name);
/* judge_inputs_array -- array i: rows x columns codes of format[i], all 0; NULL without memory. */
void *judge_inputs_array(mpsim_judge_set *set, size_t i, const char *role, size_t rows, size_t columns);
/* judge_inputs_random -- the next of a sequence: splitmix64. */
uint64_t judge_inputs_random(uint64_t *state);

static inline uint64_t judge_inputs_mix(uint64_t hash, uint64_t value)
{
    hash = (hash ^ value) * 0x9e3779b97f4a7c15u;
    return hash ^ hash >> 29;
}
uint64_t judge_inputs_mix_codes(uint64_t hash, const mpsim_format *f, const void *codes, size_t n, int any_nan);
