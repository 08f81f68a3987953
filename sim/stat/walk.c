/* walk.c -- see walk.h. */
#include "walk.h"

#include "../pass/tiles.h"
#include "../trace/roundoff.h"
#include "tensor.h"

typedef struct walker {
    input *in;
    const stat_settings *settings;
    const share *share; /* NULL: everything */
    const block_list *blocks;
    const walk_sink *sink;
    void *context;
    tensorstat *stat;
    atomic_int asked;    /* the signal that ends the work, after which there is a report of what was read; or 0 */
    int once;            /* something can be read once: signals are asked for while tensors are read */
    const trace *failed; /* nothing more is told of it */
    uint64_t file;       /* that was told of last */
} walker;

/* ---- what is told ---- */

static int failed(walker *w, const trace *t, const trace_error *error)
{
    w->failed = t;
    const int code = input_failed(w->in, error);
    return code ? code : w->sink->failed(w->context, w->file, error);
}

static int told_file(void *context, trace *t, size_t i, const trace_error *error)
{
    walker *w = context;
    char path[1024], text[1024];
    w->file = i;
    if (t && trace_unread_note(t))
        note("%s: not read: %s", escape_text(path, sizeof path, trace_path(t)),
             escape_text(text, sizeof text, trace_unread_note(t)));
    return error ? failed(w, t, error) : t ? w->sink->file(w->context, t, i) : w->sink->other(w->context, i);
}

static int told_tensor(void *context, const tensorstat_piece *x, const group *of, const trace_error *error)
{
    walker *w = context;
    if (x->t == w->failed)
        return 0;
    if (error)
        return failed(w, x->t, error);
    const trace_tensor *tensor = trace_at(x->t, x->i);
    const stat_place place = {trace_path(x->t), tensor->kind, trace_step(x->t), tensor};
    const walk_piece piece = {w->file, x->ordinal, x->first, x->n};
    return w->sink->tensor(w->context, &place, &piece, of);
}

/* ---- what is put ---- */

static uint64_t width_of(const trace_tensor *x)
{
    return x->format ? mpsim_format_code_bytes(x->format) : 0;
}

/* What the elements of the selected tensors take. */
static uint64_t selected_bytes(const walker *w, const trace *t)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < trace_count(t); i++)
        if (input_selects(w->in, trace_at(t, i)))
            sum += trace_at(t, i)->count * width_of(trace_at(t, i));
    return sum;
}

/* What can be read from its beginning only, and what is copied first in another order. */
static int is_whole(const walker *w, const trace *t, const trace_tensor *x)
{
    return !trace_is_flat(t) || (w->blocks->count && pass_block_in_rows(x));
}

/* Pieces under block recipes begin and end between blocks: 1, or 0 where nothing is left. */
static int align(const walker *w, const trace_tensor *x, tensorstat_piece *p)
{
    const uint64_t first = pass_block_align(w->blocks, x, p->first),
                   end = pass_block_align(w->blocks, x, p->first + p->n);
    if (p->n == 0)
        return 1;
    p->first = first;
    p->n = end - first;
    return p->n > 0;
}

static int put_tensors(walker *w, const input_file *f)
{
    int code = 0;
    uint64_t at = 0, ordinal = 0;
    share_cut cut;
    if (w->share)
        stat_share_cut_file(w->share, f->i, selected_bytes(w, f->t), &cut);
    for (size_t i = 0; i < trace_count(f->t) && !code && f->t != w->failed; i++) {
        const trace_tensor *x = trace_at(f->t, i);
        if (!input_selects(w->in, x))
            continue;
        tensorstat_piece piece = {
            .t = f->t, .i = i, .ordinal = ordinal++, .scaled = stat_is_scaled(w->settings, x->kind), .n = x->count};
        if (!w->share ||
            (stat_share_cut_tensor(&cut, at, x->count, width_of(x), is_whole(w, f->t, x), &piece.first, &piece.n) &&
             align(w, x, &piece)))
            code = stat_tensorstat_put(w->stat, &piece);
        at += x->count * width_of(x);
    }
    return code;
}

/* Before any of its tensors is read: 0, or -1 with the error of the file. */
static int find_roundoff(const walker *w, input_file *f)
{
    uint64_t bytes = 0;
    if (!f->t || !w->settings->without_roundoff || w->in->count) /* elements that are elsewhere are not read */
        return 0;
    const int failed = trace_find_roundoff(f->t, &bytes, &f->error);
    host_again(bytes);
    return failed;
}

/* How far a shard is: not all that it has need be read. */
static void reach(const share *s, size_t next)
{
    const uint64_t at = s->starts[next] < s->end ? s->starts[next] : s->end;
    host_reach(at > s->begin ? at - s->begin : 0);
}

static int visit_files(input *in, input_file *files, size_t n, void *context)
{
    walker *w = context;
    int code = 0;
    (void)in;
    w->failed = NULL;
    if (w->once)
        host_ask(&w->asked);
    for (size_t i = 0; i < n && !code; i++) {
        const int failed = find_roundoff(w, &files[i]) || (!files[i].t && !files[i].other);
        code = stat_tensorstat_put_file(w->stat, files[i].t, files[i].i, failed ? &files[i].error : NULL);
        if (files[i].t && !failed && !code)
            code = put_tensors(w, &files[i]);
    }
    if (!code)
        code = stat_tensorstat_flush(w->stat);
    if (w->share && !code)
        reach(w->share, files[n - 1].i + 1);
    if (w->once)
        host_ask(NULL);
    return code;
}

/* Signals are asked for all the time, but while what can be read once is copied, which may take for ever. A shard
 * and a rank have nothing to show before the end. */
static void watch(walker *w)
{
    const trace_tree *files = &w->in->tree;
    if (w->share || host_processes() > 1)
        return;
    for (size_t i = 0; i < files->count && !w->once; i++)
        w->once = !input_is_file(files->paths[i]);
    stat_tensorstat_ask(w->stat, &w->asked);
    if (!w->once)
        host_ask(&w->asked);
}

int stat_walk(input *in, const stat_settings *settings, const target_list *targets, const share *of,
              const walk_sink *sink, void *context)
{
    static const tensorstat_told told = {told_tensor, told_file};
    const unsigned want = (settings->counts ? 0 : MPSIM_SUMMARY_SUMS | MPSIM_SUMMARY_ERRORS) |
                          (settings->histogram ? MPSIM_SUMMARY_HISTOGRAM : 0);
    walker w = {
        .in = in, .settings = settings, .share = of, .blocks = &targets->blocks, .sink = sink, .context = context};
    w.stat = stat_tensorstat_new(targets, settings->to.seed, want, &told, &w);
    if (!w.stat)
        return EXIT_IO;
    if (in->count)
        stat_tensorstat_count(w.stat, in->count, in->count_context);
    watch(&w);
    const int code = input_each_open(in, of ? of->first : 0, of ? of->last : in->tree.count, visit_files, &w);
    host_ask(NULL);
    stat_tensorstat_free(w.stat);
    return code;
}
