/* cpu.h -- instructions of the CPU that this runs on, beside what the library says they give.
 *
 * A row names an instruction, what it computes in the library's words, and a function that executes it on
 * one register of elements. Cases are functions of a seed and a number, so that any of them can be done
 * again elsewhere. Needs lib alone; tests compile it for other machines. */
#pragma once

#include <mpsim/arith.h>
#include <mpsim/dot.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* The most results of a case, products of a result, bytes of the operands of a case: those of tiles. */
enum { CPU_LANES = 256, CPU_PRODUCTS = 64, CPU_BYTES = 1024 };

typedef enum cpu_trait {
    CPU_FLUSH_INPUT = 1, /* subnormal operands count as zeros                                      */
    CPU_NAN_MINUS = 2,   /* the NaN of an operation without a value has its sign set               */
    CPU_ANY_NAN = 4      /* which NaN a result is, is not compared                                 */
} cpu_trait;

/* An instruction is a model (products an element, accumulated into d) or an operation on a, b and d. */
typedef struct cpu_instruction {
    const char *name;    /* "vdpbf16ps zmm"; words of the row in a file                             */
    const char *feature; /* "AVX512_BF16"                                                           */
    const char *model;   /* or NULL: then `op`                                                      */
    mpsim_op op;
    mpsim_round_mode mode;
    const char *operand, *result; /* formats: of a and b; of d                                      */
    unsigned traits;
    size_t rows, lanes, products; /* a register has `lanes` results, each with operands of its own (rows = 0); a tile
                                     rows x lanes, of every row of a by every column of b           */
    int (*here)(void);            /* this machine has it                                            */
    /* d = what a and b give with d; packed codes, `products` for each row of a, column of b or lane. NULL in records */
    void (*execute)(void *d, const void *a, const void *b);
} cpu_instruction;

/* verify_cpu_results -- of one case. */
static inline size_t verify_cpu_results(const cpu_instruction *t)
{
    return t->rows ? t->rows * t->lanes : t->lanes;
}

/* verify_cpu_instruction_at -- those that are known for this kind of machine; NULL past the end. */
const cpu_instruction *verify_cpu_instruction_at(size_t i);

/* verify_cpu_words -- this CPU: maker, family and model as CPUID or MIDR have them, and its name. */
void verify_cpu_words(char *out, size_t size);

/* Case number n: all operands, packed, and what is in d before. */
typedef struct cpu_case {
    mpsim_format operand, result;
    size_t results, products;
    size_t a_of[CPU_LANES], b_of[CPU_LANES];                   /* the operands of a result */
    uint64_t a[CPU_BYTES / 8], b[CPU_BYTES / 8], d[CPU_LANES]; /* packed codes             */
} cpu_case;

/* verify_cpu_case_make -- 0 if the row has a format that is none. The kind is n modulo 9 (kinds.h). */
int verify_cpu_case_make(cpu_case *x, const cpu_instruction *t, uint64_t seed, uint64_t n);

/* verify_cpu_case_expect -- what the library gives, packed as d. 0 if the model is none. */
int verify_cpu_case_expect(const cpu_case *x, const cpu_instruction *t, uint64_t *d);

/* verify_cpu_case_same -- whether two results number i are the same, by the traits. */
int verify_cpu_case_same(const cpu_case *x, const cpu_instruction *t, const void *got, const void *want, size_t i);

/* verify_cpu_code -- code number i of packed ones. */
uint64_t verify_cpu_code(const mpsim_format *f, const void *codes, size_t i);

typedef struct cpu_result {
    uint64_t compared, mismatches, digest; /* digest: of what the instruction gave, any NaN alike   */
    char first[300];
} cpu_result;

/* verify_cpu_record_head, verify_cpu_record -- a record of what a CPU gave (data/cpu): which CPU, and a row that is here with what
 * came of it. verify_cpu_record does the first cases again, and writes at most CPU_RECORD_CODES results of a case. */
enum { CPU_RECORD_CASES = 18, CPU_RECORD_CODES = 32, CPU_RECORD_RESULTS = 20000, CPU_RECORD_SEED = 1 };
void verify_cpu_record_head(FILE *to, const char *cpu);
void verify_cpu_record(FILE *to, const cpu_instruction *t, uint64_t seed, const cpu_result *r);

/* verify_cpu_compare -- cases first to first + n - 1 of a row that is here, added to *r. 0 if the row is wrong. */
int verify_cpu_compare(const cpu_instruction *t, uint64_t seed, uint64_t first, uint64_t n, cpu_result *r);
