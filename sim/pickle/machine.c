/* machine.c -- the instructions of the pickle machine: a stack, marks, a memo. */
#include "impl.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { SMALL = 256, BIG_BYTES = 256, GLOBAL_BYTES = 1000 };

typedef struct machine {
    pickle *p;
    input in;
    const pickle_rules *rules;
    pool stack, marks, memo; /* pickle_ref, size_t: heights of the stack, pickle_ref */
    uint64_t memoized;
    uint64_t op_at; /* of the instruction that runs      */
    pickle_ref none, yes, no, empty, small[SMALL];
    int stopped;
} machine;

static int fail_room(machine *m)
{
    if (errno != E2BIG) {
        m->in.error->what = PICKLE_NO_MEMORY;
        return -1;
    }
    return input_fail(&m->in, m->op_at, "what the pickle describes takes more than %zu MiB of memory",
                      m->rules->max_memory >> 20);
}

static int bad(machine *m, const char *why)
{
    return input_fail(&m->in, m->op_at, "the pickle is not valid: %s", why);
}

/* ---- the stack ---- */

static int push(machine *m, pickle_ref r)
{
    if (!r || pool_room(m->p, &m->stack, 1, sizeof r))
        return fail_room(m);
    ((pickle_ref *)m->stack.p)[m->stack.n++] = r;
    return 0;
}

/* How deep the stack may be popped: to the last mark. */
static size_t floor_of(const machine *m)
{
    return m->marks.n ? ((const size_t *)m->marks.p)[m->marks.n - 1] : 0;
}

/* The last n of the stack; NULL: there are fewer. */
static pickle_ref *top(machine *m, size_t n)
{
    if (m->stack.n - floor_of(m) < n) {
        bad(m, "the stack is empty");
        return NULL;
    }
    return (pickle_ref *)m->stack.p + m->stack.n - n;
}

/* What stands above the last mark, which is removed; NULL: a mark is needed on the stack, and there is none. */
static pickle_ref *since_mark(machine *m, size_t *n)
{
    static pickle_ref nothing;
    if (m->marks.n == 0) {
        bad(m, "a mark is needed on the stack, and there is none");
        return NULL;
    }
    const size_t floor = floor_of(m);
    m->marks.n--;
    *n = m->stack.n - floor;
    m->stack.n = floor;
    return *n ? (pickle_ref *)m->stack.p + floor : &nothing;
}

/* Puts r in place of the last n. */
static int replace(machine *m, size_t n, pickle_ref r)
{
    m->stack.n -= n;
    return push(m, r);
}

/* ---- values ---- */

static int op_none(machine *m, uint64_t u, int arg)
{
    (void)u;
    return push(m, arg == 'N' ? m->none : arg ? m->yes : m->no);
}

static int push_int(machine *m, int64_t i)
{
    if (i < 0 || i >= SMALL)
        return push(m, tree_value(m->p, PICKLE_INT, (uint64_t)i));
    if (!m->small[i])
        m->small[i] = tree_value(m->p, PICKLE_INT, (uint64_t)i);
    return push(m, m->small[i]);
}

static int op_int(machine *m, uint64_t u, int arg)
{
    return push_int(m, arg ? (int64_t)(int32_t)(uint32_t)u : (int64_t)u); /* arg: BININT is signed */
}

static int push_bytes_int(machine *m, const unsigned char *b, size_t n)
{
    if (n > 8)
        return push(m, tree_text(m->p, PICKLE_BIG, (const char *)b, n));
    uint64_t u = n && b[n - 1] & 0x80 ? UINT64_MAX : 0;
    for (size_t i = n; i-- > 0;)
        u = u << 8 | b[i];
    return push_int(m, (int64_t)u);
}

static int op_long(machine *m, uint64_t u, int arg)
{
    (void)arg;
    if (u > BIG_BYTES)
        return input_fail(&m->in, m->op_at, "the pickle has an integer of %" PRIu64 " bytes, more than %d", u,
                          BIG_BYTES);
    const unsigned char *b = input_take(&m->in, (size_t)u);
    return b ? push_bytes_int(m, b, (size_t)u) : -1;
}

static int op_float(machine *m, uint64_t u, int arg)
{
    (void)arg;
    uint64_t swapped = 0; /* big-endian in the pickle */
    for (int i = 0; i < 8; i++)
        swapped |= (u >> (8 * i) & 0xff) << (8 * (7 - i));
    return push(m, tree_value(m->p, PICKLE_FLOAT, swapped));
}

/* INT, LONG and FLOAT of protocol 0. */
static int op_number_line(machine *m, uint64_t u, int arg)
{
    (void)u;
    const char *s;
    char copy[1024], *end;
    unsigned char b[BIG_BYTES];
    uint64_t at, n;
    if (input_line(&m->in, &s, &at, &n))
        return -1;
    if (!s || n == 0 || n >= sizeof copy)
        return bad(m, "a line is not a number");
    memcpy(copy, s, (size_t)n);
    copy[n] = 0;
    if (arg == 'F') {
        union {
            double d;
            uint64_t u;
        } x = {.d = strtod(copy, &end)};
        if (*end || strpbrk(copy, "xX( ") || strlen(copy) != n)
            return bad(m, "a line is not a number");
        return push(m, tree_value(m->p, PICKLE_FLOAT, x.u));
    }
    if (arg == 'I' && (strcmp(copy, "01") == 0 || strcmp(copy, "00") == 0))
        return push(m, copy[1] == '1' ? m->yes : m->no);
    const size_t bytes = input_decimal(copy, (size_t)n - (copy[n - 1] == 'L'), b, sizeof b);
    if (bytes == 0)
        return bad(m, "a line is not an integer, or a very long one");
    return push_bytes_int(m, b, bytes);
}

/* Texts with their length in front; arg: PICKLE_TEXT, or TEXT_BYTES of Python 2. */
static int op_text(machine *m, uint64_t u, int arg)
{
    if (u > PICKLE_TEXT_MAX) {
        const uint64_t at = m->in.at;
        const pickle_coding coding = arg == PICKLE_TEXT ? PICKLE_UTF8 : PICKLE_PLAIN;
        return input_skip(&m->in, u) || push(m, tree_value(m->p, (TEXT_AT + coding) | at << 8, u)) ? -1 : 0;
    }
    const char *s = (const char *)input_take(&m->in, (size_t)u);
    if (!s)
        return -1;
    if (arg == PICKLE_TEXT && !input_is_text(s, (size_t)u))
        return bad(m, "a text that is not UTF-8");
    return push(m, tree_text(m->p, arg, s, (size_t)u));
}

static int op_bytes(machine *m, uint64_t u, int arg)
{
    (void)arg;
    const uint64_t at = m->in.at;
    return input_skip(&m->in, u) || push(m, tree_value(m->p, PICKLE_BYTES | at << 8, u)) ? -1 : 0;
}

/* UNICODE and STRING of protocol 0; arg: their coding. */
static int op_text_line(machine *m, uint64_t u, int arg)
{
    (void)u;
    char out[2 * PICKLE_TEXT_MAX + 1];
    const char *s;
    uint64_t at, n;
    if (input_line(&m->in, &s, &at, &n))
        return -1;
    if (!s)
        return push(m, tree_value(m->p, (uint64_t)(TEXT_AT + arg) | at << 8, n));
    const long length = input_unescape((pickle_coding)arg, s, (size_t)n, out);
    if (length < 0)
        return bad(m, "a line is not a string");
    return push(m, tree_text(m->p, arg == PICKLE_QUOTED ? TEXT_BYTES : PICKLE_TEXT, out, (size_t)length));
}

/* ---- containers ---- */

static int op_empty(machine *m, uint64_t u, int arg)
{
    (void)u;
    return push(m, arg == PICKLE_TUPLE ? m->empty : tree_container(m->p, (pickle_type)arg, NULL, 0));
}

/* What stands above the mark, to be the items of a container. */
static const pickle_ref *items_since_mark(machine *m, int container, size_t *n)
{
    const pickle_ref *items = since_mark(m, n);
    if (items && container == PICKLE_DICT && *n % 2) {
        bad(m, "a dict of an odd number of values");
        return NULL;
    }
    return items;
}

/* Of what stands above the mark. */
static int op_collect(machine *m, uint64_t u, int arg)
{
    (void)u;
    size_t n;
    const pickle_ref *items = items_since_mark(m, arg, &n);
    if (!items)
        return -1;
    return push(m, tree_container(m->p, (pickle_type)arg, items, n));
}

static int op_tuple(machine *m, uint64_t u, int n)
{
    (void)u;
    const pickle_ref *items = top(m, (size_t)n);
    return items ? replace(m, (size_t)n, tree_container(m->p, PICKLE_TUPLE, items, (size_t)n)) : -1;
}

/* Adds to the container, or to that part of the object, on the stack; arg: PICKLE_LIST, PICKLE_DICT or PICKLE_SET. */
static int extend(machine *m, const pickle_ref *items, size_t n, int arg)
{
    const pickle_ref *to = top(m, 1);
    if (!to)
        return -1;
    pickle_ref container = *to;
    if (pickle_type_of(m->p, container) == PICKLE_OBJECT) {
        pickle_ref *part = tree_part(m->p, container, arg == PICKLE_DICT ? PART_DICT : PART_LIST);
        if (!part)
            return fail_room(m);
        if (!*part) {
            const pickle_ref made = tree_container(m->p, arg == PICKLE_DICT ? PICKLE_DICT : PICKLE_LIST, NULL, 0);
            part = tree_part(m->p, container, arg == PICKLE_DICT ? PART_DICT : PART_LIST);
            if (!made || !part)
                return fail_room(m);
            *part = made;
        }
        container = *part;
    } else if (pickle_type_of(m->p, container) != (pickle_type)arg) {
        return bad(m, "items are added to a value that cannot hold them");
    }
    return tree_append(m->p, container, items, n) ? fail_room(m) : 0;
}

static int op_append(machine *m, uint64_t u, int arg)
{
    (void)u;
    const size_t n = arg == PICKLE_DICT ? 2 : 1;
    pickle_ref items[2];
    const pickle_ref *last = top(m, n);
    if (!last)
        return -1;
    memcpy(items, last, n * sizeof *last);
    m->stack.n -= n;
    return extend(m, items, n, arg);
}

static int op_extend(machine *m, uint64_t u, int arg)
{
    (void)u;
    size_t n;
    const pickle_ref *items = items_since_mark(m, arg, &n);
    if (!items)
        return -1;
    return extend(m, items, n, arg); /* what is popped stays where it is meanwhile */
}

static int op_mark(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    if (pool_room(m->p, &m->marks, 1, sizeof(size_t)))
        return fail_room(m);
    ((size_t *)m->marks.p)[m->marks.n++] = m->stack.n;
    return 0;
}

static int op_pop(machine *m, uint64_t u, int arg)
{
    (void)u;
    size_t n;
    if (arg || (m->marks.n && m->stack.n == floor_of(m))) /* POP_MARK; POP of a mark */
        return since_mark(m, &n) ? 0 : -1;
    if (!top(m, 1))
        return -1;
    m->stack.n--;
    return 0;
}

static int op_dup(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    const pickle_ref *last = top(m, 1);
    return last ? push(m, *last) : -1;
}

/* ---- the memo ---- */

/* Picklers number what they keep one after the other: no index is far above their count. */
static int put(machine *m, uint64_t index)
{
    if (!top(m, 1))
        return -1;
    if (index > 2 * m->memoized + 1024)
        return input_fail(&m->in, m->op_at,
                          "the pickle keeps a value under the number %" PRIu64 " after %" PRIu64 " others", index,
                          m->memoized);
    if (index >= m->memo.n) {
        const size_t more = (size_t)index + 1 - m->memo.n;
        if (pool_room(m->p, &m->memo, more, sizeof(pickle_ref)))
            return fail_room(m);
        memset((pickle_ref *)m->memo.p + m->memo.n, 0, more * sizeof(pickle_ref));
        m->memo.n += more;
    }
    m->memoized += !((pickle_ref *)m->memo.p)[index];
    ((pickle_ref *)m->memo.p)[index] = *top(m, 1);
    return 0;
}

static int get(machine *m, uint64_t index)
{
    const pickle_ref r = index < m->memo.n ? ((const pickle_ref *)m->memo.p)[index] : 0;
    return r ? push(m, r)
             : input_fail(&m->in, m->op_at, "the pickle has kept nothing under the number %" PRIu64, index);
}

static int op_put(machine *m, uint64_t u, int arg)
{
    return put(m, arg ? m->memoized : u); /* arg: MEMOIZE */
}

static int op_get(machine *m, uint64_t u, int arg)
{
    (void)arg;
    return get(m, u);
}

static int op_memo_line(machine *m, uint64_t u, int arg)
{
    (void)u;
    const char *s;
    uint64_t at, n, index = 0;
    if (input_line(&m->in, &s, &at, &n))
        return -1;
    if (!s || n == 0 || n > 18)
        return bad(m, "a line is not a number of the memo");
    for (uint64_t i = 0; i < n; i++) {
        if (s[i] < '0' || s[i] > '9')
            return bad(m, "a line is not a number of the memo");
        index = index * 10 + (uint64_t)(s[i] - '0');
    }
    return arg ? put(m, index) : get(m, index);
}

/* ---- globals and objects ---- */

/* Whether the rules refuse what is on its way into the tree. */
static int refused(machine *m, pickle_ref what, pickle_use use)
{
    const char *name = NULL;
    if (m->rules->refused)
        name = m->rules->refused(m->rules->context, m->p, what, use);
    else if (pickle_type_of(m->p, what) < PICKLE_GLOBAL)
        name = "expected, found another value";
    return name ? input_fail(&m->in, m->op_at, "refused: global %s", name) : 0;
}

static int push_global(machine *m, const char *module, size_t module_bytes, const char *name, size_t name_bytes)
{
    char text[GLOBAL_BYTES];
    if (module_bytes + name_bytes + 2 > sizeof text || memchr(module, 0, module_bytes) || memchr(name, 0, name_bytes))
        return bad(m, "the name of a global");
    memcpy(text, module, module_bytes);
    text[module_bytes] = '.';
    memcpy(text + module_bytes + 1, name, name_bytes);
    text[module_bytes + 1 + name_bytes] = 0;
    const pickle_ref r = tree_text(m->p, PICKLE_GLOBAL, text, module_bytes + 1 + name_bytes);
    return r && refused(m, r, PICKLE_NAMED) ? -1 : push(m, r);
}

static int op_stack_global(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    size_t a, b;
    const pickle_ref *two = top(m, 2);
    const char *module = two ? pickle_text(m->p, two[0], &a) : NULL;
    const char *name = two ? pickle_text(m->p, two[1], &b) : NULL;
    if (!two)
        return -1;
    if (!module || !name)
        return bad(m, "the name of a global is not a string");
    m->stack.n -= 2;
    return push_global(m, module, a, name, b);
}

/* args: a tuple. */
static int push_object(machine *m, pickle_ref callable, pickle_ref args, pickle_ref kwargs, pickle_use use)
{
    if (pickle_type_of(m->p, args) != PICKLE_TUPLE)
        return bad(m, "expected a tuple of arguments, found another value");
    if (refused(m, callable, use))
        return -1;
    const pickle_ref r = tree_object(m->p, callable, args, use);
    if (r && kwargs && pickle_count(m->p, kwargs)) {
        pickle_ref *part = tree_part(m->p, r, PART_KWARGS);
        if (!part)
            return fail_room(m);
        *part = kwargs;
    }
    return push(m, r);
}

/* Two lines; with arg, what stands above the mark are the arguments: INST. */
static int op_global(machine *m, uint64_t u, int arg)
{
    (void)u;
    char copy[GLOBAL_BYTES];
    const char *s;
    uint64_t at, n, k;
    size_t count;
    if (input_line(&m->in, &s, &at, &n))
        return -1;
    if (!s || n > sizeof copy)
        return bad(m, "the name of a global");
    memcpy(copy, s, (size_t)n);
    if (input_line(&m->in, &s, &at, &k))
        return -1;
    if (!s)
        return bad(m, "the name of a global");
    if (push_global(m, copy, (size_t)n, s, (size_t)k))
        return -1;
    if (!arg)
        return 0;
    const pickle_ref global = ((pickle_ref *)m->stack.p)[--m->stack.n];
    const pickle_ref *items = since_mark(m, &count);
    const pickle_ref args = items ? tree_container(m->p, PICKLE_TUPLE, items, count) : 0;
    return !items ? -1 : !args ? fail_room(m) : push_object(m, global, args, 0, PICKLE_CALLED);
}

/* REDUCE, NEWOBJ; NEWOBJ_EX has a dict of named arguments, too. */
static int op_object(machine *m, uint64_t u, int use)
{
    (void)u;
    const size_t n = use == PARTS ? 3 : 2;
    const pickle_ref *last = top(m, n);
    if (!last)
        return -1;
    const pickle_ref callable = last[0], args = last[1], kwargs = n == 3 ? last[2] : 0;
    if (kwargs && pickle_type_of(m->p, kwargs) != PICKLE_DICT)
        return bad(m, "expected a dict of named arguments, found another value");
    m->stack.n -= n;
    return push_object(m, callable, args, kwargs, n == 3 ? PICKLE_MADE : (pickle_use)use);
}

/* A class and its arguments above the mark. */
static int op_obj(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    size_t n;
    const pickle_ref *items = since_mark(m, &n);
    if (!items)
        return -1;
    if (n == 0)
        return bad(m, "an object is made of a value that is not a class");
    const pickle_ref callable = items[0], args = tree_container(m->p, PICKLE_TUPLE, items + 1, n - 1);
    return args ? push_object(m, callable, args, 0, PICKLE_CALLED) : fail_room(m);
}

static int op_build(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    const pickle_ref *last = top(m, 2);
    if (!last)
        return -1;
    const pickle_ref object = last[0], state = last[1];
    if (pickle_type_of(m->p, object) != PICKLE_OBJECT)
        return bad(m, "a state is set on a value that is not an object");
    pickle_ref *part = tree_part(m->p, object, PART_STATE);
    if (!part)
        return fail_room(m);
    if (*part)
        return bad(m, "an object with two states");
    *part = state;
    m->stack.n--;
    return 0;
}

static int push_persistent(machine *m, pickle_ref id)
{
    const pickle_ref r = tree_value(m->p, PICKLE_PERSISTENT, 0);
    if (!r || !id)
        return fail_room(m);
    ((value *)m->p->values.p)[r].u.ref[0] = id;
    return push(m, r);
}

static int op_persistent(machine *m, uint64_t u, int line)
{
    (void)u;
    const char *s;
    uint64_t at, n;
    if (!line) {
        const pickle_ref *last = top(m, 1);
        if (!last)
            return -1;
        m->stack.n--;
        return push_persistent(m, *last);
    }
    if (input_line(&m->in, &s, &at, &n))
        return -1;
    return s ? push_persistent(m, tree_text(m->p, PICKLE_TEXT, s, (size_t)n)) : bad(m, "a long line");
}

/* ---- the rest ---- */

static int op_proto(machine *m, uint64_t u, int arg)
{
    (void)arg;
    return u <= 5 ? 0 : input_fail(&m->in, m->op_at, "pickle protocol %" PRIu64 " is not known", u);
}

static int op_frame(machine *m, uint64_t u, int arg)
{
    (void)arg;
    if (m->in.frame_end && m->in.at < m->in.frame_end)
        return bad(m, "a frame within a frame");
    if (u > m->in.end - m->in.at)
        return input_fail(&m->in, m->op_at, "a frame of the pickle has %" PRIu64 " bytes, there are %" PRIu64, u,
                          m->in.end - m->in.at);
    m->in.frame_end = m->in.at + u;
    return 0;
}

static int op_refused(machine *m, uint64_t u, int arg)
{
    if (arg)
        return input_fail(&m->in, m->op_at, "refused: extension %" PRIu64 ", which only its program knows", u);
    return input_fail(&m->in, m->op_at, "refused: a buffer that is not in the file");
}

static int op_stop(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    const pickle_ref *last = top(m, 1);
    if (!last)
        return -1;
    if (m->marks.n)
        return bad(m, "a mark is left on the stack");
    if (m->in.frame_end && m->in.at < m->in.frame_end)
        return bad(m, "a frame goes on after the end");
    m->p->root = *last;
    m->stopped = 1;
    return 0;
}

/* What stands behind an instruction: that many bytes, the lowest first, of a number. */
enum { NOTHING = 0, B1 = 1, B2 = 2, B4 = 4, B8 = 8 };

static const struct {
    int (*run)(machine *m, uint64_t u, int arg); /* NULL: there is no such instruction */
    unsigned char bytes;
    unsigned char arg;
} ops[256] = {
    ['('] = {op_mark, NOTHING, 0},
    [')'] = {op_empty, NOTHING, PICKLE_TUPLE},
    ['.'] = {op_stop, NOTHING, 0},
    ['0'] = {op_pop, NOTHING, 0},
    ['1'] = {op_pop, NOTHING, 1},
    ['2'] = {op_dup, NOTHING, 0},
    ['B'] = {op_bytes, B4, 0},
    ['C'] = {op_bytes, B1, 0},
    ['F'] = {op_number_line, NOTHING, 'F'},
    ['G'] = {op_float, B8, 0},
    ['I'] = {op_number_line, NOTHING, 'I'},
    ['J'] = {op_int, B4, 1},
    ['K'] = {op_int, B1, 0},
    ['L'] = {op_number_line, NOTHING, 'L'},
    ['M'] = {op_int, B2, 0},
    ['N'] = {op_none, NOTHING, 'N'},
    ['P'] = {op_persistent, NOTHING, 1},
    ['Q'] = {op_persistent, NOTHING, 0},
    ['R'] = {op_object, NOTHING, PICKLE_CALLED},
    ['S'] = {op_text_line, NOTHING, PICKLE_QUOTED},
    ['T'] = {op_text, B4, TEXT_BYTES},
    ['U'] = {op_text, B1, TEXT_BYTES},
    ['V'] = {op_text_line, NOTHING, PICKLE_ESCAPED},
    ['X'] = {op_text, B4, PICKLE_TEXT},
    [']'] = {op_empty, NOTHING, PICKLE_LIST},
    ['a'] = {op_append, NOTHING, PICKLE_LIST},
    ['b'] = {op_build, NOTHING, 0},
    ['c'] = {op_global, NOTHING, 0},
    ['d'] = {op_collect, NOTHING, PICKLE_DICT},
    ['e'] = {op_extend, NOTHING, PICKLE_LIST},
    ['g'] = {op_memo_line, NOTHING, 0},
    ['h'] = {op_get, B1, 0},
    ['i'] = {op_global, NOTHING, 1},
    ['j'] = {op_get, B4, 0},
    ['l'] = {op_collect, NOTHING, PICKLE_LIST},
    ['o'] = {op_obj, NOTHING, 0},
    ['p'] = {op_memo_line, NOTHING, 1},
    ['q'] = {op_put, B1, 0},
    ['r'] = {op_put, B4, 0},
    ['s'] = {op_append, NOTHING, PICKLE_DICT},
    ['t'] = {op_collect, NOTHING, PICKLE_TUPLE},
    ['u'] = {op_extend, NOTHING, PICKLE_DICT},
    ['}'] = {op_empty, NOTHING, PICKLE_DICT},
    [0x80] = {op_proto, B1, 0},
    [0x81] = {op_object, NOTHING, PICKLE_MADE},
    [0x82] = {op_refused, B1, 1}, /* EXT1, EXT2, EXT4 */
    [0x83] = {op_refused, B2, 1},
    [0x84] = {op_refused, B4, 1},
    [0x85] = {op_tuple, NOTHING, 1},
    [0x86] = {op_tuple, NOTHING, 2},
    [0x87] = {op_tuple, NOTHING, 3},
    [0x88] = {op_none, NOTHING, 1},
    [0x89] = {op_none, NOTHING, 0},
    [0x8a] = {op_long, B1, 0},
    [0x8b] = {op_long, B4, 0},
    [0x8c] = {op_text, B1, PICKLE_TEXT},
    [0x8d] = {op_text, B8, PICKLE_TEXT},
    [0x8e] = {op_bytes, B8, 0},
    [0x8f] = {op_empty, NOTHING, PICKLE_SET},
    [0x90] = {op_extend, NOTHING, PICKLE_SET},
    [0x91] = {op_collect, NOTHING, PICKLE_SET}, /* FROZENSET */
    [0x92] = {op_object, NOTHING, PARTS},       /* NEWOBJ_EX */
    [0x93] = {op_stack_global, NOTHING, 0},
    [0x94] = {op_put, NOTHING, 1}, /* MEMOIZE */
    [0x95] = {op_frame, B8, 0},
    [0x96] = {op_bytes, B8, 0},        /* BYTEARRAY8 */
    [0x97] = {op_refused, NOTHING, 0}, /* NEXT_BUFFER, READONLY_BUFFER */
    [0x98] = {op_refused, NOTHING, 0},
};

static int step(machine *m)
{
    const uint64_t frame = m->in.frame_end;
    m->op_at = m->in.at;
    if (m->in.at >= m->in.end)
        return input_fail(&m->in, m->in.end, "the pickle ends without its end mark");
    const unsigned char *op = input_take(&m->in, 1);
    if (!op)
        return -1;
    const unsigned char code = *op;
    if (!ops[code].run)
        return input_fail(&m->in, m->op_at, "0x%02x is not an instruction of a pickle", code);
    const unsigned char *b = input_take(&m->in, ops[code].bytes);
    uint64_t u = 0;
    if (!b)
        return -1;
    for (size_t i = ops[code].bytes; i-- > 0;)
        u = u << 8 | b[i];
    if (ops[code].run(m, u, ops[code].arg))
        return -1;
    return frame && m->op_at < frame && m->in.at > frame ? bad(m, "a frame ends within an instruction") : 0;
}

static int begin(machine *m)
{
    m->none = tree_value(m->p, PICKLE_NONE, 0);
    m->yes = tree_value(m->p, PICKLE_BOOL, 1);
    m->no = tree_value(m->p, PICKLE_BOOL, 0);
    m->empty = tree_container(m->p, PICKLE_TUPLE, NULL, 0);
    return m->none && m->yes && m->no && m->empty ? 0 : fail_room(m);
}

pickle *pickle_read(const pickle_source *source, const pickle_rules *rules, pickle_error *error)
{
    error->text[0] = 0;
    error->what = PICKLE_NO_MEMORY;
    machine m = {.p = calloc(1, sizeof *m.p), .rules = rules};
    m.in = (input){.source = source, .error = error, .at = source->at, .end = source->end, .max = rules->max_bytes};
    if (!m.p)
        return NULL;
    m.p->max_memory = rules->max_memory;
    int failed = begin(&m);
    while (!failed && !m.stopped)
        failed = step(&m);
    m.p->end = m.in.at;
    free(m.in.window);
    free(m.stack.p);
    free(m.marks.p);
    free(m.memo.p);
    m.p->memory -= (m.stack.room + m.memo.room) * sizeof(pickle_ref) + m.marks.room * sizeof(size_t);
    if (!failed)
        return m.p;
    pickle_free(m.p);
    return NULL;
}
