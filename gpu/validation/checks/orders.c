/* orders.c -- what is asked of orders, and the ways of adding 32 numbers to a place that are known: lanes in some
 * sequence, in groups or not, the numbers of a group in a chain or a tree or exactly, in the format or in binary32. */
#include "orders.h"

#include "checks.h"
#include "reductions.h"
#include "../../../lib/arith/scalar.h"

#include <stdio.h>
#include <string.h>

enum { LANES = GPU_ORDER_LANES };

/* ---- which instructions ---- */

/* The n-th addition among the reductions: its check, or 0 past the end. */
static int find_addition(gpu_check *c, size_t n)
{
    int log_count;
    for (size_t i = 0; i < GPU_REDUCTION_ROWS; i++)
        if (gpu_reduction_fill(c, i, &log_count) && c->scalar.expected == GPU_ROUNDED && n-- == 0)
            return 1;
    return 0;
}

static uint32_t power(const mpsim_format *f, int e)
{
    return (uint32_t)(e + f->bias) << f->mbits;
}

/* fp16: eight numbers from 2^-5 to 2^2, whose sum is less than half a unit in the last place of the numbers next to
 * 2^15. The other formats: from 1, with B far beyond. */
static void fill_numbers(gpu_order_plan *p, const mpsim_format *f)
{
    const int is_fp16 = f->ebits == 5;
    p->bits = f->bits;
    p->mbits = f->mbits;
    p->bias = f->bias;
    p->group = f->bits == 16 ? 8 : 16;
    p->big = power(f, is_fp16 ? 15 : 60);
    p->minus = (uint32_t)mpsim_sign_bit(f, 1);
    p->smallest = power(f, is_fp16 ? -5 : 0);
    p->next = (uint32_t)1 << f->mbits;
}

static int fill(size_t i, gpu_order_plan *p, gpu_check *c)
{
    memset(p, 0, sizeof *p);
    memset(c, 0, sizeof *c);
    if (!find_addition(c, i / GPU_ORDER_WAYS))
        return 0;
    p->row = c->scalar.instruction;
    p->way = (int)(i % GPU_ORDER_WAYS);
    p->is_shared = c->scalar.is_shared;
    p->elements = c->scalar.elements;
    p->stream = GPU_ORDER_STREAM + i;
    fill_numbers(p, &c->scalar.o.result);
    return 1;
}

int gpu_order_fill(size_t i, gpu_order_plan *p)
{
    gpu_check c;
    return fill(i, p, &c);
}

size_t gpu_order_count(void)
{
    gpu_check c;
    size_t n = 0;
    while (find_addition(&c, n))
        n++;
    return n * GPU_ORDER_WAYS;
}

int gpu_order_list(size_t i, gpu_order *o)
{
    static const char *const ways[] = {"a warp", "a thread"};
    gpu_order_plan p;
    gpu_check c;
    memset(o, 0, sizeof *o);
    if (!fill(i, &p, &c))
        return 0;
    snprintf(o->name, sizeof o->name, "%.48s, %s", strchr(c.name, ' ') + 1, ways[p.way]);
    o->format = mpsim_format_find(c.scalar.o.result.name)->name;
    o->sums = gpu_order_sums(&p);
    o->status = GPU_SKIPPED;
    return 1;
}

/* ---- ways of adding ---- */

enum { FORWARD, BACKWARD, EVEN_ODD, HALVES, REVERSED_BITS, SEQUENCES };
enum { CHAIN, NEIGHBOURS, FAR_HALVES, EXACT, INSIDES };
enum { NARROW, WIDE, WIDTHS };

typedef struct way {
    int sequence, group, inside, width;
} way;

/* The lane at a place of a sequence. */
static int lane_at(int sequence, int place)
{
    int reversed = 0;
    for (int bit = 0; bit < 5; bit++)
        reversed |= (place >> bit & 1) << (4 - bit);
    const int lanes[] = {[FORWARD] = place,
                         [BACKWARD] = LANES - 1 - place,
                         [EVEN_ODD] = place < LANES / 2 ? 2 * place : 2 * place - LANES + 1,
                         [HALVES] = place / 2 + place % 2 * (LANES / 2),
                         [REVERSED_BITS] = reversed};
    return lanes[sequence];
}

/* Whether a way is not the same as another one: what is in a pair has one sum; trees and exact sums of lanes from the
 * other end are those of other groups or none; in binary32 the numbers hardly meet a rounding. */
static int is_new(const way *w)
{
    const int is_tree = w->inside == NEIGHBOURS || w->inside == FAR_HALVES;
    if (w->group <= 2 || w->width == WIDE)
        return w->inside == CHAIN && (w->width == NARROW || w->group == 1);
    if (w->group == LANES && w->inside != CHAIN)
        return w->sequence == FORWARD;
    return is_tree ? w->sequence <= BACKWARD : w->inside == CHAIN || w->sequence != REVERSED_BITS;
}

/* Way k for a format: 1; 0: the same as another one; -1: past the end. binary32 is not wider than itself. */
static int way_at(way *w, size_t k, int bits)
{
    enum { GROUPS = 6 };
    if (k >= (size_t)WIDTHS * GROUPS * INSIDES * SEQUENCES)
        return -1;
    w->sequence = (int)(k % SEQUENCES);
    k /= SEQUENCES;
    w->inside = (int)(k % INSIDES);
    k /= INSIDES;
    w->group = 1 << k % GROUPS;
    w->width = (int)(k / GROUPS);
    return is_new(w) && (bits == 16 || w->width == NARROW);
}

static void name_way(char *to, size_t size, const way *w)
{
    static const char *const sequences[] = {"lane by lane", "from the last lane to the first",
                                            "even lanes, then odd ones", "both halves in turn",
                                            "lanes by reversed bits"};
    static const char *const insides[] = {"chains", "trees of neighbours", "trees of halves", "exact sums"};
    static const char *const widths[] = {"", ", in binary32"};
    if (w->group == 1)
        snprintf(to, size, "%s%s", sequences[w->sequence], widths[w->width]);
    else
        snprintf(to, size, "%s, %s of %d%s", sequences[w->sequence], insides[w->inside], w->group, widths[w->width]);
}

/* ---- sums ---- */

/* An addition, and the one that is wider. */
typedef struct adder {
    mpsim_arith narrow, wide;
} adder;

static void fill_adder(adder *a, const mpsim_arith *o)
{
    const mpsim_format *wide = mpsim_format_find("binary32");
    a->narrow = a->wide = *o;
    a->wide.result = a->wide.operand[0] = a->wide.operand[1] = *wide;
}

static uint32_t add(const mpsim_arith *o, uint32_t x, uint32_t y)
{
    unsigned flags;
    return (uint32_t)mpsim_scalar_arith(o, x, y, 0, 0, &flags);
}

static uint32_t convert(const mpsim_arith *from, const mpsim_arith *to, uint32_t code)
{
    unsigned flags;
    return (uint32_t)mpsim_scalar_encode(&to->result, &to->rounding, to->rounding.mode,
                                         mpsim_scalar_unpack(&from->result, code), 0, &flags);
}

/* The numbers of these sums need fewer than 128 bits. */
static uint32_t exact_sum(const mpsim_arith *o, const uint32_t *x, int n)
{
    unsigned flags;
    mpsim_number sum = mpsim_scalar_unpack(&o->result, x[0]);
    for (int i = 1; i < n; i++)
        sum = mpsim_number_add(sum, mpsim_scalar_unpack(&o->result, x[i]), 0, &flags);
    return (uint32_t)mpsim_scalar_encode(&o->result, &o->rounding, o->rounding.mode, sum, 0, &flags);
}

static uint32_t chain(const mpsim_arith *o, uint32_t start, const uint32_t *x, int n)
{
    for (int i = 0; i < n; i++)
        start = add(o, start, x[i]);
    return start;
}

static uint32_t tree(const mpsim_arith *o, const uint32_t *x, int n, int is_near)
{
    uint32_t level[LANES];
    memcpy(level, x, (size_t)n * sizeof *x);
    for (; n > 1; n /= 2)
        for (int i = 0; i < n / 2; i++)
            level[i] = is_near ? add(o, level[2 * i], level[2 * i + 1]) : add(o, level[i], level[i + n / 2]);
    return level[0];
}

static uint32_t group_sum(const mpsim_arith *o, const uint32_t *x, int n, int inside)
{
    switch (inside) {
    case CHAIN:
        return chain(o, x[0], x + 1, n - 1);
    case EXACT:
        return exact_sum(o, x, n);
    default:
        return tree(o, x, n, inside == NEIGHBOURS);
    }
}

/* The sum of what is in memory and of x, in the order in which the lanes come. */
static uint32_t sum_by(const way *w, const adder *a, uint32_t start, const uint32_t x[LANES])
{
    const mpsim_arith *o = w->width == WIDE ? &a->wide : &a->narrow;
    uint32_t total = convert(&a->narrow, o, start), group[LANES];
    for (int first = 0; first < LANES; first += w->group) {
        for (int i = 0; i < w->group; i++)
            group[i] = convert(&a->narrow, o, x[first + i]);
        total = add(o, total, group_sum(o, group, w->group, w->inside));
    }
    return convert(o, &a->narrow, total);
}

static uint32_t play(const way *w, const gpu_order_plan *p, const adder *a, int sum)
{
    uint32_t x[LANES];
    for (int place = 0; place < LANES; place++)
        x[place] = gpu_order_operand(p, sum, lane_at(w->sequence, place));
    return sum_by(w, a, gpu_order_start(p, sum), x);
}

const char *gpu_order_played(size_t i, size_t k, int sum, uint32_t *result)
{
    static char name[96];
    gpu_order_plan p;
    gpu_check c;
    adder a;
    way w;
    if (!fill(i, &p, &c))
        return NULL;
    int found = -1;
    for (size_t n = 0; (found = way_at(&w, n, p.bits)) >= 0; n++)
        if (found > 0 && k-- == 0)
            break;
    if (found < 0)
        return NULL;
    fill_adder(&a, &c.scalar.o);
    *result = play(&w, &p, &a, sum);
    name_way(name, sizeof name, &w);
    return name;
}

/* ---- what fits ---- */

static const way one_by_one = {FORWARD, 1, CHAIN, NARROW};

static int gives(const way *w, const gpu_order_plan *p, const adder *a, const gpu_order *o)
{
    int sum = o->sums; /* those of mixed numbers come first: few ways give them */
    while (sum > 0 && play(w, p, a, sum - 1) == o->result[sum - 1])
        sum--;
    return sum == 0;
}

const char *gpu_order_fits(size_t i, const gpu_order *o, size_t *next)
{
    static char name[96];
    gpu_order_plan p;
    gpu_check c;
    adder a;
    way w;
    int found;
    if (o->status != GPU_DONE || !fill(i, &p, &c))
        return NULL;
    fill_adder(&a, &c.scalar.o);
    while ((found = way_at(&w, (*next)++, p.bits)) >= 0)
        if (found > 0 && gives(&w, &p, &a, o)) {
            name_way(name, sizeof name, &w);
            return name;
        }
    return NULL;
}

/* What cp.reduce does is asynchronous: its order is not that of the program. */
int gpu_order_is_wrong(size_t i, const gpu_order *o)
{
    gpu_order_plan p;
    gpu_check c;
    adder a;
    if (o->status != GPU_DONE || !fill(i, &p, &c) || p.way != GPU_ORDER_THREAD || strstr(c.name, "cp.reduce"))
        return 0;
    fill_adder(&a, &c.scalar.o);
    return !gives(&one_by_one, &p, &a, o);
}

/* The lanes behind `lane` as bits, from the first sums: 0, or -1: a sum that no chain gives. */
static int lanes_behind(const gpu_order_plan *p, const mpsim_format *f, const gpu_order *o, int lane, uint32_t *bits)
{
    *bits = 0;
    for (int group = 0; group < gpu_order_groups(p); group++) {
        const double x = mpsim_decode(f, o->result[lane * gpu_order_groups(p) + group]) / mpsim_decode(f, p->smallest);
        if (!(x >= 0 && x < (double)(1 << p->group)) || x != (double)(uint32_t)x)
            return -1;
        *bits |= (uint32_t)x << group * p->group;
    }
    return 0;
}

static int count_bits(uint32_t x)
{
    int n = 0;
    for (; x; x &= x - 1)
        n++;
    return n;
}

int gpu_order_chain(size_t i, const gpu_order *o, int lanes[GPU_ORDER_LANES])
{
    gpu_order_plan p;
    gpu_check c;
    adder a;
    uint32_t behind, x[LANES], seen = 0;
    if (o->status != GPU_DONE || !fill(i, &p, &c))
        return 0;
    for (int lane = 0; lane < LANES; lane++) {
        if (lanes_behind(&p, &c.scalar.o.result, o, lane, &behind) != 0)
            return 0;
        const int place = LANES - 1 - count_bits(behind);
        if (place < 0 || seen >> place & 1)
            return 0;
        seen |= (uint32_t)1 << place;
        lanes[place] = lane;
    }
    fill_adder(&a, &c.scalar.o);
    for (int sum = 0; sum < o->sums; sum++) {
        for (int place = 0; place < LANES; place++)
            x[place] = gpu_order_operand(&p, sum, lanes[place]);
        if (sum_by(&one_by_one, &a, gpu_order_start(&p, sum), x) != o->result[sum])
            return 0;
    }
    return 1;
}
