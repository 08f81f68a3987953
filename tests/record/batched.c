/* batched.c -- products of one shape, or a stack of them: torch.addmm, linear layers, torch.bmm, torch.baddbmm. How operands
 * are laid out changes no number; `shared` has one b for all. */
#include "stacks.h"

#include <string.h>

enum { ROWS, COLUMNS, DEPTH, SHARED, VECTOR, HIGH };

static spot find(const stack *s, size_t at)
{
    const size_t n = s->size[COLUMNS], one = s->size[ROWS] * n;
    return (spot){at / one, at % one / n, at % n};
}

static size_t index_of(const stack *s, spot p)
{
    return (p.group * s->size[ROWS] + p.row) * s->size[COLUMNS] + p.column;
}

static void sizes(const stack *s, int order, size_t group, size_t sizes[3])
{
    (void)order;
    (void)group;
    memcpy(sizes, s->size, 3 * sizeof *sizes);
}

static float a(const stack *s, int order, spot p, size_t k)
{
    (void)order;
    return device_number(s->form, -6, 4, s->streams[0], (p.group * s->size[ROWS] + p.row) * s->size[DEPTH] + k);
}

static float b(const stack *s, int order, spot p, size_t k)
{
    (void)order;
    const size_t first = s->size[SHARED] ? 0 : p.group * s->size[DEPTH];
    return device_number(s->form, -6, 4, s->streams[1], (first + k) * s->size[COLUMNS] + p.column);
}

static float added(const stack *s, spot p)
{
    const char *form = s->out->bits == 32 && s->operand->bits == 16 ? "float32" : s->form;
    return device_number(form, 0, (int)s->size[HIGH], s->streams[2], s->size[VECTOR] ? p.column : index_of(s, p));
}

int stacks_batched(const json_t *c, stack *s)
{
    const char *how = device_text(c, "how");
    const int bias = json_object_get(c, "batch") == NULL;
    if (!stacks_read(c, s))
        return 0;
    s->ends = stacks_endings(how, &s->endings);
    s->groups = bias ? 1 : (size_t)device_integer(c, "batch");
    s->size[ROWS] = (size_t)device_integer(c, "m");
    s->size[COLUMNS] = (size_t)device_integer(c, "n");
    s->size[DEPTH] = (size_t)device_integer(c, "k");
    s->size[SHARED] = strcmp(how, "shared") == 0;
    s->size[VECTOR] = bias && strcmp(how, "matrix") != 0 && strcmp(how, "scaled") != 0;
    s->size[HIGH] = bias ? 10 : 6;
    s->find = find;
    s->index = index_of;
    s->sizes = sizes;
    s->a = a;
    s->b = b;
    s->added = s->ends[0].added ? added : NULL;
    return s->groups && s->size[ROWS] && s->size[COLUMNS] && s->size[DEPTH] && s->size[DEPTH] <= WAYS_DEPTH;
}

void device_batched(const json_t *head, const json_t *c, char *answer)
{
    stack s;
    if (stacks_batched(c, &s))
        stacks_answer(head, &s, answer);
    else
        device_say(answer, "not understood");
}
