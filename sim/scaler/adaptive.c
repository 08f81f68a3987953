/* adaptive.c -- see adaptive.h. */
#include "adaptive.h"

#include "../array/need.h"
#include "../cli/steps.h"
#include "run.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BLOCK = 1 << 15, LAYER_WIDTH = 24 };
static const double global_scale = 65536;

/* A file on its way through the layers. */
typedef struct pass {
    adaptive_run *run;
    trace *t;
    input_step said;
    double divisor; /* what the gradients were recorded times */
    double *x, *y;  /* BLOCK numbers each                     */
} pass;

/* ---- layers ---- */

static const char *layer_of(const trace_tensor *tensor)
{
    return tensor->kind && strcmp(tensor->kind, "agrad") == 0 ? tensor->fqn : NULL;
}

/* The name without the ".N" of a module that is called several times. */
static size_t base_length(const char *layer)
{
    const char *dot = strrchr(layer, '.');
    return dot && dot[1] && strspn(dot + 1, "0123456789") == strlen(dot + 1) ? (size_t)(dot - layer) : strlen(layer);
}

/* Whether a tensor is the weight of a layer whose name has `length` characters. */
static int is_weight_of(const trace_tensor *tensor, const char *layer, size_t length)
{
    return tensor->kind && strcmp(tensor->kind, "weight") == 0 && strncmp(tensor->fqn, layer, length) == 0 &&
           strcmp(tensor->fqn + length, ".weight") == 0;
}

static size_t find_weight(const trace *t, const char *layer, size_t length)
{
    size_t i = 0;
    while (i < trace_count(t) && !is_weight_of(trace_at(t, i), layer, length))
        i++;
    return i;
}

/* The weight of a layer, or NULL; *at is its place. */
static const trace_tensor *weight_of(const trace *t, const char *layer, size_t *at)
{
    *at = find_weight(t, layer, strlen(layer));
    if (*at == trace_count(t))
        *at = find_weight(t, layer, base_length(layer));
    const trace_tensor *w = *at < trace_count(t) ? trace_at(t, *at) : NULL;
    return w && w->format && w->rank >= 2 && w->count ? w : NULL;
}

/* Where a layer stands in "a,b,c"; -1. */
static int64_t place_in(const char *order, const char *layer, size_t length)
{
    int64_t place = 0;
    for (const char *p = order; *p; place++) {
        const size_t n = strcspn(p, ",");
        if (n == length && strncmp(p, layer, n) == 0)
            return place;
        p += n + (p[n] == ',');
    }
    return -1;
}

typedef struct turn {
    int64_t place; /* in the forward order; -1: not named */
    size_t tensor;
} turn;

static int by_turn(const void *a, const void *b)
{
    const turn *x = a, *y = b;
    if (x->place != y->place)
        return x->place > y->place ? -1 : 1;
    return (x->tensor > y->tensor) - (x->tensor < y->tensor);
}

/* The agrad tensors of a file in backward order. */
static turn *find_turns(const input *in, const trace *t, size_t *n)
{
    const char *order = trace_metadata(t, "mpsim.order");
    turn *turns = need_memory(trace_count(t), sizeof *turns);
    *n = 0;
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *tensor = trace_at(t, i);
        const char *layer = layer_of(tensor);
        if (!layer || !tensor->format || !input_selects(in, tensor))
            continue;
        int64_t place = (int64_t)i;
        if (order) {
            place = place_in(order, layer, strlen(layer));
            if (place < 0)
                place = place_in(order, layer, base_length(layer));
        }
        turns[(*n)++] = (turn){place, i};
    }
    if (*n)
        qsort(turns, *n, sizeof *turns, by_turn);
    return turns;
}

/* ---- statistics ---- */

static mpsim_moments moments_of(const mpsim_stats *s)
{
    const double n = (double)(s->count - s->nan - s->inf);
    const double mean = mpsim_stats_mean(s), l2 = mpsim_stats_l2(s);
    const double variance = n > 0 ? l2 * l2 / n - mean * mean : 0;
    return (mpsim_moments){mean, s->nan + s->inf ? (double)NAN : sqrt(fmax(variance, 0)), s->amax};
}

/* The next block of the selected tensor, times factor over divisor; fewer than BLOCK at its end. */
static int read_block(pass *p, double divisor, double factor, size_t *n, trace_error *error)
{
    if (trace_read(p->t, p->x, BLOCK, n, error))
        return -1;
    for (size_t i = 0; i < *n && (divisor != 1 || factor != 1); i++)
        p->x[i] = p->x[i] / divisor * factor;
    return 0;
}

static int weight_moments(pass *p, size_t at, mpsim_moments *m, trace_error *error)
{
    mpsim_stats s;
    size_t n;
    mpsim_stats_init(&s);
    if (trace_select(p->t, at, error))
        return -1;
    do {
        if (read_block(p, 1, 1, &n, error))
            return -1;
        mpsim_stats_add(&s, p->x, n);
    } while (n == BLOCK);
    *m = moments_of(&s);
    return 0;
}

/* Of the gradient times the scales so far; with `logs` of ln |g| over what is not zero, but for
 * amax. */
static int gradient_moments(pass *p, size_t at, double previous, int logs, mpsim_moments *m, adaptive_row *row,
                            trace_error *error)
{
    mpsim_stats s, l;
    size_t n;
    mpsim_stats_init(&s);
    mpsim_stats_init(&l);
    if (trace_select(p->t, at, error))
        return -1;
    do {
        size_t k = 0;
        if (read_block(p, p->divisor, previous, &n, error))
            return -1;
        mpsim_stats_add(&s, p->x, n);
        for (size_t i = 0; logs && i < n; i++)
            if (p->x[i] != 0)
                p->y[k++] = log(fabs(p->x[i]));
        mpsim_stats_add(&l, p->y, k);
    } while (n == BLOCK);
    *m = moments_of(logs ? &l : &s);
    m->amax = s.amax;
    row->elements = s.count;
    row->not_finite = s.nan + s.inf;
    return 0;
}

/* What becomes of the gradient in fp16, at each of the scales. */
static int count_losses(pass *p, size_t at, adaptive_row *row, trace_error *error)
{
    const double scales[ADAPTIVE_WAYS] = {1, row->product, global_scale};
    mpsim_format fp16;
    size_t n;
    (void)mpsim_format_parse(&fp16, "fp16"); /* a name of the table */
    if (trace_select(p->t, at, error))
        return -1;
    do {
        if (read_block(p, p->divisor, 1, &n, error))
            return -1;
        for (int k = 0; k < ADAPTIVE_WAYS; k++) {
            mpsim_counts c = {0, 0, 0, 0, 0};
            mpsim_rounding rounding;
            mpsim_rounding_init(&rounding, MPSIM_ROUND_NEAREST_EVEN);
            rounding.scale = scales[k];
            /* format and rounding are valid */
            (void)mpsim_round_array_f64(&fp16, &rounding, NULL, p->y, p->x, n, &c);
            row->lost[k] += c.underflow;
            row->overflowed[k] += c.overflow;
        }
    } while (n == BLOCK);
    return 0;
}

/* ---- files ---- */

static void add_row(adaptive_run *r, const adaptive_row *row)
{
    need_room(&r->rows, r->count, sizeof *r->rows);
    r->rows[r->count++] = *row;
}

static int do_layer(pass *p, size_t at, double *product, adaptive_row *row, trace_error *error)
{
    mpsim_adaptive_config c;
    mpsim_moments g, w = {0, 0, 0};
    size_t where;
    const char *layer = layer_of(trace_at(p->t, at));
    const trace_tensor *weight = weight_of(p->t, layer, &where);
    *row = (adaptive_row){.step = p->said.step, .rank = p->said.rank};
    escape_text(row->layer, sizeof row->layer, layer);
    mpsim_adaptive_init(&c);
    if (weight && weight_moments(p, where, &w, error))
        return -1;
    if (weight)
        row->fan_in = weight->shape[1] ? (double)(weight->count / weight->shape[1]) : 0;
    if (gradient_moments(p, at, *product, !weight, &g, row, error))
        return -1;
    row->scale = mpsim_adaptive_scale(&c, &g, weight ? &w : NULL, weight ? row->fan_in : 1, *product);
    row->product = *product *= row->scale;
    return count_losses(p, at, row, error);
}

static int do_file(pass *p, input *in)
{
    size_t n;
    double product = 1;
    int code = 0;
    trace_error error;
    scalerrun flags = {.unscaled = 0};
    if (scalerrun_recorded_scale(&flags, p->t, &p->divisor, &error))
        return input_failed(in, &error);
    p->run->unscaled |= flags.unscaled;
    turn *turns = find_turns(in, p->t, &n);
    for (size_t i = 0; i < n && !code; i++) {
        adaptive_row row;
        if (do_layer(p, turns[i].tensor, &product, &row, &error)) {
            code = input_failed(in, &error);
            break;
        }
        add_row(p->run, &row);
    }
    free(turns);
    return code;
}

int adaptive_trace(adaptive_run *r, input *in)
{
    input_step *said;
    char names[600];
    pass p = {.run = r};
    in->needs_kinds = 1;
    int code = input_order_steps(in, &said);
    if (code)
        return code;
    p.x = need_memory(BLOCK, sizeof *p.x);
    p.y = need_memory(BLOCK, sizeof *p.y);
    for (size_t i = 0; i < in->tree.count && !code; i++) {
        trace_error error;
        p.t = input_trace_open(in, in->tree.paths[i], &error);
        p.said = said[i];
        code = p.t ? do_file(&p, in) : input_failed(in, &error);
        trace_close(p.t);
    }
    free(p.x);
    free(p.y);
    free(said);
    return code || r->count
               ? code
               : fail(in->failed ? EXIT_PARTIAL : EXIT_DATA, "scaler: --adaptive: %s: no agrad tensor is selected",
                      input_names(in, names, sizeof names));
}

void adaptive_clear(adaptive_run *r)
{
    free(r->rows);
    r->rows = NULL;
    r->count = 0;
}

/* ---- the report ---- */

/* The end of a long name, which tells layers apart; a name is UTF-8. */
static const char *name_end(char out[LAYER_WIDTH + 1], const char *name)
{
    size_t n = strlen(name);
    if (n <= LAYER_WIDTH)
        return name;
    name += n - (LAYER_WIDTH - 3);
    while (((unsigned char)*name & 0xc0) == 0x80)
        name++;
    snprintf(out, LAYER_WIDTH + 1, "...%s", name);
    return out;
}

static void report_text(FILE *to, const adaptive_run *r)
{
    uint64_t elements = 0, lost[ADAPTIVE_WAYS] = {0}, over[ADAPTIVE_WAYS] = {0};
    char a[32], b[32], c[32];
    table *all = table_new("<step|>rank|<layer|>scale|>product|>lost at 1|>at product|>at 2^16|>over 2^16");
    fputs("Adaptive layer-wise loss scales (Zhao et al., 2020), layers in backward order; scales "
          "of at most\n16, product at most 1024; lost: share of a layer's gradient that is not 0 "
          "and becomes 0 in fp16;\nover 2^16: elements that overflow at that scale\n",
          to);
    if (r->unscaled)
        fputs("Gradients recorded scaled were divided by their mpsim.loss_scale.\n", to);
    for (size_t i = 0; i < r->count; i++) {
        const adaptive_row *row = &r->rows[i];
        char name[LAYER_WIDTH + 1];
        row->step < 0 ? table_cell(all, "%s", "") : table_cell(all, "%" PRId64, row->step);
        row->rank <= 0 ? table_cell(all, "%s", "") : table_cell(all, "%" PRId64, row->rank);
        table_cell(all, "%s", name_end(name, row->layer));
        table_cell(all, "%s", text_scale(a, row->scale));
        table_cell(all, "%s", text_scale(a, row->product));
        for (int k = 0; k < ADAPTIVE_WAYS; k++)
            table_cell(all, "%s", text_share(a, row->lost[k], row->elements));
        const uint64_t most = row->overflowed[ADAPTIVE_GLOBAL];
        table_cell(all, "%s", most ? text_count(a, most) : "");
        elements += row->elements;
        for (int k = 0; k < ADAPTIVE_WAYS; k++) {
            lost[k] += row->lost[k];
            over[k] += row->overflowed[k];
        }
    }
    fputc('\n', to);
    table_print(all, to, "  ");
    table_free(all);
    fprintf(to, "\nOf %s elements lost: %s", text_count(a, elements), text_share(b, lost[ADAPTIVE_NONE], elements));
    fprintf(to, " without a scale, %s with the products, %s at 2^16\n", text_share(a, lost[ADAPTIVE_OWN], elements),
            text_share(b, lost[ADAPTIVE_GLOBAL], elements));
    fprintf(to, "Overflowed: %s, %s and %s\n", text_count(a, over[ADAPTIVE_NONE]), text_count(b, over[ADAPTIVE_OWN]),
            text_count(c, over[ADAPTIVE_GLOBAL]));
}

static void report_csv(FILE *to, const adaptive_run *r)
{
    fputs("step,rank,layer,fan_in,scale,product,elements,not_finite,lost_unscaled,lost_product,"
          "lost_global,overflowed_unscaled,overflowed_product,overflowed_global\n",
          to);
    for (size_t i = 0; i < r->count; i++) {
        const adaptive_row *row = &r->rows[i];
        if (row->step >= 0)
            fprintf(to, "%" PRId64, row->step);
        fputc(',', to);
        if (row->rank >= 0)
            fprintf(to, "%" PRId64, row->rank);
        fputc(',', to);
        csv_text(to, row->layer);
        fputc(',', to);
        csv_double(to, row->fan_in);
        fputc(',', to);
        csv_double(to, row->scale);
        fputc(',', to);
        csv_double(to, row->product);
        fprintf(to, ",%" PRIu64 ",%" PRIu64, row->elements, row->not_finite);
        for (int k = 0; k < ADAPTIVE_WAYS; k++)
            fprintf(to, ",%" PRIu64, row->lost[k]);
        for (int k = 0; k < ADAPTIVE_WAYS; k++)
            fprintf(to, ",%" PRIu64, row->overflowed[k]);
        fputc('\n', to);
    }
}

static json_t *counts_json(const uint64_t n[ADAPTIVE_WAYS])
{
    json_t *v = json_object();
    json_object_set_new(v, "unscaled", json_of_count(n[ADAPTIVE_NONE]));
    json_object_set_new(v, "product", json_of_count(n[ADAPTIVE_OWN]));
    json_object_set_new(v, "global", json_of_count(n[ADAPTIVE_GLOBAL]));
    return v;
}

static json_t *row_json(const adaptive_row *row)
{
    json_t *v = json_object();
    json_object_set_new(v, "step", row->step < 0 ? json_null() : json_integer(row->step));
    json_object_set_new(v, "rank", row->rank < 0 ? json_null() : json_integer(row->rank));
    json_object_set_new(v, "layer", json_string(row->layer));
    json_object_set_new(v, "fan_in", row->fan_in > 0 ? json_of_double(row->fan_in) : json_null());
    json_object_set_new(v, "scale", json_of_double(row->scale));
    json_object_set_new(v, "product", json_of_double(row->product));
    json_object_set_new(v, "elements", json_of_count(row->elements));
    json_object_set_new(v, "not_finite", json_of_count(row->not_finite));
    json_object_set_new(v, "lost", counts_json(row->lost));
    json_object_set_new(v, "overflowed", counts_json(row->overflowed));
    return v;
}

static void report_json(FILE *to, const adaptive_run *r, const input *in)
{
    json_t *v = json_report("mpsim.adaptive/1"), *config = json_object(), *inputs = json_array(),
           *layers = json_array();
    for (size_t i = 0; i < in->tree.count; i++)
        json_array_append_new(inputs, json_of_path(in->tree.paths[i]));
    for (size_t i = 0; i < r->count; i++)
        json_array_append_new(layers, row_json(&r->rows[i]));
    json_object_set_new(config, "inputs", inputs);
    json_object_set_new(config, "format", json_string("fp16"));
    json_object_set_new(config, "global_scale", json_of_double(global_scale));
    json_object_set_new(config, "failed_files", json_integer(in->failed));
    json_object_set_new(v, "config", config);
    json_object_set_new(v, "layers", layers);
    json_write(to, v);
    fputc('\n', to);
}

void adaptive_report(FILE *to, const adaptive_run *r, const input *in, report_style style)
{
    if (style == REPORT_JSON)
        report_json(to, r, in);
    else
        (style == REPORT_CSV ? report_csv : report_text)(to, r);
}
