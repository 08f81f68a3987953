/* tensor.c -- see tensor.h.
 *
 * Every thread has a summary and a buffer that stays in its cache. Of a large tensor threads take a piece
 * each, and their summaries are merged; of small ones each takes one. Since summaries merge exactly, neither can
 * be seen in the result. */
#include "tensor.h"

#include "../array/array.h"
#include "../operand/stream.h"
#include "../pass/pass.h"
#include "../trace/roundoff.h"
#include "stat.h"

#include <stdatomic.h>
#include <stdlib.h>

enum {
    PIECE = 512 << 10,       /* bytes that a thread reads at once              */
    LARGE = 8 << 20,         /* bytes: from here a tensor is cut up            */
    BATCH_BYTES = 256 << 20, /* of the tensors of a batch, in their files      */
    BATCH_MEMORY = 2 << 20,  /* of what is known of them                       */
    BATCH_MOST = 256
};

typedef struct lane {
    mpsim_summary *summary;
    unsigned char *codes;
    size_t held;       /* elements in it, of a tensor that is read in order */
    blocklane *blocks; /* NULL without recipes                              */
    int used;          /* of the tensor at hand                             */
} lane;

typedef struct item {
    tensorstat_piece of;              /* of.i: of a file its number */
    int is_file, alone, failed, left; /* left: nothing of it was read, since the work was to end */
    group g;
    trace_error error;
} item;

struct tensorstat {
    const target_list *targets;
    uint64_t seed;
    unsigned want;
    const tensorstat_told *told;
    void *context;
    lane *lanes;
    int n_lanes, made; /* made: items with a group */
    item *items;
    pass_queue queue;
    const atomic_int *asked; /* or NULL */
    mpsim_count *count;      /* of arrays whose elements are elsewhere; or NULL */
    void *count_context;
};

/* A tensor, or a piece of one, on its way: on one lane, or on all. */
typedef struct work {
    const tensorstat *s;
    item *it;
    lane *lanes;
    int n_lanes;
    uint64_t stream, first; /* first: of the elements that the lanes hold, of a tensor that is read in order */
    size_t piece;           /* elements */
    blockrun *run;          /* under recipes, and its phase */
    int phase;
    atomic_ullong counted; /* elements */
} work;

/* ---- work that is to end ---- */

void stat_tensorstat_ask(tensorstat *s, const atomic_int *asked)
{
    s->asked = asked;
}

void stat_tensorstat_count(tensorstat *s, mpsim_count *count, void *context)
{
    s->count = count;
    s->count_context = context;
}

static int is_asked(const tensorstat *s)
{
    return s->asked && *s->asked;
}

/* So many elements of it were read. */
static void cut(const tensorstat *s, item *it, uint64_t counted)
{
    if (!is_asked(s) || counted == it->of.n)
        return;
    it->left = counted == 0;
    it->of.n = counted;
}

/* ---- a tensor ---- */

/* A tensor whose casts are known. */
typedef mpsim_status with_casts(void *context, const mpsim_cast *casts, size_t n, unsigned want);

/* The casts of a tensor: the targets, or the formats with the scale 1. */
static mpsim_status give_casts(const tensorstat *s, const item *it, with_casts *to, void *context)
{
    enum { FEW = 64 };
    mpsim_cast few[FEW], *casts = few;
    const mpsim_format *source = trace_at(it->of.t, it->of.i)->format;
    const size_t n = it->of.scaled ? s->targets->count : s->targets->formats;
    if (n > FEW)
        casts = array_zeros(n, sizeof *casts);
    if (!casts)
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < n; i++) {
        const target *t = it->of.scaled ? &s->targets->items[i] : target_of_format(s->targets, i);
        casts[i] = (mpsim_cast){.format = &t->format, .rounding = target_rounding(t, source)};
        casts[i].rounding.scale = it->of.scaled ? t->rounding.scale : 1;
    }
    const mpsim_status status = to(context, casts, n, s->want);
    if (casts != few)
        free(casts);
    return status;
}

static mpsim_status begin_summary(void *context, const mpsim_cast *casts, size_t n, unsigned want)
{
    return mpsim_summary_begin(context, casts, n, want);
}

static mpsim_status begin(const tensorstat *s, mpsim_summary *summary, const item *it)
{
    return give_casts(s, it, begin_summary, summary);
}

static void begin_group(item *it)
{
    stat_group_reset(&it->g);
    it->g.tensors = 1;
    it->g.scaled = it->of.scaled != 0;
}

static int finish(mpsim_summary *summary, item *it)
{
    group *g = &it->g;
    size_t n;
    begin_group(it);
    if (mpsim_summary_read(summary, &g->stats, g->histogram, stat_group_own(g, &n)) != MPSIM_OK)
        return trace_no_memory(it->of.t, &it->error);
    return 0;
}

/* ---- pieces ---- */

/* A lane of the work, for which it has begun. */
static lane *lane_of(work *w, int k, trace_error *error)
{
    lane *l = &w->lanes[k];
    if (l->used)
        return l;
    if (begin(w->s, l->summary, w->it) != MPSIM_OK) {
        trace_no_memory(w->it->of.t, error);
        return NULL;
    }
    l->used = 1;
    if (l->blocks)
        stat_blocklane_begin(l->blocks);
    return l;
}

/* Elements from `first` on, n of them, in the buffer of the lane. */
static int account(work *w, const lane *l, uint64_t first, size_t n, trace_error *error)
{
    const trace *t = w->it->of.t;
    const mpsim_rng rng = {w->s->seed, w->stream, first};
    /* formats and roundings were checked when the targets were made */
    if (mpsim_summary_add_codes(l->summary, trace_at(t, w->it->of.i)->format, &rng, l->codes, n) != MPSIM_OK)
        return trace_no_memory(t, error);
    atomic_fetch_add(&w->counted, n);
    host_worked(n * mpsim_format_code_bytes(trace_at(t, w->it->of.i)->format));
    return 0;
}

static int run_piece(void *context, uint64_t k, int lane_number, trace_error *error)
{
    work *w = context;
    const tensorstat_piece *of = &w->it->of;
    const uint64_t first = k * w->piece, left = of->n - first;
    const size_t n = left < w->piece ? (size_t)left : w->piece;
    const lane *l = lane_of(w, lane_number, error);
    return !l || trace_codes(of->t, of->i, of->first + first, l->codes, n, error) ||
                   account(w, l, of->first + first, n, error)
               ? -1
               : 0;
}

static int run_tile(void *context, uint64_t k, int lane_number, trace_error *error)
{
    work *w = context;
    uint64_t n = 0;
    const lane *l = lane_of(w, lane_number, error);
    if (!l ||
        stat_blockrun_tile(w->run, w->phase, k, l->blocks, &(blocktile_how){l->summary, l->codes, PIECE}, &n, error))
        return -1;
    atomic_fetch_add(&w->counted, n);
    host_worked(n * mpsim_format_code_bytes(trace_at(w->it->of.t, w->it->of.i)->format));
    return 0;
}

/* What lane k holds. */
static int run_held(void *context, uint64_t k, int lane_number, trace_error *error)
{
    work *w = context;
    uint64_t first = w->first;
    (void)lane_number; /* threads have nothing else here */
    for (uint64_t i = 0; i < k; i++)
        first += w->lanes[i].held;
    const lane *l = lane_of(w, (int)k, error);
    return l ? account(w, l, first, l->held, error) : -1;
}

/* ---- a tensor ---- */

/* A member of an archive: one thread unpacks, all account. */
static int run_in_order(work *w)
{
    trace *t = w->it->of.t;
    trace_error *error = &w->it->error;
    if (trace_select(t, w->it->of.i, error))
        return -1;
    for (int used = 1; used && !is_asked(w->s); w->first = atomic_load(&w->counted)) {
        for (used = 0; used < w->n_lanes; used++) {
            lane *l = &w->lanes[used];
            if (trace_read_codes(t, l->codes, w->piece, &l->held, error))
                return -1;
            if (l->held == 0)
                break;
        }
        if (pass_pieces((uint64_t)used, w->n_lanes, run_held, w, NULL, error))
            return -1;
    }
    return 0;
}

static int run_blocks(work *w)
{
    item *it = w->it;
    const blockrun_of of = {it->of.t, it->of.i, it->of.first, it->of.n, w->s->seed, w->stream};
    int code = 0;
    if (!(w->run = stat_blockrun_new(&of, w->s->targets, w->s->asked, &it->error)))
        return -1;
    const size_t width = mpsim_format_code_bytes(trace_at(it->of.t, it->of.i)->format);
    host_again((uint64_t)(stat_blockrun_phases(w->run) - 1) * it->of.n * width);
    for (; w->phase < stat_blockrun_phases(w->run) && !code; w->phase++)
        code = pass_pieces(stat_blockrun_tiles(w->run, w->phase), w->n_lanes, run_tile, w, w->s->asked, &it->error);
    return code;
}

/* Where its elements are. */
static mpsim_status count_there(void *context, const mpsim_cast *casts, size_t n, unsigned want)
{
    const work *w = context;
    group *g = &w->it->g;
    size_t own;
    mpsim_cast_stats *results = stat_group_own(g, &own);
    return w->s->count(w->s->count_context, trace_array_number(w->it->of.t, w->it->of.i), casts, n, want, &g->stats,
                       g->histogram, results);
}

static int run_counted(work *w)
{
    begin_group(w->it);
    const mpsim_status status = trace_at(w->it->of.t, w->it->of.i)->quantised ? MPSIM_EUNAVAILABLE
                                                                              : give_casts(w->s, w->it, count_there, w);
    return status == MPSIM_OK ? 0
           : status == MPSIM_ENOMEM
               ? trace_no_memory(w->it->of.t, &w->it->error)
               : trace_error_say(&w->it->error, EXIT_IO, "counting: %s", mpsim_status_string(status));
}

static int read_all(work *w)
{
    const item *it = w->it;
    if (w->lanes[0].blocks)
        return run_blocks(w);
    if (!trace_is_flat(it->of.t))
        return run_in_order(w);
    return pass_pieces((it->of.n + w->piece - 1) / w->piece, w->n_lanes, run_piece, w, w->s->asked, &w->it->error);
}

/* What the lanes have found, in the first of them. */
static int merge(work *w)
{
    item *it = w->it;
    if (!lane_of(w, 0, &it->error)) /* also of a tensor without elements */
        return -1;
    for (int i = 1; i < w->n_lanes; i++)
        if (w->lanes[i].used && mpsim_summary_merge(w->lanes[0].summary, w->lanes[i].summary) != MPSIM_OK)
            return trace_no_memory(it->of.t, &it->error);
    return finish(w->lanes[0].summary, it);
}

/* Of zeros that stand for round-off nothing is known. */
static void leave_out_roundoff(item *it)
{
    group *g = &it->g;
    const uint64_t n = trace_roundoff(it->of.t, it->of.i, it->of.first, it->of.n);
    g->roundoff = n;
    g->stats.count -= n;
    g->stats.zero -= n;
    if (g->histogram)
        g->histogram->zero -= n;
    size_t casts;
    mpsim_cast_stats *own = stat_group_own(g, &casts);
    for (size_t i = 0; i < casts; i++)
        own[i].compared -= own[i].compared < n ? own[i].compared : n; /* 0: it is not counted */
    for (size_t i = 0; i < g->n_blocks; i++) {
        g->blocks[i].elements -= g->blocks[i].elements ? n : 0;
        mpsim_cast_stats *c = &g->blocks[i].stats.casts; /* what is in a block with NaN was not compared */
        c->compared -= c->compared < n ? c->compared : n;
    }
}

static int run_tensor(work *w)
{
    item *it = w->it;
    if (read_all(w))
        return -1;
    const uint64_t counted = atomic_load(&w->counted);
    cut(w->s, it, !w->run || stat_blockrun_whole(w->run) || counted == it->of.n ? counted : 0);
    if (merge(w))
        return -1;
    for (int i = 0; i < w->n_lanes && w->run; i++)
        if (w->lanes[i].used)
            stat_blocklane_take(w->lanes[i].blocks, &it->g);
    if (w->run)
        stat_blockrun_end(w->run, &it->g, it->of.n);
    leave_out_roundoff(it);
    return 0;
}

static void run_item(void *context, int k, int on)
{
    const tensorstat *s = context;
    item *it = &s->items[k];
    const mpsim_format *f = it->is_file ? NULL : trace_at(it->of.t, it->of.i)->format;
    if (!f)
        return;
    work w = {.s = s,
              .it = it,
              .lanes = s->lanes + (it->alone ? 0 : on),
              .n_lanes = it->alone ? s->n_lanes : 1,
              .stream = tensor_stream(it->of.t, trace_at(it->of.t, it->of.i)),
              .piece = PIECE / mpsim_format_code_bytes(f)};
    for (int i = 0; i < w.n_lanes; i++)
        w.lanes[i].used = 0;
    it->failed = s->count ? run_counted(&w) : run_tensor(&w);
    stat_blockrun_free(w.run);
}

/* ---- what is told ---- */

static int tell(void *context, int k, int stopped)
{
    const tensorstat *s = context;
    const item *it = &s->items[k];
    const trace_error *error = it->failed ? &it->error : NULL;
    if (it->left || stopped)
        return 0;
    if (it->is_file)
        return s->told->file(s->context, it->of.t, it->of.i, error);
    return s->told->tensor(s->context, &it->of, error || !trace_at(it->of.t, it->of.i)->format ? NULL : &it->g, error);
}

/* ---- memory ---- */

static size_t group_bytes(const target_list *targets, int histogram)
{
    return sizeof(item) + targets->count * sizeof(mpsim_cast_stats) + targets->blocks.count * sizeof(block_sums) +
           (histogram ? sizeof(mpsim_histogram) : 0);
}

static int make_lane(lane *l, const target_list *targets)
{
    const int blocks = targets->blocks.count > 0;
    l->summary = mpsim_summary_new();
    l->codes = malloc(PIECE);
    l->blocks = blocks ? stat_blocklane_new(targets) : NULL;
    return l->summary && l->codes && (l->blocks || !blocks) ? 0 : -1;
}

static int make_all(tensorstat *s, const target_list *targets, int threads)
{
    s->lanes = array_zeros((uint64_t)threads, sizeof *s->lanes);
    s->items = array_zeros((uint64_t)s->queue.room, sizeof *s->items);
    while (s->lanes && s->items && s->n_lanes < threads)
        if (make_lane(&s->lanes[s->n_lanes++], targets))
            return -1;
    return s->lanes && s->items ? 0 : -1;
}

tensorstat *stat_tensorstat_new(const target_list *targets, uint64_t seed, unsigned want, const tensorstat_told *told,
                                void *context)
{
    const int histogram = (want & MPSIM_SUMMARY_HISTOGRAM) != 0, threads = pass_lanes();
    const size_t fit = BATCH_MEMORY / group_bytes(targets, histogram);
    const int room = fit < 1 ? 1 : fit > BATCH_MOST ? BATCH_MOST : (int)fit;
    tensorstat *s = malloc(sizeof *s);
    if (!s) {
        (void)host_no_memory();
        return NULL;
    }
    *s = (tensorstat){.targets = targets, .seed = seed, .want = want, .told = told, .context = context};
    s->queue = (pass_queue){.run = run_item, .tell = tell, .context = s, .room = room, .most = BATCH_BYTES};
    if (make_all(s, targets, threads) == 0)
        return s;
    (void)host_no_memory();
    stat_tensorstat_free(s);
    return NULL;
}

void stat_tensorstat_free(tensorstat *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_lanes; i++) {
        mpsim_summary_free(s->lanes[i].summary);
        free(s->lanes[i].codes);
        stat_blocklane_free(s->lanes[i].blocks);
    }
    for (int i = 0; i < s->made; i++)
        stat_group_clear(&s->items[i].g);
    free(s->lanes);
    free(s->items);
    free(s);
}

/* ---- what is put ---- */

/* What was told, or that the work is to end. */
static int ended(const tensorstat *s, int code)
{
    return code ? code : s->queue.n == 0 && is_asked(s) ? 128 + *s->asked : 0;
}

int stat_tensorstat_flush(tensorstat *s)
{
    return ended(s, pass_flush(&s->queue));
}

/* The next item, for which there is always room; its group is made when it is needed first: NULL without memory, which was told. */
static item *next_item(tensorstat *s, const tensorstat_piece *of, int is_file, int alone)
{
    item *it = &s->items[s->queue.n];
    if (s->queue.n == s->made && stat_group_init(&it->g, s->targets, (s->want & MPSIM_SUMMARY_HISTOGRAM) != 0))
        return NULL;
    s->made += s->queue.n == s->made;
    it->of = *of;
    it->is_file = is_file;
    it->alone = alone;
    it->failed = it->left = 0;
    return it;
}

int stat_tensorstat_put(tensorstat *s, const tensorstat_piece *piece)
{
    const mpsim_format *f = trace_at(piece->t, piece->i)->format;
    const size_t width = f ? mpsim_format_code_bytes(f) : 0;
    const int alone = f && (!trace_is_flat(piece->t) || piece->n >= LARGE / width);
    const int code = alone ? ended(s, pass_alone(&s->queue)) : 0;
    if (code)
        return code;
    if (!next_item(s, piece, 0, alone))
        return EXIT_IO;
    return ended(s, pass_put(&s->queue, piece->n * width, alone));
}

int stat_tensorstat_put_file(tensorstat *s, trace *t, size_t i, const trace_error *error)
{
    item *it = next_item(s, &(tensorstat_piece){.t = t, .i = i}, 1, 0);
    if (!it)
        return EXIT_IO;
    it->failed = error != NULL;
    if (error)
        it->error = *error;
    return ended(s, pass_put(&s->queue, 0, 0));
}
