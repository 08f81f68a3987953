/* shard.c -- see shard.h. */
#include "shard.h"

#include "../array/need.h"
#include "../process/progress.h"
#include "../text/words.h"

#include <errno.h>
#include <mpsim/digest.h>
#include <stdlib.h>
#include <string.h>

/* ---- what all shards have in common ---- */

static void add_text(part_head *h, uint64_t *at, const char *text)
{
    const size_t n = strlen(text) + 1; /* the zero byte keeps texts apart */
    h->digest += mpsim_digest_bytes(text, n, *at);
    *at += n;
}

/* Where files begin, and the head's digest of them. */
static int list_files(shards *s)
{
    const size_t n = s->in.tree.count;
    uint64_t at = 0, bytes;
    char text[24];
    s->starts = need_memory(n + 1, sizeof *s->starts);
    for (size_t i = 0; i < n; i++) {
        errno = 0;
        if (trace_tree_bytes(s->in.tree.paths[i], &bytes))
            return errno ? fail(EXIT_IO, "%s: %s", s->in.tree.paths[i], text_error(errno))
                         : fail(EXIT_USAGE, "stat: --shard divides regular files, and '%s' is not a regular file",
                                s->in.tree.paths[i]);
        if (bytes > INT64_MAX - s->starts[i])
            return fail(EXIT_DATA, "stat: files of more than 2^63 bytes in all");
        s->starts[i + 1] = s->starts[i] + bytes;
        snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
        add_text(&s->head, &at, s->in.tree.paths[i]);
        add_text(&s->head, &at, text);
    }
    for (size_t i = 0; i < s->in.n_refused; i++)
        add_text(&s->head, &at, s->in.refused[i].text);
    s->head.files = n;
    s->head.bytes = s->starts[n];
    s->head.first = n ? s->in.tree.paths[0] : "";
    return 0;
}

/* A pair, whose value is copied. */
static void add_pair(part_pairs *l, const char *name, const char *value)
{
    need_room(&l->items, l->count, sizeof *l->items);
    l->items[l->count++] = (part_pair){name, need_text(value)};
}

static void describe(shards *s)
{
    char text[512];
    stat_settings known;
    (void)stat_settings_names(&known, s->settings, &s->in, &s->names);
    const struct {
        const char *name;
        const mpsim_format *f;
    } read[] = {{"dtype", s->in.form.options.raw_format},
                {"V1", s->in.form.options.assume_v1},
                {"V2", s->in.form.options.assume_v2},
                {"as", s->in.form.options.as_int8},
                {"as", s->in.form.options.as_int16}};
    for (size_t f = 0; f < s->targets.formats; f++) {
        const target *t = target_of_format(&s->targets, f);
        add_pair(&s->head.formats, t->label, stat_part_describe(text, sizeof text, &t->format, &t->rounding));
    }
    const block_list *blocks = &s->targets.blocks;
    for (size_t i = 0; i < blocks->count; i++)
        if (block_is_first(blocks, i))
            add_pair(&s->head.formats, blocks->items[i].label,
                     stat_part_describe_block(text, sizeof text, &blocks->items[i]));
    s->head.recipes = blocks->count > 0;
    for (size_t i = 0; i < sizeof read / sizeof read[0]; i++)
        if (read[i].f)
            add_pair(&s->head.formats, read[i].name, stat_part_describe(text, sizeof text, read[i].f, NULL));
    record_word w;
    for (size_t i = 0; record_word_at(&stat_settings_record, &known, i, &w); i++)
        add_pair(&s->head.words, w.key, w.text);
}

int stat_shards_open(shards *s, const stat_settings *settings, char **operands, int count, uint64_t n)
{
    memset(s, 0, sizeof *s);
    s->settings = settings;
    s->n = n;
    s->head.sections = 1;
    s->head.shards = n;
    s->head.version = mpsim_version();
    int code = stat_settings_targets(settings, &s->targets, "stat");
    if (!code)
        code = input_list(&s->in, "stat", &settings->from, operands, count);
    if (!code)
        code = list_files(s);
    if (!code)
        describe(s);
    return code;
}

static void clear_values(part_pairs *l)
{
    for (size_t i = 0; i < l->count; i++)
        free((char *)(uintptr_t)l->items[i].value);
}

void stat_shards_close(shards *s)
{
    clear_values(&s->head.words);
    clear_values(&s->head.formats);
    stat_part_head_clear(&s->head);
    free(s->starts);
    free(s->names);
    input_close(&s->in);
    target_list_clear(&s->targets);
}

/* ---- a shard ---- */

typedef struct writing {
    part_writer w;
    const input *in;
    share share;
    uint64_t counted, next; /* files that were counted; the first that was not told of */
} writing;

/* Something is told of file i, for the first time perhaps. */
static void count_file(writing *x, uint64_t i)
{
    if (i >= x->next && stat_share_owns(&x->share, i))
        x->counted++;
    x->next = i + 1;
}

static int write_file(void *context, const trace *t, uint64_t i)
{
    writing *x = context;
    uint64_t tensors = 0;
    twice_look look = {.layout = "", .step = trace_step(t)};
    for (size_t k = 0; k < trace_count(t); k++)
        tensors += (uint64_t)(input_selects(x->in, trace_at(t, k)) != 0);
    count_file(x, i);
    if (stat_share_owns(&x->share, i))
        twice_look_at(&look, t);
    stat_part_write_file(&x->w, i, trace_path(t), tensors, &look);
    free(look.tensors);
    return 0;
}

static int write_tensor(void *context, const stat_place *place, const walk_piece *piece, const group *of)
{
    writing *x = context;
    stat_part_write_tensor(&x->w, place, piece, of);
    return 0;
}

static int write_failed(void *context, uint64_t i, const trace_error *error)
{
    writing *x = context;
    count_file(x, i);
    stat_part_write_failed(&x->w, i + 1, x->in->tree.paths[i], error);
    return 0;
}

static int write_other(void *context, uint64_t i)
{
    writing *x = context;
    stat_part_write_other(&x->w, i);
    return 0;
}

int stat_shards_write(shards *s, uint64_t k, FILE *to)
{
    static const walk_sink sink = {write_file, write_tensor, write_failed, write_other};
    const int failed = s->in.failed - (int)s->in.n_refused;
    writing x = {.in = &s->in};
    stat_share_make(&x.share, k, s->n, s->starts, s->in.tree.count);
    progress_expect(x.share.end - x.share.begin);
    stat_part_write_head(&x.w, to, &s->head);
    stat_part_write_section(&x.w, k, s->n);
    for (size_t i = 0; i < s->in.n_refused && k == 1; i++)
        stat_part_write_failed(&x.w, 0, "", &s->in.refused[i]);
    const int code = stat_walk(&s->in, s->settings, &s->targets, &x.share, &sink, &x);
    stat_part_write_end(&x.w, x.counted);
    if (stat_part_write_finish(&x.w) && !code)
        return fail(EXIT_IO, "out of memory");
    return code ? code : s->in.failed > failed ? EXIT_PARTIAL : 0;
}
