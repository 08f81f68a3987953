/* twice.c -- see twice.h. Of a file few of its tensors are kept, as hashes, so that ten thousand files take ten
 * megabytes; memory that runs out only ends the looking. */
#include "twice.h"

#include "../text/escape.h"
#include "options.h"

#include <inttypes.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

enum { KEPT = 16, TENSORS_MAX = 1 << 18, SHOWN = 200 };

typedef struct twice_file {
    int64_t step;
    uint64_t form;
    char path[SHOWN + 4], layout[16];
} twice_file;

/* A tensor at a step of some ranks, and the first file that has it. */
typedef struct tensor_seen {
    uint64_t hash;
    size_t file;
} tensor_seen;

static int compare(const void *pa, const void *pb)
{
    const tensor_seen *a = pa, *b = pb;
    return (a->hash > b->hash) - (a->hash < b->hash);
}

static uint64_t hash(uint64_t h, const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 0x100000001b3u;
    return h;
}

static const uint64_t begin = 0xcbf29ce484222325u;

/* One after another, without leading zeros. */
static uint64_t hash_number(uint64_t h, const char *digits)
{
    digits += strspn(digits, "0");
    return hash(hash(h, digits, strspn(digits, "0123456789")), "/", 1);
}

/* All numbers behind "rank" in the path; else what the metadata say; else 0: many forms do not say it. */
static uint64_t hash_ranks(const trace *t)
{
    const char *said = trace_metadata(t, "mpsim.rank");
    uint64_t h = begin;
    for (const char *p = trace_path(t); (p = strstr(p, "rank"));) {
        p += 4;
        p += *p == '_' || *p == '-';
        if (*p >= '0' && *p <= '9')
            h = hash_number(h, p);
    }
    return h == begin ? hash_number(h, said ? said : "0") : h;
}

static uint64_t hash_form(const trace *t)
{
    const char *names = trace_convention(t), *layout = trace_layout(t);
    const uint64_t h = hash(begin, layout, strlen(layout) + 1);
    return names ? hash(h, names, strlen(names)) : h;
}

/* Kind and fqn, or a whole name, of a step and ranks; 0 for a tensor without a name. */
static uint64_t hash_tensor(uint64_t of, const trace_tensor *x)
{
    if (!*x->fqn)
        return 0;
    const uint64_t h = x->kind ? hash(of, x->kind, strlen(x->kind) + 1) : of;
    return hash(h, x->fqn, strlen(x->fqn));
}

/* The end of a long path, which tells files apart. */
static void show_path(char out[SHOWN + 4], const char *path)
{
    const size_t n = strlen(path);
    snprintf(out, SHOWN + 4, "%s%s", n > SHOWN ? "..." : "", n > SHOWN ? path + n - SHOWN : path);
}

static void describe(twice_forms *w, const twice_file *a, const twice_file *b)
{
    char one[300], other[300];
    if (w->found++)
        return;
    snprintf(w->first, sizeof w->first, "step %" PRId64 " is in %s (%s) and in %s (%s)", b->step,
             escape_text(one, sizeof one, a->path), a->layout, escape_text(other, sizeof other, b->path), b->layout);
}

/* The earlier file that a tensor of t is in, too; NULL. */
static const twice_file *find_earlier(const twice_forms *w, const trace *t, uint64_t of, uint64_t form)
{
    for (size_t i = 0; w->root && i < trace_count(t); i++) {
        const tensor_seen key = {hash_tensor(of, trace_at(t, i)), 0};
        tensor_seen *const *found = key.hash ? tfind(&key, &w->root, compare) : NULL;
        if (found && w->files[(*found)->file].form != form)
            return &w->files[(*found)->file];
    }
    return NULL;
}

static void keep_tensors(twice_forms *w, const trace *t, uint64_t of)
{
    size_t kept = 0;
    for (size_t i = 0; i < trace_count(t) && kept < KEPT && w->tensors < TENSORS_MAX; i++) {
        const uint64_t h = hash_tensor(of, trace_at(t, i));
        tensor_seen *seen = h ? malloc(sizeof *seen) : NULL;
        if (!seen)
            continue;
        *seen = (tensor_seen){h, w->count - 1};
        tensor_seen *const *in = tsearch(seen, &w->root, compare);
        if (!in || *in != seen)
            free(seen);
        else
            kept++, w->tensors++;
    }
}

void twice_see(twice_forms *w, const trace *t)
{
    twice_file f = {.step = trace_step(t), .form = hash_form(t)};
    if (f.step < 0 || w->tensors >= TENSORS_MAX)
        return;
    char step[32];
    const uint64_t ranks = hash_ranks(t);
    const int n = snprintf(step, sizeof step, "/%" PRId64, f.step);
    const uint64_t of = hash(ranks, step, (size_t)n + 1);
    show_path(f.path, trace_path(t));
    snprintf(f.layout, sizeof f.layout, "%s", trace_layout(t));
    const twice_file *earlier = find_earlier(w, t, of, f.form);
    if (earlier) {
        describe(w, earlier, &f);
        return;
    }
    if (w->count == w->room) {
        const size_t room = w->room ? 2 * w->room : 16;
        twice_file *files = realloc(w->files, room * sizeof *files);
        if (!files)
            return;
        w->files = files;
        w->room = room;
    }
    w->files[w->count++] = f;
    keep_tensors(w, t, of);
}

void twice_tell(twice_forms *w)
{
    char more[64] = "";
    if (w->found > 1)
        snprintf(more, sizeof more, ", and %zu more file%s so", w->found - 1, w->found > 2 ? "s are" : " is");
    if (w->found)
        note("the same tensors twice, in two forms: %s%s; both are read", w->first, more);
    w->found = 0;
}

void twice_clear(twice_forms *w)
{
    tdestroy(w->root, free);
    free(w->files);
    memset(w, 0, sizeof *w);
}
