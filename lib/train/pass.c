/* pass.c -- a pass: made from its operations, done, given back; see trainer.h. */
#include "trainer.h"

#include <stdlib.h>

/* ---- doing ---- */

/* Of "agrad.q:fc1" that of "agrad:fc1", as in a replay; of "agrad.qt:fc1" its own. */
static uint64_t stream_of(const train *t, const train_do *d)
{
    const char *name = d->results[0].name, *q = strstr(name, ".q:");
    char text[4 * TRAIN_NAME];
    snprintf(text, sizeof text, "%.*s%s", q ? (int)(q - name) : 0, name, q ? q + 2 : name);
    return train_stream_of_step(t->step, text);
}

static int do_quantize(train *t, train_do *d)
{
    const train_quantize q = {.recipe = &d->recipe, .transposed = d->transposed,
                              .given = d->delayed ? d->delayed->scale : 1.0f,
                              .rng = {.seed = t->run->settings.seed,
                                      .stream = stream_of(t, d)},
                              .blocks = d->n > 1 ? d->results[1].to : NULL};
    float amax = 0;
    const int code = t->e->ops->quantize(t->e, d->results[0].to, d->x, &q,
                                         d->delayed && d->record ? &amax : NULL, d->counts);
    if (!code && d->delayed && d->record)
        mpsim_delayed_record(d->delayed, amax);
    return code;
}

static int do_loss(train *t, train_do *d)
{
    return t->e->ops->softmax_xent(t->e, d->n ? d->results[0].to : NULL, d->x, t->labels,
                                   t->coefficient, &t->math, &t->loss, &t->correct, d->counts);
}

static int do_norm(train *t, train_do *d)
{
    const train_ops *ops = t->e->ops;
    const mpsim_batchnorm n = {.rows = d->x->rows, .channels = d->x->cols, .eps = 1e-5f,
                               .momentum = 0.1f, .math = &t->math,
                               .f = d->results[0].to->format};
    train_result *r = d->results;
    if (d->work == WORK_NORM)
        return ops->batchnorm(t->e, &n, r[0].to, r[1].to, r[2].to, d->running[0], d->running[1],
                              d->x, d->weight, d->bias, d->counts);
    if (d->work == WORK_NORM_TEST)
        return ops->batchnorm_inference(t->e, &n, r[0].to, d->x, d->running[0], d->running[1],
                                        d->weight, d->bias);
    return ops->batchnorm_backward(t->e, &n, r[0].to, r[1].to, r[2].to, d->y, d->x, d->mean,
                                   d->inverse, d->weight, d->counts);
}

static int do_one(train *t, train_do *d)
{
    const train_ops *ops = t->e->ops;
    train_tensor *to = d->results[0].to;
    switch ((train_work)d->work) {
    case WORK_CAST: return ops->cast(t->e, to, d->x, d->mode, d->counts);
    case WORK_QUANTIZE: return do_quantize(t, d);
    case WORK_HADAMARD: return ops->hadamard(t->e, to, d->x, d->transposed);
    case WORK_GATHER: return ops->gather(t->e, to, d->x, d->index);
    case WORK_GEMM: return ops->gemm(t->e, to, &d->gemm, d->counts);
    case WORK_RELU: return ops->relu(t->e, to, d->x);
    case WORK_RELU_BACK: return ops->relu_backward(t->e, to, d->x, d->y);
    case WORK_POOL: return ops->maxpool(t->e, to, d->x, &d->pool);
    case WORK_POOL_BACK: return ops->maxpool_backward(t->e, to, d->x, d->y, &d->pool);
    case WORK_SUMS: return ops->column_sums(t->e, to, d->x, d->counts);
    case WORK_LOSS: return do_loss(t, d);
    case WORK_NORM:
    case WORK_NORM_BACK:
    case WORK_NORM_TEST: return do_norm(t, d);
    default: return 0;
    }
}

/* Rows of pixels and labels: image number images[i], or first + i. */
static int put_images(train *t, train_pass *p, const uint32_t *images, uint32_t first)
{
    for (size_t i = 0; i < p->images; i++)
        t->labels[i] = train_digit(images ? images[i] : first + i, t->pixels + i * TRAIN_PIXELS);
    return t->e->ops->put(t->e, &p->pixels, t->pixels);
}

int train_pass_run(train *t, train_pass *p, const uint32_t *images, uint32_t first, char *error)
{
    if (put_images(t, p, images, first))
        return train_engine_failed(t, "pixels", error);
    for (size_t i = 0; i < p->n; i++)
        if (do_one(t, p->list[i]))
            return train_engine_failed(t, p->list[i]->results[0].name, error);
    return 0;
}

/* ---- open, close ---- */

int train_pass_open(train *t, train_pass *p, size_t images, int training, char *error)
{
    train_build b = {.t = t, .p = p, .plan = t->plan, .error = error};
    const uint32_t columns = t->run->layers[0].inputs;
    memset(p, 0, sizeof *p);
    p->images = images;
    p->training = training;
    p->pixels = (train_tensor){.format = mpsim_format_find("binary32"),
                               .rows = images * TRAIN_PIXELS / columns, .cols = columns};
    if (t->e->ops->alloc(t->e, &p->pixels))
        return train_engine_failed(t, "pixels", error);
    train_build_forward(&b);
    if (training)
        train_build_backward(&b);
    if (b.failed)
        train_pass_close(t, p);
    return b.failed ? -1 : 0;
}

void train_pass_close(train *t, train_pass *p)
{
    const train_ops *ops = t->e->ops;
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < TRAIN_RESULTS; k++)
            if (p->list[i]->results[k].own.data)
                ops->release(t->e, &p->list[i]->results[k].own);
        free(p->list[i]);
    }
    for (size_t i = 0; i < p->n_indices; i++)
        ops->index_free(t->e, p->indices[i]);
    if (p->pixels.data)
        ops->release(t->e, &p->pixels);
    free(p->list);
    memset(p, 0, sizeof *p);
}
