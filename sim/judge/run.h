/* run.h -- a stored run: a folder whose run.json lists operations, their arrays in files of tensors, and digests of results.
 *
 * doc/howto/judge-a-run.md describes run.json. Digests are SHA-256 of codes, row-major, in little-endian order, FP4 a code in a byte. */
#pragma once

#include "judge.h"

#include "../cli/reportoptions.h"
#include "../text/sha256.h"
#include "../trace/trace.h"

#include <jansson.h>

enum { RUN_RANK = 8, RUN_ARRAYS = 16 };

/* An array of an operation. Of results there may be digests alone: then shape and format are here. */
typedef struct run_array {
    const char *role;
    const char *tensor;  /* NULL: digests alone                                        */
    trace *file;         /* that has the tensor                                        */
    size_t at;           /* its place there                                            */
    int transposed;      /* the tensor is the transpose of the array                   */
    mpsim_format format; /* of its codes; without a name: bytes                        */
    uint64_t shape[RUN_RANK];
    size_t rank;
    const json_t *digests; /* a list; NULL: the results are kept                         */
    size_t each;           /* rows of a digest; 0: one digest of all                     */
} run_array;

typedef struct run_operation {
    const char *name, *row, *try; /* row: NULL: one is searched, `try` first */
    mpsim_judge_kind kind;
    run_array of[RUN_ARRAYS];
    size_t arrays, stack; /* stack: matrices of each array of a product; else 1 */
} run_operation;

typedef struct run {
    const char *path; /* of run.json */
    char *text;
    json_t *root;
    trace **file;
    run_operation *operation;
    size_t files, operations;
} run;

/* run_is -- whether a path is a stored run: a folder with run.json, or a file whose name ends in .json. */
int run_is(const char *path);
/* run_open -- all of run.json, and the heads of its files. 0, or an exit code after a message; run_close in any case. */
int run_open(run *r, const char *path);
void run_close(run *r);

/* The codes of an array: matrices of rows x columns; of digests one matrix of zeros. */
typedef struct run_codes {
    void *codes;
    size_t rows, columns, matrices;
} run_codes;

/* run_load -- 0, or an exit code after a message; codes are to be freed. run_matrix: matrix i, which is the only one where there is one. */
int run_load(run_codes *to, const run_operation *o, const run_array *a);
mpsim_judge_array run_matrix(const run_codes *c, const run_array *a, size_t i);

/* The digests of results that come matrix by matrix. */
typedef struct run_digest {
    const run_array *a;
    sha256 state;
    size_t rows, next;             /* rows since the last digest; the next digest */
    uint64_t differ, first_differ; /* digests; the first one */
} run_digest;
void run_digest_begin(run_digest *d, const run_array *a);
void run_digest_add(run_digest *d, const mpsim_format *f, const void *codes, size_t n);
void run_digest_end(run_digest *d);

/* What is said of an operation. */
typedef struct run_verdict {
    size_t number; /* from 1 */
    const char *name, *kind, *state;
    char row[MPSIM_JUDGE_ROW], text[MPSIM_JUDGE_TEXT]; /* text: why; which digest */
    uint64_t results, differ;                          /* compared bit by bit; of these, not the row's      */
    uint64_t digests, digests_differ;                  /* of results that were not kept                     */
} run_verdict;
extern const char run_equal[], run_differs[], run_not_judged[];

/* run_judge -- a verdict for each operation. *first: the judgement of the first guilty one, where its results were kept. 0, or an exit code
 * after a message. */
int run_judge(run_verdict *to, mpsim_judgement *first, const run *r);

/* run_judge_command -- mpsim judge RUN. An exit code. */
int run_judge_command(const char *path, const report_options *form);
