/* machine.c -- the loop of the pickle machine, and the table of its instructions. */
#include "machine.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static int op_proto(machine *m, uint64_t u, int arg)
{
    (void)arg;
    return u <= 5 ? 0 : pickle_input_fail(&m->in, m->op_at, "pickle protocol %" PRIu64 " is not known", u);
}

static int op_frame(machine *m, uint64_t u, int arg)
{
    (void)arg;
    if (m->in.frame_end && m->in.at < m->in.frame_end)
        return pickle_machine_bad(m, "a frame within a frame");
    if (u > m->in.end - m->in.at)
        return pickle_input_fail(&m->in, m->op_at, "a frame of the pickle has %" PRIu64 " bytes, there are %" PRIu64, u,
                                 m->in.end - m->in.at);
    m->in.frame_end = m->in.at + u;
    return 0;
}

static int op_refused(machine *m, uint64_t u, int arg)
{
    if (arg)
        return pickle_input_fail(&m->in, m->op_at, "refused: extension %" PRIu64 ", which only its program knows", u);
    return pickle_input_fail(&m->in, m->op_at, "refused: a buffer that is not in the file");
}

static int op_stop(machine *m, uint64_t u, int arg)
{
    (void)u, (void)arg;
    const pickle_ref *last = pickle_machine_top(m, 1);
    if (!last)
        return -1;
    if (m->marks.n)
        return pickle_machine_bad(m, "a mark is left on the stack");
    if (m->in.frame_end && m->in.at < m->in.frame_end)
        return pickle_machine_bad(m, "a frame goes on after the end");
    m->p->root = *last;
    m->stopped = 1;
    return 0;
}

/* What stands behind an instruction: that many bytes, the lowest first, of a number. */
enum { NOTHING = 0, B1 = 1, B2 = 2, B4 = 4, B8 = 8 };

static const struct {
    machine_op *run; /* NULL: there is no such instruction */
    unsigned char bytes;
    unsigned char arg;
} ops[256] = {
    ['('] = {pickle_op_mark, NOTHING, 0},
    [')'] = {pickle_op_empty, NOTHING, PICKLE_TUPLE},
    ['.'] = {op_stop, NOTHING, 0},
    ['0'] = {pickle_op_pop, NOTHING, 0},
    ['1'] = {pickle_op_pop, NOTHING, 1},
    ['2'] = {pickle_op_dup, NOTHING, 0},
    ['B'] = {pickle_op_bytes, B4, 0},
    ['C'] = {pickle_op_bytes, B1, 0},
    ['F'] = {pickle_op_number_line, NOTHING, 'F'},
    ['G'] = {pickle_op_float, B8, 0},
    ['I'] = {pickle_op_number_line, NOTHING, 'I'},
    ['J'] = {pickle_op_int, B4, 1},
    ['K'] = {pickle_op_int, B1, 0},
    ['L'] = {pickle_op_number_line, NOTHING, 'L'},
    ['M'] = {pickle_op_int, B2, 0},
    ['N'] = {pickle_op_none, NOTHING, 'N'},
    ['P'] = {pickle_op_persistent, NOTHING, 1},
    ['Q'] = {pickle_op_persistent, NOTHING, 0},
    ['R'] = {pickle_op_object, NOTHING, PICKLE_CALLED},
    ['S'] = {pickle_op_text_line, NOTHING, PICKLE_QUOTED},
    ['T'] = {pickle_op_text, B4, TEXT_BYTES},
    ['U'] = {pickle_op_text, B1, TEXT_BYTES},
    ['V'] = {pickle_op_text_line, NOTHING, PICKLE_ESCAPED},
    ['X'] = {pickle_op_text, B4, PICKLE_TEXT},
    [']'] = {pickle_op_empty, NOTHING, PICKLE_LIST},
    ['a'] = {pickle_op_append, NOTHING, PICKLE_LIST},
    ['b'] = {pickle_op_build, NOTHING, 0},
    ['c'] = {pickle_op_global, NOTHING, 0},
    ['d'] = {pickle_op_collect, NOTHING, PICKLE_DICT},
    ['e'] = {pickle_op_extend, NOTHING, PICKLE_LIST},
    ['g'] = {pickle_op_memo_line, NOTHING, 0},
    ['h'] = {pickle_op_get, B1, 0},
    ['i'] = {pickle_op_global, NOTHING, 1},
    ['j'] = {pickle_op_get, B4, 0},
    ['l'] = {pickle_op_collect, NOTHING, PICKLE_LIST},
    ['o'] = {pickle_op_obj, NOTHING, 0},
    ['p'] = {pickle_op_memo_line, NOTHING, 1},
    ['q'] = {pickle_op_put, B1, 0},
    ['r'] = {pickle_op_put, B4, 0},
    ['s'] = {pickle_op_append, NOTHING, PICKLE_DICT},
    ['t'] = {pickle_op_collect, NOTHING, PICKLE_TUPLE},
    ['u'] = {pickle_op_extend, NOTHING, PICKLE_DICT},
    ['}'] = {pickle_op_empty, NOTHING, PICKLE_DICT},
    [0x80] = {op_proto, B1, 0},
    [0x81] = {pickle_op_object, NOTHING, PICKLE_MADE},
    [0x82] = {op_refused, B1, 1}, /* EXT1, EXT2, EXT4 */
    [0x83] = {op_refused, B2, 1},
    [0x84] = {op_refused, B4, 1},
    [0x85] = {pickle_op_tuple, NOTHING, 1},
    [0x86] = {pickle_op_tuple, NOTHING, 2},
    [0x87] = {pickle_op_tuple, NOTHING, 3},
    [0x88] = {pickle_op_none, NOTHING, 1},
    [0x89] = {pickle_op_none, NOTHING, 0},
    [0x8a] = {pickle_op_long, B1, 0},
    [0x8b] = {pickle_op_long, B4, 0},
    [0x8c] = {pickle_op_text, B1, PICKLE_TEXT},
    [0x8d] = {pickle_op_text, B8, PICKLE_TEXT},
    [0x8e] = {pickle_op_bytes, B8, 0},
    [0x8f] = {pickle_op_empty, NOTHING, PICKLE_SET},
    [0x90] = {pickle_op_extend, NOTHING, PICKLE_SET},
    [0x91] = {pickle_op_collect, NOTHING, PICKLE_SET}, /* FROZENSET */
    [0x92] = {pickle_op_object, NOTHING, PARTS},       /* NEWOBJ_EX */
    [0x93] = {pickle_op_stack_global, NOTHING, 0},
    [0x94] = {pickle_op_put, NOTHING, 1}, /* MEMOIZE */
    [0x95] = {op_frame, B8, 0},
    [0x96] = {pickle_op_bytes, B8, 0}, /* BYTEARRAY8 */
    [0x97] = {op_refused, NOTHING, 0}, /* NEXT_BUFFER, READONLY_BUFFER */
    [0x98] = {op_refused, NOTHING, 0},
};

static int step(machine *m)
{
    const uint64_t frame = m->in.frame_end;
    m->op_at = m->in.at;
    if (m->in.at >= m->in.end)
        return pickle_input_fail(&m->in, m->in.end, "the pickle ends without its end mark");
    const unsigned char *op = pickle_input_take(&m->in, 1);
    if (!op)
        return -1;
    const unsigned char code = *op;
    if (!ops[code].run)
        return pickle_input_fail(&m->in, m->op_at, "0x%02x is not an instruction of a pickle", code);
    const unsigned char *b = pickle_input_take(&m->in, ops[code].bytes);
    uint64_t u = 0;
    if (!b)
        return -1;
    for (size_t i = ops[code].bytes; i-- > 0;)
        u = u << 8 | b[i];
    if (ops[code].run(m, u, ops[code].arg))
        return -1;
    return frame && m->op_at < frame && m->in.at > frame ? pickle_machine_bad(m, "a frame ends within an instruction")
                                                         : 0;
}

static int begin(machine *m)
{
    m->none = pickle_tree_value(m->p, PICKLE_NONE, 0);
    m->yes = pickle_tree_value(m->p, PICKLE_BOOL, 1);
    m->no = pickle_tree_value(m->p, PICKLE_BOOL, 0);
    m->empty = pickle_tree_container(m->p, PICKLE_TUPLE, NULL, 0);
    return m->none && m->yes && m->no && m->empty ? 0 : pickle_machine_full(m);
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
