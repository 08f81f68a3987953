/* adaptive.h -- adaptive layer-wise loss scaling over recorded gradients: mpsim scaler
 * --adaptive (schema mpsim.adaptive/1).
 *
 * A layer is a tensor agrad:LAYER, the gradient of its output. Layers come in backward order: that
 * of the metadata mpsim.order, reversed, then those that it does not name; without it the order of
 * the file, reversed. The statistics of a layer are those of its gradient times the scales of the
 * layers before it. A layer with a weight:LAYER.weight of two dimensions or more takes the rule for
 * sums of fan_in products, fan_in being all dimensions of the weight but the second; others the
 * rule without a weight. Every file is a backward pass of its own: each rank has its own scales. */
#pragma once

#include "../input/input.h"
#include "../record/record.h"

enum { ADAPTIVE_NONE, ADAPTIVE_OWN, ADAPTIVE_GLOBAL, ADAPTIVE_WAYS }; /* no scale, product, 2^16 */

typedef struct adaptive_row {
    int64_t step, rank; /* -1: not said                                    */
    char layer[96];     /* escaped                                         */
    double fan_in;      /* 0: without a weight                             */
    double scale, product;
    uint64_t elements, not_finite;
    uint64_t lost[ADAPTIVE_WAYS], overflowed[ADAPTIVE_WAYS]; /* in fp16 */
} adaptive_row;

typedef struct adaptive_run {
    adaptive_row *rows;
    size_t count;
    int unscaled; /* gradients recorded scaled were divided */
} adaptive_run;

/* scaler_adaptive_trace -- all files of `in`, step by step; --match selects among the agrad tensors. 0, or
 * an exit code after a message. */
int scaler_adaptive_trace(adaptive_run *r, input *in);
extern const report_kind scaler_adaptive_kind;
void scaler_adaptive_report(FILE *to, const adaptive_run *r, const input *in, report_style style);
void scaler_adaptive_clear(adaptive_run *r);
