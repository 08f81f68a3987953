/* objects.c -- instructions of the pickle machine that name globals, and make objects of them. */
#include "machine.h"

#include <string.h>

enum { GLOBAL_BYTES = 1000 };

/* Whether the rules refuse what is on its way into the tree. */
static int refused(machine *m, pickle_ref what, pickle_use use)
{
    const char *name = NULL;
    if (m->rules->refused)
        name = m->rules->refused(m->rules->context, m->p, what, use);
    else if (pickle_type_of(m->p, what) < PICKLE_GLOBAL)
        name = "expected, found another value";
    return name ? pickle_input_fail(&m->in, m->op_at, "refused: global %s", name) : 0;
}

static int push_global(machine *m, const char *module, size_t module_bytes, const char *name, size_t name_bytes)
{
    char text[GLOBAL_BYTES];
    if (module_bytes + name_bytes + 2 > sizeof text || memchr(module, 0, module_bytes) || memchr(name, 0, name_bytes))
        return pickle_machine_bad(m, "the name of a global is too long, or holds a NUL");
    memcpy(text, module, module_bytes);
    text[module_bytes] = '.';
    memcpy(text + module_bytes + 1, name, name_bytes);
    text[module_bytes + 1 + name_bytes] = 0;
    const pickle_ref r = pickle_tree_text(m->p, PICKLE_GLOBAL, text, module_bytes + 1 + name_bytes);
    return r && refused(m, r, PICKLE_NAMED) ? -1 : pickle_machine_push(m, r);
}

int pickle_op_stack_global(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    size_t a, b;
    const pickle_ref *two = pickle_machine_top(m, 2);
    const char *module = two ? pickle_text(m->p, two[0], &a) : NULL;
    const char *name = two ? pickle_text(m->p, two[1], &b) : NULL;
    if (!two)
        return -1;
    if (!module || !name)
        return pickle_machine_bad(m, "the name of a global is not a string");
    m->stack.n -= 2;
    return push_global(m, module, a, name, b);
}

/* args: a tuple. */
static int push_object(machine *m, pickle_ref callable, pickle_ref args, pickle_ref kwargs, pickle_use use)
{
    if (pickle_type_of(m->p, args) != PICKLE_TUPLE)
        return pickle_machine_bad(m, "expected a tuple of arguments, found another value");
    if (refused(m, callable, use))
        return -1;
    const pickle_ref r = pickle_tree_object(m->p, callable, args, use);
    if (r && kwargs && pickle_count(m->p, kwargs)) {
        pickle_ref *part = pickle_tree_part(m->p, r, PART_KWARGS);
        if (!part)
            return pickle_machine_full(m);
        *part = kwargs;
    }
    return pickle_machine_push(m, r);
}

/* Two lines; with arg, what stands above the mark are the arguments: INST. */
int pickle_op_global(machine *m, uint64_t u, int arg)
{
    (void)u;
    char copy[GLOBAL_BYTES];
    const char *s;
    uint64_t at, n, k;
    size_t count;
    if (pickle_input_line(&m->in, &s, &at, &n))
        return -1;
    if (!s || n > sizeof copy)
        return pickle_machine_bad(m, "the name of a global is too long");
    memcpy(copy, s, (size_t)n);
    if (pickle_input_line(&m->in, &s, &at, &k))
        return -1;
    if (!s)
        return pickle_machine_bad(m, "the name of a global is too long");
    if (push_global(m, copy, (size_t)n, s, (size_t)k))
        return -1;
    if (!arg)
        return 0;
    const pickle_ref global = ((pickle_ref *)m->stack.p)[--m->stack.n];
    const pickle_ref *items = pickle_machine_since_mark(m, &count);
    const pickle_ref args = items ? pickle_tree_container(m->p, PICKLE_TUPLE, items, count) : 0;
    return !items ? -1 : !args ? pickle_machine_full(m) : push_object(m, global, args, 0, PICKLE_CALLED);
}

/* REDUCE, NEWOBJ; NEWOBJ_EX has a dict of named arguments, too. */
int pickle_op_object(machine *m, uint64_t u, int use)
{
    (void)u;
    const size_t n = use == PARTS ? 3 : 2;
    const pickle_ref *last = pickle_machine_top(m, n);
    if (!last)
        return -1;
    const pickle_ref callable = last[0], args = last[1], kwargs = n == 3 ? last[2] : 0;
    if (kwargs && pickle_type_of(m->p, kwargs) != PICKLE_DICT)
        return pickle_machine_bad(m, "expected a dict of named arguments, found another value");
    m->stack.n -= n;
    return push_object(m, callable, args, kwargs, n == 3 ? PICKLE_MADE : (pickle_use)use);
}

/* A class and its arguments above the mark. */
int pickle_op_obj(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    size_t n;
    const pickle_ref *items = pickle_machine_since_mark(m, &n);
    if (!items)
        return -1;
    if (n == 0)
        return pickle_machine_bad(m, "an object is made of a value that is not a class");
    const pickle_ref callable = items[0], args = pickle_tree_container(m->p, PICKLE_TUPLE, items + 1, n - 1);
    return args ? push_object(m, callable, args, 0, PICKLE_CALLED) : pickle_machine_full(m);
}

int pickle_op_build(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    const pickle_ref *last = pickle_machine_top(m, 2);
    if (!last)
        return -1;
    const pickle_ref object = last[0], state = last[1];
    if (pickle_type_of(m->p, object) != PICKLE_OBJECT)
        return pickle_machine_bad(m, "a state is set on a value that is not an object");
    pickle_ref *part = pickle_tree_part(m->p, object, PART_STATE);
    if (!part)
        return pickle_machine_full(m);
    if (*part)
        return pickle_machine_bad(m, "an object with two states");
    *part = state;
    m->stack.n--;
    return 0;
}

static int push_persistent(machine *m, pickle_ref id)
{
    const pickle_ref r = pickle_tree_value(m->p, PICKLE_PERSISTENT, 0);
    if (!r || !id)
        return pickle_machine_full(m);
    ((value *)m->p->values.p)[r].u.ref[0] = id;
    return pickle_machine_push(m, r);
}

int pickle_op_persistent(machine *m, uint64_t u, int line)
{
    (void)u;
    const char *s;
    uint64_t at, n;
    if (!line) {
        const pickle_ref *last = pickle_machine_top(m, 1);
        if (!last)
            return -1;
        m->stack.n--;
        return push_persistent(m, *last);
    }
    if (pickle_input_line(&m->in, &s, &at, &n))
        return -1;
    return s ? push_persistent(m, pickle_tree_text(m->p, PICKLE_TEXT, s, (size_t)n))
             : pickle_machine_bad(m, "a long line");
}
