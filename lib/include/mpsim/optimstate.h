/* optimstate.h -- moments of optimizers kept in few bits, as the frameworks keep them.
 *
 * A step computes in binary32 and its moments are quantised when they are stored, in blocks of consecutive
 * elements with numbers of their own (scales): the next step begins with the values that codes and numbers represent.
 * So a quantised moment is here an array of the binary32 values of its codes, and storing is
 * mpsim_state_quantise. Needs the default floating-point environment. */
#ifndef MPSIM_OPTIMSTATE_H
#define MPSIM_OPTIMSTATE_H

#include <mpsim/format.h>
#include <mpsim/status.h>

MPSIM_BEGIN

/* How a block x[0 .. n - 1] becomes codes c and numbers s; every operation is rounded to binary32.
 *
 * With a = max(amax, least), or amax + least in binary64 where `adds` is 1:
 *
 * MAP       s[0] = a; y = x / s[0]; c is the place of y in a map of increasing numbers: the
 *           largest i with map[i] <= y (0: none), and i + 1 if y - map[i] >= (map[i + 1] - map[i]) / 2.
 *           Value: map[c] s[0].
 * SCALED    s[0] = a / largest number of the format; c = x / s[0], to nearest even, saturating.
 *           Value: c s[0].
 * POWER     one block for all: s[0] = 2^floor(log2(largest / amax)), 1 where amax is 0, infinite or NaN;
 *           c = x s[0], to nearest even, saturating. Value: c / s[0]. Where the quotient is infinite s[0] is, too:
 *           zeros become NaN, in fp16 all numbers.
 * EXPANDED  COAT's dynamic range expansion: with M and m the largest and least |x|, both plus `least`,
 *             s[2] = sqrt(M m), s[1] = floor(log2(largest^2 / 2) / log2(M / m) 16) / 16 = k,
 *             s[0] = (M / s[2])^k / largest,
 *           c = sign(x) (|x| / s[2])^k / s[0], to nearest even, saturating.
 *           Value: sign(c) |c s[0]|^(1/k) s[2]. Powers with k = infinity (M = m) are those of C's pow; powers
 *           and logarithms are computed in binary64 and rounded. */
typedef enum mpsim_state_rule {
    MPSIM_STATE_MAP,
    MPSIM_STATE_SCALED,
    MPSIM_STATE_POWER,
    MPSIM_STATE_EXPANDED
} mpsim_state_rule;

/* Maps: decades of 2^i parts each, with sign or without, as bitsandbytes has them; equal steps without 0. */
enum { MPSIM_MAP_SIGNED, MPSIM_MAP_UNSIGNED, MPSIM_MAP_LINEAR };

enum { MPSIM_STATE_MAP_MAX = 256, MPSIM_STATE_NUMBERS_MAX = 3 };

/* One array. */
typedef struct mpsim_state {
    const char *name;   /* "dynamic8"                                                            */
    uint8_t rule;       /* mpsim_state_rule                                                      */
    uint8_t bits;       /* of a code                                                             */
    uint8_t numbers;    /* binary32 numbers of a block                                           */
    uint8_t shared;     /* MAP: 1: the map is kept once for all, not with every array            */
    uint32_t block;     /* elements; 0: the whole array is one                                   */
    const char *format; /* SCALED, POWER, EXPANDED: of the codes                                 */
    uint8_t map;        /* MAP: which one                                                        */
    uint8_t adds;       /* see above                                                             */
    double least;
} mpsim_state;

/* The table of arrays:
 *   dynamic8, dynamic8-unsigned   bitsandbytes' dynamic map, blocks of 256, as torchao has it
 *   dynamic4, linear4             torchao's 4-bit states, blocks of 128: m; v, whose map has no zero
 *   e4m3/256                      torchao's FP8 states
 *   coat-e4m3, coat-e5m2          groups of 128, expanded
 *   group-e4m3                    the same groups without expansion
 *   scaled-e4m3, scaled-fp16      MS-AMP's tensors with a power of two */
MPSIM_API size_t mpsim_state_count(void);
MPSIM_API const mpsim_state *mpsim_state_at(size_t i); /* NULL past the end */
MPSIM_API const mpsim_state *mpsim_state_find(const char *name);

/* mpsim_state_map -- the map of MAP in increasing order; how many numbers, 0 for other rules. */
MPSIM_API size_t mpsim_state_map(const mpsim_state *s, float map[MPSIM_STATE_MAP_MAX]);

/* mpsim_state_blocks -- blocks of n elements; the last may be short. */
MPSIM_API uint64_t mpsim_state_blocks(const mpsim_state *s, uint64_t n);

/* mpsim_state_quantise -- codes (16 bits each, NULL: not wanted), s->numbers of every block one after the
 * other (NULL: not wanted), and values, which may be x. mpsim_state_values: values of codes and numbers.
 * MPSIM_EINVAL for a state that is not of the table and arrays that are NULL. */
MPSIM_API mpsim_status mpsim_state_quantise(const mpsim_state *s, const float *x, size_t n, uint16_t *codes,
                                            float *numbers, float *values);
MPSIM_API mpsim_status mpsim_state_values(const mpsim_state *s, const uint16_t *codes, const float *numbers, size_t n,
                                          float *values);

/* State of an optimizer: rows of the table, or NULL: an array as it is. */
typedef struct mpsim_states {
    const char *name;
    const mpsim_state *m, *v;         /* moments; m also of a momentum buffer, v of amsgrad's largest one */
    const mpsim_state *kept;          /* of what accumulates updates                                     */
    uint32_t least;                   /* arrays of fewer elements stay as they are                       */
    uint8_t whole;                    /* 1: states that do not fill their blocks are also quantised      */
    uint8_t binary32;                 /* 1: where they stay, in binary32; 0: in the parameter's format   */
    const char *what, *source, *open; /* as in mpsim_optim_variant                               */
} mpsim_states;

/* The table:
 *   torchao-8bit, torchao-4bit, torchao-fp8   AdamW8bit, AdamW4bit, AdamWFp8 and their Adam
 *   bitsandbytes-8bit                         their blocks and maps, other tensors in binary32
 *   coat, coat-e5m2, coat-plain               COAT with E4M3; v in E5M2; without expansion
 *   fp8-lm                                    MS-AMP: m scaled E4M3, v and what is kept scaled fp16
 * Steps: variants torchao*, coat and ms-amp are those of their frameworks; any other works, too. */
MPSIM_API size_t mpsim_states_count(void);
MPSIM_API const mpsim_states *mpsim_states_at(size_t i); /* NULL past the end */
MPSIM_API const mpsim_states *mpsim_states_find(const char *name);

/* mpsim_states_apply -- whether an array of n elements is quantised under these. */
MPSIM_API int mpsim_states_apply(const mpsim_states *s, const mpsim_state *array, uint64_t n);

/* mpsim_state_bytes -- codes, numbers and, unless it is shared, the map of n elements; UINT64_MAX if they are more than
 * that. */
MPSIM_API uint64_t mpsim_state_bytes(const mpsim_state *s, uint64_t n);

MPSIM_END

#endif
