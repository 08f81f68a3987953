/* torchtensor.c -- a view of a storage becomes a tensor, if its elements are within the storage. */
#include "torch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

int trace_torch_sizes(const trace *t, const pickle *p, pickle_ref r, const char *name, const char *what, uint64_t *out,
                      trace_error *error)
{
    /* torch.Size((2, 3)) */
    if (pickle_type_of(p, r) == PICKLE_OBJECT)
        r = pickle_item(p, pickle_args(p, r), 0);
    const pickle_type type = pickle_type_of(p, r);
    const size_t n = pickle_count(p, r);
    if (type != PICKLE_TUPLE && type != PICKLE_LIST)
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%.200s': %s is not a tuple", name, what);
    if (n > TRACE_RANK_MAX)
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%.200s' has more than %d dimensions", name,
                          TRACE_RANK_MAX);
    for (size_t i = 0; i < n; i++) {
        int64_t u;
        if (pickle_type_of(p, pickle_item(p, r, i)) != PICKLE_INT || pickle_int(p, pickle_item(p, r, i), &u) || u < 0)
            return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%.200s': %s is not of natural numbers", name, what);
        out[i] = (uint64_t)u;
    }
    return (int)n;
}

/* The largest index of an element, or -1: it is past any storage. */
static int last_index(const torch_view *v, uint64_t *last)
{
    *last = v->offset;
    for (size_t i = 0; i < v->rank; i++) {
        const uint64_t steps = v->size[i] - 1;
        if (steps && v->stride[i] > (INT64_MAX - *last) / steps)
            return -1;
        *last += steps * v->stride[i];
    }
    return 0;
}

/* Dimensions of one element go, those that follow each other are joined. */
static int add_place(trace *t, const trace_options *options, trace_entry *e, const torch_view *v, trace_error *error)
{
    torch_state *s = t->state;
    s->ratio = trace_ratio(options);
    uint64_t dims[2 * TRACE_RANK_MAX], *size = dims, *stride = dims + TRACE_RANK_MAX;
    size_t rank = 0;
    for (size_t i = 0; i < v->rank && e->tensor.count; i++) {
        if (v->size[i] == 1)
            continue;
        if (rank && stride[rank - 1] == v->stride[i] * v->size[i]) {
            size[rank - 1] *= v->size[i];
            stride[rank - 1] = v->stride[i];
        } else {
            size[rank] = v->size[i];
            stride[rank++] = v->stride[i];
        }
    }
    if (s->n_places == s->places_room) {
        const size_t room = s->places_room ? s->places_room + s->places_room / 2 : 16;
        torch_place *p = realloc(s->places, room * sizeof *p);
        if (!p)
            return trace_no_memory(t, error);
        t->arena_bytes += (room - s->places_room) * sizeof *p;
        s->places = p;
        s->places_room = room;
    }
    uint64_t *kept = rank ? trace_alloc(t, 2 * rank * sizeof *kept) : dims;
    if (!kept)
        return trace_no_memory(t, error);
    memcpy(kept, size, rank * sizeof *kept);
    memcpy(kept + rank, stride, rank * sizeof *kept);
    e->at = s->n_places;
    s->places[s->n_places++] = (torch_place){.section = v->storage.section,
                                             .width = v->width,
                                             .rank = (uint8_t)rank,
                                             .flip = v->flip != 0,
                                             .beyond = (uint8_t)trace_shows(t, options, e->bytes),
                                             .first = v->storage.first + (e->bytes ? v->offset * v->width : 0),
                                             .size = rank ? kept : NULL};
    return 0;
}

/* Whether all elements of a view are within its storage. One without elements may begin anywhere: torch writes such views of
 * every second row or the like behind the end, and reads them. */
static int check_view(const trace *t, const char *name, const torch_view *v, uint64_t count, trace_error *error)
{
    uint64_t last;
    const uint64_t room = v->storage.bytes / v->width;
    if (v->storage.bytes % v->width)
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "tensor '%.200s': a storage of %" PRIu64 " bytes does not hold whole elements of %s", name,
                          v->storage.bytes, v->dtype);
    if (count && v->offset > room)
        return trace_fail(t, error, TRACE_NO_OFFSET,
                          "tensor '%.200s' begins at element %" PRIu64 " of a storage of %" PRIu64, name, v->offset,
                          room);
    if (count && (last_index(v, &last) || last >= room))
        return trace_fail(t, error, TRACE_NO_OFFSET, "tensor '%.200s' reaches past its storage of %" PRIu64 " elements",
                          name, room);
    return 0;
}

int trace_torch_add(trace *t, const trace_options *options, const char *name, const torch_view *v, trace_error *error)
{
    torch_state *s = t->state;
    uint64_t count, bytes;
    if (trace_shape_bytes(v->size, v->rank, v->width * 8u, &count, &bytes) || bytes > INT64_MAX)
        return trace_fail(t, error, TRACE_NO_OFFSET, "the shape of tensor '%.200s' is too large", name);
    if (!v->nowhere && check_view(t, name, v, count, error))
        return -1;
    trace_entry *e = trace_add(t, error);
    if (!e)
        return -1;
    uint64_t *shape = trace_alloc(t, v->rank * sizeof *shape);
    trace_tensor *x = &e->tensor;
    x->name = trace_string(t, name, strlen(name));
    if (!shape || !x->name)
        return trace_no_memory(t, error);
    if (v->rank)
        memcpy(shape, v->size, v->rank * sizeof *shape);
    x->dtype = v->dtype;
    x->shape = shape;
    x->rank = v->rank;
    x->count = count;
    e->bytes = bytes;
    e->at = UINT64_MAX;
    if (v->nowhere) {
        s->no_numbers++;
        e->nowhere = 1;
        x->unread = "the file does not hold its elements";
        return 0;
    }
    x->format = trace_torch_format(options, v->dtype, v->format);
    if (x->format && mpsim_format_code_bytes(x->format) != v->width)
        return trace_fail(t, error, TRACE_NO_OFFSET, "elements of dtype %s cannot be codes of %s", v->dtype,
                          x->format->name);
    x->big_endian = v->storage.big_endian && v->width > 1;
    if (add_place(t, options, e, v, error))
        return -1;
    const torch_section *section = &s->sections[v->storage.section];
    x->offset = s->places[e->at].first + (section->spooled || section->packed ? 0 : section->at);
    return 0;
}
