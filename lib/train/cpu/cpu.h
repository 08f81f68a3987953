/* cpu.h -- the CPU engine's own; shared by the files of this folder only. What operations are given has been checked
 * (../check/check.h). */
#pragma once

#include <train/engine.h>

/* What train_tensor.data points to. */
typedef struct cpu_data {
    train_data of;
    float values[]; /* numbers of the tensor's format */
} cpu_data;

/* Memory for intermediate results, kept from one operation to the next. */
enum { CPU_BUFFERS = 6 };

typedef struct cpu_self {
    void *buffer[CPU_BUFFERS];
    size_t bytes[CPU_BUFFERS];
} cpu_self;

/* common.c */
/* -1, with a line in e->error: "cpu: " and the message. */
#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
int cpu_fail(train_engine *e, const char *message, ...);

float *cpu_values(const train_tensor *x);
size_t cpu_size(const train_tensor *x);
/* Buffer i of at least `bytes` bytes, or NULL with a line. */
void *cpu_buffer(train_engine *e, int i, size_t bytes);
float *cpu_floats(train_engine *e, int i, size_t n);

int cpu_is_binary32(const mpsim_format *f);

enum {
    CPU_PIECES = 64,    /* that work is split into at most                          */
    CPU_IN_CACHE = 4096 /* elements that stay in the cache between two looks at them */
};
/* Things first to first + n - 1, as one piece of all. */
typedef void cpu_task(void *job, size_t piece, size_t first, size_t n);
/* n things in pieces of a multiple of `unit`, on the threads that are lent; `cost`: elements of a thing. */
void cpu_pieces(train_engine *e, size_t n, size_t unit, size_t cost, cpu_task *task, void *job);
void cpu_add_counts(train_counts *to, const train_counts *from);
/* y[i] = x[i] rounded to f, on threads; y may be x. */
int cpu_round(train_engine *e, const mpsim_format *f, mpsim_round_mode mode, float *y, const float *x, size_t n,
              train_counts *counts);
/* x rounded to f where it is, to nearest-even, by who calls. */
mpsim_status cpu_round_here(const mpsim_format *f, float *x, size_t n, train_counts *counts);
/* x into y, rounded to nearest-even; y's inverse becomes 1. */
int cpu_store(train_engine *e, train_tensor *y, const float *x, train_counts *counts);
/* Those of train_counts that do not need the rounding. */
void cpu_count(train_counts *counts, const float *before, const float *after, size_t n);

/* rows.c */
/* Rows first to first + n - 1 of a result, before they are rounded. */
typedef mpsim_status cpu_rows_of(const void *operation, size_t first, size_t n);
/* All rows of y, in pieces of a multiple of `unit`; rounded to its format then. Its inverse becomes 1.
 * of NULL: y holds them already. */
int cpu_rows(train_engine *e, const char *name, train_tensor *y, size_t unit, cpu_rows_of *of, const void *operation,
             train_counts *counts);

/* gemm.c */
/* The codes of a tensor, in buffer i unless they are the values themselves; NULL with a line. */
const void *cpu_codes(train_engine *e, int i, const train_tensor *x);
int cpu_gemm(train_engine *e, train_tensor *d, const train_gemm *g, train_counts *counts);
int cpu_gemm_list(train_engine *e, const train_multiply *list, size_t n);

/* layers.c */
int cpu_index_new(train_engine *e, const int32_t *index, size_t n, void **handle);
void cpu_index_free(train_engine *e, void *handle);
int cpu_gather(train_engine *e, train_tensor *y, const train_tensor *x, const void *index);
int cpu_relu(train_engine *e, train_tensor *y, const train_tensor *x);
int cpu_relu_backward(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_tensor *y);
int cpu_maxpool(train_engine *e, train_tensor *y, const train_tensor *x, const train_pool *p);
int cpu_maxpool_backward(train_engine *e, train_tensor *dx, const train_tensor *dy, const train_tensor *x,
                         const train_pool *p);
int cpu_column_sums(train_engine *e, const train_pair *list, size_t n);
int cpu_softmax_xent(train_engine *e, train_tensor *dx, const train_tensor *x, const uint32_t *labels,
                     float coefficient, const mpsim_format *math, float *mean_loss, uint64_t *correct,
                     train_counts *counts);
int cpu_batchnorm(train_engine *e, const mpsim_batchnorm *b, train_tensor *y, train_tensor *mean, train_tensor *inverse,
                  train_tensor *running_mean, train_tensor *running_var, const train_tensor *x,
                  const train_tensor *weight, const train_tensor *bias, train_counts *counts);
int cpu_batchnorm_backward(train_engine *e, const mpsim_batchnorm *b, train_tensor *dx, train_tensor *dweight,
                           train_tensor *dbias, const train_tensor *dy, const train_tensor *x, const train_tensor *mean,
                           const train_tensor *inverse, const train_tensor *weight, train_counts *counts);
int cpu_batchnorm_inference(train_engine *e, const mpsim_batchnorm *b, train_tensor *y, const train_tensor *x,
                            const train_tensor *running_mean, const train_tensor *running_var,
                            const train_tensor *weight, const train_tensor *bias);

/* update.c */
int cpu_unscale(train_engine *e, const train_pair *list, size_t n, mpsim_unscale_rule rule, double scale,
                unsigned *found);
int cpu_norm(train_engine *e, const train_tensor *const *x, size_t n, const mpsim_format *const *f, float *norms);
int cpu_scale(train_engine *e, train_tensor *const *x, size_t n, float factor);
int cpu_muon(train_engine *e, const train_update *u, const mpsim_muon *o, uint64_t *updates, uint64_t *lost);
int cpu_keep(train_engine *e, const mpsim_states *s, train_tensor *kept, train_tensor *m, train_tensor *v,
             train_tensor *vmax);
int cpu_optim(train_engine *e, const train_update *list, size_t n, uint64_t *updates, uint64_t *lost);

/* tokens.c */
int cpu_add(train_engine *e, train_tensor *y, const train_tensor *a, const train_tensor *b, train_counts *counts);
int cpu_add_rows(train_engine *e, train_tensor *y, const train_tensor *x, const train_tensor *table,
                 train_counts *counts);
int cpu_add_rows_backward(train_engine *e, train_tensor *dtable, const train_tensor *dy, train_counts *counts);
int cpu_embed(train_engine *e, train_tensor *y, const train_tensor *table, const uint32_t *index, train_counts *counts);
int cpu_embed_backward(train_engine *e, train_tensor *dtable, const train_tensor *dy, const uint32_t *index, int added,
                       train_counts *counts);
int cpu_reduce(train_engine *e, const mpsim_reduce *r, const train_sum *list, size_t n, size_t ranks);

/* heads.c */
int cpu_split(train_engine *e, const train_turn *list, size_t n);
int cpu_join(train_engine *e, const train_turn *list, size_t n);
int cpu_add_groups(train_engine *e, train_tensor *y, const train_tensor *x, size_t length, size_t group,
                   train_counts *counts);

/* norm.c */
int cpu_rownorm(train_engine *e, const mpsim_rownorm *r, train_tensor *y, train_tensor *mean, train_tensor *inverse,
                const train_tensor *x, const train_tensor *weight, const train_tensor *bias, train_counts *counts);
int cpu_rownorm_backward(train_engine *e, const mpsim_rownorm *r, train_tensor *dx, train_tensor *dweight,
                         train_tensor *dbias, const train_tensor *dy, const train_tensor *x, const train_tensor *mean,
                         const train_tensor *inverse, const train_tensor *weight, train_counts *counts);
int cpu_rownorm_gradients(train_engine *e, const train_normed *list, size_t n);
int cpu_activate(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *y,
                 const train_tensor *x, train_counts *counts);
int cpu_activate_backward(train_engine *e, mpsim_activation kind, const mpsim_format *math, train_tensor *dx,
                          const train_tensor *dy, const train_tensor *x, train_counts *counts);

/* attention.c */
int cpu_causal(train_engine *e, const mpsim_format *math, float scale, train_tensor *p, const train_tensor *s,
               train_counts *counts);
int cpu_causal_backward(train_engine *e, const mpsim_format *math, float scale, train_tensor *ds,
                        const train_tensor *dp, const train_tensor *p, train_counts *counts);
int cpu_tile_forward(train_engine *e, const train_tile *t, train_tensor *p, train_tensor *o, train_tensor *max,
                     train_tensor *sum, const train_tensor *s, train_counts *counts);
int cpu_tile_end(train_engine *e, const train_tile *t, train_tensor *y, train_tensor *lse, const train_tensor *o,
                 const train_tensor *max, const train_tensor *sum, train_counts *counts);
int cpu_tile_dots(train_engine *e, const train_tile *t, train_tensor *d, const train_tensor *dy, const train_tensor *y);
int cpu_tile_again(train_engine *e, const train_tiled *list, size_t n);
int cpu_tile_backward(train_engine *e, const train_tiled *list, size_t n);
