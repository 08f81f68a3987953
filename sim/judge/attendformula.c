/* attendformula.c -- see attendformula.h. */
#include "attendformula.h"
#include "attendscore.h"

#include <math.h>
#include <string.h>

const judge_formula judge_attend_formulas[] = {
    {"rounding",
     "the results that were tried are as near the exact ones as rounding leaves them: another order of sums, or another exp"},
    {"mask", "the causal mask is left out, or is there where it should not be"},
    {"mask", "the causal mask lets each query see one key more"},
    {"mask", "the causal mask lets each query see one key less"},
    {"mask",
     "the causal mask begins at the other end: the first query belongs to the first key where the last should belong to the last, or "
     "the other way round"},
    {"mask", "the mask is left out"},
    {"mask", "the mask is inverted: it hides the keys that it should show"},
    {"mask", "scores that are masked are 0, not -infinity"},
    {"mask", "the window has one key more"},
    {"mask", "the window has one key less"},
    {"mask", "the window is left out"},
    {"softcap", "the soft cap is left out"},
    {"softcap", "the soft cap comes after the mask: masked scores are minus the cap, not -infinity"},
    {"softcap", "the soft cap comes after the bias or the slopes, not before them"},
    {"softcap", "the soft cap comes before the scale, not after it"},
    {"softcap", "scores are tanh(score / cap), not multiplied by the cap again"},
    {"softcap", "scores are score tanh(score / cap), not cap tanh(score / cap)"},
    {"bias", "the bias is left out"},
    {"bias", "the bias is added before the scale: it is multiplied by the scale"},
    {"bias", "the bias is subtracted, not added"},
    {"bias", "the bias is added twice"},
    {"bias", "the bias is taken as its transpose"},
    {"bias", "all heads have the bias of the first head"},
    {"slopes", "the slopes are left out"},
    {"slopes", "the slopes have the other sign: far keys count more"},
    {"slopes", "the slopes are multiplied by the scale"},
    {"slopes", "all heads have the slope of the first head"},
    {"slopes", "slopes are those of the head before: 2^(-8 h / n), not 2^(-8 (h + 1) / n)"},
    {"slopes", "slopes are those of the next head"},
    {"slopes", "slopes are 2^(-8 (h + 1) / n), though the heads are no power of two"},
    {"sink", "the sink is left out"},
    {"sink", "the sink is counted twice"},
    {"sink", "a query has the sink of another head: that of its place among all queries, modulo the heads"},
    {"sink", "all heads have the sink of the first head"},
    {"sink", "the sink is multiplied by the scale"},
    {"sink", "the sink is 0"},
    {"lse", "the logarithm of the sum of powers is to base 2, not the natural one"},
    {"lse", "the largest score is not added to the logarithm of the sum"},
    {"lse", "the logarithm of the sum of distances from the largest score is to base 2; the largest score is not"},
    {"nan", "queries that see no key have NaN, not 0"},
    {"mask", "queries that see no key have the mean of all values, not 0"},
    {"scale", "the scale is left out"},
    {"scale", "the scale is multiplied twice"},
    {"scale", "the scale is 1 / sqrt(dim)"},
    {"heads", "head h has the keys and values of head h modulo their number, not those of its group"},
    {"heads", "all heads have the keys and values of the first head"},
    {"operands", "queries and keys have changed places"},
    {"operands", "keys and values have changed places"},
    {"tail", "the last key is left out"},
    {"tail", "the first key is left out"},
    {"tail", "the last keys, which do not fill a tile of 16, are left out"},
    {"tail", "the last keys, which do not fill a tile of 32, are left out"},
    {"tail", "the last keys, which do not fill a tile of 64, are left out"},
    {"tail", "the last keys, which do not fill a tile of 128, are left out"},
    {"tail", "the last tile of 16 keys is left out"},
    {"tail", "the last tile of 32 keys is left out"},
    {"tail", "the last tile of 64 keys is left out"},
    {"tail", "the last tile of 128 keys is left out"},
    {"tail", "keys behind the last one, which fill a tile of 16, are zeros and have weights"},
    {"tail", "keys behind the last one, which fill a tile of 32, are zeros and have weights"},
    {"tail", "keys behind the last one, which fill a tile of 64, are zeros and have weights"},
    {"tail", "keys behind the last one, which fill a tile of 128, are zeros and have weights"},
    {"formula", "the results are not normalised: they are not divided by the sum of the powers"},
    {"formula", "one is added to the sum of the powers"},
    {"formula", "powers of 2 are taken instead of those of e"},
    {"axis", "the softmax is taken along the queries, not along the keys"},
    {"formula", "the results of earlier tiles are not multiplied again when the largest score grows (tiles of 16)"},
    {"formula", "the results of earlier tiles are not multiplied again when the largest score grows (tiles of 32)"},
    {"formula", "the results of earlier tiles are not multiplied again when the largest score grows (tiles of 64)"},
    {"formula", "the results of earlier tiles are not multiplied again when the largest score grows (tiles of 128)"},
    {"format",
     "the results that were tried are no farther from the exact ones than with scores and probabilities of bf16"},
};
enum {
    OF_CAUSAL = 1,
    OF_MORE,
    OF_LESS,
    OF_ALIGN,
    OF_NO_MASK,
    OF_INVERTED,
    OF_ZERO,
    OF_WIDER,
    OF_NARROWER,
    OF_NO_WINDOW,
    OF_NO_CAP,
    OF_CAP_MASK,
    OF_CAP_BIAS,
    OF_CAP_SCALE,
    OF_CAP_ONCE,
    OF_CAP_TIMES,
    OF_NO_BIAS,
    OF_BIAS_SCALED,
    OF_BIAS_MINUS,
    OF_BIAS_TWICE,
    OF_BIAS_TURNED,
    OF_BIAS_FIRST,
    OF_NO_SLOPES,
    OF_SLOPES_MINUS,
    OF_SLOPES_SCALED,
    OF_SLOPES_FIRST,
    OF_SLOPES_BEFORE,
    OF_SLOPES_NEXT,
    OF_SLOPES_EVEN,
    OF_NO_SINK,
    OF_SINK_TWICE,
    OF_SINK_QUERY,
    OF_SINK_FIRST,
    OF_SINK_SCALED,
    OF_SINK_ZERO,
    OF_LSE_TWO,
    OF_LSE_SUM,
    OF_LSE_MIXED,
    OF_NAN,
    OF_MEAN,
    OF_NO_SCALE,
    OF_TWICE,
    OF_DEFAULT,
    OF_MODULO,
    OF_FIRST_HEAD,
    OF_SWAPPED,
    OF_VALUES,
    OF_LAST,
    OF_FIRST,
    OF_TAIL,
    OF_TILE = OF_TAIL + 4,
    OF_FILLED = OF_TILE + 4,
    OF_POWERS = OF_FILLED + 4,
    OF_PLUS_ONE,
    OF_TWO,
    OF_AXIS,
    OF_RESCALE,
    OF_BF16 = OF_RESCALE + 4,
    FORMULAS
};

size_t judge_attend_formula_count(void)
{
    return FORMULAS;
}

static size_t tile_of(size_t formula, size_t first)
{
    return (size_t)16 << (formula - first);
}

/* Keys that are missing in the last tile. */
static size_t filled(const attend_shape *s, size_t formula)
{
    const size_t tile = tile_of(formula, OF_FILLED);
    return (tile - s->keys % tile) % tile;
}

static size_t own_heads(const attend_numbers *n)
{
    return n->s.heads / n->s.batches;
}

/* Whether a formula of scores is one of this row and these arrays. */
static int has_more(const attend_numbers *n, const attend_row *row, size_t formula)
{
    const size_t heads = own_heads(n);
    if (formula == OF_CAP_MASK)
        return row->softcap > 0 && (row->causal || n->x.mask || row->window);
    if (formula == OF_CAP_BIAS)
        return row->softcap > 0 && (n->x.bias || n->x.slopes);
    if (formula < OF_NO_BIAS)
        return row->softcap > 0;
    if (formula < OF_NO_SLOPES)
        return n->x.bias && (formula != OF_BIAS_FIRST || n->x.biases > 1) &&
               (formula != OF_BIAS_TURNED || n->s.queries == n->s.keys);
    if (formula < OF_NO_SINK)
        return n->x.slopes && (formula < OF_SLOPES_FIRST || heads > 1) &&
               (formula != OF_SLOPES_EVEN || (heads & (heads - 1)));
    return n->x.sinks && (heads > 1 || (formula != OF_SINK_QUERY && formula != OF_SINK_FIRST));
}

static int is_of_lse(size_t formula)
{
    return formula >= OF_LSE_TWO && formula <= OF_LSE_MIXED;
}

/* Whether a formula of o is one of lse, too: it is about the scores that count. */
static int is_of_both(size_t formula)
{
    return formula < OF_LSE_TWO || formula == OF_NAN || formula == OF_BF16 ||
           (formula > OF_MEAN && formula <= OF_PLUS_ONE && formula != OF_VALUES && formula != OF_POWERS);
}

/* Whether a formula is one of this row and these arrays, and not the right one. */
static int has(const attend_numbers *n, const attend_row *row, size_t formula, size_t output)
{
    const attend_shape *s = &n->s;
    if (output ? !is_of_lse(formula) && !is_of_both(formula) : is_of_lse(formula))
        return 0;
    if (formula >= OF_NO_CAP && formula <= OF_SINK_ZERO)
        return has_more(n, row, formula);
    if (formula >= OF_TAIL && formula < OF_TILE)
        return s->keys % tile_of(formula, OF_TAIL) && s->keys > tile_of(formula, OF_TAIL);
    if (formula >= OF_TILE && formula < OF_FILLED)
        return s->keys % tile_of(formula, OF_TILE) == 0 && s->keys > tile_of(formula, OF_TILE);
    if (formula >= OF_FILLED && formula < OF_POWERS)
        return !row->causal && !n->x.mask && filled(s, formula) > 0;
    if (formula >= OF_RESCALE && formula < OF_BF16)
        return s->keys > tile_of(formula, OF_RESCALE);
    switch (formula) {
    case OF_MORE:
    case OF_LESS:
        return row->causal;
    case OF_ALIGN:
        return row->causal && s->queries != s->keys;
    case OF_NO_MASK:
    case OF_INVERTED:
        return n->x.mask != NULL;
    case OF_ZERO:
    case OF_NAN:
    case OF_MEAN:
        return row->causal || n->x.mask;
    case OF_DEFAULT:
        return row->scale > 0;
    case OF_WIDER:
    case OF_NARROWER:
        return row->window > 1;
    case OF_NO_WINDOW:
        return row->window > 0;
    case OF_MODULO:
    case OF_FIRST_HEAD:
        return s->kv_heads > 1 && (formula == OF_FIRST_HEAD || s->heads != s->kv_heads);
    case OF_SWAPPED:
        return s->queries == s->keys && s->heads == s->kv_heads;
    case OF_VALUES:
        return s->dim == s->size;
    case OF_LAST:
    case OF_FIRST:
        return s->keys > 1;
    case OF_BF16:
        return !*row->p.name || row->p.mbits > 7;
    default:
        return 1;
    }
}

/* The row with the mask of a formula. */
static attend_row masked(const attend_row *row, size_t formula)
{
    attend_row r = *row;
    if (formula == OF_CAUSAL)
        r.causal = row->causal ? ATTEND_ALL : ATTEND_LAST;
    if (formula == OF_ALIGN)
        r.causal = row->causal == ATTEND_LAST ? ATTEND_FIRST : ATTEND_LAST;
    if (formula == OF_WIDER)
        r.window++;
    if (formula == OF_NARROWER)
        r.window--;
    if (formula == OF_NO_WINDOW)
        r.window = 0;
    return r;
}

typedef struct line {
    size_t head, query, first, end; /* keys that the query sees */
    const uint8_t *mask;
    int inverted, all; /* all: masked scores count, as `masked` */
    double masked;
} line;

static int sees(const line *l, size_t k)
{
    return k >= l->first && k < l->end && (!l->mask || (l->mask[k] != 0) != l->inverted);
}

static line line_of(const attend_numbers *n, const attend_row *row, size_t formula, size_t head, size_t query)
{
    const attend_row r = masked(row, formula);
    const attend_shape *s = &n->s;
    line l = {.head = head,
              .query = query,
              .inverted = formula == OF_INVERTED,
              .all = formula == OF_ZERO || formula == OF_CAP_MASK,
              .masked = formula == OF_CAP_MASK ? -row->softcap : 0};
    judge_attend_sees(&r, s, query, &l.first, &l.end);
    l.mask = formula == OF_NO_MASK ? NULL : judge_attend_mask(s, &n->x, head, query);
    if (formula == OF_MORE)
        l.end += l.end < s->keys;
    if (formula == OF_LESS)
        l.end -= l.end > l.first;
    if (formula == OF_FIRST)
        l.first += l.first == 0;
    size_t most = formula == OF_LAST ? s->keys - 1 : s->keys;
    if (formula >= OF_TAIL && formula < OF_TILE)
        most = s->keys / tile_of(formula, OF_TAIL) * tile_of(formula, OF_TAIL);
    if (formula >= OF_TILE && formula < OF_FILLED)
        most = s->keys - tile_of(formula, OF_TILE);
    l.end = l.end < most ? l.end : most;
    return l;
}

static size_t kv_of(const attend_shape *s, size_t formula, size_t head)
{
    const size_t own = s->heads / s->batches, kv = s->kv_heads / s->batches, batch = head / own;
    return formula == OF_MODULO       ? batch * kv + head % own % kv
           : formula == OF_FIRST_HEAD ? batch * kv
                                      : judge_attend_kv(s, head);
}

static double scale_of(const attend_numbers *n, const attend_row *row, size_t formula)
{
    const double scale = row->scale > 0 && formula != OF_DEFAULT ? (double)(float)row->scale
                                                                 : 1 / sqrt((double)n->s.dim);
    return formula == OF_NO_SCALE ? 1 : formula == OF_TWICE ? scale * scale : scale;
}

typedef struct score {
    double x, size; /* size: the sum of the magnitudes */
} score;

/* The sum of products, not scaled. */
static score product_of(const attend_numbers *n, size_t formula, size_t head, size_t query, size_t key)
{
    const attend_shape *s = &n->s;
    const size_t kv = kv_of(s, formula, head) * s->keys;
    const float *q = n->q + (head * s->queries + query) * s->dim,
                *k = (formula == OF_VALUES ? n->v : n->k) + (kv + key) * s->dim;
    if (formula == OF_SWAPPED) {
        q = n->k + (head * s->keys + query) * s->dim;
        k = n->q + (head * s->queries + key) * s->dim;
    }
    score t = {0, 0};
    for (size_t i = 0; i < s->dim; i++) {
        const double p = (double)q[i] * (double)k[i];
        t.x += p;
        t.size += fabs(p);
    }
    return t;
}

static double capped(double x, double cap, size_t formula)
{
    const double t = tanh(x / cap);
    return formula == OF_NO_CAP ? x : formula == OF_CAP_ONCE ? t : formula == OF_CAP_TIMES ? x * t : cap * t;
}

static double bias_of(const attend_numbers *n, size_t formula, size_t head, size_t query, size_t key, double scale)
{
    const int turned = formula == OF_BIAS_TURNED;
    const float *bias = judge_attend_bias(&n->s, &n->x, formula == OF_BIAS_FIRST ? 0 : head, turned ? key : query);
    const double by = formula == OF_NO_BIAS       ? 0
                      : formula == OF_BIAS_SCALED ? scale
                      : formula == OF_BIAS_MINUS  ? -1
                      : formula == OF_BIAS_TWICE  ? 2
                                                  : 1;
    return bias && by != 0 ? by * (double)bias[turned ? query : key] : 0;
}

static double slope_of(const attend_numbers *n, size_t formula, size_t head, double scale)
{
    const float *slopes = n->x.slopes;
    const size_t heads = own_heads(n), own = head % heads;
    if (!slopes || formula == OF_NO_SLOPES)
        return 0;
    const double slope = (double)slopes[head], ratio = heads > 1 ? (double)slopes[1] / (double)slopes[0] : 1;
    return formula == OF_SLOPES_MINUS    ? -slope
           : formula == OF_SLOPES_SCALED ? slope * scale
           : formula == OF_SLOPES_FIRST  ? (double)slopes[0]
           : formula == OF_SLOPES_BEFORE ? (own ? (double)slopes[head - 1] : slope / ratio)
           : formula == OF_SLOPES_NEXT   ? (own + 1 < heads ? (double)slopes[head + 1] : slope * ratio)
           : formula == OF_SLOPES_EVEN   ? exp2(-8 * (double)(own + 1) / (double)heads)
                                         : slope;
}

/* A score, and the sum of the magnitudes of what it is made of. */
static score score_of(const attend_numbers *n, const attend_row *row, size_t formula, size_t head, size_t query,
                      size_t key)
{
    const double by = scale_of(n, row, formula), cap = row->softcap;
    score t = product_of(n, formula, head, query, key);
    const double more = bias_of(n, formula, head, query, key, by) -
                        slope_of(n, formula, head, by) * judge_attend_distance(row, &n->s, query, key);
    const int late = formula == OF_CAP_MASK || formula == OF_CAP_BIAS;
    t.size *= by;
    if (formula == OF_CAP_SCALE)
        t.x = by * capped(t.x, cap, formula);
    else if (cap > 0)
        t.x = capped(t.x * by + (late ? more : 0), cap, formula);
    else
        t.x *= by;
    t.x += late ? 0 : more;
    t.size += fabs(more);
    return t;
}

/* The score of the sink of a query; -infinity: it has none. */
static double sink_of(const attend_numbers *n, const attend_row *row, size_t formula, const line *l)
{
    const size_t heads = own_heads(n), own = l->head % heads;
    if (!n->x.sinks || formula == OF_NO_SINK)
        return -HUGE_VAL;
    const size_t which = formula == OF_SINK_QUERY   ? (own * n->s.queries + l->query) % heads
                         : formula == OF_SINK_FIRST ? 0
                                                    : own;
    const double x = (double)n->x.sinks[l->head - own + which];
    return formula == OF_SINK_SCALED  ? x * scale_of(n, row, formula)
           : formula == OF_SINK_TWICE ? x + log(2)
           : formula == OF_SINK_ZERO  ? 0
                                      : x;
}

/* A bound of the error of a sum of n numbers in binary32: errors of additions are taken as independent. */
static double of_sum(double n)
{
    return 0x1p-23 * fmin(n, 16 + 4 * sqrt(n));
}

static double unit_of(const mpsim_format *f)
{
    return *f->name ? judge_unit_of(f) : 0;
}

static double power(size_t formula, double x)
{
    return formula == OF_TWO ? exp2(x) : exp(x);
}

/* Weights of earlier tiles keep the largest score that was known then. */
static double most_known(const attend_numbers *n, size_t formula, size_t key, size_t end)
{
    const size_t tile = tile_of(formula, OF_RESCALE), last = (key / tile + 1) * tile;
    double most = -HUGE_VAL;
    for (size_t k = 0; k < last && k < end; k++)
        most = fmax(most, n->weight[k]);
    return most;
}

static void take_powers(attend_numbers *n, size_t formula, const line *l, double most, double sink)
{
    double known = most;
    n->most = most;
    n->sum = formula == OF_PLUS_ONE;
    if (sink > -HUGE_VAL)
        n->sum += power(formula, sink - most);
    if (formula >= OF_FILLED && formula < OF_POWERS)
        n->sum += (double)filled(&n->s, formula) * power(formula, -most);
    for (size_t i = n->s.keys; i-- > 0;) { /* from the last: scores of the keys before are needed */
        const int rescales = formula >= OF_RESCALE && formula < OF_BF16;
        if (rescales && (i == n->s.keys - 1 || (i + 1) % tile_of(formula, OF_RESCALE) == 0))
            known = most_known(n, formula, i, n->s.keys);
        const double x = n->weight[i];
        const int counts = sees(l, i) || l->all;
        n->sum += counts ? power(formula, x - most) : 0;
        n->weight[i] = counts ? power(formula, x - (rescales ? known : most)) : 0;
    }
}

static void weigh(attend_numbers *n, const attend_row *row, size_t formula, const line *l)
{
    const size_t keys = n->s.keys;
    const double sink = sink_of(n, row, formula, l);
    const int steps = 3 * (row->softcap > 0) + (n->x.bias != NULL) + (n->x.slopes != NULL);
    double most = sink, error = 0;
    const int bf16 = formula == OF_BF16;
    const double of_s = bf16 ? 0x1p-9 : unit_of(&row->s), of_p = bf16 ? 0x1p-9 : unit_of(&row->p);
    for (size_t k = 0; k < keys; k++) {
        const score t = sees(l, k) ? score_of(n, row, formula, l->head, l->query, k) : (score){l->masked, 0};
        n->weight[k] = sees(l, k) || l->all ? t.x : -HUGE_VAL;
        most = isnan(t.x) ? t.x : sees(l, k) || l->all ? fmax(most, t.x) : most;
        error = fmax(error, of_sum((double)n->s.dim) * t.size + (2 * of_s + 0x1p-22) * fabs(t.x) +
                                steps * (of_s + 0x1p-23) * (fabs(t.x) + (steps ? t.size : 0)) +
                                (row->scaled && !row->upcast ? unit_of(n->x.q->format) * 2 * t.size : 0));
    }
    take_powers(n, formula, l, most, sink);
    n->of_lse = error + of_sum((double)keys) + 0x1p-20;
    n->error = 2 * error + of_sum((double)keys) + of_p + 0x1p-20;
}

/* Sums of the queries of each key, in place of sums of the keys. */
static void weigh_queries(attend_numbers *n, const attend_row *row, const line *l)
{
    const attend_shape *s = &n->s;
    n->sum = 1;
    for (size_t k = 0; k < s->keys; k++) {
        double own = 0, sum = 0, most = -HUGE_VAL;
        for (size_t i = 0; i < s->queries; i++)
            most = fmax(most, score_of(n, row, OF_AXIS, l->head, i, k).x);
        for (size_t i = 0; i < s->queries; i++) {
            const double p = exp(score_of(n, row, OF_AXIS, l->head, i, k).x - most);
            own = i == l->query ? p : own;
            sum += p;
        }
        n->weight[k] = own / sum;
    }
    n->error = of_sum((double)s->queries) + of_sum((double)s->dim) * 8 + unit_of(&row->p);
}

static void keep(attend_numbers *n, const attend_row *row, size_t formula, const line *l, size_t at)
{
    if (n->of == row && n->formula == formula && n->row == at)
        return;
    if (formula == OF_AXIS)
        weigh_queries(n, row, l);
    else
        weigh(n, row, formula, l);
    n->of = row;
    n->formula = formula;
    n->row = at;
}

static int is_blind(const line *l)
{
    for (size_t k = l->first; k < l->end; k++)
        if (sees(l, k))
            return 0;
    return 1;
}

static double mean_of(const attend_numbers *n, size_t kv, size_t c)
{
    double sum = 0;
    for (size_t k = 0; k < n->s.keys; k++)
        sum += (double)n->v[(kv + k) * n->s.size + c] / (double)n->s.keys;
    return sum;
}

/* What a query that sees no key has. */
static judge_exact blind(const attend_numbers *n, size_t formula, size_t output, size_t kv, size_t c)
{
    if (output)
        return (judge_exact){formula == OF_NAN ? (double)NAN : -HUGE_VAL, 0};
    const double mean = formula == OF_MEAN ? mean_of(n, kv, c) : 0;
    return (judge_exact){formula == OF_NAN ? (double)NAN : mean,
                         formula == OF_MEAN ? 0x1p-8 * fabs(mean) + 0x1p-20 : 0};
}

/* The logarithm of the sum of powers. */
static judge_exact lse_of(const attend_numbers *n, size_t formula)
{
    const double sum = log(n->sum), two = log(2);
    const double y = formula == OF_LSE_TWO     ? (n->most + sum) / two
                     : formula == OF_LSE_SUM   ? sum
                     : formula == OF_LSE_MIXED ? n->most + sum / two
                                               : n->most + sum;
    return (judge_exact){y, 2 * n->of_lse + 0x1p-22 * (fabs(n->most) + fabs(sum) + fabs(y))};
}

judge_exact judge_attend_exact(attend_numbers *n, const attend_row *row, size_t formula, size_t output, size_t at,
                               size_t c)
{
    const attend_shape *s = &n->s;
    const size_t head = at / s->queries, kv = kv_of(s, formula, head) * s->keys;
    const line l = line_of(n, row, formula, head, at % s->queries);
    const float *v = formula == OF_VALUES ? n->k : n->v;
    const size_t most = 1u << 26; /* operations that the softmax along the queries may take for a result */
    if (!has(n, row, formula, output) ||
        (formula == OF_AXIS && (row->causal || n->x.mask || s->queries * s->keys * s->dim > most >> 4)))
        return (judge_exact){NAN, 0};
    if (is_blind(&l) && !l.all && !(output && n->x.sinks))
        return blind(n, formula, output, kv, c);
    keep(n, row, formula, &l, at);
    if (output)
        return lse_of(n, formula);
    double y = 0, size = 0, largest = 0;
    for (size_t k = 0; k < s->keys; k++) {
        const double x = (double)v[(kv + k) * s->size + c];
        y += n->weight[k] != 0 ? n->weight[k] * x : 0;
        size += n->weight[k] * fabs(x);
        largest = fmax(largest, fabs(x));
    }
    const double by = formula == OF_POWERS ? 1 : n->sum;
    const double lost = *row->p.name ? mpsim_format_min_positive(&row->p) * (double)s->keys * largest : 0;
    const double of_y = *row->of.name && row->model.result.format.mbits < 23
                            ? judge_unit_of(&row->model.result.format) * (double)(s->keys + s->dim)
                            : 0;
    return (judge_exact){y / by, (size * (n->error + of_y + 0x1p-21) + lost) / by};
}
