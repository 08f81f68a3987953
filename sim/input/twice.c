/* twice.c -- see twice.h. Of a file few of its tensors are kept, as hashes, so that ten thousand files take ten
 * megabytes. */
#include "twice.h"

#include "../array/array.h"
#include "../text/escape.h"
#include "../cli/options.h"

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

/* The earlier file that a tensor of this one is in, too; NULL. */
static const twice_file *find_earlier(const twice_forms *w, const twice_look *l)
{
    for (size_t i = 0; w->root && i < l->count; i++) {
        const tensor_seen key = {l->tensors[i], 0};
        tensor_seen *const *found = key.hash ? tfind(&key, &w->root, compare) : NULL;
        if (found && w->files[(*found)->file].form != l->form)
            return &w->files[(*found)->file];
    }
    return NULL;
}

static void keep_tensors(twice_forms *w, const twice_look *l)
{
    size_t kept = 0;
    for (size_t i = 0; i < l->count && kept < KEPT && w->tensors < TENSORS_MAX; i++) {
        if (!l->tensors[i])
            continue;
        tensor_seen *seen = array_zeros(1, sizeof *seen);
        if (seen)
            *seen = (tensor_seen){l->tensors[i], w->count - 1};
        tensor_seen *const *in = seen ? tsearch(seen, &w->root, compare) : NULL;
        if (!in) {
            free(seen);
            (void)host_no_memory();
            return;
        }
        if (*in != seen)
            free(seen);
        else
            kept++, w->tensors++;
    }
}

int twice_look_at(twice_look *l, const trace *t)
{
    char step[32];
    *l = (twice_look){trace_path(t), trace_layout(t), trace_step(t), hash_form(t), NULL, trace_count(t)};
    if (l->step < 0)
        return -1;
    l->tensors = array_zeros(l->count, sizeof *l->tensors);
    if (!l->tensors)
        return host_no_memory();
    const uint64_t ranks = hash_ranks(t);
    const int n = snprintf(step, sizeof step, "/%" PRId64, l->step);
    const uint64_t of = hash(ranks, step, (size_t)n + 1);
    for (size_t i = 0; i < l->count; i++)
        l->tensors[i] = hash_tensor(of, trace_at(t, i));
    return 0;
}

void twice_see(twice_forms *w, const trace *t)
{
    twice_look l;
    if (w->tensors >= TENSORS_MAX || twice_look_at(&l, t))
        return;
    twice_see_look(w, &l);
    free(l.tensors);
}

void twice_see_look(twice_forms *w, const twice_look *l)
{
    twice_file f = {.step = l->step, .form = l->form};
    if (f.step < 0 || w->tensors >= TENSORS_MAX)
        return;
    show_path(f.path, l->path);
    snprintf(f.layout, sizeof f.layout, "%s", l->layout);
    const twice_file *earlier = find_earlier(w, l);
    if (earlier) {
        describe(w, earlier, &f);
        return;
    }
    if (array_room(&w->files, w->count, sizeof *w->files)) {
        (void)host_no_memory();
        return;
    }
    w->files[w->count++] = f;
    keep_tensors(w, l);
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
