/* grouped.c -- products of groups: torch._grouped_mm, torch._scaled_grouped_mm. What is in ranges (rows, columns, depth) has
 * one operand of two dimensions; the other, or both where nothing is in ranges, has a matrix for each group. */
#include "stacks.h"

#include <string.h>

enum { IN_ROWS, IN_COLUMNS, IN_DEPTH, IN_NOTHING, HOWS };
enum { ROWS, COLUMNS, DEPTH, HOW }; /* ROWS, COLUMNS, DEPTH: of all ranges */

/* Where the ranges of groups end. */
static size_t end_of(const stack *s, size_t group)
{
    return (size_t)json_integer_value(json_array_get(json_object_get(s->c, "ends"), group));
}

static size_t begin_of(const stack *s, size_t group)
{
    return group ? end_of(s, group - 1) : 0;
}

static size_t group_of(const stack *s, size_t at)
{
    size_t g = 0;
    while (g + 1 < s->groups && at >= end_of(s, g))
        g++;
    return g;
}

static spot find(const stack *s, size_t at)
{
    const size_t n = s->size[COLUMNS], one = s->size[ROWS] * n;
    spot p = {at / one, at % one / n, at % n};
    if (s->size[HOW] == IN_ROWS) {
        p.group = group_of(s, p.row);
        p.row -= begin_of(s, p.group);
    } else if (s->size[HOW] == IN_COLUMNS) {
        p.group = group_of(s, p.column);
        p.column -= begin_of(s, p.group);
        p.row = at / n;
    }
    return p;
}

/* Of columns in ranges the result is rows by columns, as of rows in ranges. */
static size_t index_of(const stack *s, spot p)
{
    const size_t how = s->size[HOW];
    const size_t row = p.row + (how == IN_ROWS      ? begin_of(s, p.group)
                                : how == IN_COLUMNS ? 0
                                                    : p.group * s->size[ROWS]);
    return row * s->size[COLUMNS] + p.column + (how == IN_COLUMNS ? begin_of(s, p.group) : 0);
}

static void sizes(const stack *s, int order, size_t group, size_t sizes[3])
{
    (void)order;
    memcpy(sizes, s->size, 3 * sizeof *sizes);
    if (s->size[HOW] < IN_NOTHING)
        sizes[s->size[HOW]] = end_of(s, group) - begin_of(s, group);
}

static float a(const stack *s, int order, spot p, size_t k)
{
    const size_t how = s->size[HOW], depth = s->size[DEPTH];
    (void)order;
    const size_t row = how == IN_ROWS    ? begin_of(s, p.group) + p.row
                       : how == IN_DEPTH ? p.row
                                         : p.group * s->size[ROWS] + p.row;
    return device_number(s->form, -6, 4, s->streams[0], row * depth + k + (how == IN_DEPTH ? begin_of(s, p.group) : 0));
}

static float b(const stack *s, int order, spot p, size_t k)
{
    const size_t how = s->size[HOW], n = s->size[COLUMNS];
    (void)order;
    const size_t row = how == IN_COLUMNS ? k
                       : how == IN_DEPTH ? begin_of(s, p.group) + k
                                         : p.group * s->size[DEPTH] + k;
    return device_number(s->form, -6, 4, s->streams[1],
                         row * n + p.column + (how == IN_COLUMNS ? begin_of(s, p.group) : 0));
}

/* FP8: of a row of a and a column of b, a set for each group but of what is in ranges. */
static float scaled(const stack *s, int how_ends, spot p, float sum)
{
    const size_t how = s->size[HOW];
    const size_t i = p.row + (how == IN_ROWS ? begin_of(s, p.group) : p.group * s->size[ROWS]);
    const size_t j = p.column + (how == IN_COLUMNS ? begin_of(s, p.group) : p.group * s->size[COLUMNS]);
    const float x = device_number("float32", -1, 2, s->streams[2], i),
                y = device_number("float32", -1, 2, s->streams[3], j);
    return how_ends == 0 ? sum * x * y : how_ends == 1 ? sum * y * x : sum * (x * y);
}

static const ending alone[] = {{"", ADDED_NOWHERE, 0, NULL}};
static const ending scales[] = {{" by a's scale first", ADDED_NOWHERE, 0, NULL},
                                {" by b's scale first", ADDED_NOWHERE, 0, NULL},
                                {" by their product", ADDED_NOWHERE, 0, NULL}};

/* The sizes of a and b: of the last dimensions, whatever is before. */
static size_t size_of(const stack *s, const char *key, size_t from_last)
{
    const json_t *sizes = json_object_get(s->c, key);
    const size_t n = json_array_size(sizes);
    return n > from_last ? (size_t)json_integer_value(json_array_get(sizes, n - 1 - from_last)) : 0;
}

int stacks_grouped(const json_t *c, stack *s)
{
    static const char *const names[HOWS] = {"rows", "columns", "depth", "stack"};
    if (!stacks_read(c, s))
        return 0;
    const int fp8 = s->operand->bits == 8;
    s->ends = fp8 ? scales : alone;
    s->endings = fp8 ? 3 : 1;
    s->groups = (size_t)device_integer(c, "groups");
    s->size[ROWS] = size_of(s, "a", 1);
    s->size[COLUMNS] = size_of(s, "b", 0);
    s->size[DEPTH] = size_of(s, "a", 0);
    s->size[HOW] = HOWS;
    for (size_t i = 0; i < HOWS; i++)
        if (strcmp(device_text(c, "how"), names[i]) == 0)
            s->size[HOW] = i;
    s->find = find;
    s->index = index_of;
    s->sizes = sizes;
    s->a = a;
    s->b = b;
    s->scale = fp8 ? scaled : NULL;
    return s->groups && s->size[ROWS] && s->size[COLUMNS] && s->size[DEPTH] && s->size[DEPTH] <= WAYS_DEPTH &&
           s->size[HOW] < HOWS;
}

void device_grouped(const json_t *head, const json_t *c, char *answer)
{
    stack s;
    if (stacks_grouped(c, &s))
        stacks_answer(head, &s, answer);
    else
        device_say(answer, "not understood");
}
