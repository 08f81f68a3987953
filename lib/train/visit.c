/* visit.c -- every tensor in a fixed order, the bytes of a plan; see train.h. */
#include "trainer.h"

typedef struct visitor {
    int (*each)(const train_item *x, void *context);
    void *context;
    int lean; /* 1: only what belongs to a checkpoint */
} visitor;

static int show(const visitor *v, const char *name, const train_tensor *x, int state, int traced,
                const train_gemm *product, size_t rank, const size_t *shape)
{
    train_item item = {
        .tensor = (train_tensor *)(uintptr_t)x, .state = state, .traced = traced, .product = product, .rank = rank};
    if (v->lean && !state)
        return 0;
    memcpy(item.name, name, sizeof item.name);
    memcpy(item.shape, shape, rank * sizeof *shape);
    return v->each(&item, v->context);
}

static const char gradient[] = "wgrad:";

/* Gradients of a micro-batch, where those of the step are others. */
static int is_of_micro_batch(const train *t, const train_result *r)
{
    return t->n_params > 0 && t->params[0].sums && strncmp(r->name, gradient, strlen(gradient)) == 0;
}

/* Stacks, and what begins with a number that is gone, are not computed in part again. */
static const train_gemm *product_of(const train_do *d)
{
    const int whole = d->gemm.stacks == 0 && d->gemm.start == TRAIN_FROM_ZERO;
    return d->work == WORK_GEMM && whole ? &d->gemm : NULL;
}

static int show_result(const train *t, const train_do *d, const train_result *r, const visitor *v)
{
    char name[2 * TRAIN_NAME] = {0};
    const int micro = is_of_micro_batch(t, r);
    snprintf(name, sizeof name, "%s%.80s", micro ? "wgrad.micro:" : "", r->name + (micro ? strlen(gradient) : 0));
    return show(v, name, r->to, 0, r->traced && !micro, product_of(d), r->rank, r->shape);
}

static int show_pass(const train *t, const train_pass *p, const visitor *v)
{
    for (size_t i = 0; i < p->n; i++)
        for (size_t k = 0; k < p->list[i]->n; k++) {
            const train_result *r = &p->list[i]->results[k];
            const int code = r->hidden ? 0 : show_result(t, p->list[i], r, v);
            if (code)
                return code;
        }
    return 0;
}

/* What micro-batches and ranks left. */
static int show_gathered(const train *t, const train_param *p, const visitor *v)
{
    char name[2 * TRAIN_NAME] = {0};
    size_t shape[4];
    const size_t rank = train_param_shape(t, p, shape);
    if (!p->sums)
        return 0;
    snprintf(name, sizeof name, "%s%s", gradient, p->name);
    return show(v, name, p->source, 0, 1, NULL, rank, shape);
}

static int show_param(const train *t, const train_param *p, const visitor *v)
{
    const struct {
        const char *kind;
        const train_tensor *x;
        int state, traced;
    } all[] = {{"grad", &p->grad, 0, 0},
               {"opt.m", &p->m, 1, 1},
               {"opt.v", &p->v, 1, 1},
               {"opt.vmax", &p->vmax, 1, 0},
               {"kahan", &p->kahan, 1, 0},
               {"master", p->copy.data ? &p->kept : NULL, 1, 1},
               {"weight", train_param_model(p), 1, 1}};
    size_t shape[4];
    const size_t rank = train_param_shape(t, p, shape);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        char name[2 * TRAIN_NAME] = {0};
        if (!all[i].x || !all[i].x->data)
            continue;
        snprintf(name, sizeof name, "%s:%s", all[i].kind, p->name);
        const int code = show(v, name, all[i].x, all[i].state, all[i].traced, NULL, rank, shape);
        if (code)
            return code;
    }
    return 0;
}

static int show_running(const train *t, size_t layer, const visitor *v)
{
    static const char *const words[] = {"mean", "var"};
    for (int k = 0; k < 2; k++) {
        const train_tensor *x = &t->running[layer][k];
        char name[2 * TRAIN_NAME] = {0};
        if (!x->data)
            continue;
        snprintf(name, sizeof name, "running:%s.%s", t->run->layers[layer].name, words[k]);
        const int code = show(v, name, x, 1, 0, NULL, 1, &x->cols);
        if (code)
            return code;
    }
    return 0;
}

int train_visit(train *t, int (*each)(const train_item *x, void *context), void *context)
{
    const visitor v = {each, context, t->lean};
    int code = show_pass(t, &t->batch, &v);
    for (size_t i = 0; i < t->n_params && !code; i++)
        code = show_gathered(t, &t->params[i], &v);
    for (size_t i = 0; i < t->run->n_layers && !code; i++)
        code = show_running(t, i, &v);
    for (size_t i = 0; i < t->n_params && !code; i++)
        code = show_param(t, &t->params[i], &v);
    return code;
}

/* ---- bytes ---- */

static uint64_t bytes_of(const train_tensor *x)
{
    return (uint64_t)x->rows * x->cols * mpsim_format_code_bytes(x->format);
}

/* Operations whose results nobody keeps, because what they are made of gives them again: im2col,
 * and tf32, which a kernel makes while it reads. */
static int is_made_again(const train_do *d)
{
    return (d->work == WORK_GATHER && strncmp(d->results[0].name, "columns", 7) == 0) ||
           (d->work == WORK_CAST && d->mode == MPSIM_ROUND_NEAREST_AWAY);
}

static int tiles_read(const train_tiles *t, const train_tensor *x)
{
    return t && (t->q == x || t->k == x || t->v == x || t->lse == x);
}

/* Does a backward operation read x, or what is made of it again? */
static int kept_for_backward(const train_pass *p, const train_tensor *x)
{
    for (size_t i = 0; i < p->n; i++) {
        const train_do *d = p->list[i];
        if (!d->backward && is_made_again(d) && d->x == x && kept_for_backward(p, d->results[0].to))
            return 1;
        if (d->backward && (d->x == x || d->y == x || d->mean == x || d->inverse == x || d->gemm.a == x ||
                            d->gemm.b == x || tiles_read(d->tiles, x)))
            return 1;
    }
    return 0;
}

static uint64_t bytes_of_result(const train_do *d)
{
    const train_tensor *x = d->results[0].to;
    return d->work == WORK_QUANTIZE ? mpsim_block_bytes(&d->recipe, x->rows, x->cols) : bytes_of(x);
}

void train_measure_bytes(const train *t, train_bytes *b)
{
    const train_pass *p = &t->batch;
    memset(b, 0, sizeof *b);
    for (size_t i = 0; i < t->n_params; i++) {
        const train_tensor *kept = &t->params[i].kept;
        mpsim_optim o = t->plan->optimizer;
        if (train_param_place(t, &t->params[i])->muon && !t->params[i].bias)
            o = (mpsim_optim){.algorithm = MPSIM_OPTIM_SGD, .momentum = t->plan->muon.momentum};
        train_param_matrices(t, &t->params[i], &o);
        train_bytes_add(b, train_param_place(t, &t->params[i]), t->plan->master, &o, (uint64_t)kept->rows * kept->cols,
                        0);
        if (train_micro_batches(&t->run->settings) > 1)
            b->gradients += bytes_of(&t->params[i].sums[0]);
    }
    for (size_t i = 0; i < p->n && !p->list[i]->backward; i++) {
        const train_do *d = p->list[i];
        if (d->work == WORK_NONE || d->work == WORK_LOSS || d->weight_copy || is_made_again(d))
            continue;
        for (size_t k = 0; k < d->n; k++)
            if (kept_for_backward(p, d->results[k].to))
                b->activations += k ? bytes_of(d->results[k].to) : bytes_of_result(d);
    }
    if (kept_for_backward(p, &p->pixels))
        b->activations += bytes_of(&p->pixels);
}
