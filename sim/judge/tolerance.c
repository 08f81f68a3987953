/* tolerance.c -- see tolerance.h.
 *
 * Of casts and quantisers the bound is half the distance of two numbers (the whole distance unless the mode is to nearest), and what is beyond
 * the largest number. Of products it is first-order: each rounding on the way of a product to the result errs by at most u times the largest
 * sum on the way, which is at most sum |a b|; n roundings by (1 + u)^n - 1. A tensor core cuts each of L products at 2^-F of
 * the largest term before it rounds. */
#include "tolerance.h"
#include "arithrow.h"
#include "castrow.h"
#include "inputs.h"
#include "productrow.h"

#include "../text/words.h"

#include <mpsim/block.h>

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* What a rounding errs by: of the number, and below the normal numbers. */
static double unit_of(const mpsim_format *f, uint8_t mode)
{
    return ldexp(1, -f->mbits - (mode <= MPSIM_ROUND_NEAREST_AWAY));
}

static double tiny_of(const mpsim_format *f, uint8_t mode)
{
    return mpsim_format_min_positive(f) / (mode <= MPSIM_ROUND_NEAREST_AWAY ? 2 : 1);
}

static const char *distance_of(uint8_t mode)
{
    return mode <= MPSIM_ROUND_NEAREST_AWAY ? "half the distance" : "the distance";
}

/* ---- casts ---- */

static mpsim_status of_cast(mpsim_judge_tolerance *t, const judge_inputs *w)
{
    cast_row row;
    const mpsim_format *source = *w->set->format[0].name ? &w->set->format[0] : mpsim_format_find("binary32");
    if (judge_cast_row_parse(&row, w->row, source, w->why, w->size))
        return MPSIM_ENOTFOUND;
    const mpsim_rounding *r = &row.rounding;
    const mpsim_format *f = &row.format;
    t->relative = unit_of(f, r->mode);
    t->absolute = f->zero == MPSIM_ZERO_NONE ? mpsim_format_min_positive(f) : tiny_of(f, r->mode);
    if (r->flush_output)
        t->absolute = mpsim_format_min_normal(f);
    if (r->flush_input)
        t->absolute += mpsim_format_min_normal(source) * r->scale;
    snprintf(t->of, sizeof t->of, r->scale == 1 ? "|x|" : "|x| times %g", r->scale);
    (void)text_add(t->reason, sizeof t->reason,
                   "%s between two numbers of %s is at most %g of the number, and below %g never more than %g",
                   distance_of(r->mode), f->name, t->relative, mpsim_format_min_normal(f), tiny_of(f, r->mode));
    if (r->flush_output || r->flush_input)
        (void)text_add(t->reason, sizeof t->reason, "; what is flushed is below %g", t->absolute);
    (void)text_add(t->reason, sizeof t->reason, ". For numbers whose results are finite and not saturated, at most %g",
                   mpsim_format_max(f));
    return MPSIM_OK;
}

/* ---- quantisers ---- */

/* The largest number that the scale may leave a block, as a multiple of what the element format has: amax / scale. */
static double largest_scaled(const mpsim_block_recipe *b, const mpsim_format *f)
{
    const double max = mpsim_format_max(f), power = ldexp(1, ilogb(max));
    switch (b->rule) {
    case MPSIM_SCALE_E8M0_FLOOR:
    case MPSIM_SCALE_E8M0_MICROX:
    case MPSIM_SCALE_TORCHAO_018_FLOOR:
        return 2 * power;
    case MPSIM_SCALE_E8M0_CEIL:
    case MPSIM_SCALE_TORCHAO_018_CEIL:
        return power;
    case MPSIM_SCALE_E8M0_EVEN:
    case MPSIM_SCALE_TORCHAO_018_EVEN:
        return power * (2 - ldexp(1, -f->mbits - 1));
    case MPSIM_SCALE_NVFP4_TE:
    case MPSIM_SCALE_NVFP4_TORCHAO:
    case MPSIM_SCALE_NVFP4_1LEVEL:
        return max * 17 / 16; /* the scale is rounded to e4m3 */
    default:
        return max;
    }
}

static mpsim_status of_quantiser(mpsim_judge_tolerance *t, const judge_inputs *w)
{
    mpsim_block_recipe b;
    unsigned transform = 0;
    if (mpsim_block_parse(&b, &transform, w->row, w->why, w->size) != MPSIM_OK)
        return MPSIM_ENOTFOUND;
    if (transform || b.rule == MPSIM_SCALE_GIVEN || b.rule == MPSIM_SCALE_MSAMP)
        return judge_inputs_fail(w, MPSIM_ERANGE,
                                 "no bound is known for '%s': its scale does not follow from the block", w->row);
    const mpsim_format *f = mpsim_format_find(b.element);
    const double max = mpsim_format_max(f), most = largest_scaled(&b, f), beyond = most > max ? most - max : 0;
    const double top = nextafter(fmin(max, most), 0); /* what lies in the highest binade that elements reach */
    const double distance = ldexp(unit_of(f, b.element_mode), ilogb(top));
    t->relative = fmax(unit_of(f, b.element_mode), beyond / most) +
                  0x1p-21; /* the scale, and x / scale, are rounded to binary32 */
    t->scales = fmax(distance, beyond) + 0x1p-21 * most;
    snprintf(t->of, sizeof t->of, "the block's largest magnitude");
    (void)text_add(t->reason, sizeof t->reason, "%s between the largest numbers of %s is %g",
                   distance_of(b.element_mode), f->name, distance);
    if (beyond > 0)
        (void)text_add(t->reason, sizeof t->reason, "; the scale leaves numbers up to %g, which become %g", most, max);
    (void)text_add(t->reason, sizeof t->reason, ". For finite blocks whose scale is not at an end of its range");
    return MPSIM_OK;
}

/* ---- products ---- */

typedef struct bound {
    double relative; /* of sum |a b| */
    double absolute;
    char *reason;
} bound;

static void add_roundings(bound *b, double n, const mpsim_rounded *r, const char *what)
{
    const double u = unit_of(&r->format, r->rounding.mode);
    if (n <= 0)
        return;
    b->relative = (1 + b->relative) * exp(n * log1p(u)) - 1;
    b->absolute += n * tiny_of(&r->format, r->rounding.mode);
    (void)text_add(b->reason, MPSIM_JUDGE_REASON, "%s%g rounding%s of %s to %s (%g each)", *b->reason ? "; " : "", n,
                   n == 1 ? "" : "s", what, r->format.name, u);
}

static double steps_of(size_t n, size_t length)
{
    return length ? ceil((double)n / (double)length) : 1;
}

/* The roundings that one product meets in a chain of n. */
static double chain_of(const mpsim_model *m, size_t n)
{
    const double tree = ceil(log2((double)(m->length ? m->length : n)));
    switch (m->addition) {
    case MPSIM_ADDITION_EXACT:
        return m->length || m->chunk ? steps_of(n, m->length) : 0;
    case MPSIM_ADDITION_FMA:
    case MPSIM_ADDITION_MULADD:
        return m->order == MPSIM_ORDER_PAIRWISE ? steps_of(n, m->length) + tree
               : m->order == MPSIM_ORDER_LANES  ? steps_of(n, m->length) + (double)m->length
                                                : (double)n;
    default:
        return steps_of(n, m->length);
    }
}

static void add_cuts(bound *b, const mpsim_model *m, double steps)
{
    const double cut = m->length * ldexp(1, -m->fraction - (m->alignment == MPSIM_ALIGN_NEAREST));
    b->relative = exp(steps * log1p(cut)) - 1;
    if (m->floor != MPSIM_MODEL_NO_FLOOR)
        b->absolute += steps * m->length * ldexp(1, m->floor - m->fraction);
    (void)text_add(b->reason, MPSIM_JUDGE_REASON, "%g additions that cut %d products at 2^-%d of the largest (%g each)",
                   steps, m->length, m->fraction, cut);
}

static mpsim_status bound_of(bound *b, const mpsim_model *m, size_t depth)
{
    const size_t n = m->chunk && m->chunk < depth ? m->chunk : depth;
    if (m->addition == MPSIM_ADDITION_STAGED || m->addition == MPSIM_ADDITION_GROUPED)
        return MPSIM_ERANGE;
    if (m->addition == MPSIM_ADDITION_FUSED)
        add_cuts(b, m, chain_of(m, n));
    if (m->addition == MPSIM_ADDITION_MULADD) {
        add_roundings(b, 1, &m->product, "products");
        b->absolute += (double)depth * tiny_of(&m->product.format, m->product.rounding.mode);
    }
    add_roundings(b, chain_of(m, n), &m->accumulator, "sums");
    if (m->addition == MPSIM_ADDITION_FMA)
        b->absolute += (double)depth * tiny_of(&m->accumulator.format, m->accumulator.rounding.mode);
    if (m->chunk) {
        const double chunks = steps_of(depth, m->chunk);
        b->absolute *= chunks;
        add_roundings(b, chunks, &m->outer, "chunks");
    }
    const mpsim_format *last = m->chunk ? &m->outer.format : &m->accumulator.format;
    if (m->result.format.mbits < last->mbits || (m->addition == MPSIM_ADDITION_EXACT && chain_of(m, n) == 0))
        add_roundings(b, 1, &m->result, "the result");
    return MPSIM_OK;
}

static void add_row(bound *b, const product_row *row, const mpsim_format *to)
{
    mpsim_rounded r = {.format = *mpsim_format_find("binary32")};
    mpsim_rounding_init(&r.rounding, MPSIM_ROUND_NEAREST_EVEN);
    if (*row->operands.name) {
        r.format = row->operands;
        const double before = b->absolute;
        add_roundings(b, 2, &r, "operands");
        b->absolute = before;
        r.format = *mpsim_format_find("binary32");
    }
    if (row->split > 1) {
        b->absolute *= (double)row->split;
        add_roundings(b, (double)row->split - 1, &r, "parts");
    }
    if (to && to->mbits < row->model.result.format.mbits) {
        r.format = *to;
        add_roundings(b, 1, &r, "the result");
    }
}

static mpsim_status of_product(mpsim_judge_tolerance *t, const judge_inputs *w, const mpsim_format *to, size_t depth)
{
    product_row row;
    bound b = {.reason = t->reason};
    if (judge_product_row_parse(&row, w->row) != MPSIM_OK)
        return MPSIM_ENOTFOUND;
    if (depth < 1)
        return judge_inputs_fail(w, MPSIM_EINVAL, "the bound of '%s' needs the depth K", w->row);
    if (row.chunk && row.model.chunk)
        return judge_inputs_fail(w, MPSIM_ERANGE, "no bound is known for '%s'", w->row);
    if (row.mkl || row.chunk) {
        row.model.chunk = (uint32_t)(row.mkl ? PRODUCT_MKL_BLOCK : row.chunk);
        row.model.outer.format = *mpsim_format_find("binary32");
        mpsim_rounding_init(&row.model.outer.rounding, MPSIM_ROUND_NEAREST_EVEN);
    }
    if (row.model.block || bound_of(&b, &row.model, (depth + row.split - 1) / row.split) != MPSIM_OK)
        return judge_inputs_fail(w, MPSIM_ERANGE, "no bound is known for '%s'", w->row);
    add_row(&b, &row, to);
    t->relative = b.relative;
    t->absolute = b.absolute;
    snprintf(t->of, sizeof t->of, "sum |a b|");
    (void)text_add(t->reason, sizeof t->reason,
                   ". For operands that are zero or normal numbers, and sums that do not overflow");
    return MPSIM_OK;
}

/* ---- arithmetic ---- */

static mpsim_status of_arith(mpsim_judge_tolerance *t, const judge_inputs *w, const mpsim_format *from)
{
    const mpsim_format *f = from ? from : mpsim_format_find("binary32");
    arith_row row;
    if (judge_arith_row_parse(&row, w->row))
        return MPSIM_ENOTFOUND;
    const double once = unit_of(f, row.mode), via = *row.via.name ? unit_of(&row.via, row.mode) : 0;
    const int exact_tiny = row.op == MPSIM_OP_ADD || row.op == MPSIM_OP_SUB || row.op == MPSIM_OP_SQRT;
    const int fused = row.op == MPSIM_OP_FMA, ends = *row.via.name != '\0';
    t->relative = (1 + once) * (1 + (row.twice ? once : via)) - 1;
    t->absolute = exact_tiny ? 0
                             : tiny_of(f, row.mode) * (row.twice ? 2 : 1) + (ends ? tiny_of(&row.via, row.mode) : 0);
    if (row.flush)
        t->absolute += mpsim_format_min_normal(f) * (row.twice ? 2 : 1);
    snprintf(t->of, sizeof t->of, "%s", fused && row.twice ? "|a b| + |c|" : "the exact result's magnitude");
    (void)text_add(t->reason, sizeof t->reason, "%s between two numbers of %s is at most %g of the number",
                   distance_of(row.mode), f->name, once);
    if (row.twice)
        (void)text_add(t->reason, sizeof t->reason, "; there are two roundings");
    if (ends)
        (void)text_add(t->reason, sizeof t->reason, "; a rounding to %s comes first (%g)", row.via.name, via);
    if (t->absolute > 0)
        (void)text_add(t->reason, sizeof t->reason, "; below %g a result errs by at most %g",
                       mpsim_format_min_normal(f), t->absolute);
    (void)text_add(t->reason, sizeof t->reason,
                   ". For operands that are zero or normal numbers, and results that do not "
                   "overflow");
    return MPSIM_OK;
}

/* ---- the answer ---- */

mpsim_status judge_tolerance_run(mpsim_judge_tolerance *t, const char *row, const mpsim_format *from,
                                 const mpsim_format *to, size_t depth, char *error, size_t size)
{
    mpsim_format formats[MPSIM_JUDGE_SET_FORMATS];
    mpsim_judge_set set;
    judge_inputs w = {&set, row, NULL, error, size};
    if (!t || !row || (from && mpsim_format_check(from) != MPSIM_OK) || (to && mpsim_format_check(to) != MPSIM_OK))
        return MPSIM_EINVAL;
    memset(t, 0, sizeof *t);
    memset(&set, 0, sizeof set);
    memset(formats, 0, sizeof formats);
    set.format = formats;
    const mpsim_status s = judge_inputs_open(&w, row, from);
    if (s != MPSIM_OK)
        return s;
    if (!w.row)
        return judge_inputs_fail(&w, MPSIM_ENOTFOUND, "expected a row, found the kind '%s'", row);
    t->kind = set.kind;
    if (set.kind == MPSIM_JUDGE_ATTENTION)
        return judge_inputs_fail(&w, MPSIM_ERANGE,
                                 "no bound is known for '%s': that of attention depends on the scores", row);
    return set.kind == MPSIM_JUDGE_CAST       ? of_cast(t, &w)
           : set.kind == MPSIM_JUDGE_QUANTISE ? of_quantiser(t, &w)
           : set.kind == MPSIM_JUDGE_ARITH    ? of_arith(t, &w, from)
                                              : of_product(t, &w, to, depth);
}
