/* zerotensor.c -- where the elements of a parameter are in the vectors of the ranks (zero.c says how they are cut). */
#include "zero.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

const char *const trace_zero_kinds[ZERO_KINDS] = {"master", "opt.m", "opt.v"};

static uint64_t parts_of(uint64_t n, uint64_t parts)
{
    return n / parts + (n % parts != 0);
}

/* A tensor of a kind, named "KIND:NAME", with the dtype that the vector of rank 0 has. */
static int begin_tensor(zero_checkpoint *c, const zero_parameter *p, int kind, size_t group)
{
    trace *t = c->t;
    const size_t size = strlen(trace_zero_kinds[kind]) + strlen(p->name) + 2;
    char *name = trace_alloc(t, size);
    trace *from = name ? trace_parts_use(t, c->sources[0], c->error) : NULL;
    if (name)
        snprintf(name, size, "%s:%s", trace_zero_kinds[kind], p->name);
    else
        trace_no_memory(t, c->error);
    if (!from)
        return -1;
    const trace_tensor *x = &from->entries[c->vectors[group].entry[kind]].tensor;
    const trace_tensor like = {.dtype = x->dtype, .format = x->format, .shape = p->shape, .rank = p->rank};
    const int result = trace_parts_tensor(t, name, &like, c->error) ? 0 : -1;
    trace_parts_leave(t, c->sources[0]);
    return result;
}

/* Stages 1 and 2: parameter p is elements [at, at + count) of the vector of its group, which the ranks' parts make
 * up. `rank` is the one that holds element `at`, whose part begins at `begins`. */
static int flat_pieces(zero_checkpoint *c, const zero_parameter *p, int kind, uint64_t at, size_t rank, uint64_t begins)
{
    for (uint64_t done = 0; done < p->count; rank++) {
        if (rank == c->ranks)
            return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "the partitions of group %" PRIu32 " end within '%s'",
                              p->group, p->name);
        const zero_vector *v = &c->vectors[rank * c->groups + p->group];
        const uint64_t from = at + done - begins, left = v->count - from;
        const uint64_t n = left < p->count - done ? left : p->count - done;
        if (trace_parts_run(c->t, c->sources[rank], v->entry[kind], from, done, done + n, c->error))
            return -1;
        done += n;
        begins += v->count;
    }
    return 0;
}

/* Where the walk through the vectors is: stages 1 and 2, for each group. */
typedef struct place {
    uint64_t at, begins;
    size_t rank;
} place;

static int flat_tensors(zero_checkpoint *c, int kind)
{
    place *places = calloc(c->groups, sizeof *places);
    int result = places ? 0 : trace_no_memory(c->t, c->error);
    for (size_t i = 0; i < c->n && result == 0; i++) {
        const zero_parameter *p = &c->parameters[i];
        if (p->group >= c->groups) {
            result = trace_fail(c->t, c->error, TRACE_NO_OFFSET, "no partition holds group %" PRIu32 ", which has '%s'",
                                p->group, p->name);
            break;
        }
        place *w = &places[p->group];
        const zero_vector *v = &c->vectors[p->group];
        if (v->entry[kind] == PARTS_ONLY)
            continue;
        while (w->rank < c->ranks && w->at - w->begins >= v[w->rank * c->groups].count)
            w->begins += v[w->rank++ * c->groups].count;
        result = begin_tensor(c, p, kind, p->group) || flat_pieces(c, p, kind, w->at, w->rank, w->begins) ||
                         trace_parts_whole(c->t, c->error)
                     ? -1
                     : 0;
        if (p->padding > UINT64_MAX / 4 - p->count || w->at > UINT64_MAX / 4)
            result = trace_fail(c->t, c->error, TRACE_NO_OFFSET, "the padding behind '%s' is too large", p->name);
        w->at += p->count + p->padding;
    }
    for (size_t g = 0; g < c->groups && result == 0 && kind == 0; g++) {
        uint64_t there = 0, align = 2 * (uint64_t)c->ranks;
        for (size_t r = 0; r < c->ranks; r++)
            there += c->vectors[r * c->groups + g].count;
        if (parts_of(there, align) != parts_of(places[g].at, align))
            result = trace_fail(c->t, c->error, TRACE_NO_OFFSET,
                                "the partitions of group %zu have %" PRIu64 " elements, its parameters need %" PRIu64,
                                g, there, places[g].at);
    }
    free(places);
    return result;
}

/* Stage 3: elements [at, at + part) of each rank's vectors, one behind the other, are the rank's part of p. Vector
 * `group` holds element `at`, it begins at `begins`. */
static int cut_pieces(zero_checkpoint *c, const zero_parameter *p, int kind, uint64_t at, size_t group, uint64_t begins)
{
    const uint64_t part = parts_of(p->count, c->ranks);
    for (size_t r = 0; r < c->ranks; r++) {
        size_t g = group;
        uint64_t start = begins, done = r * part;
        const uint64_t end = p->count - done < part ? p->count : done + part;
        for (uint64_t from = at; done < p->count && done < end; g++) {
            if (g == c->groups)
                return trace_fail(c->t, c->error, TRACE_NO_OFFSET, "the partitions end within '%s'", p->name);
            const zero_vector *v = &c->vectors[r * c->groups + g];
            const uint64_t left = v->count - (from - start), n = left < end - done ? left : end - done;
            if (trace_parts_run(c->t, c->sources[r], v->entry[kind], from - start, done, done + n, c->error))
                return -1;
            done += n;
            from += n;
            start += v->count;
        }
        if (done >= p->count)
            break;
    }
    return 0;
}

static int cut_tensors(zero_checkpoint *c, int kind)
{
    uint64_t at = 0, begins = 0, there = 0;
    size_t g = 0;
    for (size_t i = 0; i < c->groups; i++) {
        there += c->vectors[i].count;
        if (c->vectors[i].entry[kind] == PARTS_ONLY)
            return 0;
    }
    for (size_t i = 0; i < c->n; i++) {
        const zero_parameter *p = &c->parameters[i];
        while (g < c->groups && at - begins >= c->vectors[g].count)
            begins += c->vectors[g++].count;
        if (begin_tensor(c, p, kind, g < c->groups ? g : 0) || cut_pieces(c, p, kind, at, g, begins) ||
            trace_parts_whole(c->t, c->error))
            return -1;
        at += parts_of(p->count, c->ranks);
    }
    return at == there ? 0
                       : trace_fail(c->t, c->error, TRACE_NO_OFFSET,
                                    "the partitions have %" PRIu64 " elements, the "
                                    "parameters need %" PRIu64 " of each rank",
                                    there, at);
}

int trace_zero_tensors(zero_checkpoint *c)
{
    int result = 0;
    for (int kind = 0; kind < ZERO_KINDS && result == 0; kind++)
        result = c->stage == 3 ? cut_tensors(c, kind) : flat_tensors(c, kind);
    return result;
}
