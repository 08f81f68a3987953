/* matrices.c -- sums over rows and columns of matrices on devices, in the order of ATen's Reduce.cuh.
 *
 * A thread adds every step-th number to four sums by turns, or four neighbours to one each, and adds these up; then threads
 * along x fold by halves, those along y, and blocks. Which share an output depends on the shape. */
#include "device.h"

#include "support/support.h"

#include <stdlib.h>
#include <string.h>

enum { THREADS = 512, WARP = 32, FOUR = 4, PROCESSORS = 132, THREADS_OF_ONE = 2048, MOST_BLOCKS = 1024 };

static size_t power_below(size_t n, size_t most)
{
    size_t p = 1;
    while (p * 2 <= n && p * 2 <= most)
        p *= 2;
    return p;
}

static size_t divide_up(size_t a, size_t b)
{
    return (a + b - 1) / b;
}

static size_t smaller(size_t a, size_t b)
{
    return a < b ? a : b;
}

device_order device_order_of(size_t rows, size_t columns, int over_columns)
{
    const size_t outputs = over_columns ? rows : columns;
    device_order o = {.n = over_columns ? columns : rows, .x = 1, .y = 1, .blocks = 1};
    size_t along = over_columns ? o.n : outputs, across = over_columns ? outputs : o.n, most = THREADS;
    o.vectors = over_columns && along >= 128;
    if (o.vectors)
        along /= FOUR;
    size_t each = 1; /* outputs a thread */
    if (!over_columns)
        for (each = FOUR; outputs % each; each /= 2)
            ;
    along /= each;
    most /= each;
    const size_t widest = power_below(along, most), highest = power_below(across, most);
    size_t width = smaller(widest, WARP);
    const size_t height = smaller(highest, most / width);
    width = smaller(widest, most / height);
    size_t share = over_columns ? 1 : width; /* outputs of a block */
    o.step = over_columns ? width : 1;
    o.x = over_columns ? width : 1;
    if (divide_up(o.n, o.step) >= smaller(height * 16, 256)) {
        o.y = height;
        o.y_stride = o.step;
        o.step *= height;
    } else {
        share *= height;
    }
    const size_t grid = divide_up(outputs / each, share), target = PROCESSORS * (THREADS_OF_ONE / (width * height));
    const size_t values = divide_up(o.n, o.step);
    if (o.y_stride && values >= 256 && grid <= target) {
        const size_t blocks = smaller(divide_up(target, grid), divide_up(values, 16));
        o.blocks = blocks > divide_up(values, 256) ? blocks : divide_up(values, 256);
        o.block_stride = o.step;
        o.step *= o.blocks;
    }
    return o;
}

/* Halves. */
static float fold(float *s, size_t n)
{
    for (size_t half = n / 2; half > 0; half /= 2)
        for (size_t i = 0; i < half; i++)
            s[i] += s[i + half];
    return s[0];
}

/* Numbers at x, stride apart; shift: by how many numbers the first is beyond an address that vectors are loaded from. */
static float add_thread(const device_order *o, const float *x, size_t stride, size_t shift, size_t lane, size_t at)
{
    float s[FOUR] = {0};
    const size_t before = o->vectors && shift ? FOUR - shift : 0, end = o->n - before;
    const int alone = o->vectors && at == lane; /* takes what vectors leave */
    if (alone && lane >= shift && lane < FOUR && shift)
        s[0] += x[(lane - shift) * stride];
    x += before * stride;
    for (size_t i = at; o->vectors && i * FOUR + FOUR <= end; i += o->step)
        for (size_t k = 0; k < FOUR; k++)
            s[k] += x[(i * FOUR + k) * stride];
    if (alone && end - end % FOUR + lane < end)
        s[0] += x[(end - end % FOUR + lane) * stride];
    for (size_t i = at, k = 0; !o->vectors && i < o->n; i += o->step, k++)
        s[k % FOUR] += x[i * stride];
    for (size_t k = 1; k < FOUR; k++)
        s[0] += s[k];
    return s[0];
}

float device_sum(const device_order *o, const float *x, size_t stride, size_t shift)
{
    static float blocks[MOST_BLOCKS], rows[THREADS], lanes[THREADS], columns[THREADS];
    device_need(o->blocks <= MOST_BLOCKS);
    for (size_t b = 0; b < o->blocks; b++) {
        for (size_t y = 0; y < o->y; y++) {
            for (size_t lane = 0; lane < o->x; lane++)
                lanes[lane] = add_thread(o, x, stride, shift, lane, lane + y * o->y_stride + b * o->block_stride);
            rows[y] = fold(lanes, o->x);
        }
        blocks[b] = fold(rows, o->y);
    }
    if (o->blocks == 1)
        return blocks[0];
    memset(lanes, 0, sizeof lanes); /* of the block that is last: each thread some blocks' sums */
    for (size_t b = 0; b < o->blocks; b++)
        lanes[b % (o->x * o->y)] += blocks[b];
    for (size_t lane = 0; lane < o->x; lane++) {
        for (size_t y = 0; y < o->y; y++)
            rows[y] = lanes[y * o->x + lane];
        columns[lane] = fold(rows, o->y);
    }
    return fold(columns, o->x);
}

/* All results, as codes. */
static uint64_t *results(const json_t *c, const device_order *o, const mpsim_format *f, const char *type, int mean)
{
    static const int range[2] = {-3, 1};
    const size_t rows = (size_t)device_integer(c, "rows"), columns = (size_t)device_integer(c, "columns");
    const int over_columns = device_integer(c, "axis") == 1;
    const size_t outputs = over_columns ? rows : columns;
    float *x = malloc(rows * columns * sizeof *x);
    uint64_t *y = malloc(outputs * sizeof *y);
    device_need(x && y);
    device_numbers(type, range, 90, 0, 1, rows * columns, x);
    for (size_t at = 0; at < outputs; at++) {
        const size_t first = over_columns ? at * columns : at;
        const float sum = device_sum(o, x + first, over_columns ? 1 : columns, first % FOUR);
        y[at] = device_encode(f, mean ? sum * (1 / (float)o->n) : sum);
    }
    free(x);
    return y;
}

void device_matrices(const json_t *head, const json_t *c, char *answer)
{
    char what[16], type[32];
    const size_t rows = (size_t)device_integer(c, "rows"), columns = (size_t)device_integer(c, "columns");
    const int over_columns = device_integer(c, "axis") == 1;
    const char *words = device_text(c, "d");
    size_t equal = 0;
    uint64_t digest = 0;
    (void)head;
    if (sscanf(device_text(c, "case"), "%15s %31s", what, type) != 2 || !device_format(type) || rows == 0 ||
        columns == 0 || device_integer(c, "n") != (over_columns ? rows : columns)) {
        device_say(answer, "not understood");
        return;
    }
    const device_order o = device_order_of(rows, columns, over_columns);
    uint64_t *y = results(c, &o, device_format(type), type, strcmp(what, "mean") == 0);
    for (size_t i = 0; i < device_codes(words); i++)
        equal += y[device_place(c, i)] == device_code(words, i);
    for (size_t at = 0; at < device_integer(c, "n"); at++)
        digest += device_word(y[at], at);
    free(y);
    if (equal == device_codes(words) && device_same_digest(c, "digest", digest))
        device_say(answer, "fits ATen's for CUDA");
    else
        device_say(answer, "none fits; %zu of %zu as ATen's for CUDA, the digest another", equal, device_codes(words));
}
