/* loop.h -- casts between arrays with strides, in the form of NumPy's inner loops.
 *
 * A ufunc made of mpsim_loop_run (PyUFunc_FromFuncAndData, with a mpsim_loop as its data) casts without any code
 * between the interpreter and the library; python/src/mpsim does so. */
#ifndef MPSIM_LOOP_H
#define MPSIM_LOOP_H

#include <mpsim/round.h>
#include <stddef.h>

MPSIM_BEGIN

typedef enum mpsim_loop_kind {
    MPSIM_LOOP_ROUND_F32, /* mpsim_round_array_f32 */
    MPSIM_LOOP_ROUND_F64, /* and so on             */
    MPSIM_LOOP_ENCODE_F32,
    MPSIM_LOOP_ENCODE_F64,
    MPSIM_LOOP_DECODE_F32,
    MPSIM_LOOP_DECODE_F64,
    MPSIM_LOOP_KINDS /* number of kinds */
} mpsim_loop_kind;

typedef struct mpsim_loop {
    mpsim_format format;
    mpsim_rounding rounding;
    uint8_t kind;     /* mpsim_loop_kind               */
    uint8_t from, to; /* bytes of an element           */
} mpsim_loop;

/* mpsim_loop_init -- a loop; r is NULL in kinds that decode. What the array function says of f and r; MPSIM_EINVAL
 * also in stochastic modes, and for a kind that is none. */
MPSIM_API mpsim_status mpsim_loop_init(mpsim_loop *l, mpsim_loop_kind kind, const mpsim_format *f,
                                       const mpsim_rounding *r);

/* mpsim_loop_run -- the array function of an initialised loop on n[0] elements from arrays[0] to arrays[1]; one lies
 * steps[0] bytes, or steps[1], behind the one before it. */
MPSIM_API void mpsim_loop_run(char **arrays, const ptrdiff_t *n, const ptrdiff_t *steps, void *loop);

MPSIM_END

#endif
