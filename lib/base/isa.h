/* isa.h -- which of the units that are compiled for an instruction set runs; see mpsim/isa.h.
 *
 * A module with such units keeps a table of them, indexed by mpsim_isa, and looks its row up at the start of
 * each array function. The choice changes speed, never a bit. */
#pragma once

/* Scalar: the references alone. Generic: vectors of 128 bits, as the compiler makes them for any
 * machine. What the compiler cannot make is not in the list of mpsim_isa_at and never the choice. */
typedef enum mpsim_isa {
    MPSIM_ISA_SCALAR,
    MPSIM_ISA_GENERIC,
    MPSIM_ISA_NEON,
    MPSIM_ISA_AVX2,   /* with FMA and F16C */
    MPSIM_ISA_AVX512, /* F, CD, DQ, BW, VL */
    MPSIM_ISAS
} mpsim_isa;

mpsim_isa mpsim_isa_choice(void);

/* mpsim_isa_counts_bits -- whether the processor has VPOPCNTDQ beside AVX-512. */
int mpsim_isa_counts_bits(void);
