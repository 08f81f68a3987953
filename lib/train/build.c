/* build.c -- a pass under construction: operations with their tensors are appended; see trainer.h. */
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
        b->sink.n = 1;
        b->sink.results[0].to = &b->sink.results[0].own;
        return &b->sink;
    }
    d->work = (uint8_t)work;
    d->n = 1;
    p->list[p->n++] = d;
    return d;
}

/* A row is a pixel, a whole image, or a token. */
static void set_shape(const train_build *b, train_result *r)
{
    const size_t pixels = r->to->rows / b->p->images;
    size_t side = 1;
    while (side * side < pixels)
        side++;
    r->rank = 2;
    r->shape[0] = r->to->rows;
    r->shape[1] = r->to->cols;
    if (b->p->tokens || pixels < 2 || pixels * b->p->images != r->to->rows || side * side != pixels)
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
static void own_result(train_build *b, train_do *d, const char *kind, const char *name, size_t rows, size_t cols,
                       const mpsim_format *f, int borrowed)
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
    r->borrowed = borrowed || b->t->lean;
    if (b->t->lean)
        b->failed = train_blocks_try(b->t, f) ? train_engine_failed(b->t, r->name, b->error) : 0;
    else if (borrowed)
        b->failed = train_borrow(b->p, kind, &r->own, 0, b->error);
    else if (e->ops->alloc(e, &r->own))
        b->failed = train_engine_failed(b->t, r->name, b->error);
    if (b->failed)
        return;
    r->traced = is_traced(kind);
    if (r->traced)
        set_shape(b, r);
}

train_do *train_add(train_build *b, train_work work, size_t layer, const char *kind, size_t rows, size_t cols,
                    const mpsim_format *f)
{
    train_do *d = append(b, work);
    own_result(b, d, kind, b->t->run->layers[layer].name, rows, cols, f, 0);
    return d;
}

/* Of copies of weights: a pass without a way back has one tensor for those of all layers. */
static train_do *add_copy(train_build *b, train_work work, size_t layer, const char *kind, size_t rows, size_t cols,
                          const mpsim_format *f, int of_weight)
{
    train_do *d = append(b, work);
    d->weight_copy = of_weight;
    own_result(b, d, kind, b->t->run->layers[layer].name, rows, cols, f, of_weight && !b->p->training);
    return d;
}

void train_add_result(train_build *b, train_do *d, size_t layer, const char *kind, size_t rows, size_t cols,
                      const mpsim_format *f)
{
    if (d == &b->sink)
        return;
    d->n++;
    own_result(b, d, kind, b->t->run->layers[layer].name, rows, cols, f, 0);
}

void train_hide(train_do *d)
{
    d->results[d->n - 1].hidden = 1;
}

void train_go_on(train_build *b, train_do *d, train_tensor *x)
{
    if (d == &b->sink)
        return;
    d->results[d->n++].to = x;
    train_hide(d);
}

/* Another name of a tensor that is there. */
static void add_name(train_build *b, const char *kind, const char *name, const train_tensor *x)
{
    train_do *d = append(b, WORK_NONE);
    train_result *r = &d->results[0];
    if (d == &b->sink)
        return;
    snprintf(r->name, sizeof r->name, "%.30s:%.60s", kind, name);
    r->to = (train_tensor *)(uintptr_t)x; /* read only: nothing is done */
    set_shape(b, r);
    r->traced = is_traced(kind);
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

const train_tensor *train_norm_back(train_build *b, size_t i, train_work work, const train_tensor *dy)
{
    const train_placement *l = &b->plan->layers[i];
    const train_do *forward = b->layer[i];
    dy = train_in_format(b, i, "agrad", dy, &l->format[TRAIN_AGRAD], &b->t->agrad);
    train_do *d = train_add(b, work, i, "dgrad", dy->rows, dy->cols, &l->format[TRAIN_DGRAD]);
    train_add_gradient(b, d, b->t->weight_of[i]);
    if (b->t->bias_of[i] >= 0)
        train_add_gradient(b, d, b->t->bias_of[i]);
    d->x = forward->x;
    d->y = dy;
    d->mean = forward->results[1].to;
    d->inverse = forward->results[2].to;
    d->weight = forward->weight;
    d->counts = &b->t->agrad;
    return d->results[0].to;
}

const train_tensor *train_in_format(train_build *b, size_t layer, const char *kind, const train_tensor *x,
                                    const mpsim_format *f, train_counts *counts)
{
    if (mpsim_format_same(x->format, f)) {
        add_name(b, kind, b->t->run->layers[layer].name, x);
        return x;
    }
    train_do *d = train_add(b, WORK_CAST, layer, kind, x->rows, x->cols, f);
    d->x = x;
    d->mode = MPSIM_ROUND_NEAREST_EVEN;
    d->counts = counts;
    return d->results[0].to;
}

static void enters_first(train_build *b, train_do *d)
{
    d->when = WHEN_FIRST;
    d->counts = &b->t->entering;
}

/* A parameter that has the format already, where nobody asks what has entered after the update: it is only counted. */
static train_do *add_as_it_is(train_build *b, size_t layer, const char *kind, const train_tensor *x)
{
    train_do *d = append(b, WORK_CAST);
    if (d == &b->sink)
        return d;
    snprintf(d->results[0].name, sizeof d->results[0].name, "%.30s:%.60s", kind, b->t->run->layers[layer].name);
    d->results[0].to = (train_tensor *)(uintptr_t)x;
    d->weight_copy = 1;
    return d;
}

const train_tensor *train_entering(train_build *b, size_t layer, int param, const char *kind)
{
    const train_tensor *x = train_param_model(&b->t->params[param]);
    const mpsim_format *f = &b->plan->layers[layer].format[TRAIN_WEIGHT];
    train_do *d = b->t->lean && mpsim_format_same(x->format, f)
                      ? add_as_it_is(b, layer, kind, x)
                      : add_copy(b, WORK_CAST, layer, kind, x->rows, x->cols, f, 1);
    d->x = x;
    d->mode = MPSIM_ROUND_NEAREST_EVEN;
    d->counts = &b->t->act;
    if (b->p->training) /* else all have one memory, one after the other */
        enters_first(b, d);
    return d->results[0].to;
}

/* ---- gathers ---- */

const void *train_index(train_build *b, size_t layer, size_t n, size_t channels, train_filler *filler)
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

/* Row (n, y, x) of im2col holds x[n, y + ky - 1, x + kx - 1, c] in column (ky 3 + kx) C + c, and 0
 * outside the image. */
void train_columns(int32_t *index, const train_layer *l, size_t images, size_t channels)
{
    const long side = (long)l->side, c_all = (long)channels;
    for (long n = 0; n < (long)images; n++)
        for (long y = 0; y < side; y++)
            for (long x = 0; x < side; x++)
                for (long k = 0; k < 9; k++)
                    for (long c = 0; c < c_all; c++) {
                        const long from_y = y + k / 3 - 1, from_x = x + k % 3 - 1;
                        const int inside = from_y >= 0 && from_y < side && from_x >= 0 && from_x < side;
                        const long at = ((n * side + from_y) * side + from_x) * c_all + c;
                        *index++ = inside ? (int32_t)at : -1;
                    }
}

void train_in_order(int32_t *index, const train_layer *l, size_t images, size_t channels)
{
    const size_t n = images * l->side * l->side * channels;
    for (size_t i = 0; i < n; i++)
        index[i] = (int32_t)i;
}

const train_tensor *train_gathered(train_build *b, size_t layer, const char *kind, const train_tensor *x, size_t rows,
                                   size_t cols, const void *index)
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
    if (r && r->block_rows == 0 && r->block_cols == 0)
        return COPY_TENSOR;
    char base[64];
    if (r && l->promote)
        return COPY_CODES;
    if (r)
        return train_is_scaled(&b->t->run->settings, base) ? COPY_SCALED : COPY_BLOCKS;
    return b->t->run->settings.tf32 && mpsim_format_same(&l->format[role], mpsim_format_find("binary32")) ? COPY_TF32
                                                                                                          : COPY_NONE;
}

int train_in_blocks(const train_build *b, size_t layer, train_role role)
{
    return train_copy_kind(b, layer, role) >= COPY_BLOCKS;
}

static const char *role_word(train_role role)
{
    return role == TRAIN_ACT ? "act" : role == TRAIN_WEIGHT ? "weight" : "agrad";
}

static size_t fp8_of(train_role role)
{
    return role == TRAIN_ACT ? 0 : role == TRAIN_WEIGHT ? 1 : 2;
}

const mpsim_format *train_element_format(train_build *b, const mpsim_block_recipe *r)
{
    const mpsim_format *f = mpsim_format_find(r->element);
    if (!f && !b->failed)
        b->failed = train_fail(b->error, "recipe %s: its elements have no format", r->name);
    return f;
}

/* The rows of the formats table outlive everything. */
static const mpsim_format *copy_format(train_build *b, const mpsim_block_recipe *r, train_copy kind)
{
    return kind == COPY_TF32     ? mpsim_format_find("tf32")
           : kind == COPY_BLOCKS ? mpsim_format_find("bf16")
                                 : train_element_format(b, r);
}

/* The factors of blocks, a second result. */
static void add_factors(train_build *b, train_do *d, size_t layer, const char *word)
{
    char kind[32];
    size_t rows, cols;
    mpsim_block_grid(&d->recipe, d->results[0].to->rows, d->results[0].to->cols, &rows, &cols);
    snprintf(kind, sizeof kind, "%s.blocks", word);
    train_add_result(b, d, layer, kind, rows, cols, mpsim_format_find("binary32"));
}

const train_tensor *train_copy_of(train_build *b, size_t layer, train_role role, const char *suffix,
                                  const train_tensor *x, int transposed, train_counts *counts)
{
    char word[24];
    snprintf(word, sizeof word, "%s%s", role_word(role), suffix);
    return train_copy_named(b, layer, role, word, x, transposed, counts);
}

const train_tensor *train_copy_named(train_build *b, size_t layer, train_role role, const char *word,
                                     const train_tensor *x, int transposed, train_counts *counts)
{
    const train_copy kind = train_copy_kind(b, layer, role);
    const mpsim_block_recipe *r = b->plan->layers[layer].recipe[role];
    if (kind == COPY_NONE)
        return x;
    train_do *d = add_copy(b, kind == COPY_TF32 ? WORK_CAST : WORK_QUANTIZE, layer, word,
                           transposed ? x->cols : x->rows, transposed ? x->rows : x->cols, copy_format(b, r, kind),
                           role == TRAIN_WEIGHT && b->t->weight_of[layer] >= 0);
    d->x = x;
    d->counts = counts;
    d->mode = MPSIM_ROUND_NEAREST_AWAY;
    d->transposed = transposed;
    if (kind != COPY_TF32) {
        d->recipe = *r;
        if (d->weight_copy && b->p->training && x == b->weight[layer].base)
            enters_first(b, d);
        if (b->plan->delayed && kind == COPY_TENSOR) {
            d->recipe.rule = MPSIM_SCALE_GIVEN;
            d->delayed = &b->t->fp8[layer][fp8_of(role)].state;
            d->record = b->p->training;
        }
        d->scaled = kind == COPY_SCALED;
        if (kind == COPY_CODES || kind == COPY_SCALED)
            add_factors(b, d, layer, word);
    }
    return d->results[0].to;
}

const train_tensor *train_copy_for_wgrad(train_build *b, size_t layer, train_role role, const train_tensor *x,
                                         train_counts *counts)
{
    char word[24];
    if (!b->plan->layers[layer].hadamard)
        return train_copy_of(b, layer, role, ".qt", x, 1, counts);
    snprintf(word, sizeof word, "%s.rht", role_word(role));
    train_do *d = train_add(b, WORK_HADAMARD, layer, word, x->cols, x->rows, x->format);
    d->x = x;
    d->transposed = 1;
    return train_copy_of(b, layer, role, ".qt", d->results[0].to, 0, counts);
}

/* What made a copy with factors; NULL: nothing did. */
static const train_do *maker_of(const train_build *b, const train_tensor *x)
{
    for (size_t i = 0; i < b->p->n; i++) {
        const train_do *d = b->p->list[i];
        if (d->work == WORK_QUANTIZE && d->n >= 2 && d->results[0].to == x)
            return d;
    }
    return NULL;
}

/* The factors of the blocks of a copy, and the rows of such a block; NULL: it has none. */
static const train_tensor *factors_of(const train_build *b, const train_tensor *x, size_t *rows)
{
    const train_do *d = maker_of(b, x);
    if (!d)
        return NULL;
    *rows = d->recipe.block_rows ? d->recipe.block_rows : x->rows;
    return d->results[1].to;
}

void train_product_model(train_build *b, size_t layer, const mpsim_format *x, const mpsim_format *y, mpsim_model *m)
{
    char line[TRAIN_ERROR];
    if (!b->failed && train_model(&b->t->run->settings, x, y, m, line))
        b->failed = train_fail(b->error, "%s: %.190s", b->t->run->layers[layer].name, line);
}

void train_product(train_build *b, train_do *d, size_t layer, const train_tensor *x, int x_transposed,
                   const train_tensor *y, int y_transposed, const train_tensor *bias, train_counts *counts)
{
    const train_do *of_x = maker_of(b, x), *of_y = maker_of(b, y);
    const int scaled = of_x && of_y && of_x->scaled && of_y->scaled;
    if (!scaled)
        train_product_model(b, layer, x->format, y->format, &d->model);
    else if (!b->failed && train_scaled_model(&b->t->run->settings, &of_x->recipe, &of_y->recipe, &d->model))
        b->failed = train_fail(b->error, "%s: arch %.40s has no products of %.31s and %.31s with their scales",
                               b->t->run->layers[layer].name, b->t->run->settings.arch, of_x->recipe.name,
                               of_y->recipe.name);
    if (b->failed)
        return;
    d->gemm = (train_gemm){.model = &d->model,
                           .a = x,
                           .b = y,
                           .a_transposed = x_transposed,
                           .b_transposed = y_transposed,
                           .bias = bias,
                           .promote = scaled ? of_x->recipe.block_cols : b->plan->layers[layer].promote};
    d->gemm.a_blocks = factors_of(b, x, &d->gemm.a_rows);
    d->gemm.b_blocks = factors_of(b, y, &d->gemm.b_rows);
    d->counts = counts;
}
