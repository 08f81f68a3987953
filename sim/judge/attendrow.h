/* attendrow.h -- rows of attention: whole rows of scores, or tiles with online softmax; the products, what is rounded between them, and which
 * keys a query sees. */
#pragma once

#include "list.h"

/* Which keys a query sees, of those that the mask lets it see: all; to its own key, where the last query belongs to the last key; or where
 * the first belongs to the first. */
typedef enum attend_causal { ATTEND_ALL, ATTEND_LAST, ATTEND_FIRST, ATTEND_CAUSALS } attend_causal;

/* What is multiplied by the scale: the scores; the queries; queries and keys, each by its root. */
typedef enum attend_scaled { ATTEND_SCORES, ATTEND_QUERIES, ATTEND_BOTH, ATTEND_SCALED } attend_scaled;

typedef struct attend_row {
    judge_row of;
    mpsim_model model; /* of both products */
    mpsim_format s, p; /* of the scores, and of the probabilities; without a name: binary32 */
    double scale;      /* 0: 1 / sqrt(dim) */
    size_t tile;       /* keys of a tile; 0: all */
    size_t window;     /* keys that a query sees to its own; 0: all */
    double softcap;    /* scores become softcap tanh(score / softcap); 0: they are kept */
    uint8_t tiled;     /* 1: online softmax, and the sum divides at the end */
    uint8_t causal, scaled;
    uint8_t upcast; /* 1: operands are binary32 */
    uint8_t exp2, reciprocal, sum_rounded;
    uint8_t sink_first; /* 1: the sink is the first score of a row, not the last one */
} attend_row;

extern const char *const judge_attend_causals[ATTEND_CAUSALS], *const judge_attend_scaled[ATTEND_SCALED];

/* judge_attend_read -- eager or flash[:model=NAME[:CHANGE]...][:s=FORMAT][:p=FORMAT][:scale=X][:scale-on=queries, both]
 * [:causal, causal-first][:window=N][:softcap=X][:upcast][:tile=N][:exp2][:reciprocal][:sum-rounded][:sink-first]; `read` of a judge_list. */
int judge_attend_read(void *row, char *text);

/* Heads of queries and of keys and values, which several heads of queries may share. */
typedef struct attend_shape {
    size_t heads, kv_heads, batches, queries, keys, dim, size; /* heads: of all batches */
} attend_shape;

typedef struct attend_arrays {
    const mpsim_judge_array *q, *k, *v;
    const uint8_t *mask; /* masks x queries x keys bytes; NULL: none is masked */
    size_t masks;
    const float *bias; /* biases x queries x keys numbers; NULL: none is added */
    size_t biases;
    const float *slopes, *sinks; /* a number for each head; NULL: none */
} attend_arrays;

/* Whether the scores of a row are more than products: then tiles are computed here. */
static inline int judge_attend_is_more(const attend_row *row, const attend_arrays *x)
{
    return row->softcap > 0 || x->bias || x->slopes || x->sinks;
}

/* judge_attend_takes -- whether the model multiplies these. */
int judge_attend_takes(const attend_row *row, const attend_arrays *x);

static inline size_t judge_attend_kv(const attend_shape *s, size_t head)
{
    return head / (s->heads / s->kv_heads);
}

/* Which of n matrices is that of a head: there is one for all, for each batch, for each head, or for each head of a batch. */
static inline size_t judge_attend_which(const attend_shape *s, size_t n, size_t head)
{
    return n == s->heads / s->batches && n != s->batches ? head % n : head * n / s->heads;
}

static inline const uint8_t *judge_attend_mask(const attend_shape *s, const attend_arrays *x, size_t head, size_t query)
{
    return x->mask ? x->mask + (judge_attend_which(s, x->masks, head) * s->queries + query) * s->keys : NULL;
}

static inline const float *judge_attend_bias(const attend_shape *s, const attend_arrays *x, size_t head, size_t query)
{
    return x->bias ? x->bias + (judge_attend_which(s, x->biases, head) * s->queries + query) * s->keys : NULL;
}

/* judge_attend_sees -- the keys [*first, *end) that a query sees, but for the mask. */
void judge_attend_sees(const attend_row *row, const attend_shape *s, size_t query, size_t *first, size_t *end);

/* judge_attend_compute -- n queries of a head from `first` on: n x size numbers; lse: n numbers, or NULL. */
mpsim_status judge_attend_compute(const attend_row *row, const attend_shape *s, const attend_arrays *x, size_t head,
                                  size_t first, size_t n, float *y, float *lse);
