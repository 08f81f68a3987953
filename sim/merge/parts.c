/* parts.c -- see parts.h. */
#include "parts.h"

#include "../array/need.h"
#include "../process/progress.h"
#include "../text/words.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- parts that do not belong together ---- */

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static int
refuse(const char *part, const char *message, ...)
{
    char what[900];
    trace_error e;
    va_list args;
    va_start(args, message);
    vsnprintf(what, sizeof what, message, args);
    va_end(args);
    trace_error_set(&e, EXIT_DATA, part, UINT64_MAX, "%s", what);
    return fail(e.exit, "%s", e.text);
}

static int has_name(const part_pairs *l, size_t from, const char *name)
{
    while (from < l->count && strcmp(l->items[from].name, name) != 0)
        from++;
    return from < l->count;
}

/* The first option that is not the same in both. */
static int check_words(const part_pairs *a, const part_pairs *b, const char *part, const char *other)
{
    for (size_t i = 0; i < a->count || i < b->count; i++) {
        const part_pair *x = i < a->count ? &a->items[i] : NULL, *y = i < b->count ? &b->items[i] : NULL;
        const int same = x && y && strcmp(x->name, y->name) == 0;
        if (same && strcmp(x->value, y->value) == 0)
            continue;
        if (same)
            return refuse(part, "other options: --%.40s %.200s, which is %.200s in %.300s", x->name, x->value, y->value,
                          other);
        if (x && (!y || !has_name(b, i, x->name)))
            return refuse(part, "other options: with --%.40s %.200s, which %.300s is without", x->name, x->value,
                          other);
        return refuse(part, "other options: without --%.40s %.200s, which %.300s is with", y->name, y->value, other);
    }
    return 0;
}

static int check_formats(const part_pairs *a, const part_pairs *b, const char *part, const char *other)
{
    for (size_t i = 0; i < a->count && i < b->count; i++)
        if (strcmp(a->items[i].name, b->items[i].name) != 0 || strcmp(a->items[i].value, b->items[i].value) != 0)
            return refuse(part, "another definition of the format %.60s: %.250s; in %.200s: %.250s", a->items[i].name,
                          a->items[i].value, other, b->items[i].value);
    return a->count == b->count ? 0 : refuse(part, "other definitions of formats than %.300s", other);
}

static int check_head(const part_head *h, const part_head *first, const char *part, const char *other)
{
    int code;
    if (strcmp(h->version, first->version) != 0)
        return refuse(part, "written by mpsim %.60s, %.300s by %.60s", h->version, other, first->version);
    if (h->recipes != first->recipes)
        return refuse(part, "of mpsim-part/%d, %.300s of mpsim-part/%d", h->recipes ? 4 : 3, other,
                      first->recipes ? 4 : 3);
    if ((code = check_words(&h->words, &first->words, part, other)) ||
        (code = check_formats(&h->formats, &first->formats, part, other)))
        return code;
    if (h->files != first->files || h->bytes != first->bytes)
        return refuse(part, "other inputs: %" PRIu64 " files of %" PRIu64 " bytes, in %.300s %" PRIu64 " of %" PRIu64,
                      h->files, h->bytes, other, first->files, first->bytes);
    if (h->digest != first->digest)
        return refuse(part, "other inputs: as many files and bytes, but other names or sizes than %.300s", other);
    if (h->shards != first->shards)
        return refuse(part, "of %" PRIu64 " shards, %.300s of %" PRIu64, h->shards, other, first->shards);
    return 0;
}

/* ---- reading ---- */

static void add_section(parts *p, const section *s)
{
    need_room(&p->sections, p->count, sizeof *p->sections);
    p->sections[p->count++] = *s;
    p->files += s->counted;
}

/* One section, to its end. */
static int scan_section(part_reader *r, section *s, uint64_t shards, trace_error *error)
{
    part_record x;
    s->place = r->place;
    if (stat_part_next(r, &x, error))
        return -1;
    if (x.tag != 'S' || x.n != shards || x.k < 1 || x.k > shards)
        return stat_part_damaged(r, "a section does not begin here", error);
    s->k = x.k;
    do
        if (stat_part_next(r, &x, error))
            return -1;
    while (x.tag != 'Z');
    s->bytes = r->place - s->place;
    s->counted = x.counted;
    return 0;
}

/* Everything in a part whose head was read. */
static int scan(parts *p, part_reader *r, const part_head *h, size_t source)
{
    trace_error error;
    for (uint64_t i = 0; i < h->sections; i++) {
        section s = {.source = source};
        if (scan_section(r, &s, h->shards, &error))
            return fail(error.exit, "%s", error.text);
        add_section(p, &s);
    }
    if (stat_part_has_more(r)) {
        stat_part_damaged(r, "something follows the last section", &error);
        return fail(error.exit, "%s", error.text);
    }
    return 0;
}

static int read_part(parts *p, size_t source)
{
    part_reader r;
    part_head h = {0};
    trace_error error;
    const part_source *from = &p->sources[source];
    int code = 0;
    if (stat_part_open(&r, from, &error) || stat_part_read_head(&r, &h, &error))
        code = fail(error.exit, "%s", error.text);
    else if (source > 0)
        code = check_head(&h, &p->head, from->name, p->sources[0].name);
    if (!code)
        code = scan(p, &r, &h, source);
    stat_part_close(&r);
    if (source == 0 && !code)
        p->head = h;
    else
        stat_part_head_clear(&h);
    return code;
}

static int compare_sections(const void *a, const void *b)
{
    const section *x = a, *y = b;
    return x->k != y->k ? (x->k > y->k) - (x->k < y->k) : (x->source > y->source) - (x->source < y->source);
}

int merge_parts_read(parts *p, const part_source *sources, size_t n)
{
    memset(p, 0, sizeof *p);
    p->sources = sources;
    progress_steps("parts", n);
    for (size_t i = 0; i < n; i++) {
        const int code = read_part(p, i);
        if (code)
            return code;
        progress_add(1);
    }
    qsort(p->sections, p->count, sizeof *p->sections, compare_sections);
    for (size_t i = 1; i < p->count; i++)
        if (p->sections[i - 1].k == p->sections[i].k)
            return refuse(sources[p->sections[i].source].name, "shard %" PRIu64 " of %" PRIu64 " is also in %.400s",
                          p->sections[i].k, p->head.shards, sources[p->sections[i - 1].source].name);
    p->head.sections = p->count;
    return 0;
}

void merge_parts_clear(parts *p)
{
    stat_part_head_clear(&p->head);
    free(p->sections);
    memset(p, 0, sizeof *p);
}

int merge_parts_complete(const parts *p)
{
    char list[200] = "";
    uint64_t next = 1, missing = 0;
    for (size_t i = 0; i <= p->count; i++) {
        const uint64_t k = i < p->count ? p->sections[i].k : p->head.shards + 1;
        if (k > next && strlen(list) + 50 < sizeof list)
            text_add(list, sizeof list, k == next + 1 ? "%s%" PRIu64 : "%s%" PRIu64 " to %" PRIu64, *list ? ", " : "",
                     next, k - 1);
        else if (k > next && list[strlen(list) - 1] != '.')
            text_add(list, sizeof list, ", ...");
        missing += k - next;
        next = k + 1;
    }
    if (!missing)
        return 0;
    return fail(EXIT_DATA, "merge: %s %s of %" PRIu64 " %s missing", missing == 1 ? "shard" : "shards", list,
                p->head.shards, missing == 1 ? "is" : "are");
}

/* ---- settings ---- */

/* Format k of the head is what it is here. */
static int check_target(const parts *p, size_t k, const char *label, const char *text)
{
    const part_pairs *formats = &p->head.formats;
    if (k < formats->count && strcmp(formats->items[k].name, label) == 0 && strcmp(formats->items[k].value, text) == 0)
        return 0;
    return refuse(p->sources[0].name, "another definition of the format %.60s: %.350s; here: %.350s", label,
                  k < formats->count ? formats->items[k].value : "none", text);
}

static int check_targets(const parts *p, const target_list *targets)
{
    const block_list *blocks = &targets->blocks;
    char text[512];
    size_t k = 0;
    int code = 0;
    if (p->head.recipes != (blocks->count > 0))
        return refuse(p->sources[0].name, "damaged: its version is that of parts %s block recipes",
                      p->head.recipes ? "with" : "without");
    for (; k < targets->formats && !code; k++) {
        const target *t = target_of_format(targets, k);
        code = check_target(p, k, t->label, stat_part_describe(text, sizeof text, &t->format, &t->rounding));
    }
    for (size_t i = 0; i < blocks->count && !code; i++)
        if (block_is_first(blocks, i))
            code = check_target(p, k++, blocks->items[i].label,
                                stat_part_describe_block(text, sizeof text, &blocks->items[i]));
    return code;
}

int merge_parts_settings(const parts *p, stat_settings *s, target_list *targets)
{
    const char *part = p->sources[0].name;
    const part_pairs *words = &p->head.words;
    memset(s, 0, sizeof *s);
    memset(targets, 0, sizeof *targets);
    for (size_t i = 0; i < words->count; i++)
        if (record_put_word(&stat_settings_record, s, words->items[i].name, words->items[i].value))
            return refuse(part, "unknown option --%.60s %.300s", words->items[i].name, words->items[i].value);
    const int code = stat_settings_targets(s, targets, part);
    if (code)
        return code == EXIT_USAGE ? EXIT_DATA : code;
    return check_targets(p, targets);
}
