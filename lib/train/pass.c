/* pass.c -- a pass: its operations, their tensors, doing them; see trainer.h. */
#include "trainer.h"

#include <stdlib.h>

/* ---- appending ---- */

static train_do *append(train_build *b, train_work work)
{
    train_pass *p = b->p;
    train_do *d = b->failed ? NULL : calloc(1, sizeof *d);
    if (d && p->n == p->room) {
        const size_t room = p->room ? 2 * p->room : 64;
        train_do **list = realloc(p->list, room * sizeof *list);
        if (list) {
            p->list = list;
            p->room = room;
        } else {
            free(d);
            d = NULL;
        }
    }
    if (!d) {
        if (!b->failed)
            b->failed = train_fail(b->error, "out of memory");
        memset(&b->sink, 0, sizeof b->sink);
        b->sink.results[0].to = &b->sink.results[0].own;
        return &b->sink;
    }
    d->work = (uint8_t)work;
    d->n = 1;
    p->list[p->n++] = d;
    return d;
}

static void set_shape(const train_build *b, train_result *r)
{
    const size_t pixels = r->to->rows / b->p->images;
    size_t side = 1;
    while (side * side < pixels)
        side++;
    r->rank = 2;
    r->shape[0] = r->to->rows;
    r->shape[1] = r->to->cols;
    if (pixels < 2 || pixels * b->p->images != r->to->rows || side * side != pixels)
        return;
    r->rank = 4;
    r->shape[0] = b->p->images;
    r->shape[1] = r->shape[2] = side;
    r->shape[3] = r->to->cols;
}

static int is_traced(const char *kind)
{
    static const char *const kinds[] = {"act", "out", "agrad", "dgrad", "wgrad"};
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        if (strcmp(kind, kinds[i]) == 0)
            return 1;
    return 0;
}

/* Result number d->n - 1 in a tensor of its own. */
static void own_result(train_build *b, train_do *d, const char *kind, const char *name, size_t rows,
                       size_t cols, const mpsim_format *f)
{
    train_result *r = &d->results[d->n - 1];
    train_engine *e = b->t->e;
    snprintf(r->name, sizeof r->name, "%.30s:%.60s", kind, name);
    r->own = (train_tensor){.format = f, .rows = rows, .cols = cols};
    r->to = &r->own;
    r->rank = 2;
    r->shape[0] = rows;
    r->shape[1] = cols;
    if (b->failed)
        return;
    if (e->ops->alloc(e, &r->own)) {
        b->failed = train_engine_failed(b->t, r->name, b->error);
        return;
    }
    r->traced = is_traced(kind);
    if (r->traced)
        set_shape(b, r);
}

train_do *train_add(train_build *b, train_work work, size_t layer, const char *kind, size_t rows,
                    size_t cols, const mpsim_format *f)
{
    train_do *d = append(b, work);
    own_result(b, d, kind, b->t->run->layers[layer].name, rows, cols, f);
    return d;
}

void train_add_result(train_build *b, train_do *d, size_t layer, const char *kind, size_t rows,
                      size_t cols, const mpsim_format *f)
{
    if (d == &b->sink)
        return;
    d->n++;
    own_result(b, d, kind, b->t->run->layers[layer].name, rows, cols, f);
}

train_do *train_add_to(train_build *b, train_work work, const char *kind, const char *name,
                       const train_tensor *to)
{
    train_do *d = append(b, work);
    train_result *r = &d->results[0];
    if (d == &b->sink)
        return d;
    snprintf(r->name, sizeof r->name, "%.30s:%.60s", kind, name);
    r->to = (train_tensor *)(uintptr_t)to; /* read only: the operation is WORK_NONE */
    set_shape(b, r);
    r->traced = is_traced(kind);
    return d;
}

train_do *train_add_bare(train_build *b, train_work work)
{
    train_do *d = append(b, work);
    d->n = 0;
    return d;
}

void train_add_gradient(train_build *b, train_do *d, int param)
{
    train_param *p = &b->t->params[param];
    if (d == &b->sink)
        return;
    train_result *r = &d->results[d->n++];
    snprintf(r->name, sizeof r->name, "wgrad:%.60s", p->name);
    r->to = &p->wgrad;
    r->rank = train_param_shape(b->t, p, r->shape);
    r->traced = 1;
}

const train_tensor *train_in_format(train_build *b, size_t layer, const char *kind,
                                    const train_tensor *x, const mpsim_format *f,
                                    train_counts *counts)
{
    if (mpsim_format_same(x->format, f)) {
        train_add_to(b, WORK_NONE, kind, b->t->run->layers[layer].name, x);
        return x;
    }
    train_do *d = train_add(b, WORK_CAST, layer, kind, x->rows, x->cols, f);
    d->x = x;
    d->mode = MPSIM_ROUND_NEAREST_EVEN;
    d->counts = counts;
    return d->results[0].to;
}

const void *train_index(train_build *b, size_t layer, size_t n, size_t channels,
                        train_filler *filler)
{
    train_engine *e = b->t->e;
    void *handle = NULL;
    int32_t *index = b->failed || n > INT32_MAX ? NULL : malloc(n * sizeof *index);
    if (b->failed)
        return NULL;
    if (!index || b->p->n_indices == sizeof b->p->indices / sizeof *b->p->indices)
        b->failed = train_fail(b->error, "out of memory");
    else {
        filler(index, &b->t->run->layers[layer], b->p->images, channels);
        if (e->ops->index_new(e, index, n, &handle))
            b->failed = train_engine_failed(b->t, b->t->run->layers[layer].name, b->error);
        else
            b->p->indices[b->p->n_indices++] = handle;
    }
    free(index);
    return handle;
}

const train_tensor *train_gathered(train_build *b, size_t layer, const char *kind,
                                   const train_tensor *x, size_t rows, size_t cols,
                                   const void *index)
{
    train_do *d = train_add(b, WORK_GATHER, layer, kind, rows, cols, x->format);
    d->x = x;
    d->index = index;
    return d->results[0].to;
}

/* ---- copies that products read ---- */

train_copy train_copy_kind(const train_build *b, size_t layer, train_role role)
{
    const train_placement *l = &b->plan->layers[layer];
    const mpsim_block_recipe *r = l->recipe[role];
    if (r)
        return r->block_rows == 0 && r->block_cols == 0 ? COPY_TENSOR : COPY_BLOCKS;
    return b->t->run->settings.tf32 &&
                   mpsim_format_same(&l->format[role], mpsim_format_find("binary32"))
               ? COPY_TF32
               : COPY_NONE;
}

static const char *role_word(train_role role)
{
    return role == TRAIN_ACT ? "act" : role == TRAIN_WEIGHT ? "weight" : "agrad";
}

static size_t fp8_of(train_role role)
{
    return role == TRAIN_ACT ? 0 : role == TRAIN_WEIGHT ? 1 : 2;
}

/* The rows of the formats table outlive everything. */
static const mpsim_format *copy_format(train_build *b, const mpsim_block_recipe *r, train_copy kind)
{
    const mpsim_format *f = mpsim_format_find(kind == COPY_TF32     ? "tf32"
                                              : kind == COPY_TENSOR ? r->element
                                                                    : "bf16");
    if (!f && !b->failed)
        b->failed = train_fail(b->error, "recipe %s: its elements have no format", r->name);
    return f;
}

const train_tensor *train_copy_of(train_build *b, size_t layer, train_role role, const char *suffix,
                                  const train_tensor *x, int transposed, train_counts *counts)
{
    const train_copy kind = train_copy_kind(b, layer, role);
    const mpsim_block_recipe *r = b->plan->layers[layer].recipe[role];
    char word[24];
    if (kind == COPY_NONE)
        return x;
    snprintf(word, sizeof word, "%s%s", role_word(role), suffix);
    train_do *d = train_add(b, kind == COPY_TF32 ? WORK_CAST : WORK_QUANTIZE, layer, word,
                            transposed ? x->cols : x->rows, transposed ? x->rows : x->cols,
                            copy_format(b, r, kind));
    d->x = x;
    d->counts = counts;
    d->mode = MPSIM_ROUND_NEAREST_AWAY;
    d->transposed = transposed;
    d->weight_copy = role == TRAIN_WEIGHT;
    if (kind != COPY_TF32) {
        d->recipe = *r;
        if (b->plan->delayed && kind == COPY_TENSOR) {
            d->recipe.rule = MPSIM_SCALE_GIVEN;
            d->delayed = &b->t->fp8[layer][fp8_of(role)].state;
            d->record = b->p->training;
        }
    }
    return d->results[0].to;
}

void train_product(train_build *b, train_do *d, size_t layer, const train_tensor *x, int x_turned,
                   const train_tensor *y, int y_turned, const train_tensor *bias,
                   train_counts *counts)
{
    char line[TRAIN_ERROR];
    if (b->failed)
        return;
    if (train_model(&b->t->run->settings, x->format, y->format, &d->model, line)) {
        b->failed = train_fail(b->error, "%s: %.190s", b->t->run->layers[layer].name, line);
        return;
    }
    d->gemm = (train_gemm){.model = &d->model, .a = x, .b = y, .a_transposed = x_turned,
                           .b_transposed = y_turned, .bias = bias};
    d->counts = counts;
}

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
                                      .stream = stream_of(t, d)}};
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
