/* stack.c -- the stack of the pickle machine, its marks, its memo, and the instructions that need nothing else. */
#include "machine.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

int pickle_machine_full(machine *m)
{
    if (errno != E2BIG) {
        m->in.error->what = PICKLE_NO_MEMORY;
        return -1;
    }
    return pickle_input_fail(&m->in, m->op_at, "what the pickle describes takes more than %zu MiB of memory",
                             m->rules->max_memory >> 20);
}

int pickle_machine_bad(machine *m, const char *why)
{
    return pickle_input_fail(&m->in, m->op_at, "the pickle is not valid: %s", why);
}

/* ---- the stack ---- */

int pickle_machine_push(machine *m, pickle_ref r)
{
    if (!r || pickle_pool_room(m->p, &m->stack, 1, sizeof r))
        return pickle_machine_full(m);
    ((pickle_ref *)m->stack.p)[m->stack.n++] = r;
    return 0;
}

/* How deep the stack may be popped: to the last mark. */
static size_t floor_of(const machine *m)
{
    return m->marks.n ? ((const size_t *)m->marks.p)[m->marks.n - 1] : 0;
}

pickle_ref *pickle_machine_top(machine *m, size_t n)
{
    if (m->stack.n - floor_of(m) < n) {
        pickle_machine_bad(m, "the stack is empty");
        return NULL;
    }
    return (pickle_ref *)m->stack.p + m->stack.n - n;
}

pickle_ref *pickle_machine_since_mark(machine *m, size_t *n)
{
    static pickle_ref nothing;
    if (m->marks.n == 0) {
        pickle_machine_bad(m, "a mark is needed on the stack, and there is none");
        return NULL;
    }
    const size_t floor = floor_of(m);
    m->marks.n--;
    *n = m->stack.n - floor;
    m->stack.n = floor;
    return *n ? (pickle_ref *)m->stack.p + floor : &nothing;
}

int pickle_op_mark(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    if (pickle_pool_room(m->p, &m->marks, 1, sizeof(size_t)))
        return pickle_machine_full(m);
    ((size_t *)m->marks.p)[m->marks.n++] = m->stack.n;
    return 0;
}

int pickle_op_pop(machine *m, uint64_t u, int arg)
{
    (void)u;
    size_t n;
    if (arg || (m->marks.n && m->stack.n == floor_of(m))) /* POP_MARK; POP of a mark */
        return pickle_machine_since_mark(m, &n) ? 0 : -1;
    if (!pickle_machine_top(m, 1))
        return -1;
    m->stack.n--;
    return 0;
}

int pickle_op_dup(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    const pickle_ref *last = pickle_machine_top(m, 1);
    return last ? pickle_machine_push(m, *last) : -1;
}

/* ---- the memo ---- */

/* Picklers number what they keep one after the other: no index is far above their count. */
static int put(machine *m, uint64_t index)
{
    if (!pickle_machine_top(m, 1))
        return -1;
    if (index > 2 * m->memoized + 1024)
        return pickle_input_fail(&m->in, m->op_at,
                                 "the pickle keeps a value under the number %" PRIu64 " after %" PRIu64 " others",
                                 index, m->memoized);
    if (index >= m->memo.n) {
        const size_t more = (size_t)index + 1 - m->memo.n;
        if (pickle_pool_room(m->p, &m->memo, more, sizeof(pickle_ref)))
            return pickle_machine_full(m);
        memset((pickle_ref *)m->memo.p + m->memo.n, 0, more * sizeof(pickle_ref));
        m->memo.n += more;
    }
    m->memoized += !((pickle_ref *)m->memo.p)[index];
    ((pickle_ref *)m->memo.p)[index] = *pickle_machine_top(m, 1);
    return 0;
}

static int get(machine *m, uint64_t index)
{
    const pickle_ref r = index < m->memo.n ? ((const pickle_ref *)m->memo.p)[index] : 0;
    return r ? pickle_machine_push(m, r)
             : pickle_input_fail(&m->in, m->op_at, "the pickle has kept nothing under the number %" PRIu64, index);
}

int pickle_op_put(machine *m, uint64_t u, int arg)
{
    return put(m, arg ? m->memoized : u); /* arg: MEMOIZE */
}

int pickle_op_get(machine *m, uint64_t u, int arg)
{
    (void)arg;
    return get(m, u);
}

int pickle_op_memo_line(machine *m, uint64_t u, int arg)
{
    (void)u;
    const char *s;
    uint64_t at, n, index = 0;
    if (pickle_input_line(&m->in, &s, &at, &n))
        return -1;
    if (!s || n == 0 || n > 18)
        return pickle_machine_bad(m, "a line is not a number of the memo");
    for (uint64_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return pickle_machine_bad(m, "a line is not a number of the memo");
        index = index * 10 + (uint64_t)(s[i] - '0');
    }
    return arg ? put(m, index) : get(m, index);
}
