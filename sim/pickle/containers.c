/* containers.c -- instructions of the pickle machine that make and fill lists, tuples, sets and dicts. */
#include "machine.h"

#include <string.h>

int pickle_op_empty(machine *m, uint64_t u, int arg)
{
    (void)u;
    return pickle_machine_push(m,
                               arg == PICKLE_TUPLE ? m->empty : pickle_tree_container(m->p, (pickle_type)arg, NULL, 0));
}

/* What stands above the mark, to be the items of a container. */
static const pickle_ref *items_since_mark(machine *m, int container, size_t *n)
{
    const pickle_ref *items = pickle_machine_since_mark(m, n);
    if (items && container == PICKLE_DICT && *n % 2) {
        pickle_machine_bad(m, "a dict of an odd number of values");
        return NULL;
    }
    return items;
}

/* Of what stands above the mark. */
int pickle_op_collect(machine *m, uint64_t u, int arg)
{
    (void)u;
    size_t n;
    const pickle_ref *items = items_since_mark(m, arg, &n);
    if (!items)
        return -1;
    return pickle_machine_push(m, pickle_tree_container(m->p, (pickle_type)arg, items, n));
}

/* Puts r in place of the last n. */
static int replace(machine *m, size_t n, pickle_ref r)
{
    m->stack.n -= n;
    return pickle_machine_push(m, r);
}

int pickle_op_tuple(machine *m, uint64_t u, int n)
{
    (void)u;
    const pickle_ref *items = pickle_machine_top(m, (size_t)n);
    return items ? replace(m, (size_t)n, pickle_tree_container(m->p, PICKLE_TUPLE, items, (size_t)n)) : -1;
}

/* Adds to the container, or to that part of the object, on the stack; arg: PICKLE_LIST, PICKLE_DICT or PICKLE_SET. */
static int extend(machine *m, const pickle_ref *items, size_t n, int arg)
{
    const pickle_ref *to = pickle_machine_top(m, 1);
    if (!to)
        return -1;
    pickle_ref container = *to;
    if (pickle_type_of(m->p, container) == PICKLE_OBJECT) {
        pickle_ref *part = pickle_tree_part(m->p, container, arg == PICKLE_DICT ? PART_DICT : PART_LIST);
        if (!part)
            return pickle_machine_full(m);
        if (!*part) {
            const pickle_ref made = pickle_tree_container(m->p, arg == PICKLE_DICT ? PICKLE_DICT : PICKLE_LIST, NULL,
                                                          0);
            part = pickle_tree_part(m->p, container, arg == PICKLE_DICT ? PART_DICT : PART_LIST);
            if (!made || !part)
                return pickle_machine_full(m);
            *part = made;
        }
        container = *part;
    } else if (pickle_type_of(m->p, container) != (pickle_type)arg) {
        return pickle_machine_bad(m, "items are added to a value that cannot hold them");
    }
    return pickle_tree_append(m->p, container, items, n) ? pickle_machine_full(m) : 0;
}

int pickle_op_append(machine *m, uint64_t u, int arg)
{
    (void)u;
    const size_t n = arg == PICKLE_DICT ? 2 : 1;
    pickle_ref items[2];
    const pickle_ref *last = pickle_machine_top(m, n);
    if (!last)
        return -1;
    memcpy(items, last, n * sizeof *last);
    m->stack.n -= n;
    return extend(m, items, n, arg);
}

int pickle_op_extend(machine *m, uint64_t u, int arg)
{
    (void)u;
    size_t n;
    const pickle_ref *items = items_since_mark(m, arg, &n);
    if (!items)
        return -1;
    return extend(m, items, n, arg); /* what is popped stays where it is meanwhile */
}
