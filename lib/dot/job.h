/* job.h -- a matrix product on its way: what gemm.c and the fast paths share, and what these need of
 * it. A fast path does some rows of a panel of columns (MPSIM_PANEL) and says what the reference
 * must do again. */
#pragma once

#include "exact.h"
#include "groups.h"
#include "loops/loops.h"
#include "rounded.h"

/* What a path does at once: rows, and panels of columns at most. */
enum { N = MPSIM_PANEL, ROWS = 8, ABREAST = 4 };

typedef struct job job;

/* An operand: product k of line i (a row of a, a column of b) is code number i line + k next. */
typedef struct mpsim_source {
    const mpsim_format *format; /* of the numbers that are multiplied                                       */
    const mpsim_entry *entry;   /* NULL: the codes are of this format; else numbers become such as they are read */
    const void *codes;
    size_t line, next;
} mpsim_source;

/* The receiver of results: codes of the result's format, row i and column j of the product in codes[(i - first) N + j - column].
 * Called by any thread, in the default floating-point environment. */
typedef struct mpsim_taker {
    void (*take)(void *self, size_t first, size_t rows, size_t column, size_t columns, const void *codes);
    void *self;
} mpsim_taker;

/* Codes of results, or words, which are codes of binary32 (see below). By row, as bits of columns: where an operand or c is no
 * number, and counted as 0; where the sum is an infinity or a NaN that comes of numbers alone; where it is a NaN. */
typedef struct results {
    union {
        uint64_t codes[ABREAST * ROWS][N];
        float words[ABREAST * ROWS][N];
    };
    unsigned special[ABREAST * ROWS], known[ABREAST * ROWS], nans[ABREAST * ROWS];
} results;

/* A fast path: rows first to first + n - 1 of a panel and those beside it (mpsim_panels_abreast), row r of
 * panel number p of them at p ROWS + r; redo, by the same number: the columns, as bits, whose codes are none of the
 * model. n <= ROWS. It runs in the default floating-point environment. */
typedef void path(const job *g, size_t first, size_t n, size_t panel, results *to, unsigned *redo);

struct job {
    const mpsim_model *m;
    const mpsim_source *a, *b;
    const mpsim_matrix *c;                   /* may be NULL */
    const mpsim_scales *scales_a, *scales_b; /* NULL: all are 1 */
    size_t rows, columns, depth;
    void *d;
    size_t d_stride;
    size_t result_bytes;      /* of a code in d */
    const mpsim_taker *taker; /* NULL: results go to d */
    size_t first_column;      /* of a strip, for the taker */
    const mpsim_rng *rng;
    size_t panels, blocks; /* of columns, of rows                                           */
    size_t block_rows;
    size_t abreast;        /* panels that the path does at once; a task is so many and a block of rows */
    size_t tasks;          /* at most, of a strip */
    void *memory;          /* of the panels and other buffers: to be freed, or NULL           */
    unsigned char *failed; /* by task: out of memory                                        */
    path *run;             /* NULL: the reference does everything                           */
    /* the fast paths: */
    const mpsim_loops *loops;
    mpsim_tile tile;
    int chain; /* MPSIM_CHAIN_... */
    mpsim_rounded_chain rounded;
    mpsim_group group;
    mpsim_exact exact;
    mpsim_lanes lanes;
    mpsim_scaledgroups scaledgroups;
    mpsim_group_info groups_a, groups_b;
    size_t real, padded; /* bytes of a value; depth of the panels: chunks of order QUADS are
                              filled up with zeros */
    mpsim_lines lines_a, lines_b;
    int16_t *scales; /* exponents of both operands' scales; of panels, or NULL */
    void *turned;    /* codes of a, row after row, where they lie column after column; or NULL */
    mpsim_panels panels_a, panels_b;
    const void
        *rows_a; /* values of rows, `next_a` of them from one to the next: of their panels, or where the codes lie */
    size_t next_a;
    mpsim_unpacker addends;
    mpsim_packer result, outer;
    int native_result, native_outer; /* they round as the machine's binary32 does */
    int words;                       /* results are words */
    int raw;                         /* values of operands are what they are, infinities and NaNs, too */
    struct mpsim_specials *specials; /* see special.h */
};

/* mpsim_job_run -- the job of which the fields up to rng are filled, all of them checked. rng: row i and column j take the words
 * of mpsim_gemm. */
mpsim_status mpsim_job_run(const job *what, const mpsim_pool *pool);
/* mpsim_source_of -- an operand whose lines are rows of x, or, with `columns`, columns of it. */
mpsim_source mpsim_source_of(const mpsim_matrix *x, int columns);

path mpsim_group_rows, mpsim_fused_rows, mpsim_chain_rows, mpsim_rounded_rows, mpsim_exact_rows, mpsim_lanes_rows,
    mpsim_scaledgroups_rows;

/* What mpsim_scaledgroups_rows needs beside panels: memory, and a row or a panel of columns that is packed. */
int mpsim_scaledgroups_allocate(job *g);
void mpsim_scaledgroups_free(job *g);
void mpsim_scaledgroups_pack_row(const job *g, size_t i);
void mpsim_scaledgroups_pack_panel(const job *g, size_t panel);

static inline size_t mpsim_index_in(const mpsim_matrix *x, size_t i, size_t j)
{
    return x->transposed ? j * x->stride + i : i * x->stride + j;
}

/* Values of row i of a, and of a panel of b. */
static inline const void *mpsim_row_values(const job *g, size_t i)
{
    return (const unsigned char *)g->rows_a + i * g->next_a * g->real;
}

static inline const void *mpsim_panel_values(const job *g, size_t panel)
{
    return (const unsigned char *)g->panels_b.values + panel * g->padded * N * g->real;
}

/* How many panels the path does from `panel` on. */
static inline size_t mpsim_panels_abreast(const job *g, size_t panel)
{
    return g->panels - panel < g->abreast ? g->panels - panel : g->abreast;
}

static inline size_t mpsim_panel_columns(const job *g, size_t panel)
{
    return g->columns - panel * N < N ? g->columns - panel * N : N;
}

/* mpsim_special_columns -- the columns of a panel, as bits, where an operand is no number and counted as 0. */
unsigned mpsim_special_columns(const job *g, size_t panel);
/* mpsim_start_row -- the addends of a row of a panel as binary64 values, row number `at` of the results: what is special there. A
 * special addend is 0. */
void mpsim_start_row(const job *g, size_t i, size_t panel, double *c, results *to, size_t at);
/* mpsim_start_rows_f32 -- the same of n rows in binary32, which has the addends; N values of s a row. */
void mpsim_start_rows_f32(const job *g, size_t first, size_t n, size_t panel, float *s, results *to, size_t at);

enum { MPSIM_LARGEST_F32 = 0x7f7fffff, MPSIM_INFINITE_F32 = 0x7f800000 };

/* mpsim_sums_f32 -- where a path has its sums: among the results where these are words, else in its own memory. */
static inline float *mpsim_sums_f32(const job *g, results *to, float *own)
{
    return g->words ? to->words[0] : own;
}

/* mpsim_finish_rows_f32 -- the results of n rows from number `at` on, of N sums each: those of mpsim_sums_f32. redo |= the columns,
 * as bits, whose magnitude is above `most` (one of the above). */
void mpsim_finish_rows_f32(const job *g, float *s, size_t n, uint32_t most, results *to, size_t at, unsigned *redo);
