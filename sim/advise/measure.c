/* measure.c -- every tensor of every step under every candidate; see advise.h. The casts are those of `stat`. */
#include "advise.h"

#include "../array/need.h"
#include "../input/steps.h"
#include "../stat/walk.h"
#include "../text/json.h"
#include "../text/words.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { FP16, BF16, SCALARS }; /* the order of the scalar formats that are asked for */
static const char *const scalars[SCALARS] = {"fp16", "bf16"};

typedef struct one_file {
    int unsaid;   /* nothing says whether its gradients are scaled */
    int exponent; /* of the loss scale that gradients were recorded with; UNKNOWN: it is no power of two */
    int held;
    int64_t step;
} one_file;
enum { UNKNOWN_EXPONENT = 4096 };

typedef struct measuring {
    advise *a;
    one_file *files;
    size_t n_files;
    stat_settings settings;
    target_list targets;
    int first; /* exponent of the first scale of the targets */
} measuring;

/* ---- what the files say of themselves, before their elements ---- */

static int is_one(const trace *t, const char *key)
{
    const char *v = trace_metadata(t, key);
    return v && (strcmp(v, "true") == 0 || strcmp(v, "1") == 0 || strcmp(v, "True") == 0);
}

/* The exponent of the scale that its gradients are multiplied by. */
static int scale_of(const trace *t)
{
    double scale;
    int power;
    const char *text = trace_metadata(t, "mpsim.loss_scale");
    if (!is_one(t, "mpsim.grads_scaled"))
        return 0;
    if (!text || parse_number(&scale, text) || !(scale > 0) || frexp(scale, &power) > 0.5 || power > 64 || power < -64)
        return UNKNOWN_EXPONENT;
    return power - 1;
}

static int is_optimizer(const char *name)
{
    mpsim_optim_algorithm algorithm;
    return name && mpsim_optim_parse(&algorithm, name) == MPSIM_OK;
}

/* Whether each parameter group names its optimizer, one that a replay has, and its learning rate. */
static int have_optimizers(const char *text)
{
    int no_memory = 0;
    json_t *groups = json_text(text, strlen(text), 0, NULL, &no_memory);
    int all = json_array_size(groups) > 0;
    for (size_t i = 0; i < json_array_size(groups); i++) {
        const json_t *g = json_array_get(groups, i);
        all &= is_optimizer(json_string_value(json_object_get(g, "optimizer"))) &&
               json_is_number(json_object_get(g, "lr"));
    }
    json_decref(groups);
    return all;
}

/* Whether a replay knows how the weights are updated. */
static int has_optimizer(const trace *t)
{
    const char *groups = trace_metadata(t, "mpsim.groups");
    return groups ? have_optimizers(groups)
                  : is_optimizer(trace_metadata(t, "mpsim.optimizer")) && trace_metadata(t, "mpsim.lr");
}

static void see_kinds(advise *a, const input *in, const trace *t)
{
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        if (!x->kind || !x->format || !input_selects(in, x))
            continue;
        a->has_kinds = 1;
        a->has_weights |= strcmp(x->kind, "weight") == 0;
        a->has_gradients |= strcmp(x->kind, "wgrad") == 0;
    }
}

static int look(input *in, trace *t, void *context)
{
    measuring *m = context;
    advise *a = m->a;
    one_file *f = &m->files[m->n_files++];
    f->exponent = scale_of(t);
    a->bad_scale |= f->exponent == UNKNOWN_EXPONENT;
    a->scaled |= f->exponent != 0;
    f->unsaid = !trace_metadata(t, "mpsim.grads_scaled") && !trace_metadata(t, "mpsim.loss_scale");
    a->has_optimizer &= has_optimizer(t);
    see_kinds(a, in, t);
    return 0;
}

/* Distinct steps in their order; every hold_back-th of them is held back. */
static void count_steps(measuring *m)
{
    advise *a = m->a;
    a->first_step = a->last_step = -1;
    for (size_t i = 0; i < m->n_files; i++) {
        one_file *f = &m->files[i];
        const int same = i > 0 && f->step == m->files[i - 1].step;
        a->steps += !same;
        a->no_step |= f->step < 0;
        f->held = a->hold_back && a->steps % a->hold_back == 0;
        a->held_steps += !same && f->held;
        a->first_step = i == 0 ? f->step : a->first_step;
        a->last_step = f->step;
    }
}

static int look_at_files(measuring *m, input *in)
{
    advise *a = m->a;
    input_step *steps = NULL;
    for (size_t i = 0; i < in->tree.count; i++)
        a->once |= !input_is_file(in->tree.paths[i]);
    if (a->once)
        return fail(EXIT_USAGE, "%s: '%s' can be read only once, but a file is needed: store the data in a file",
                    a->verb, in->tree.paths[0]);
    int code = input_order_steps(in, &steps);
    if (code)
        return code;
    a->files = in->tree.count;
    m->files = need_memory(in->tree.count + 1, sizeof *m->files);
    a->has_optimizer = 1; /* unless a file lacks it */
    in->headers = 1;
    code = input_each(in, look, m);
    in->headers = 0;
    for (size_t i = 0; i < m->n_files; i++)
        m->files[i].step = steps[i].step;
    free(steps);
    count_steps(m);
    if (!code && a->hold_back && (a->steps < 2 || a->held_steps == 0))
        code = fail(EXIT_DATA, "%s: --hold-back %llu holds back none of the %llu step%s of the trace", a->verb,
                    (unsigned long long)a->hold_back, (unsigned long long)a->steps, a->steps == 1 ? "" : "s");
    return code;
}

/* ---- the casts ---- */

/* Scales of the recorded numbers, so that all of SCALE_LOW to SCALE_HIGH are among those of the true ones. */
static int make_targets(measuring *m, char formats[512], char scales[64])
{
    int least = 0, most = 0;
    const candidate_list *l = &m->a->candidates;
    for (size_t i = 0; i < m->n_files; i++) {
        const int e = m->files[i].exponent == UNKNOWN_EXPONENT ? 0 : m->files[i].exponent;
        least = e < least ? e : least;
        most = e > most ? e : most;
    }
    m->first = SCALE_LOW - most;
    snprintf(scales, 64, "2^%d..2^%d", m->first, SCALE_HIGH - least);
    snprintf(formats, 512, "%s,%s", scalars[FP16], scalars[BF16]);
    for (size_t i = 0; i < l->n_casts; i++)
        text_add(formats, 512, ",%s", l->casts[i]);
    m->settings.to.formats = formats;
    m->settings.to.scales = scales;
    return stat_settings_targets(&m->settings, &m->targets, m->a->verb);
}

/* ---- a tensor ---- */

/* What a cast does, as shares and decibels. */
typedef struct outcome {
    double underflow, overflow, sqnr;
} outcome;

static outcome of_scalar(const group *g, const mpsim_cast_stats *c)
{
    const double n = g->stats.count ? (double)g->stats.count : 1;
    const int all_lost = c->compared == 0 && g->stats.count > g->stats.nan + g->stats.inf;
    return (outcome){(double)c->counts.underflow / n, (double)c->counts.overflow / n,
                     all_lost ? -(double)INFINITY : mpsim_cast_stats_sqnr_db(c, &g->stats)};
}

/* What saturates is an error like others; what becomes Inf or NaN is an overflow. */
static outcome of_blocks(const group *g, const block_sums *b)
{
    const double n = b->elements ? (double)b->elements : 1;
    const int all_lost = b->stats.casts.compared == 0 && b->elements > g->stats.nan + g->stats.inf;
    return (outcome){(double)b->stats.underflow / n, (double)b->stats.spoilt / n,
                     all_lost ? -(double)INFINITY : mpsim_cast_stats_sqnr_db(&b->stats.casts, &g->stats)};
}

/* What bf16 rounds to zero are subnormal numbers of binary32, which move nothing: its underflow is no bound. */
static int bounds_underflow(const candidate *c)
{
    return strcmp(c->name, scalars[BF16]) != 0;
}

static int within(const advise_bounds *b, const outcome *o, int underflow)
{
    return (!underflow || o->underflow <= b->underflow) && o->overflow <= b->overflow && !(o->sqnr < b->sqnr);
}

static void worst(advise_worst *w, double value, int64_t step, int less)
{
    if (!isnan(value) && (isnan(w->value) || (less ? value < w->value : value > w->value)))
        *w = (advise_worst){value, step};
}

/* What was found of a tensor in a step. */
typedef struct found {
    unsigned fits;
    uint64_t scales;
    outcome of[CANDIDATES_MOST];
} found;

/* Gradients in fp16: which scales are within the bounds. What is told of the others: of the largest that does not overflow. */
static outcome try_scales(const measuring *m, const group *g, int exponent, uint64_t *mask)
{
    outcome best = {0, 0, (double)NAN};
    int has = 0;
    for (int e = SCALE_LOW; e <= SCALE_HIGH; e++) {
        const size_t k = (size_t)(e - exponent - m->first);
        const outcome o = of_scalar(g, &g->casts[FP16 * m->targets.scales + k]);
        const int is = within(&m->a->bounds, &o, 1);
        *mask |= (uint64_t)is << (e - SCALE_LOW);
        if (!has || is || (!*mask && o.overflow <= m->a->bounds.overflow)) {
            best = o;
            has = 1;
        }
    }
    return best;
}

static const mpsim_cast_stats *scalar_cast(const measuring *m, const group *g, int format, int exponent)
{
    return g->scaled ? &g->casts[(size_t)format * m->targets.scales + (size_t)(-exponent - m->first)]
                     : &g->unscaled[format];
}

static void find(const measuring *m, const advise_tensor *t, const group *g, int exponent, found *f)
{
    const candidate_list *l = &m->a->candidates;
    const int e = exponent == UNKNOWN_EXPONENT ? 0 : exponent;
    *f = (found){.fits = 0};
    for (size_t c = 0; c < l->count; c++) {
        const candidate *k = &l->items[c];
        outcome *o = &f->of[c];
        if (c + 1 == l->count)
            *o = (outcome){0, 0, (double)INFINITY}; /* binary32 */
        else if (k->casts[t->role])
            *o = of_blocks(g, &g->blocks[advise_candidates_cast(l, k->casts[t->role])]);
        else if (strcmp(k->name, scalars[FP16]) == 0 && t->gradient)
            continue;
        else
            *o = of_scalar(g, scalar_cast(m, g, strcmp(k->name, scalars[FP16]) == 0 ? FP16 : BF16, e));
        f->fits |= (unsigned)(c + 1 == l->count || within(&m->a->bounds, o, bounds_underflow(k))) << c;
    }
    if (!t->gradient)
        return;
    const outcome best = try_scales(m, g, e, &f->scales);
    const int c = advise_candidates_find(l, scalars[FP16]);
    if (c >= 0) {
        f->of[c] = best;
        f->fits |= (unsigned)(f->scales != 0) << c;
    }
}

/* How many gradients whose scale nobody says are numbers of fp16 alone, as a backward pass in fp16 leaves those of its products;
 * those of embeddings and norms are binary32. */
static void see_unsaid(const measuring *m, const group *g, const one_file *file)
{
    advise *a = m->a;
    if (!file->unsaid)
        return;
    a->unsaid = 1;
    const uint64_t numbers = g->stats.count - g->stats.zero;
    a->gradient_numbers += numbers;
    a->fp16_numbers += scalar_cast(m, g, FP16, 0)->counts.inexact ? 0 : numbers;
}

/* ---- where it is kept ---- */

static advise_layer *layer_of(advise *a, const char *name)
{
    const size_t before = a->n_layers;
    advise_layer *l = nameindex_item(&a->layer_names, &a->layers, &a->n_layers, sizeof *l, name);
    if (a->n_layers > before)
        l->rank = -1;
    return l;
}

/* A parameter's layer is its name without the last component. */
static char *layer_name(const trace_tensor *x, int parameter)
{
    const char *dot = parameter ? strrchr(x->fqn, '.') : NULL;
    return dot ? need_part(x->fqn, (size_t)(dot - x->fqn)) : need_text(x->fqn);
}

static void describe(advise *a, advise_tensor *t, const trace_tensor *x, int gradient)
{
    static const char *const operands[] = {"act", "agrad", "weight"};
    const char *kind = x->kind ? x->kind : "";
    const int of_layer = strcmp(kind, "act") == 0 || strcmp(kind, "out") == 0 || strcmp(kind, "agrad") == 0 ||
                         strcmp(kind, "dgrad") == 0;
    snprintf(t->kind, sizeof t->kind, "%s", kind);
    t->gradient = gradient;
    t->role = gradient                                                     ? ROLE_GRAD
              : strcmp(kind, "weight") == 0 || strcmp(kind, "master") == 0 ? ROLE_WEIGHT
                                                                           : ROLE_ACT;
    t->layer = layer_name(x, *kind && !of_layer);
    t->count = x->count;
    t->rank = x->rank;
    t->fits = ~0u;
    t->scales = ~(uint64_t)0 >> (64 - SCALES);
    t->stored = x->format;
    t->low = (advise_end){SCALE_LOW, -1};
    t->high = (advise_end){SCALE_HIGH, -1};
    for (size_t i = 0; i < CANDIDATES_MOST; i++)
        t->of[i] = (advise_evidence){{(double)NAN, -1}, {(double)NAN, -1}, {(double)NAN, -1}};
    for (size_t i = 0; i < sizeof operands / sizeof *operands; i++)
        t->is_operand |= strcmp(kind, operands[i]) == 0 && (i < 2 || x->rank >= 2);
    advise_layer *l = layer_of(a, t->layer);
    if (strcmp(kind, "weight") == 0 && strcmp(x->fqn + strlen(t->layer), ".weight") == 0)
        l->rank = (int)x->rank;
}

static int lowest(uint64_t mask)
{
    int e = SCALE_LOW;
    for (; mask && !(mask & 1); mask >>= 1)
        e++;
    return e;
}

static int highest(uint64_t mask)
{
    int e = SCALE_LOW - 1;
    for (; mask; mask >>= 1)
        e++;
    return e;
}

static void add_scales(advise_tensor *t, uint64_t mask, int64_t step)
{
    t->scales &= mask;
    if (mask && lowest(mask) > t->low.exponent)
        t->low = (advise_end){lowest(mask), step};
    if (mask && highest(mask) < t->high.exponent)
        t->high = (advise_end){highest(mask), step};
}

static void add(const advise *a, advise_tensor *t, const found *f, int64_t step)
{
    t->steps++;
    t->fits &= f->fits;
    add_scales(t, f->scales, step);
    for (size_t c = 0; c < a->candidates.count; c++) {
        worst(&t->of[c].underflow, f->of[c].underflow, step, 0);
        worst(&t->of[c].overflow, f->of[c].overflow, step, 0);
        worst(&t->of[c].sqnr, f->of[c].sqnr, step, 1);
    }
}

/* ---- what the walk tells ---- */

/* Beside tensors whose names say a kind, one without is a buffer of a checkpoint rather than a gradient, or a counter of its
 * optimizer, which nobody misses. */
static int is_kindless(advise *a, const trace_tensor *x)
{
    if (x->kind || !a->has_kinds)
        return 0;
    if (!a->kindless && x->count > 1)
        a->kindless = need_text(x->name);
    return 1;
}

static int told_tensor(void *context, const stat_place *place, const walk_piece *piece, const group *g)
{
    measuring *m = context;
    advise *a = m->a;
    const trace_tensor *x = place->tensor;
    const one_file *file = &m->files[piece->file];
    found f;
    if (!g || g->stats.count + g->roundoff == 0) {
        a->left_out++;
        return 0;
    }
    if (is_kindless(a, x))
        return 0;
    const size_t before = a->n_tensors;
    advise_tensor *t = nameindex_item(&a->names, &a->tensors, &a->n_tensors, sizeof *t, x->name);
    if (a->n_tensors > before)
        describe(a, t, x, stat_is_scaled(&m->settings, place->kind));
    t->count = x->count > t->count ? x->count : t->count;
    const uint64_t bad = g->stats.nan + g->stats.inf;
    if (g->roundoff > t->roundoff) {
        t->roundoff = g->roundoff;
        t->evidence = x->roundoff->evidence;
    }
    if (g->stats.count == g->stats.zero && g->roundoff) {
        t->rounding++;
        return 0;
    }
    if (t->gradient && bad) {
        t->broken++;
        return 0;
    }
    t->nonfinite = bad > t->nonfinite ? bad : t->nonfinite;
    if (t->gradient)
        see_unsaid(m, g, file);
    if (t->gradient && x->format->bits < 32)
        a->low_stored = x->format->name;
    find(m, t, g, file->exponent, &f);
    if (!file->held) {
        add(a, t, &f, place->step);
        return 0;
    }
    need_room(&a->held, a->n_held, sizeof *a->held);
    a->held[a->n_held++] = (advise_seen){(size_t)(t - a->tensors), place->step, f.fits, f.scales};
    return 0;
}

static int told_file(void *context, const trace *t, uint64_t i)
{
    (void)context, (void)t, (void)i;
    return 0;
}

static int told_failed(void *context, uint64_t i, const trace_error *error)
{
    (void)context, (void)i, (void)error;
    return 0;
}

int advise_must_ask(const advise *a)
{
    enum { FEW = 64 }; /* numbers that fp16 has by chance */
    return a->unsaid && a->fp16_numbers >= FEW && a->fp16_numbers > a->gradient_numbers / 2;
}

int advise_measure(advise *a, input *in)
{
    static const walk_sink sink = {told_file, told_tensor, told_failed, NULL};
    char formats[512], scales[64], names[600];
    measuring m = {.a = a};
    m.settings.from = *in->options;
    m.settings.without_roundoff = 1;
    int code = look_at_files(&m, in);
    if (!code)
        code = make_targets(&m, formats, scales);
    if (!code)
        code = stat_walk(in, &m.settings, &m.targets, NULL, &sink, &m);
    a->bad_scale |= advise_must_ask(a);
    uint64_t measured = 0;
    for (size_t i = 0; i < a->n_tensors; i++)
        measured += a->tensors[i].steps + a->tensors[i].rounding;
    if (!code && measured == 0)
        code = fail(EXIT_DATA, "%s: %s: no tensor of finite floating-point numbers is selected", a->verb,
                    input_names(in, names, sizeof names));
    target_list_clear(&m.targets);
    free(m.files);
    return code;
}
