/* sizes.c -- transformers: what of their memory follows from settings, and its limits.
 *
 * Memory is lent before it is touched, so that what cannot be held is not always refused by the system:
 * what no run needs is refused here. The settings are in range: no product leaves 64 bits. */
#include "../trainer.h"

#define MOST_OF_TENSOR ((uint64_t)1 << 31)
#define MOST_PARAMETERS ((uint64_t)1 << 33)

uint32_t train_decoder_hidden(const train_settings *s)
{
    return s->decoder.activation == MPSIM_SWIGLU ? (s->width + 2) / 3 * 8 : 4 * s->width;
}

static int check_tensor(const train_layer *l, uint64_t rows, uint64_t cols, char *error)
{
    return rows * cols <= MOST_OF_TENSOR
               ? 0
               : train_fail(error, "%s: a tensor of %llu x %llu numbers: at most %llu in all", l->name,
                            (unsigned long long)rows, (unsigned long long)cols, (unsigned long long)MOST_OF_TENSOR);
}

/* What passes through it, of a whole batch; of attention what its heads need. */
static int check_layer(const train_settings *s, const train_layer *l, char *error)
{
    const train_decoder *d = &s->decoder;
    const uint64_t places = (uint64_t)s->batch * d->context;
    const uint32_t tile = d->tile && d->tile < d->context ? d->tile : d->context;
    switch ((train_type)l->type) {
    case TRAIN_EMBED:
    case TRAIN_POSITIONS:
    case TRAIN_HEADS:
        return check_tensor(l, places, s->width, error);
    case TRAIN_SCORES:
    case TRAIN_SOFTMAX:
    case TRAIN_CONTEXT:
        return check_tensor(l, places * d->heads, tile, error);
    default:
        return check_tensor(l, places, l->inputs > l->outputs ? l->inputs : l->outputs, error);
    }
}

/* Numbers of its weight and bias; 0 or -1. */
static int add_parameters(const train_layer *l, int tied, uint64_t *sum, char *error)
{
    const int bias = !l->plain;
    switch ((train_type)l->type) {
    case TRAIN_LINEAR:
    case TRAIN_EMBED:
    case TRAIN_POSITIONS:
        if (!tied)
            *sum += (uint64_t)l->inputs * l->outputs;
        if (l->type == TRAIN_LINEAR && bias)
            *sum += l->outputs;
        return check_tensor(l, l->inputs, l->outputs, error);
    case TRAIN_NORM:
        *sum += (uint64_t)l->outputs << bias;
        return 0;
    default:
        return 0;
    }
}

int train_decoder_sizes(const train_settings *s, const train_layer *layers, size_t n, char *error)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        if (check_layer(s, &layers[i], error) || add_parameters(&layers[i], s->decoder.tied && i == n - 2, &sum, error))
            return -1;
    /* every rank has gradients of its own */
    return sum <= MOST_PARAMETERS / s->decoder.ranks
               ? 0
               : train_fail(error, "%llu parameters on %u ranks: at most %llu in all", (unsigned long long)sum,
                            (unsigned)s->decoder.ranks, (unsigned long long)MOST_PARAMETERS);
}
