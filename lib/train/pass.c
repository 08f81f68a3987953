/* pass.c -- a pass: made from its operations, done, given back; see trainer.h. */
#include "trainer.h"

#include <math.h>
#include <stdlib.h>

/* ---- doing ---- */

/* Of "agrad.q:fc1" that of "agrad:fc1", as in a replay; of "agrad.qt:fc1" its own; of micro-batches after
 * the first with their number. */
static uint64_t stream_of(const train *t, const train_pass *p, const train_do *d)
{
    const char *name = d->results[0].name, *q = strstr(name, ".q:");
    char text[4 * TRAIN_NAME], micro[16] = "";
    if (p->micro)
        snprintf(micro, sizeof micro, "/%u", p->micro);
    snprintf(text, sizeof text, "%.*s%s%s", q ? (int)(q - name) : 0, name, q ? q + 2 : name, micro);
    return train_stream_of_step(t->step, text);
}

/* Operations that quantise, done as one. */
static int do_quantize(train *t, const train_pass *p, train_do *const *all, size_t n)
{
    train_quantize how[TRAIN_PARAMS];
    train_quantized list[TRAIN_PARAMS];
    for (size_t i = 0; i < n; i++) {
        train_do *d = all[i];
        how[i] = (train_quantize){.recipe = &d->recipe,
                                  .transposed = d->transposed,
                                  .given = d->delayed ? d->delayed->scale : 1.0f,
                                  .rng = {.seed = t->run->settings.seed, .stream = stream_of(t, p, d)},
                                  .scale_codes = d->scaled,
                                  .blocks = d->n > 1 ? d->results[1].to : NULL};
        list[i] = (train_quantized){.y = d->results[0].to,
                                    .x = d->x,
                                    .how = &how[i],
                                    .amax = d->delayed && d->record ? &d->amax : NULL,
                                    .counts = d->counts};
    }
    return t->e->ops->quantize_list(t->e, list, n);
}

static int do_loss(train *t, const train_pass *p, train_do *d)
{
    train_score *s = &t->scores[p->micro];
    return t->e->ops->softmax_xent(t->e, d->n ? d->results[0].to : NULL, d->x, t->labels, t->coefficient, &t->math,
                                   &s->loss, &s->correct, d->counts);
}

static int do_norm(train *t, train_do *d)
{
    const train_ops *ops = t->e->ops;
    const mpsim_batchnorm n = {.rows = d->x->rows,
                               .channels = d->x->cols,
                               .eps = 1e-5f,
                               .momentum = 0.1f,
                               .math = &t->math,
                               .f = d->results[0].to->format};
    train_result *r = d->results;
    if (d->work == WORK_NORM)
        return ops->batchnorm(t->e, &n, r[0].to, r[1].to, r[2].to, d->running[0], d->running[1], d->x, d->weight,
                              d->bias, d->counts);
    if (d->work == WORK_NORM_TEST)
        return ops->batchnorm_inference(t->e, &n, r[0].to, d->x, d->running[0], d->running[1], d->weight, d->bias);
    return ops->batchnorm_backward(t->e, &n, r[0].to, r[1].to, r[2].to, d->y, d->x, d->mean, d->inverse, d->weight,
                                   d->counts);
}

static mpsim_rownorm rownorm_of(const train *t, const train_do *d)
{
    return (mpsim_rownorm){.rows = d->x->rows,
                           .cols = d->x->cols,
                           .eps = 1e-5f,
                           .kind = t->run->settings.decoder.norm,
                           .math = &t->math_norm,
                           .f = d->results[0].to->format};
}

/* Gradients of its parameters come with those of all others: do_rownorm_gradients. */
static int do_rownorm(train *t, train_do *d)
{
    const mpsim_rownorm n = rownorm_of(t, d);
    train_result *r = d->results;
    if (d->work == WORK_ROWNORM)
        return t->e->ops->rownorm(t->e, &n, r[0].to, r[1].to, r[2].to, d->x, d->weight, d->bias, d->counts);
    return t->e->ops->rownorm_backward(t->e, &n, r[0].to, NULL, NULL, d->y, d->x, d->mean, d->inverse, d->weight,
                                       d->counts);
}

/* A bias has one where there are three results. */
static int do_rownorm_gradients(train *t, train_do *const *all, size_t n)
{
    mpsim_rownorm r[TRAIN_PARAMS];
    train_normed list[TRAIN_PARAMS];
    for (size_t i = 0; i < n; i++) {
        const train_do *d = all[i];
        r[i] = rownorm_of(t, d);
        list[i] = (train_normed){.r = &r[i],
                                 .dweight = d->results[1].to,
                                 .dbias = d->n > 2 ? d->results[2].to : NULL,
                                 .dy = d->y,
                                 .x = d->x,
                                 .mean = d->mean,
                                 .inverse = d->inverse,
                                 .weight = d->weight};
    }
    return t->e->ops->rownorm_gradients(t->e, list, n);
}

/* Operations that transformers alone have. */
static int do_decoder(train *t, train_do *d)
{
    const train_ops *ops = t->e->ops;
    const train_decoder *s = &t->run->settings.decoder;
    const mpsim_activation kind = (mpsim_activation)s->activation;
    const float scale = (float)(1 / sqrt((double)train_head_size(&t->run->settings)));
    train_tensor *to = d->results[0].to;
    switch ((train_work)d->work) {
    case WORK_EMBED:
        return ops->embed(t->e, to, d->x, d->tokens, d->counts);
    case WORK_EMBED_BACK:
        return ops->embed_backward(t->e, to, d->x, d->tokens, s->tied, d->counts);
    case WORK_POSITIONS:
        return ops->add_rows(t->e, to, d->x, d->y, d->counts);
    case WORK_POSITIONS_BACK:
        return ops->add_rows_backward(t->e, to, d->x, d->counts);
    case WORK_ROWNORM:
    case WORK_ROWNORM_BACK:
        return do_rownorm(t, d);
    case WORK_CAUSAL:
        return ops->causal(t->e, &t->math_softmax, scale, to, d->x, d->counts);
    case WORK_CAUSAL_BACK:
        return ops->causal_backward(t->e, &t->math_softmax, scale, to, d->x, d->y, d->counts);
    case WORK_ACTIVATE:
        return ops->activate(t->e, kind, &t->math, to, d->x, d->counts);
    case WORK_ACTIVATE_BACK:
        return ops->activate_backward(t->e, kind, &t->math, to, d->y, d->x, d->counts);
    case WORK_ADD:
        return ops->add(t->e, to, d->x, d->y, d->counts);
    case WORK_GROUPS:
        return ops->add_groups(t->e, to, d->x, d->heads.length, d->heads.heads, d->counts);
    default:
        return train_do_tiles(t, d);
    }
}

static int do_one(train *t, const train_pass *p, train_do *d)
{
    const train_ops *ops = t->e->ops;
    train_tensor *to = d->results[0].to;
    switch ((train_work)d->work) {
    case WORK_HADAMARD:
        return ops->hadamard(t->e, to, d->x, d->transposed);
    case WORK_GATHER:
        return ops->gather(t->e, to, d->x, d->index);
    case WORK_RELU:
        return ops->relu(t->e, to, d->x);
    case WORK_RELU_BACK:
        return ops->relu_backward(t->e, to, d->x, d->y);
    case WORK_POOL:
        return ops->maxpool(t->e, to, d->x, &d->pool);
    case WORK_POOL_BACK:
        return ops->maxpool_backward(t->e, to, d->x, d->y, &d->pool);
    case WORK_LOSS:
        return do_loss(t, p, d);
    case WORK_NORM:
    case WORK_NORM_BACK:
    case WORK_NORM_TEST:
        return do_norm(t, d);
    case WORK_NONE:
        return 0;
    default:
        return do_decoder(t, d);
    }
}

/* ---- several at once ---- */

/* Operations of one kind that are done before all others, after them, or in order. */
static size_t those_of(const train_pass *p, train_when when, train_work work, train_do **all)
{
    size_t n = 0;
    for (size_t i = 0; i < p->n; i++) {
        train_do *d = p->list[i];
        if (d->when == when && d->work == work)
            all[n++] = d;
    }
    return n;
}

static size_t pairs_of(train_do *const *all, size_t n, train_pair *list)
{
    for (size_t i = 0; i < n; i++)
        list[i] = (train_pair){.y = all[i]->results[0].to, .x = all[i]->x, .counts = all[i]->counts};
    return n;
}

static int do_casts(train *t, train_do *const *all, size_t n)
{
    train_pair list[TRAIN_PARAMS];
    pairs_of(all, n, list);
    return n ? t->e->ops->cast_list(t->e, list, n, all[0]->mode) : 0;
}

int train_enters_anew(const train_pass *p)
{
    for (size_t i = 0; i < p->n; i++) {
        const train_do *d = p->list[i];
        if (d->when == WHEN_FIRST && d->work == WORK_QUANTIZE && d->recipe.element_mode >= MPSIM_ROUND_STOCHASTIC_A)
            return 1;
    }
    return 0;
}

/* One parameter after the other. */
static int do_first_in_turn(train *t, const train_pass *p)
{
    train_do *all[3 * TRAIN_PARAMS];
    const size_t n = train_pass_first(p, all);
    for (size_t i = 0; i < n; i++)
        if (all[i]->work == WORK_CAST ? do_casts(t, &all[i], 1) : do_quantize(t, p, &all[i], 1))
            return -1;
    return 0;
}

/* Parameters in the formats that they enter the pass with, then what products read instead of them: once a
 * step, but where every micro-batch has random numbers of its own. */
static int do_first(train *t, const train_pass *p)
{
    train_do *all[TRAIN_PARAMS];
    if (p->micro > 0 && !train_enters_anew(p))
        return 0;
    if (t->lean)
        return do_first_in_turn(t, p);
    if (do_casts(t, all, those_of(p, WHEN_FIRST, WORK_CAST, all)))
        return -1;
    return do_quantize(t, p, all, those_of(p, WHEN_FIRST, WORK_QUANTIZE, all));
}

/* Gradients of biases, and of the parameters of norms. */
static int do_last(train *t, const train_pass *p)
{
    train_do *all[TRAIN_PARAMS];
    train_pair list[TRAIN_PARAMS];
    const size_t n = those_of(p, WHEN_LAST, WORK_SUMS, all);
    if (t->e->ops->column_sums(t->e, list, pairs_of(all, n, list)))
        return -1;
    return do_rownorm_gradients(t, all, those_of(p, WHEN_IN_ORDER, WORK_ROWNORM_BACK, all));
}

static int reads(const train_do *d, const void *data)
{
    const train_gemm *g = &d->gemm;
    const train_tensor *const all[] = {d->x, g->a, g->b, g->bias, g->a_blocks, g->b_blocks};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        if (all[i] && all[i]->data == data)
            return 1;
    return 0;
}

static int writes(const train_do *d, const void *data)
{
    for (size_t i = 0; i < d->n; i++)
        if (d->results[i].to->data == data)
            return 1;
    return 0;
}

/* Whether what d writes is memory that e reads, or writes, be it by another view. (Heads that are joined write
 * columns of their own.) */
static int disturbs(const train_do *d, const train_do *e)
{
    for (size_t i = 0; i < d->n; i++) {
        const void *data = d->results[i].to->data;
        if (reads(e, data) || (d->work != WORK_JOIN && writes(e, data)))
            return 1;
    }
    return 0;
}

/* Whether d may not be done at the same time as one of these. */
static int clashes(const train_do *d, train_do *const *all, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (disturbs(d, all[i]) || disturbs(all[i], d))
            return 1;
    return 0;
}

/* Operations from number `first` on that are done as one, of one kind. *next: behind them. */
static size_t alike(const train_pass *p, size_t first, train_do **all, size_t *next)
{
    const train_do *d = p->list[first];
    size_t n = 0, i = first;
    for (; i < p->n && n < TRAIN_AT_ONCE; i++) {
        train_do *e = p->list[i];
        if (e->when != WHEN_IN_ORDER || e->work == WORK_NONE)
            continue;
        if (e->work != d->work || e->mode != d->mode || clashes(e, all, n))
            break;
        all[n++] = e;
    }
    *next = i;
    return n;
}

static int do_products(train *t, train_do *const *all, size_t n)
{
    train_multiply list[TRAIN_AT_ONCE];
    for (size_t i = 0; i < n; i++)
        list[i] = (train_multiply){.d = all[i]->results[0].to, .g = &all[i]->gemm, .counts = all[i]->counts};
    return t->e->ops->gemm_list(t->e, list, n);
}

static int do_heads(train *t, train_do *const *all, size_t n)
{
    train_turn list[TRAIN_AT_ONCE];
    for (size_t i = 0; i < n; i++)
        list[i] =
            (train_turn){.y = all[i]->results[0].to, .x = all[i]->x, .heads = &all[i]->heads, .counts = all[i]->counts};
    return (all[0]->work == WORK_SPLIT ? t->e->ops->split : t->e->ops->join)(t->e, list, n);
}

/* Operation `first`, and those after it that are done with it. *next: the next one. */
static int do_some(train *t, const train_pass *p, size_t first, size_t *next)
{
    train_do *all[TRAIN_AT_ONCE], *d = p->list[first];
    *next = first + 1;
    if (d->when != WHEN_IN_ORDER)
        return 0;
    if (d->work == WORK_CAST)
        return do_casts(t, all, alike(p, first, all, next));
    if (d->work == WORK_QUANTIZE)
        return do_quantize(t, p, all, alike(p, first, all, next));
    if (d->work == WORK_GEMM)
        return do_products(t, all, alike(p, first, all, next));
    if (d->work == WORK_SPLIT || d->work == WORK_JOIN)
        return do_heads(t, all, alike(p, first, all, next));
    return do_one(t, p, d);
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
    return train_pass_do(t, p, error);
}

int train_pass_do(train *t, train_pass *p, char *error)
{
    if (do_first(t, p))
        return train_engine_failed(t, "parameters", error);
    for (size_t i = 0, next; i < p->n; i = next)
        if (do_some(t, p, i, &next))
            return train_engine_failed(t, p->list[i]->results[0].name, error);
    return do_last(t, p) ? train_engine_failed(t, "gradients of biases and norms", error) : 0;
}

/* ---- open, close ---- */

/* Room for what comes from outside. */
static int open_data(train *t, train_pass *p, char *error)
{
    const train_settings *s = &t->run->settings;
    const uint32_t columns = t->run->layers[0].inputs;
    if (train_is_text(s)) {
        p->tokens = calloc(p->images * s->decoder.context, sizeof *p->tokens);
        return p->tokens ? 0 : train_fail(error, "out of memory");
    }
    p->pixels = (train_tensor){
        .format = mpsim_format_find("binary32"), .rows = p->images * TRAIN_PIXELS / columns, .cols = columns};
    return t->e->ops->alloc(t->e, &p->pixels) ? train_engine_failed(t, "pixels", error) : 0;
}

int train_pass_open(train *t, train_pass *p, size_t images, int training, char *error)
{
    train_build b = {.t = t, .p = p, .plan = t->plan, .error = error};
    memset(p, 0, sizeof *p);
    p->images = images;
    p->training = training;
    if (open_data(t, p, error))
        return -1;
    train_build_forward(&b);
    if (training)
        train_build_backward(&b);
    if (!b.failed)
        b.failed = train_scratch_open(t, p, error) || (t->lean && train_blocks_place(t, p, error)) ? -1 : 0;
    if (b.failed)
        train_pass_close(t, p);
    return b.failed ? -1 : 0;
}

void train_pass_close(train *t, train_pass *p)
{
    const train_ops *ops = t->e->ops;
    for (size_t i = 0; i < p->n; i++) {
        for (size_t k = 0; k < TRAIN_RESULTS; k++)
            if (p->list[i]->results[k].own.data && !p->list[i]->results[k].borrowed)
                ops->release(t->e, &p->list[i]->results[k].own);
        free(p->list[i]->tiles);
        free(p->list[i]);
    }
    for (size_t i = 0; i < p->n_indices; i++)
        ops->index_free(t->e, p->indices[i]);
    if (p->pixels.data)
        ops->release(t->e, &p->pixels);
    train_scratch_close(t, p);
    free(p->tokens);
    free(p->list);
    memset(p, 0, sizeof *p);
}
