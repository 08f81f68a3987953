/* convolutions.c -- convolutions as products: in which order are channels and places of the filter added?
 *
 * Forward, an element of image i, filter f and place (p, q) is the sum over channels and places of the filter of
 * x[i][c][p stride + r - padding][q stride + t - padding] w[f][c][r][t]. The gradient of x is the sum over filters and places of
 * dy[i][f][(y + padding - r) / stride][...] w[f][c][r][t], that of w over images and places of dy[i][f][p][q] x[...]. Where x or
 * dy has nothing a zero is multiplied. */
#include "stacks.h"

#include <stdio.h>
#include <string.h>

enum { FORWARD, DGRAD, WGRAD, PASSES };
enum {
    IMAGES,
    CHANNELS,
    SIZE,
    FILTERS,
    FILTER,
    STRIDE,
    PADDING,
    OUT,
    PASS
}; /* SIZE, OUT: height and width of x and y */

/* How the depth is numbered. Forward and of x: blocks of `block` channels (filters) outermost, then places of the filter, rows
 * first or columns first, from the first or the last; a last block that is short is filled up with zeros. block 0: all.
 * skipping: places of the filter that no element of dy meets, because of the stride, are left out. */
typedef struct numbering {
    size_t block;
    int columns, backwards, skipping;
} numbering;

enum { BLOCKS = 9, PLACES = 4 };
static const size_t blocks[BLOCKS] = {0, 1, 4, 8, 16, 32, 64, 128, 256};

/* Of w: images, rows, columns of dy: the outermost first. */
static const char *const of_w[] = {"", " by rows, columns, images", " by images, columns, rows",
                                   " by columns, rows, images"};

static numbering numbered(int order)
{
    return (numbering){blocks[order % BLOCKS], order / BLOCKS % 2, order / BLOCKS / 2 % 2, order / BLOCKS / PLACES};
}

/* Blocks of all channels, and those that only add whole zeros, are not orders of their own. */
static int repeats(const stack *s, int order)
{
    const size_t block = numbered(order).block,
                 channels = s->size[PASS] == FORWARD ? s->size[CHANNELS] : s->size[FILTERS];
    return s->size[PASS] != WGRAD && (block == channels || (block > channels && channels % 16 == 0));
}

static void order_name(const stack *s, int order, char *text, size_t n)
{
    const numbering by = numbered(order);
    char block[40] = "";
    if (s->size[PASS] == WGRAD) {
        snprintf(text, n, "%s", of_w[order]);
        return;
    }
    if (by.block)
        snprintf(block, sizeof block, " by %zu channel%s", by.block, by.block == 1 ? "" : "s");
    snprintf(text, n, "%s%s%s%s", block, by.columns ? " by columns" : "", by.backwards ? " backwards" : "",
             by.skipping ? " without gaps" : "");
}

/* ---- what the sums are over ---- */

static size_t summed(const stack *s)
{
    return s->size[PASS] == FORWARD ? s->size[CHANNELS] : s->size[FILTERS];
}

/* Groups of the gradient of x are its places by their remainders of the stride. */
static size_t remainder_of(const stack *s, const spot *p, int along)
{
    return along ? p->group % s->size[STRIDE] : p->group / s->size[STRIDE];
}

/* Places of the filter along one axis that meet dy: the first of them, in steps of the stride. */
static size_t first_met(const stack *s, const spot *p, int along)
{
    return (remainder_of(s, p, along) + s->size[PADDING]) % s->size[STRIDE];
}

static size_t met(const stack *s, const numbering *by, const spot *p, int along)
{
    const size_t first = by->skipping ? first_met(s, p, along) : 0, step = by->skipping ? s->size[STRIDE] : 1;
    return first < s->size[FILTER] ? (s->size[FILTER] - first + step - 1) / step : 0;
}

/* Channel (filter) and place of the filter of product k. */
typedef struct tap {
    size_t channel, r, t;
} tap;

static tap tap_of(const stack *s, const numbering *by, const spot *p, size_t k)
{
    const size_t block = by->block ? by->block : summed(s), high = met(s, by, p, 0), wide = met(s, by, p, 1);
    const size_t at = k / block % (high * wide);
    size_t r = by->columns ? at % high : at / wide, t = by->columns ? at / high : at % wide;
    if (by->backwards) {
        r = high - 1 - r;
        t = wide - 1 - t;
    }
    if (by->skipping) {
        r = first_met(s, p, 0) + r * s->size[STRIDE];
        t = first_met(s, p, 1) + t * s->size[STRIDE];
    }
    return (tap){k / block / (high * wide) * block + k % block, r, t};
}

/* ---- elements ---- */

static size_t places_along(const stack *s, size_t remainder)
{
    return (s->size[SIZE] - remainder + s->size[STRIDE] - 1) / s->size[STRIDE];
}

static void sizes(const stack *s, int order, size_t group, size_t sizes[3])
{
    const spot p = {group, 0, 0};
    const numbering by = numbered(order);
    const size_t out = s->size[OUT] * s->size[OUT], filter = s->size[FILTER] * s->size[FILTER];
    const size_t block = by.block ? by.block : summed(s), channels = (summed(s) + block - 1) / block * block;
    sizes[0] = s->size[PASS] == FORWARD ? s->size[IMAGES] * out : s->size[FILTERS];
    sizes[1] = s->size[PASS] == FORWARD ? s->size[FILTERS] : s->size[CHANNELS] * filter;
    sizes[2] = s->size[PASS] == WGRAD ? s->size[IMAGES] * out : channels * met(s, &by, &p, 0) * met(s, &by, &p, 1);
    if (s->size[PASS] == DGRAD) {
        sizes[0] = s->size[IMAGES] * places_along(s, remainder_of(s, &p, 0)) * places_along(s, remainder_of(s, &p, 1));
        sizes[1] = s->size[CHANNELS];
    }
}

/* Row and column of a place of y, or of x, and its image: what the row of a product stands for. */
typedef struct place {
    size_t image, y, x;
} place;

static place place_of(const stack *s, const spot *p)
{
    if (s->size[PASS] == FORWARD)
        return (place){p->row / s->size[OUT] / s->size[OUT], p->row / s->size[OUT] % s->size[OUT],
                       p->row % s->size[OUT]};
    const size_t y = remainder_of(s, p, 0), x = remainder_of(s, p, 1), high = places_along(s, y),
                 wide = places_along(s, x);
    return (place){p->row / high / wide, y + p->row / wide % high * s->size[STRIDE],
                   x + p->row % wide * s->size[STRIDE]};
}

static size_t index_of(const stack *s, spot p)
{
    if (s->size[PASS] == WGRAD)
        return p.row * s->size[CHANNELS] * s->size[FILTER] * s->size[FILTER] + p.column;
    const size_t forward = s->size[PASS] == FORWARD, side = s->size[forward ? OUT : SIZE];
    const place at = place_of(s, &p);
    return ((at.image * s->size[forward ? FILTERS : CHANNELS] + p.column) * side + at.y) * side + at.x;
}

static spot find(const stack *s, size_t at)
{
    if (s->size[PASS] == WGRAD) {
        const size_t one = s->size[CHANNELS] * s->size[FILTER] * s->size[FILTER];
        return (spot){0, at / one, at % one};
    }
    const size_t forward = s->size[PASS] == FORWARD, side = s->size[forward ? OUT : SIZE];
    const size_t columns = s->size[forward ? FILTERS : CHANNELS];
    const size_t x = at % side, y = at / side % side, column = at / side / side % columns,
                 image = at / side / side / columns;
    if (forward)
        return (spot){0, (image * side + y) * side + x, column};
    const size_t stride = s->size[STRIDE], high = places_along(s, y % stride), wide = places_along(s, x % stride);
    return (spot){y % stride * stride + x % stride, (image * high + y / stride) * wide + x / stride, column};
}

/* ---- operands ---- */

/* An element of x or dy, or zero outside: y and x are still to be diminished by the padding. */
static float inside(const stack *s, size_t stream, size_t image, size_t channel, size_t channels, size_t side, size_t y,
                    size_t x, size_t less)
{
    if (y < less || x < less || y - less >= side || x - less >= side || channel >= channels)
        return 0;
    return device_number(s->form, -6, 4, s->streams[stream],
                         ((image * channels + channel) * side + y - less) * side + x - less);
}

static float of_x(const stack *s, size_t image, size_t channel, size_t p, size_t q, size_t r, size_t t)
{
    return inside(s, 0, image, channel, s->size[CHANNELS], s->size[SIZE], p * s->size[STRIDE] + r,
                  q * s->size[STRIDE] + t, s->size[PADDING]);
}

/* Place k of dy in the sum of the gradient of w. */
static place place_of_dy(const stack *s, int order, size_t k)
{
    const size_t n = s->size[OUT], images = s->size[IMAGES];
    const place at[] = {{k / n / n, k / n % n, k % n},
                        {k % images, k / images / n, k / images % n},
                        {k / n / n, k % n, k / n % n},
                        {k % images, k / images % n, k / images / n}};
    return at[order];
}

static float a(const stack *s, int order, spot p, size_t k)
{
    const numbering by = numbered(order);
    if (s->size[PASS] == WGRAD) {
        const place at = place_of_dy(s, order, k);
        return inside(s, 2, at.image, p.row, s->size[FILTERS], s->size[OUT], at.y, at.x, 0);
    }
    const place at = place_of(s, &p);
    const tap of = tap_of(s, &by, &p, k);
    if (s->size[PASS] == FORWARD)
        return of_x(s, at.image, of.channel, at.y, at.x, of.r, of.t);
    const size_t y = at.y + s->size[PADDING], x = at.x + s->size[PADDING], stride = s->size[STRIDE];
    if (y < of.r || x < of.t || (y - of.r) % stride || (x - of.t) % stride)
        return 0;
    return inside(s, 2, at.image, of.channel, s->size[FILTERS], s->size[OUT], (y - of.r) / stride, (x - of.t) / stride,
                  0);
}

static float b(const stack *s, int order, spot p, size_t k)
{
    const numbering by = numbered(order);
    const size_t n = s->size[FILTER];
    if (s->size[PASS] == WGRAD) {
        const place at = place_of_dy(s, order, k);
        return of_x(s, at.image, p.column / n / n, at.y, at.x, p.column / n % n, p.column % n);
    }
    const tap of = tap_of(s, &by, &p, k);
    if (of.channel >= summed(s))
        return 0;
    const size_t filter = s->size[PASS] == FORWARD ? p.column : of.channel;
    const size_t channel = s->size[PASS] == FORWARD ? of.channel : p.column;
    return device_number(s->form, -6, 4, s->streams[1], ((filter * s->size[CHANNELS] + channel) * n + of.r) * n + of.t);
}

/* ---- the case ---- */

/* Orders that differ: of a filter of one place only how channels are filled up. */
static int orders_of(const stack *s)
{
    if (s->size[PASS] == WGRAD)
        return (int)(sizeof of_w / sizeof of_w[0]);
    if (s->size[FILTER] == 1)
        return 1;
    return BLOCKS * PLACES * (s->size[PASS] == DGRAD && s->size[STRIDE] > 1 ? 2 : 1);
}

int stacks_convolution(const json_t *c, stack *s)
{
    static const char *const keys[] = {"images", "channels", "size", "filters", "filter", "stride", "padding"};
    static const char *const passes[PASSES] = {"forward", "dgrad", "wgrad"};
    static const ending alone[] = {{"", ADDED_NOWHERE, 0, NULL}};
    if (!stacks_read(c, s))
        return 0;
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        s->size[i] = (size_t)device_integer(c, keys[i]);
    s->size[PASS] = PASSES;
    for (size_t i = 0; i < PASSES; i++)
        if (strcmp(device_text(c, "of"), passes[i]) == 0)
            s->size[PASS] = i;
    if (s->size[PASS] == PASSES || !s->size[STRIDE] || !s->size[FILTER] ||
        s->size[SIZE] + 2 * s->size[PADDING] < s->size[FILTER])
        return 0;
    s->size[OUT] = (s->size[SIZE] + 2 * s->size[PADDING] - s->size[FILTER]) / s->size[STRIDE] + 1;
    s->groups = s->size[PASS] == DGRAD ? s->size[STRIDE] * s->size[STRIDE] : 1;
    s->ends = alone;
    s->endings = 1;
    s->orders = orders_of(s);
    s->guess = 1;
    s->repeats = repeats;
    s->order_name = order_name;
    s->find = find;
    s->index = index_of;
    s->sizes = sizes;
    s->a = a;
    s->b = b;
    return s->size[IMAGES] && s->size[CHANNELS] && s->size[FILTERS];
}

void device_convolutions(const json_t *head, const json_t *c, char *answer)
{
    stack s;
    if (stacks_convolution(c, &s))
        stacks_answer(head, &s, answer);
    else
        device_say(answer, "not understood");
}
