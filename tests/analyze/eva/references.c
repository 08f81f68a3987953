/* references.c -- the references of lib for all inputs, for Frama-C's Eva (run.sh): any code of 64 bits, in each format of the list,
 * any random bits, any choices. Only run.sh looks at this. */
#include <__fc_builtin.h>
#include <stddef.h>
#include <stdint.h>

/*@ requires u != 0; assigns \result \from u; ensures 0 <= \result <= 63; ensures (u >> (63 - \result)) == 1; */
int count_zeros(unsigned long long u);
#define __builtin_clzll count_zeros

#include "lib/round/scalar.h"
#include "lib/arith/scalar.h"
#include "lib/dot/scalar.h"

static uint64_t any(void)
{
    return Frama_C_unsigned_long_interval(0, UINT64_MAX);
}

static uint32_t any32(void)
{
    return (uint32_t)Frama_C_unsigned_long_interval(0, UINT32_MAX);
}

static uint8_t up_to(int most)
{
    return (uint8_t)Frama_C_interval(0, most);
}

static const mpsim_format formats[] = {
    {.name = "binary64",
     .bits = 64,
     .ebits = 11,
     .mbits = 52,
     .inf = 1,
     .nan = MPSIM_NAN_TOP,
     .bias = 1023,
     .max_finite = 0x7fefffffffffffff,
     .nan_code = 0x7ff8000000000000},
    {.name = "binary32",
     .bits = 32,
     .ebits = 8,
     .mbits = 23,
     .inf = 1,
     .nan = MPSIM_NAN_TOP,
     .bias = 127,
     .max_finite = 0x7f7fffff,
     .nan_code = 0x7fc00000},
    {.name = "bf16",
     .bits = 16,
     .ebits = 8,
     .mbits = 7,
     .inf = 1,
     .nan = MPSIM_NAN_TOP,
     .bias = 127,
     .max_finite = 0x7f7f,
     .nan_code = 0x7fc0},
    {.name = "fp16",
     .bits = 16,
     .ebits = 5,
     .mbits = 10,
     .inf = 1,
     .nan = MPSIM_NAN_TOP,
     .bias = 15,
     .max_finite = 0x7bff,
     .nan_code = 0x7e00},
    {.name = "e5m2",
     .bits = 8,
     .ebits = 5,
     .mbits = 2,
     .inf = 1,
     .nan = MPSIM_NAN_TOP,
     .bias = 15,
     .max_finite = 0x7b,
     .nan_code = 0x7e},
    {.name = "e4m3",
     .bits = 8,
     .ebits = 4,
     .mbits = 3,
     .nan = MPSIM_NAN_TOP,
     .bias = 7,
     .max_finite = 0x7e,
     .nan_code = 0x7f},
    {.name = "e4m3fnuz",
     .bits = 8,
     .ebits = 4,
     .mbits = 3,
     .nan = MPSIM_NAN_NEGZERO,
     .zero = MPSIM_ZERO_UNSIGNED,
     .bias = 8,
     .max_finite = 0x7f,
     .nan_code = 0x80},
    {.name = "e2m1", .bits = 4, .ebits = 2, .mbits = 1, .nan = MPSIM_NAN_NONE, .bias = 1, .max_finite = 7},
    {.name = "e8m0",
     .bits = 8,
     .ebits = 8,
     .mbits = 0,
     .nan = MPSIM_NAN_TOP,
     .zero = MPSIM_ZERO_NONE,
     .bias = 127,
     .max_finite = 0xfe,
     .nan_code = 0xff},
};
enum { FORMATS = sizeof formats / sizeof *formats };

static mpsim_rounding any_rounding(void)
{
    mpsim_rounding r = {.mode = up_to(MPSIM_ROUND_MODES - 1),
                        .sr_bits = (uint8_t)Frama_C_interval(1, 32),
                        .overflow = up_to(2),
                        .infinity = up_to(2),
                        .no_inf = up_to(1),
                        .nan = up_to(5),
                        .no_nan = up_to(3),
                        .negative = up_to(1),
                        .no_zero = up_to(1),
                        .flush_output = up_to(1),
                        .scale = 1};
    return r;
}

static void look_at_round(const mpsim_format *f)
{
    const mpsim_rounding r = any_rounding();
    unsigned flags = 0;
    (void)mpsim_scalar_classify(f, any());
    const mpsim_number x = mpsim_scalar_unpack(f, any());
    (void)mpsim_scalar_encode_number(f, &r, mpsim_number_make(0, any32() | 1, Frama_C_interval(-1074, 900)), x,
                                     mpsim_emin(f), any32(), &flags);
    (void)mpsim_scalar_decode(f, any());
}

static void look_at_arith(const mpsim_format *f)
{
    mpsim_arith o = {.op = (mpsim_op)Frama_C_interval(0, MPSIM_OP_FMA), .result = *f, .rounding = any_rounding()};
    unsigned flags = 0;
    o.operand[0] = o.operand[1] = o.operand[2] = *f;
    (void)mpsim_scalar_arith(&o, any(), any(), any(), any32(), &flags);
}

static void look_at_dot(const mpsim_format *f)
{
    enum { TERMS = 4 };
    const mpsim_fused p = {.alignment = Frama_C_interval(0, 1),
                           .normalised = Frama_C_interval(0, 1),
                           .fraction = Frama_C_interval(13, 30),
                           .floor = MPSIM_MODEL_NO_FLOOR,
                           .bits = 2 * (f->mbits + 1)};
    mpsim_term a[TERMS], b[TERMS];
    unsigned flags = 0;
    /*@ loop unroll TERMS; */
    for (int i = 0; i < TERMS; i++) {
        a[i] = mpsim_scalar_term(f, MPSIM_MODEL_OWN_EMIN, any());
        b[i] = mpsim_scalar_term(f, MPSIM_MODEL_OWN_EMIN, any());
    }
    (void)mpsim_fused_sum(&p, a, b, TERMS, mpsim_scalar_unpack(&formats[1], any()), mpsim_emin(&formats[1]), &flags);
}

void main(void)
{
    /*@ loop unroll FORMATS; */
    for (int i = 0; i < FORMATS; i++) {
        look_at_round(&formats[i]);
        look_at_arith(&formats[i]);
        if (formats[i].mbits <= 10 && formats[i].ebits <= 5)
            look_at_dot(&formats[i]);
    }
}
