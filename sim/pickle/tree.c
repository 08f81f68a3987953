/* tree.c -- the values of a tree: how they are kept, and what they say. */
#include "impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const value *at(const pickle *p, pickle_ref r)
{
    return (const value *)p->values.p + r;
}

static unsigned kind(const pickle *p, pickle_ref r)
{
    return r ? (unsigned)(at(p, r)->word & 0xff) : (unsigned)PICKLE_NOTHING;
}

static uint64_t above(const pickle *p, pickle_ref r)
{
    return at(p, r)->word >> 8;
}

static pickle_ref ref_at(const pickle *p, size_t i)
{
    return ((const pickle_ref *)p->refs.p)[i];
}

/* ---- making ---- */

int pickle_pool_room(pickle *p, pool *a, size_t n, size_t size)
{
    if (n <= a->room - a->n)
        return 0;
    const size_t need = a->n + n, more = a->room / 2 < 16 ? 16 : a->room / 2;
    const size_t room = need > a->room + more ? need : a->room + more;
    if (room >= UINT32_MAX || (room - a->room) * size > p->max_memory - p->memory) {
        errno = E2BIG;
        return -1;
    }
    void *q = realloc(a->p, room * size);
    if (!q) {
        errno = ENOMEM;
        return -1;
    }
    p->memory += (room - a->room) * size;
    a->p = q;
    a->room = room;
    return 0;
}

pickle_ref pickle_tree_value(pickle *p, uint64_t word, uint64_t n)
{
    if (p->values.n == 0)
        p->values.n = pickle_pool_room(p, &p->values, 2, sizeof(value)) == 0; /* 0 is what is not there */
    if (pickle_pool_room(p, &p->values, 1, sizeof(value)))
        return 0;
    value *v = (value *)p->values.p + p->values.n;
    v->word = word;
    v->u.n = n;
    return (pickle_ref)p->values.n++;
}

static pickle_ref pair_of(pickle *p, uint64_t word, size_t a, size_t b)
{
    const pickle_ref r = pickle_tree_value(p, word, 0);
    if (r) {
        value *v = (value *)p->values.p + r;
        v->u.two[0] = (uint32_t)a;
        v->u.two[1] = (uint32_t)b;
    }
    return r;
}

pickle_ref pickle_tree_text(pickle *p, int type, const char *s, size_t n)
{
    if (pickle_pool_room(p, &p->chars, n + 1, 1))
        return 0;
    char *to = (char *)p->chars.p + p->chars.n;
    memcpy(to, s, n);
    to[n] = 0;
    const size_t where = p->chars.n;
    p->chars.n += n + 1;
    return pair_of(p, (uint64_t)type, where, n);
}

pickle_ref pickle_tree_container(pickle *p, pickle_type type, const pickle_ref *items, size_t n)
{
    const pickle_ref r = pair_of(p, (uint64_t)type, 0, 0);
    return r && pickle_tree_append(p, r, items, n) == 0 ? r : 0;
}

/* Items follow each other in the pool; what grows and is not the last there moves, with room to grow. */
int pickle_tree_append(pickle *p, pickle_ref container, const pickle_ref *items, size_t n)
{
    if (n == 0)
        return 0;
    size_t first = at(p, container)->u.two[0], count = at(p, container)->u.two[1], room = (size_t)above(p, container);
    if (n > room - count) {
        const int last = room && first + room == p->refs.n;
        const size_t wanted = count ? count + n + (count + n) / 2 : n;
        if (pickle_pool_room(p, &p->refs, last ? wanted - room : wanted, sizeof(pickle_ref)))
            return -1;
        pickle_ref *refs = p->refs.p;
        if (!last) {
            if (count)
                memcpy(refs + p->refs.n, refs + first, count * sizeof *refs);
            first = p->refs.n;
            room = 0;
        }
        p->refs.n += wanted - room;
        room = wanted;
    }
    value *v = (value *)p->values.p + container;
    memcpy((pickle_ref *)p->refs.p + first + count, items, n * sizeof *items);
    v->word = (v->word & 0xff) | (uint64_t)room << 8;
    v->u.two[0] = (uint32_t)first;
    v->u.two[1] = (uint32_t)(count + n);
    return 0;
}

pickle_ref pickle_tree_object(pickle *p, pickle_ref callable, pickle_ref args, pickle_use use)
{
    return pair_of(p, PICKLE_OBJECT | (uint64_t)use << 48, callable, args);
}

pickle_ref *pickle_tree_part(pickle *p, pickle_ref object, int part)
{
    size_t first = above(p, object) & UINT32_MAX;
    if (!first) {
        if (p->refs.n == 0)
            p->refs.n = pickle_pool_room(p, &p->refs, PARTS + 1, sizeof(pickle_ref)) == 0;
        if (pickle_pool_room(p, &p->refs, PARTS, sizeof(pickle_ref)))
            return NULL;
        first = p->refs.n;
        memset((pickle_ref *)p->refs.p + first, 0, PARTS * sizeof(pickle_ref));
        p->refs.n += PARTS;
        ((value *)p->values.p + object)->word |= (uint64_t)first << 8;
    }
    return (pickle_ref *)p->refs.p + first + (size_t)part;
}

void pickle_free(pickle *p)
{
    if (!p)
        return;
    free(p->values.p);
    free(p->refs.p);
    free(p->chars.p);
    free(p);
}

/* ---- asking ---- */

pickle_ref pickle_root(const pickle *p)
{
    return p->root;
}

uint64_t pickle_end(const pickle *p)
{
    return p->end;
}

size_t pickle_memory(const pickle *p)
{
    return p->memory;
}

size_t pickle_values(const pickle *p)
{
    return p->values.n;
}

pickle_type pickle_type_of(const pickle *p, pickle_ref r)
{
    const unsigned k = kind(p, r);
    return k > PICKLE_PERSISTENT ? PICKLE_TEXT : (pickle_type)k;
}

int pickle_int(const pickle *p, pickle_ref r, int64_t *out)
{
    if (kind(p, r) != PICKLE_INT && kind(p, r) != PICKLE_BOOL)
        return -1;
    *out = at(p, r)->u.i;
    return 0;
}

int pickle_float(const pickle *p, pickle_ref r, double *out)
{
    if (kind(p, r) != PICKLE_FLOAT)
        return -1;
    *out = at(p, r)->u.d;
    return 0;
}

static const char *chars(const pickle *p, pickle_ref r, size_t *n)
{
    *n = at(p, r)->u.two[1];
    return (const char *)p->chars.p + at(p, r)->u.two[0];
}

const unsigned char *pickle_big(const pickle *p, pickle_ref r, size_t *n)
{
    return kind(p, r) == PICKLE_BIG ? (const unsigned char *)chars(p, r, n) : NULL;
}

const char *pickle_text(const pickle *p, pickle_ref r, size_t *n)
{
    return kind(p, r) == PICKLE_TEXT || kind(p, r) == TEXT_BYTES ? chars(p, r, n) : NULL;
}

int pickle_is_text(const pickle *p, pickle_ref r, const char *text)
{
    size_t n;
    const char *s = pickle_text(p, r, &n);
    return s && n == strlen(text) && memcmp(s, text, n) == 0;
}

int pickle_data(const pickle *p, pickle_ref r, pickle_bytes *data)
{
    size_t n;
    const unsigned k = kind(p, r);
    memset(data, 0, sizeof *data);
    if ((data->memory = pickle_text(p, r, &n))) {
        data->n = n;
        data->coding = k == TEXT_BYTES ? PICKLE_PLAIN : PICKLE_UTF8;
        return 0;
    }
    if (k != PICKLE_BYTES && k < TEXT_AT)
        return -1;
    data->at = above(p, r);
    data->n = at(p, r)->u.n;
    data->coding = k == PICKLE_BYTES ? PICKLE_PLAIN : (pickle_coding)(k - TEXT_AT);
    return 0;
}

static int is_container(unsigned k)
{
    return k == PICKLE_LIST || k == PICKLE_TUPLE || k == PICKLE_SET || k == PICKLE_DICT;
}

size_t pickle_count(const pickle *p, pickle_ref r)
{
    const unsigned k = kind(p, r);
    return !is_container(k) ? 0 : k == PICKLE_DICT ? at(p, r)->u.two[1] / 2 : at(p, r)->u.two[1];
}

pickle_ref pickle_item(const pickle *p, pickle_ref r, size_t i)
{
    if (i >= pickle_count(p, r))
        return 0;
    return ref_at(p, at(p, r)->u.two[0] + (kind(p, r) == PICKLE_DICT ? 2 * i + 1 : i));
}

pickle_ref pickle_key(const pickle *p, pickle_ref r, size_t i)
{
    return kind(p, r) == PICKLE_DICT && i < pickle_count(p, r) ? ref_at(p, at(p, r)->u.two[0] + 2 * i) : 0;
}

pickle_ref pickle_get(const pickle *p, pickle_ref r, const char *key)
{
    const pickle_ref d = kind(p, r) == PICKLE_OBJECT ? pickle_dict(p, r) : r;
    for (size_t i = pickle_count(p, d); i-- > 0;)
        if (pickle_is_text(p, pickle_key(p, d, i), key))
            return pickle_item(p, d, i);
    return 0;
}

const char *pickle_global(const pickle *p, pickle_ref r)
{
    size_t n;
    if (kind(p, r) == PICKLE_OBJECT)
        r = at(p, r)->u.ref[0];
    return kind(p, r) == PICKLE_GLOBAL ? chars(p, r, &n) : NULL;
}

pickle_ref pickle_callable(const pickle *p, pickle_ref r)
{
    return kind(p, r) == PICKLE_OBJECT ? at(p, r)->u.ref[0] : 0;
}

pickle_ref pickle_args(const pickle *p, pickle_ref r)
{
    return kind(p, r) == PICKLE_OBJECT ? at(p, r)->u.ref[1] : 0;
}

static pickle_ref part(const pickle *p, pickle_ref r, int which)
{
    const size_t first = kind(p, r) == PICKLE_OBJECT ? above(p, r) & UINT32_MAX : 0;
    return first ? ref_at(p, first + (size_t)which) : 0;
}

pickle_ref pickle_kwargs(const pickle *p, pickle_ref r)
{
    return part(p, r, PART_KWARGS);
}

pickle_ref pickle_state(const pickle *p, pickle_ref r)
{
    return part(p, r, PART_STATE);
}

pickle_ref pickle_list(const pickle *p, pickle_ref r)
{
    return part(p, r, PART_LIST);
}

pickle_ref pickle_dict(const pickle *p, pickle_ref r)
{
    return part(p, r, PART_DICT);
}

pickle_use pickle_use_of(const pickle *p, pickle_ref r)
{
    return kind(p, r) == PICKLE_OBJECT ? (pickle_use)(above(p, r) >> 40) : PICKLE_NAMED;
}

pickle_ref pickle_persistent(const pickle *p, pickle_ref r)
{
    return kind(p, r) == PICKLE_PERSISTENT ? at(p, r)->u.ref[0] : 0;
}
