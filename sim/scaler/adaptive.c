/* adaptive.c -- see adaptive.h. */
#include "adaptive.h"

#include "../array/need.h"
#include "../input/steps.h"
#include "run.h"
#include "../text/screen.h"

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
    if (scaler_run_recorded_scale(&flags, p->t, &p->divisor, &error))
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

int scaler_adaptive_trace(adaptive_run *r, input *in)
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

void scaler_adaptive_clear(adaptive_run *r)
{
    free(r->rows);
    r->rows = NULL;
    r->count = 0;
}

/* ---- the report ---- */

/* The end of a long name, which tells layers apart; a name is UTF-8. */
static void name_end(char out[LAYER_WIDTH + 1], const char *name)
{
    const size_t n = strlen(name);
    if (n > LAYER_WIDTH) {
        name += n - (LAYER_WIDTH - 3);
        while (((unsigned char)*name & 0xc0) == 0x80)
            name++;
        out = stpcpy(out, "...");
    }
    strcpy(out, name);
}

#define AT(way) ((way) * sizeof(uint64_t))
static const record_field ways_fields[] = {
    FIELD(COUNT, "unscaled", IN_ALL, AT(ADAPTIVE_NONE), "Without a scale."),
    FIELD(COUNT, "product", IN_ALL, AT(ADAPTIVE_OWN), "Times the product of the layers' scales."),
    FIELD(COUNT, "global", IN_ALL, AT(ADAPTIVE_GLOBAL), "Times the global scale."),
    {0}};
#undef AT
static const record_kind ways_record = {"ways", "Elements, by what the gradients are multiplied by.",
                                        ADAPTIVE_WAYS * sizeof(uint64_t), ways_fields};

/* A layer; behind its numbers, what only people see. */
typedef struct layer_cells {
    adaptive_row row;
    char rank[24], layer[LAYER_WIDTH + 1], scale[32], product[32], lost[ADAPTIVE_WAYS][32];
    size_t has_weight;
} layer_cells;

#define AT(member) offsetof(layer_cells, row.member)
#define CELL(member) offsetof(layer_cells, member)
#define LOST "Elements that are not 0 and become 0 in fp16."
#define OVERFLOWED "Elements that are finite and overflow in fp16."
#define SCALE "The scale of the layer, a power of two up to 16."
#define PRODUCT "The product, up to 1024, of the scales up to this layer, in backward order."
static const record_field row_fields[] = {
    FIELD(STEP, "step", IN_ALL | FIELD_NULL, AT(step), "Null: the file does not tell.", .title = "<step"),
    FIELD(STEP, "rank", IN_ALL | FIELD_NULL, AT(rank), "Null: the file does not tell."),
    FIELD(CHARS, NULL, 0, CELL(rank), NULL, .title = ">rank"),
    FIELD(CHARS, "layer", IN_ALL, AT(layer), NULL),
    FIELD(CHARS, NULL, 0, CELL(layer), NULL, .title = "<layer"),
    FIELD(REAL, "fan_in", IN_TREE | FIELD_IF | FIELD_NULL, AT(fan_in),
          "Products of a sum; null: a layer without a weight.", .of = CELL(has_weight)),
    FIELD(REAL, "fan_in", IN_CSV, AT(fan_in), NULL),
    FIELD(REAL, "scale", IN_ALL, AT(scale), SCALE),
    FIELD(CHARS, NULL, 0, CELL(scale), SCALE, .title = ">scale"),
    FIELD(REAL, "product", IN_ALL, AT(product), PRODUCT),
    FIELD(CHARS, NULL, 0, CELL(product), PRODUCT, .title = ">product"),
    FIELD(COUNT, "elements", IN_ALL, AT(elements), "Elements of the gradient."),
    FIELD(COUNT, "not_finite", IN_ALL, AT(not_finite), "Elements that are Inf or NaN as recorded."),
    FIELD(RECORD, "lost", IN_ALL, AT(lost), LOST, .record = &ways_record),
    FIELD(CHARS, NULL, 0, CELL(lost[ADAPTIVE_NONE]), LOST, .title = ">lost at 1"),
    FIELD(CHARS, NULL, 0, CELL(lost[ADAPTIVE_OWN]), NULL, .title = ">at product"),
    FIELD(CHARS, NULL, 0, CELL(lost[ADAPTIVE_GLOBAL]), NULL, .title = ">at 2^16"),
    FIELD(RECORD, "overflowed", IN_ALL, AT(overflowed), OVERFLOWED, .record = &ways_record),
    FIELD(COUNT, NULL, FIELD_BLANK, AT(overflowed[ADAPTIVE_GLOBAL]), OVERFLOWED, .title = ">over 2^16"),
    {0}};
#undef AT
#undef CELL
static const record_kind row_record = {"layer", "The gradient of a layer's output.", sizeof(layer_cells), row_fields};

typedef struct adaptive_document {
    const char *const *inputs;
    size_t count;
    const char *format;
    double global;
    int failed;
} adaptive_document;

#define AT(member) offsetof(adaptive_document, member)
static const record_field config_fields[] = {
    FIELD(TEXTS, "inputs", IN_JSON, AT(inputs), "Files.", .of = AT(count)),
    FIELD(TEXT, "format", IN_JSON, AT(format), "What gradients are rounded to."),
    FIELD(REAL, "global_scale", IN_JSON, AT(global), "The scale of all layers that is compared with."),
    FIELD(INTEGER, "failed_files", IN_JSON, AT(failed), NULL),
    {0}};
#undef AT
static const record_kind config_record = {"config", NULL, sizeof(adaptive_document), config_fields};

static const record_field document_fields[] = {
    FIELD(RECORD, "config", IN_JSON, 0, NULL, .record = &config_record),
    FIELD(LIST, "layers", IN_JSON | FIELD_STREAM, 0, "Layers in backward order, file by file.", .record = &row_record),
    {0}};
static const record_kind document_record = {"document", NULL, sizeof(adaptive_document), document_fields};
const report_kind scaler_adaptive_kind = {
    "mpsim.adaptive/1", "mpsim scaler --adaptive: adaptive layer-wise loss scaling",
    "A scale for each layer, and what of its gradient is lost in fp16 without a scale. $defs/line is a line of --ndjson, which "
    "names no schema.",
    &document_record};

static layer_cells cells_of(const adaptive_row *row)
{
    layer_cells c = {.row = *row, .has_weight = row->fan_in > 0};
    if (row->rank > 0)
        snprintf(c.rank, sizeof c.rank, "%" PRId64, row->rank);
    name_end(c.layer, row->layer);
    text_scale(c.scale, row->scale);
    text_scale(c.product, row->product);
    for (int k = 0; k < ADAPTIVE_WAYS; k++)
        text_share(c.lost[k], row->lost[k], row->elements);
    return c;
}

/* Sums over all layers. */
static adaptive_row sum_of(const adaptive_run *r)
{
    adaptive_row sum = {.elements = 0};
    for (size_t i = 0; i < r->count; i++) {
        sum.elements += r->rows[i].elements;
        for (int k = 0; k < ADAPTIVE_WAYS; k++) {
            sum.lost[k] += r->rows[i].lost[k];
            sum.overflowed[k] += r->rows[i].overflowed[k];
        }
    }
    return sum;
}

static void print_head(FILE *to, const adaptive_run *r)
{
    screen_text(to, screen_columns(to),
                "Adaptive layer-wise loss scales (Zhao et al., 2020), layers in backward order; scales "
                "of at most\n16, product at most 1024; lost: share of a layer's gradient that is not 0 "
                "and becomes 0 in fp16;\nover 2^16: elements that overflow at that scale\n");
    if (r->unscaled)
        fputs("Gradients recorded scaled were divided by their mpsim.loss_scale.\n", to);
    fputc('\n', to);
}

static void print_sums(FILE *to, const adaptive_run *r)
{
    const adaptive_row s = sum_of(r);
    char a[32], b[32], c[32];
    fprintf(to, "\nOf %s elements lost: %s", text_count(a, s.elements),
            text_share(b, s.lost[ADAPTIVE_NONE], s.elements));
    fprintf(to, " without a scale, %s with the products, %s at 2^16\n", text_share(a, s.lost[ADAPTIVE_OWN], s.elements),
            text_share(b, s.lost[ADAPTIVE_GLOBAL], s.elements));
    fprintf(to, "Overflowed: %s, %s and %s\n", text_count(a, s.overflowed[ADAPTIVE_NONE]),
            text_count(b, s.overflowed[ADAPTIVE_OWN]), text_count(c, s.overflowed[ADAPTIVE_GLOBAL]));
}

void scaler_adaptive_report(FILE *to, const adaptive_run *r, const input *in, report_style style)
{
    const adaptive_document d = {(const char *const *)in->tree.paths, in->tree.count, "fp16", global_scale, in->failed};
    record_writer w = {.kind = &scaler_adaptive_kind, .to = to, .style = style, .document = &d};
    if (style == REPORT_TEXT)
        print_head(to, r);
    record_begin(&w);
    for (size_t i = 0; i < r->count; i++) {
        const layer_cells row = cells_of(&r->rows[i]);
        record_row(&w, &row);
    }
    table_print(w.rows, to, "  ");
    record_end(&w);
    if (style == REPORT_TEXT)
        print_sums(to, r);
}
