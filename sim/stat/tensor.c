/* tensor.c -- see tensor.h.
 *
 * Every thread has a summary and a buffer that stays in its cache. Of a large tensor threads take a piece
 * each, and their summaries are merged; of small ones a batch is collected, and threads take a tensor
 * each. Since summaries merge exactly, neither can be seen in the result. */
#include "tensor.h"

#include "../cli/stream.h"
#include "blocks.h"

#include <train/parallel.h>

#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

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
    blocklane *blocks; /* NULL without recipes */
    int used, failed_at; /* of the tensor at hand: the piece of the error, or INT_MAX */
    trace_error error;
} lane;

typedef struct item {
    tensorstat_piece of; /* of.i: of a file its number */
    int is_file, failed, left; /* left: nothing of it was read, since the work was to end */
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
    int n_lanes;
    item *items;
    size_t n, room; /* items that wait; that fit */
    uint64_t bytes; /* of those that wait        */
    item *at;       /* the large one at hand     */
    uint64_t stream, piece, first; /* first: element of the block that is read in order */
    blockrun *run;  /* under recipes, its phase at hand, the first of the tiles at hand */
    int phase;
    uint64_t tile;
    atomic_int failed_at;
    atomic_ullong counted; /* elements of it */
    const volatile sig_atomic_t *asked; /* or NULL */
    size_t held[];  /* elements in the buffers of the lanes, of a tensor that is read in order */
};

/* ---- memory ---- */

static size_t group_bytes(const target_list *targets, int histogram)
{
    return sizeof(item) + targets->count * sizeof(mpsim_cast_stats) + targets->blocks.count * sizeof(block_sums) +
           (histogram ? sizeof(mpsim_histogram) : 0);
}

tensorstat *tensorstat_new(const target_list *targets, uint64_t seed, unsigned want,
                           const tensorstat_told *told, void *context)
{
    const int histogram = (want & MPSIM_SUMMARY_HISTOGRAM) != 0, threads = parallel_threads();
    const size_t fit = BATCH_MEMORY / group_bytes(targets, histogram);
    const size_t room = fit < 1 ? 1 : fit > BATCH_MOST ? BATCH_MOST : fit;
    tensorstat *s = calloc(1, sizeof *s + (size_t)threads * sizeof s->held[0]);
    if (!s)
        return NULL;
    s->targets = targets;
    s->seed = seed;
    s->want = want;
    s->told = told;
    s->context = context;
    s->lanes = calloc((size_t)threads, sizeof *s->lanes);
    s->items = calloc(room, sizeof *s->items);
    int ok = s->lanes && s->items;
    for (; ok && s->n_lanes < threads; s->n_lanes++) {
        lane *l = &s->lanes[s->n_lanes];
        l->summary = mpsim_summary_new();
        l->codes = malloc(PIECE);
        l->blocks = targets->blocks.count ? blocklane_new(targets) : NULL;
        ok = l->summary && l->codes && (l->blocks || !targets->blocks.count);
    }
    for (; ok && s->room < room; s->room++)
        ok = group_init(&s->items[s->room].g, targets, histogram) == 0;
    if (ok)
        return s;
    tensorstat_free(s);
    return NULL;
}

void tensorstat_free(tensorstat *s)
{
    if (!s)
        return;
    for (int i = 0; i < s->n_lanes; i++) {
        mpsim_summary_free(s->lanes[i].summary);
        free(s->lanes[i].codes);
        blocklane_free(s->lanes[i].blocks);
    }
    for (size_t i = 0; i < s->room; i++)
        group_clear(&s->items[i].g);
    free(s->lanes);
    free(s->items);
    free(s);
}

/* ---- work that is to end ---- */

void tensorstat_ask(tensorstat *s, const volatile sig_atomic_t *asked)
{
    s->asked = asked;
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

static int no_memory(const trace *t, trace_error *error)
{
    return trace_error_set(error, EXIT_IO, trace_path(t), UINT64_MAX, "out of memory");
}

/* The casts of a tensor: the targets, or the formats with the scale 1. */
static mpsim_status begin(const tensorstat *s, mpsim_summary *summary, const item *it)
{
    enum { FEW = 64 };
    mpsim_cast few[FEW], *casts = few;
    const mpsim_format *source = trace_at(it->of.t, it->of.i)->format;
    size_t n = 0;
    if (s->targets->count > FEW && !(casts = malloc(s->targets->count * sizeof *casts)))
        return MPSIM_ENOMEM;
    for (size_t i = 0; i < s->targets->count; i++)
        if (it->of.scaled || target_is_first(s->targets, i)) {
            casts[n].format = &s->targets->items[i].format;
            casts[n].rounding = target_rounding(&s->targets->items[i], source);
            if (!it->of.scaled)
                casts[n].rounding.scale = 1;
            n++;
        }
    const mpsim_status status = mpsim_summary_begin(summary, casts, n, s->want);
    if (casts != few)
        free(casts);
    return status;
}

static int finish(const tensorstat *s, mpsim_summary *summary, item *it)
{
    group *g = &it->g;
    group_reset(g);
    if (mpsim_summary_read(summary, &g->stats, g->histogram, g->casts) != MPSIM_OK)
        return no_memory(it->of.t, &it->error);
    if (!it->of.scaled)
        group_spread(g, s->targets);
    g->tensors = 1;
    g->scaled = it->of.scaled != 0;
    return 0;
}

/* Elements from `first` on, n of them, in the buffer of the lane. */
static int account(const tensorstat *s, const lane *l, const item *it, uint64_t stream, uint64_t first,
                   size_t n)
{
    const mpsim_rng rng = {s->seed, stream, first};
    /* formats and roundings were checked when the targets were made */
    return mpsim_summary_add_codes(l->summary, trace_at(it->of.t, it->of.i)->format, &rng, l->codes, n) != MPSIM_OK;
}

/* ---- small tensors: each by one thread ---- */

static int run_small(const tensorstat *s, lane *l, item *it)
{
    const trace_tensor *x = trace_at(it->of.t, it->of.i);
    const uint64_t stream = tensor_stream(it->of.t, x);
    const size_t piece = PIECE / mpsim_format_code_bytes(x->format);
    if (begin(s, l->summary, it) != MPSIM_OK)
        return no_memory(it->of.t, &it->error);
    const uint64_t end = it->of.first + it->of.n;
    uint64_t first = it->of.first;
    for (; first < end && !is_asked(s); first += piece) {
        const size_t n = end - first < piece ? (size_t)(end - first) : piece;
        if (trace_codes(it->of.t, it->of.i, first, l->codes, n, &it->error))
            return -1;
        if (account(s, l, it, stream, first, n))
            return no_memory(it->of.t, &it->error);
    }
    cut(s, it, (first < end ? first : end) - it->of.first);
    return finish(s, l->summary, it);
}

/* ---- under block recipes ---- */

static blockrun *new_run(const tensorstat *s, item *it)
{
    const blockrun_of of = {.t = it->of.t,
                            .i = it->of.i,
                            .first = it->of.first,
                            .n = it->of.n,
                            .seed = s->seed,
                            .stream = tensor_stream(it->of.t, trace_at(it->of.t, it->of.i))};
    return blockrun_new(&of, s->targets, s->asked, &it->error);
}

/* What the lanes that were used have found of it, in the first of them; `counted` elements were. */
static int finish_blocks(const tensorstat *s, const blockrun *run, lane *lanes, int n, item *it, uint64_t counted)
{
    cut(s, it, blockrun_whole(run) || counted == it->of.n ? counted : 0);
    for (int i = 1; i < n; i++)
        if (lanes[i].used && mpsim_summary_merge(lanes[0].summary, lanes[i].summary) != MPSIM_OK)
            return no_memory(it->of.t, &it->error);
    if (finish(s, lanes[0].summary, it))
        return -1;
    for (int i = 0; i < n; i++)
        if (lanes[i].used)
            blocklane_take(lanes[i].blocks, &it->g);
    blockrun_end(run, &it->g, it->of.n);
    return 0;
}

static int run_small_blocks(const tensorstat *s, lane *l, item *it)
{
    const blocktile_how how = {l->summary, l->codes, PIECE};
    uint64_t counted = 0;
    int code = 0;
    if (begin(s, l->summary, it) != MPSIM_OK)
        return no_memory(it->of.t, &it->error);
    blocklane_begin(l->blocks);
    l->used = 1;
    blockrun *run = new_run(s, it);
    if (!run)
        return -1;
    for (int phase = 0; phase < blockrun_phases(run) && !code; phase++)
        for (uint64_t k = 0; k < blockrun_tiles(run, phase) && !code && !is_asked(s); k++)
            code = blockrun_tile(run, phase, k, l->blocks, &how, &counted, &it->error);
    if (!code)
        code = finish_blocks(s, run, l, 1, it, counted);
    blockrun_free(run);
    return code;
}

static void run_item(int k, void *context)
{
    tensorstat *s = context;
    item *it = &s->items[k];
    lane *l = &s->lanes[parallel_self()];
    if (!it->is_file && trace_at(it->of.t, it->of.i)->format)
        it->failed = l->blocks ? run_small_blocks(s, l, it) : run_small(s, l, it);
}

/* ---- a large tensor: a piece for each thread ---- */

/* A lane that has not met this tensor begins. */
static int lane_begin(tensorstat *s, lane *l)
{
    if (l->used)
        return 0;
    if (begin(s, l->summary, s->at) != MPSIM_OK)
        return no_memory(s->at->of.t, &l->error);
    l->used = 1;
    if (l->blocks)
        blocklane_begin(l->blocks);
    return 0;
}

/* Piece k of the tensor failed. */
static void note_failed(tensorstat *s, lane *l, int k)
{
    l->failed_at = k;
    int others = atomic_load(&s->failed_at);
    while (k < others && !atomic_compare_exchange_weak(&s->failed_at, &others, k))
        continue;
}

static void run_piece(int k, void *context)
{
    tensorstat *s = context;
    const item *it = s->at;
    lane *l = &s->lanes[parallel_self()];
    const uint64_t first = (uint64_t)k * s->piece, left = it->of.n - first;
    const size_t n = left < s->piece ? (size_t)left : (size_t)s->piece;
    if (is_asked(s) || atomic_load(&s->failed_at) < k || l->failed_at < k) /* what comes after an error is not told */
        return;
    if (lane_begin(s, l) == 0 && trace_codes(it->of.t, it->of.i, it->of.first + first, l->codes, n, &l->error) == 0) {
        if (account(s, l, it, s->stream, it->of.first + first, n) == 0) {
            atomic_fetch_add(&s->counted, n);
            return;
        }
        no_memory(it->of.t, &l->error);
    }
    note_failed(s, l, k);
}

static void run_tile(int k, void *context)
{
    tensorstat *s = context;
    lane *l = &s->lanes[parallel_self()];
    const blocktile_how how = {l->summary, l->codes, PIECE};
    uint64_t n = 0;
    if (is_asked(s) || atomic_load(&s->failed_at) < k || l->failed_at < k)
        return;
    if (lane_begin(s, l) == 0 &&
        blockrun_tile(s->run, s->phase, s->tile + (uint64_t)k, l->blocks, &how, &n, &l->error) == 0)
        atomic_fetch_add(&s->counted, n);
    else
        note_failed(s, l, k);
}

/* What lanes hold of one block of a tensor that is read in order. */
static void run_held(int k, void *context)
{
    tensorstat *s = context;
    lane *l = &s->lanes[k]; /* of the buffer; threads have nothing else here */
    uint64_t first = s->first;
    for (int i = 0; i < k; i++)
        first += s->held[i];
    if (lane_begin(s, l) || account(s, l, s->at, s->stream, first, s->held[k])) {
        no_memory(s->at->of.t, &l->error);
        l->failed_at = k;
    }
}

static int lane_failed(const tensorstat *s)
{
    int first = -1;
    for (int i = 0; i < s->n_lanes; i++)
        if (s->lanes[i].failed_at < INT_MAX &&
            (first < 0 || s->lanes[i].failed_at < s->lanes[first].failed_at))
            first = i;
    return first;
}

/* A member of an archive: one thread unpacks, all account. */
static int run_in_order(tensorstat *s, item *it)
{
    s->first = 0;
    if (trace_select(it->of.t, it->of.i, &it->error))
        return -1;
    for (;;) {
        int used = 0;
        uint64_t sum = 0;
        while (used < s->n_lanes) {
            if (trace_read_codes(it->of.t, s->lanes[used].codes, s->piece, &s->held[used], &it->error))
                return -1;
            if (s->held[used] == 0)
                break;
            sum += s->held[used++];
        }
        if (used == 0)
            return 0;
        parallel_for(used, run_held, s);
        if (lane_failed(s) >= 0)
            return 0;
        s->first += sum;
        atomic_store(&s->counted, s->first);
        if (is_asked(s))
            return 0;
    }
}

static void begin_large(tensorstat *s, item *it)
{
    const trace_tensor *x = trace_at(it->of.t, it->of.i);
    s->at = it;
    s->stream = tensor_stream(it->of.t, x);
    s->piece = PIECE / mpsim_format_code_bytes(x->format);
    atomic_store(&s->failed_at, INT_MAX);
    atomic_store(&s->counted, 0);
    for (int i = 0; i < s->n_lanes; i++) {
        s->lanes[i].used = 0;
        s->lanes[i].failed_at = INT_MAX;
    }
}

/* The tiles of a phase, some at a time. */
static void run_phase(tensorstat *s)
{
    enum { AT_ONCE = 1 << 16 };
    const uint64_t n = blockrun_tiles(s->run, s->phase);
    for (s->tile = 0; s->tile < n && lane_failed(s) < 0 && !is_asked(s); s->tile += AT_ONCE)
        parallel_for((int)(n - s->tile < AT_ONCE ? n - s->tile : AT_ONCE), run_tile, s);
}

static int run_large_blocks(tensorstat *s, item *it)
{
    int code = -1;
    begin_large(s, it);
    s->run = new_run(s, it);
    if (!s->run)
        return -1;
    for (s->phase = 0; s->phase < blockrun_phases(s->run) && lane_failed(s) < 0; s->phase++)
        run_phase(s);
    if (lane_failed(s) >= 0)
        it->error = s->lanes[lane_failed(s)].error;
    else if (lane_begin(s, &s->lanes[0])) /* also of a tensor without elements */
        it->error = s->lanes[0].error;
    else
        code = finish_blocks(s, s->run, s->lanes, s->n_lanes, it, atomic_load(&s->counted));
    blockrun_free(s->run);
    s->run = NULL;
    return code;
}

static int run_large(tensorstat *s, item *it)
{
    begin_large(s, it);
    if (!trace_is_flat(it->of.t)) {
        if (run_in_order(s, it))
            return -1;
    } else if (it->of.n / s->piece < INT_MAX) {
        parallel_for((int)((it->of.n + s->piece - 1) / s->piece), run_piece, s);
    } else {
        return no_memory(it->of.t, &it->error);
    }
    const int failed = lane_failed(s);
    if (failed >= 0) {
        it->error = s->lanes[failed].error;
        return -1;
    }
    cut(s, it, atomic_load(&s->counted));
    lane *all = &s->lanes[0];
    if (lane_begin(s, all)) { /* also of a tensor without elements */
        it->error = all->error;
        return -1;
    }
    for (int i = 1; i < s->n_lanes; i++)
        if (s->lanes[i].used && mpsim_summary_merge(all->summary, s->lanes[i].summary) != MPSIM_OK)
            return no_memory(it->of.t, &it->error);
    return finish(s, all->summary, it);
}

/* ---- what is put ---- */

static int tell(const tensorstat *s, const item *it)
{
    const trace_error *error = it->failed ? &it->error : NULL;
    if (it->left)
        return 0;
    if (it->is_file)
        return s->told->file(s->context, it->of.t, it->of.i, error);
    return s->told->tensor(s->context, &it->of, error || !trace_at(it->of.t, it->of.i)->format ? NULL : &it->g,
                           error);
}

int tensorstat_flush(tensorstat *s)
{
    const int n = (int)s->n;
    int code = 0;
    s->n = 0;
    s->bytes = 0;
    parallel_for(n, run_item, s);
    for (int k = 0; k < n && !code; k++)
        code = tell(s, &s->items[k]);
    return code ? code : is_asked(s) ? 128 + *s->asked : 0;
}

/* The next item, for which there is always room. */
static item *next_item(tensorstat *s, const tensorstat_piece *of, int is_file)
{
    item *it = &s->items[s->n++];
    it->of = *of;
    it->is_file = is_file;
    it->failed = it->left = 0;
    return it;
}

static int flush_if_full(tensorstat *s)
{
    return s->n == s->room || s->bytes >= BATCH_BYTES ? tensorstat_flush(s) : 0;
}

int tensorstat_put(tensorstat *s, const tensorstat_piece *piece)
{
    const trace_tensor *x = trace_at(piece->t, piece->i);
    const size_t width = x->format ? mpsim_format_code_bytes(x->format) : 0;
    if (!x->format || (trace_is_flat(piece->t) && piece->n < LARGE / width)) {
        next_item(s, piece, 0);
        s->bytes += x->format ? piece->n * width : 0;
        return flush_if_full(s);
    }
    int code = tensorstat_flush(s);
    if (code)
        return code;
    item *it = next_item(s, piece, 0);
    s->n = 0;
    it->failed = s->targets->blocks.count ? run_large_blocks(s, it) : run_large(s, it);
    code = tell(s, it);
    return code ? code : is_asked(s) ? 128 + *s->asked : 0;
}

int tensorstat_put_file(tensorstat *s, trace *t, size_t i, const trace_error *error)
{
    item *it = next_item(s, &(tensorstat_piece){.t = t, .i = i}, 1);
    it->failed = error != NULL;
    if (error)
        it->error = *error;
    return flush_if_full(s);
}
