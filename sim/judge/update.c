/* update.c -- the judge of optimizer steps (mpsim/judge.h). Rows are the variants of mpsim/optim.h. */
#include "table.h"

#include "../array/want.h"
#include "../operand/element.h"
#include "../text/option.h"
#include "../text/words.h"

#include <mpsim/optim.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const judge_update_roles[] = {"param", "grad",  "new_param", NULL,       "m", "v",
                                          "vmax",  "new_m", "new_v",     "new_vmax", NULL};
enum { PARAM, GRAD, NEW_PARAM, M, V, VMAX, NEW_M, NEW_V, NEW_VMAX, ROLES };

enum { ROWS_MOST = 256, UNIT = 32, ARRAYS = 4, TRIED = 48, STEPS = 100, FITS = 8 };

typedef struct update_row {
    char name[MPSIM_JUDGE_ROW];
    mpsim_optim o;
    uint64_t step;
} update_row;

typedef struct question {
    judge_case *w;
    update_row row[ROWS_MOST + 1];
    size_t n, elements;
    const mpsim_format *param, *state; /* whose numbers parameters and moments are: those of their arrays, or 16 bits */
} question;

/* The arrays that a step moves: before it, and after. */
static const int before[ARRAYS] = {PARAM, M, V, VMAX}, after[ARRAYS] = {NEW_PARAM, NEW_M, NEW_V, NEW_VMAX};

/* ---- rows ---- */

/* What is said of a row. */
typedef struct settings {
    mpsim_optim_algorithm algorithm;
    const mpsim_optim_variant *variant; /* NULL: any */
    double x[MPSIM_OPTIM_SETTINGS];
    unsigned said; /* bit s */
    uint64_t step;
    char text[MPSIM_JUDGE_ROW]; /* ":lr=0.01:step=3" */
} settings;

static int set_word(void *context, const char *word, const char *value)
{
    settings *s = context;
    double x = 1;
    if (value && strcmp(word, "step") == 0)
        return parse_count(&s->step, value) || s->step == 0 ? -1 : 0;
    if (value && parse_number(&x, value))
        return -1;
    for (int i = 0; i < MPSIM_OPTIM_SETTINGS; i++)
        if (strcmp(word, mpsim_optim_setting_name((mpsim_optim_setting)i)) == 0 &&
            (value || i >= MPSIM_OPTIM_NUMBERS) && mpsim_optim_has(s->algorithm, (mpsim_optim_setting)i)) {
            s->x[i] = x;
            s->said |= 1u << i;
            return 0;
        }
    return -1;
}

/* ALGORITHM[@VARIANT][:SETTING=X]...[:step=N]. 0, or -1. */
static int parse(settings *s, const char *text)
{
    char copy[MPSIM_JUDGE_ROW];
    const char *words = strchr(text, ':');
    memset(s, 0, sizeof *s);
    s->step = 1;
    if (strlen(text) >= sizeof copy)
        return -1;
    snprintf(copy, sizeof copy, "%.*s", words ? (int)(words - text) : (int)strlen(text), text);
    char *at = strchr(copy, '@');
    if (at)
        *at++ = '\0';
    if (mpsim_optim_parse(&s->algorithm, copy) != MPSIM_OK || (at && !(s->variant = mpsim_optim_variant_find(at))))
        return -1;
    snprintf(s->text, sizeof s->text, "%s", words ? words : "");
    snprintf(copy, sizeof copy, "%s", text);
    return judge_words(copy, set_word, s);
}

/* What an array's numbers are of: 16 bits in place of 32 where all have them, before and after the step. */
static void take_formats(question *q)
{
    static const int states[] = {NEW_M, NEW_V, M, V, VMAX, NEW_VMAX};
    enum { STATES = sizeof states / sizeof states[0] };
    const mpsim_judge_array *params[2] = {q->w->of[PARAM], q->w->of[NEW_PARAM]}, *all[STATES];
    const mpsim_format *narrow = judge_narrow_of(params, 2);
    q->param = narrow ? narrow : params[0]->format;
    q->state = NULL;
    for (size_t i = 0; i < STATES; i++) {
        all[i] = q->w->of[states[i]];
        q->state = !q->state && all[i] ? all[i]->format : q->state;
    }
    narrow = q->state ? judge_narrow_of(all, STATES) : q->param;
    q->state = narrow ? narrow : q->state;
}

/* The row of a variant; -1: it has no such algorithm, formats or settings. */
static int fill(const question *q, update_row *row, const settings *s, const mpsim_optim_variant *v)
{
    mpsim_optim *o = &row->o;
    mpsim_optim_init(o, s->algorithm, v);
    for (int i = 0; i < MPSIM_OPTIM_SETTINGS; i++)
        if (s->said & 1u << i)
            mpsim_optim_set(o, (mpsim_optim_setting)i, s->x[i]);
    o->param = *q->param;
    o->state = *q->state;
    row->step = s->step;
    *row->name = '\0';
    if (text_add(row->name, sizeof row->name, "%s@%s%s", mpsim_optim_name(s->algorithm), v->name, s->text))
        return -1;
    if (mpsim_optim_check(o) != MPSIM_OK)
        return -1;
    const unsigned arrays = mpsim_optim_arrays(o);
    const unsigned given = (q->w->of[NEW_M] ? MPSIM_OPTIM_M : 0u) | (q->w->of[NEW_V] ? MPSIM_OPTIM_V : 0u) |
                           (q->w->of[NEW_VMAX] ? MPSIM_OPTIM_VMAX : 0u);
    return given & ~arrays ? -1 : 0;
}

static void add_variants(question *q, const settings *s)
{
    for (size_t i = 0; i < mpsim_optim_variant_count() && q->n < ROWS_MOST; i++)
        q->n += fill(q, &q->row[q->n], s, mpsim_optim_variant_at(i)) == 0;
}

static const char *name(const void *self, size_t row)
{
    return ((const question *)self)->row[row].name;
}

/* ---- results of a row ---- */

static size_t elements_of(const question *q, const judge_units *u)
{
    size_t n = 0;
    for (size_t i = 0; i < u->n; i++) {
        const size_t first = judge_unit(u, i) * UNIT;
        n += q->elements - first < UNIT ? q->elements - first : UNIT;
    }
    return n;
}

static void take(float *to, const mpsim_judge_array *a, const question *q, const judge_units *u)
{
    const size_t bytes = mpsim_format_code_bytes(a->format);
    for (size_t i = 0; i < u->n; i++) {
        const size_t first = judge_unit(u, i) * UNIT, left = q->elements - first;
        (void)mpsim_decode_array_f32(a->format, to + i * UNIT, (const char *)a->codes + first * bytes,
                                     left < UNIT ? left : UNIT);
    }
}

/* Arrays of a step, in memory of their own; arrays that are not given are zeros. */
typedef struct step_arrays {
    float *grad, *of[ARRAYS];
} step_arrays;

static void clear(step_arrays *s)
{
    free(s->grad);
    for (int i = 0; i < ARRAYS; i++)
        free(s->of[i]);
}

static int fill_arrays(step_arrays *s, const question *q, const mpsim_optim *o, const judge_units *u, size_t n)
{
    const unsigned arrays = mpsim_optim_arrays(o);
    memset(s, 0, sizeof *s);
    if (!(s->grad = want_memory(n + 1, sizeof *s->grad)))
        return -1;
    take(s->grad, q->w->of[GRAD], q, u);
    for (unsigned i = 0; i < ARRAYS; i++) {
        if (i && !(arrays & 1u << (i - 1)))
            continue;
        if (!(s->of[i] = want_memory(n + 1, sizeof *s->grad)))
            return -1;
        if (q->w->of[before[i]])
            take(s->of[i], q->w->of[before[i]], q, u);
    }
    return 0;
}

static mpsim_status compute(const void *self, size_t which, const judge_units *u, float *const *y)
{
    const question *q = self;
    const update_row *row = &q->row[which];
    const size_t n = elements_of(q, u);
    step_arrays s;
    mpsim_status status = fill_arrays(&s, q, &row->o, u, n) ? MPSIM_ENOMEM : MPSIM_OK;
    if (status == MPSIM_OK) {
        const mpsim_optim_tensor t = {s.of[0], s.grad, s.of[1], s.of[2], s.of[3], NULL, n};
        status = mpsim_optim_step(&row->o, row->step, &t, NULL);
    }
    for (int i = 0; i < ARRAYS && status == MPSIM_OK; i++)
        if (y[i])
            memcpy(y[i], s.of[i], n * sizeof *y[i]);
    clear(&s);
    return status;
}

/* ---- formulas ---- */

static const judge_formula formulas[] = {
    {"rounding",
     "the results that were tried are as near the exact step as rounding leaves them: another order of operations, or "
     "another variant"},
    {"unchanged", "the array has not been moved: it is that of before the step"},
    {"gradient", "the gradient counts as zero"},
    {"gradient", "the step goes up the gradient: the sign of the gradient is the opposite one"},
    {"correction", "the bias correction is left out"},
    {"correction", "the bias correction is that of the step before"},
    {"correction", "the bias correction is that of the step that follows"},
    {"correction", "the bias correction is that of the first step"},
    {"decay", "the weight decay is coupled where it should be decoupled, or decoupled where it should be coupled"},
    {"decay", "the weight decay is left out"},
    {"decay", "the weight decay has the opposite sign"},
    {"decay", "the weight decay comes after the step, not before: it acts on the step, too"},
    {"eps", "eps is added to v, under the root"},
    {"eps", "eps is added before the bias correction of v"},
    {"eps", "eps is left out"},
    {"betas", "beta1 and beta2 have changed places"},
    {"moments", "the moments of before the step count as zeros"},
};
enum {
    OF_UNCHANGED = 1,
    OF_NO_GRADIENT,
    OF_UP,
    OF_NO_CORRECTION,
    OF_STEP_BEFORE,
    OF_STEP_BEHIND,
    OF_FIRST_STEP,
    OF_COUPLED,
    OF_NO_DECAY,
    OF_MINUS_DECAY,
    OF_LATE_DECAY,
    OF_EPS_INSIDE,
    OF_EPS_BEFORE,
    OF_NO_EPS,
    OF_BETAS,
    OF_NO_MOMENTS
};

enum { FAR = 40 }; /* 2^40 steps: nothing is corrected */

/* One element: of before the step, then of behind it. */
typedef struct element_step {
    double grad, of[ARRAYS];
} element_step;

static void swap_decay(mpsim_optim *o)
{
    o->algorithm = o->algorithm == MPSIM_OPTIM_ADAM ? MPSIM_OPTIM_ADAMW : MPSIM_OPTIM_ADAM;
}

static void swap_betas(mpsim_optim *o)
{
    const double beta1 = o->beta1;
    o->beta1 = o->beta2;
    o->beta2 = beta1;
}

static uint64_t step_of(const update_row *row, size_t formula)
{
    return formula == OF_NO_CORRECTION ? (uint64_t)1 << FAR
           : formula == OF_STEP_BEFORE ? row->step - 1
           : formula == OF_STEP_BEHIND ? row->step + 1
           : formula == OF_FIRST_STEP  ? 1
                                       : row->step;
}

/* eps in the root of the corrected v: v is larger by as much, and eps is 0. */
static void eps_inside(mpsim_optim *o, element_step *e, uint64_t step)
{
    const double correction = 1 - mpsim_power(o->beta2, step);
    e->of[2] += o->eps * correction / o->beta2;
    o->eps = 0;
}

/* What a formula makes of the settings and of an element; 0: it is none of this optimizer. */
static int change(mpsim_optim *o, element_step *e, const update_row *row, size_t formula, size_t output)
{
    const mpsim_optim_traits *t = mpsim_optim_traits_of(o->algorithm);
    const int is_adam = o->algorithm == MPSIM_OPTIM_ADAM || o->algorithm == MPSIM_OPTIM_ADAMW;
    switch (formula) {
    case OF_NO_GRADIENT:
        e->grad = 0;
        return 1;
    case OF_UP:
        e->grad = -e->grad;
        return 1;
    case OF_NO_CORRECTION:
    case OF_STEP_BEHIND:
        return t->corrects && output == 0;
    case OF_STEP_BEFORE:
    case OF_FIRST_STEP:
        return t->corrects && output == 0 && row->step > 1;
    case OF_COUPLED:
        swap_decay(o);
        return is_adam && o->weight_decay != 0;
    case OF_NO_DECAY:
    case OF_MINUS_DECAY:
    case OF_LATE_DECAY:
        if (o->weight_decay == 0 || (formula != OF_NO_DECAY && !t->decoupled))
            return 0;
        if (formula == OF_MINUS_DECAY)
            e->of[0] *= (1 + o->lr * o->weight_decay);
        o->weight_decay = 0;
        return 1;
    case OF_EPS_INSIDE:
        if (!is_adam || o->eps == 0 || o->beta2 == 0 || o->amsgrad || output)
            return 0;
        eps_inside(o, e, row->step);
        return 1;
    case OF_EPS_BEFORE:
        o->eps /= sqrt(1 - mpsim_power(o->beta2, row->step));
        return is_adam && o->eps != 0 && !o->amsgrad && output == 0;
    case OF_NO_EPS:
        o->eps = 0;
        return is_adam && row->o.eps != 0 && output == 0;
    case OF_BETAS:
        swap_betas(o);
        return o->beta1 != o->beta2 && (is_adam || o->algorithm == MPSIM_OPTIM_LION);
    case OF_NO_MOMENTS:
        e->of[1] = e->of[2] = e->of[3] = 0;
        return t->arrays != 0;
    default:
        return 1;
    }
}

static double number(const mpsim_judge_array *a, size_t i)
{
    return a ? mpsim_decode(a->format, element_code(a->codes, mpsim_format_code_bytes(a->format), i)) : 0;
}

static void run(const mpsim_optim *o, uint64_t step, element_step *e)
{
    const unsigned arrays = mpsim_optim_arrays(o);
    (void)mpsim_optim_reference(o, step, &e->of[0], &e->grad, arrays & MPSIM_OPTIM_M ? &e->of[1] : NULL,
                                arrays & MPSIM_OPTIM_V ? &e->of[2] : NULL, arrays & MPSIM_OPTIM_VMAX ? &e->of[3] : NULL,
                                1);
}

/* What the numbers of a step are made of: magnitudes, of which nothing cancels. */
typedef struct sizes {
    double param, grad, numerator; /* grad: with decay that is added to it */
} sizes;

static sizes sizes_of(const mpsim_optim *o, const element_step *e)
{
    const mpsim_optim_traits *t = mpsim_optim_traits_of(o->algorithm);
    const double grad = fabs(e->grad) + (t->decoupled ? 0 : o->weight_decay * fabs(e->of[0])), m = fabs(e->of[1]);
    const int is_sgd = o->algorithm == MPSIM_OPTIM_SGD;
    return (sizes){fabs(e->of[0]), grad,
                   is_sgd ? o->momentum * m * 2 + grad * 2 : o->beta1 * m + (1 - o->beta1) * grad};
}

/* How far rounding leaves the parameter from the exact one; made: of the exact step. */
static double bound_of_param(const mpsim_optim *o, uint64_t step, const element_step *e, const element_step *made,
                             double unit)
{
    const sizes s = sizes_of(o, e);
    double by = 1, more = 1;
    if (o->algorithm == MPSIM_OPTIM_LION) { /* a sign, which rounding can turn over */
        const double sum = o->beta1 * e->of[1] + (1 - o->beta1) * e->grad;
        return 4 * unit * s.param + 8 * unit * o->lr + (fabs(sum) <= 8 * unit * s.numerator ? 2 * o->lr : 0);
    }
    if (o->algorithm != MPSIM_OPTIM_SGD) {
        const double v = fmax(made->of[2], made->of[3]);
        by = 1 / (1 - mpsim_power(o->beta1, step)) / (sqrt(v / (1 - mpsim_power(o->beta2, step))) + o->eps);
        more += v > 0 ? (1 - o->beta2) * s.grad * s.grad / v : 0;
    }
    const double moved = o->lr * s.numerator * by;
    return 4 * unit * s.param * (1 + o->lr * o->weight_decay) + (isfinite(moved) ? 32 * unit * moved * more : 0);
}

static double bound_of(const mpsim_optim *o, uint64_t step, const element_step *e, const element_step *made,
                       size_t output, double unit)
{
    const sizes s = sizes_of(o, e);
    return output == 0   ? bound_of_param(o, step, e, made, unit)
           : output == 1 ? 8 * unit * (fabs(e->of[1]) + s.grad)
                         : 8 * unit * (fmax(e->of[2], e->of[3]) + s.grad * s.grad);
}

static double unit_of(const question *q)
{
    return fmax(judge_unit_of(q->param), judge_unit_of(q->state));
}

static judge_exact exact(const void *self, size_t which, size_t formula, size_t output, size_t at)
{
    const question *q = self;
    const update_row *row = &q->row[which];
    mpsim_optim o = row->o;
    element_step e = {number(q->w->of[GRAD], at), {0}};
    for (int i = 0; i < ARRAYS; i++)
        e.of[i] = number(q->w->of[before[i]], at);
    if (formula == OF_UNCHANGED)
        return (judge_exact){e.of[output], JUDGE_EQUAL};
    if (mpsim_optim_traits_of(o.algorithm)->factors || !change(&o, &e, row, formula, output))
        return (judge_exact){NAN, 0};
    const uint64_t step = step_of(row, formula);
    element_step made = e;
    run(&o, step, &made);
    if (formula == OF_LATE_DECAY)
        made.of[0] *= 1 - o.lr * row->o.weight_decay;
    return (judge_exact){made.of[output], bound_of(&o, step, &e, &made, output, unit_of(q))};
}

/* What a step starts from. */
static double origin(const void *self, size_t output, size_t at)
{
    return number(((const question *)self)->w->of[before[output]], at);
}

/* ---- settings that nobody says ---- */

/* Whether a row's exact step is as near to the results as rounding leaves it, at some elements. */
static int row_fits(const question *q, size_t row)
{
    const size_t n = q->elements < TRIED ? q->elements : TRIED;
    for (size_t o = 0; o < ARRAYS; o++)
        for (size_t i = 0; i < n && q->w->of[after[o]]; i++) {
            const size_t at = n < 2 ? 0 : (size_t)((double)i * ((double)(q->elements - 1) / (double)(n - 1)));
            const mpsim_judge_array *found = q->w->of[after[o]];
            const judge_exact e = exact(q, row, 0, o, at);
            if (!(fabs(number(found, at) - e.value) <=
                  e.bound + 2 * judge_unit_of(o ? q->state : q->param) * fabs(e.value)))
                return 0;
        }
    return 1;
}

/* All variants of settings that fit: there are at most FITS. */
static void try_settings(question *q, const settings *s, size_t *fits)
{
    update_row *row = &q->row[q->n];
    if (*fits == FITS || q->n == ROWS_MOST || fill(q, row, s, mpsim_optim_variant_find("ieee")) || !row_fits(q, q->n))
        return;
    ++*fits;
    add_variants(q, s);
}

static void set(settings *s, mpsim_optim_setting which, double x)
{
    if (!mpsim_optim_has(s->algorithm, which))
        return;
    s->x[which] = x;
    s->said |= 1u << which;
    (void)text_add(s->text, sizeof s->text, ":%s=%.9g", mpsim_optim_setting_name(which), x);
}

/* Usual learning rates, decays and momenta, and the first steps. */
static void try_all(question *q, const settings *plain)
{
    static const double rates[] = {1e-3, 1e-2, 3e-3, 2e-3, 5e-4, 3e-4, 2e-4, 1e-4, 5e-5, 3e-5, 2e-5, 1e-5, 0.1},
                        decays[] = {0.01, 0, 0.1, 0.05, 1e-3, 1e-4, 5e-4}, momenta[] = {0.9, 0, 0.95, 0.99};
    const int is_sgd = plain->algorithm == MPSIM_OPTIM_SGD,
              corrects = mpsim_optim_traits_of((int)plain->algorithm)->corrects;
    size_t fits = 0;
    for (size_t r = 0; r < sizeof rates / sizeof rates[0]; r++)
        for (size_t d = 0; d < sizeof decays / sizeof decays[0]; d++)
            for (size_t m = 0; m < (is_sgd ? sizeof momenta / sizeof momenta[0] : 1); m++)
                for (uint64_t step = 1; step <= (uint64_t)(corrects ? STEPS : is_sgd ? 2 : 1); step++) {
                    settings s = *plain;
                    set(&s, MPSIM_OPTIM_LR, rates[r]);
                    set(&s, MPSIM_OPTIM_WEIGHT_DECAY, decays[d]);
                    set(&s, MPSIM_OPTIM_MOMENTUM, momenta[m]);
                    s.step = step;
                    (void)text_add(s.text, sizeof s.text, ":step=%d", (int)step);
                    try_settings(q, &s, &fits);
                }
}

/* ---- the answer ---- */

static mpsim_status check(question *q)
{
    judge_case *w = q->w;
    mpsim_status s = MPSIM_OK;
    for (int i = 0; i < ROLES && s == MPSIM_OK; i++)
        s = judge_has_numbers(w, w->of[i]);
    if (s != MPSIM_OK)
        return s;
    q->elements = w->of[PARAM]->rows * w->of[PARAM]->columns;
    for (int i = 0; i < ROLES; i++)
        if (w->of[i] && w->of[i]->rows * w->of[i]->columns != q->elements)
            return judge_fail(w, MPSIM_EINVAL, "%s: expected %zu numbers as in param, found %zu", w->of[i]->role,
                              q->elements, w->of[i]->rows * w->of[i]->columns);
    if (q->elements == 0)
        return judge_fail(w, MPSIM_EINVAL, "param: expected numbers, found none");
    if (!mpsim_format_same(w->of[PARAM]->format, w->of[NEW_PARAM]->format))
        return judge_fail(w, MPSIM_EINVAL, "new_param: expected numbers of %s as in param, found %s",
                          w->of[PARAM]->format->name, w->of[NEW_PARAM]->format->name);
    take_formats(q);
    return MPSIM_OK;
}

/* Rows of one algorithm; or of all, with settings that fit. Where none do no formula can be the right one. */
static mpsim_status add_rows(question *q, judge_table *t)
{
    char text[MPSIM_JUDGE_ROW];
    settings s;
    if (!q->w->like) {
        for (int a = 0; a < MPSIM_OPTIM_ALGORITHMS; a++)
            if (parse(&s, mpsim_optim_name((mpsim_optim_algorithm)a)) == 0 && !mpsim_optim_traits_of(a)->factors)
                try_all(q, &s);
        t->rows = q->n;
        return q->n
                   ? MPSIM_OK
                   : judge_fail(
                         q->w, MPSIM_ERANGE,
                         "no algorithm with usual settings makes these steps: give the algorithm and its settings, as adamw:lr=1e-3:step=7");
    }
    snprintf(text, sizeof text, "%s", q->w->like);
    if (judge_ending_take(&t->ending, text) || parse(&s, text) || mpsim_optim_traits_of((int)s.algorithm)->factors)
        return judge_fail(
            q->w, MPSIM_ENOTFOUND,
            "'%s' is not a row of an update: sgd, adam, adamw or lion, @VARIANT, settings as :lr=0.01, :weight_decay=0.1, :beta1=0.9, :step=N",
            q->w->like);
    if (*t->ending.format.name)
        t->narrow = q->param = &t->ending.format;
    add_variants(q, &s);
    t->rows = q->n;
    t->like = s.variant != NULL;
    if (s.variant && fill(q, &q->row[q->n], &s, s.variant))
        return judge_fail(q->w, MPSIM_ERANGE, "'%s' does not take these arrays, formats or settings", q->w->like);
    return MPSIM_OK;
}

mpsim_status judge_update(judge_case *c)
{
    question *q = want_memory(1, sizeof *q);
    if (!q)
        return MPSIM_ENOMEM;
    q->w = c;
    mpsim_status s = check(q);
    if (s == MPSIM_OK) {
        judge_table t = {.w = c,
                         .self = q,
                         .outputs = ARRAYS,
                         .unit = UNIT,
                         .work = UNIT,
                         .whole = 1,
                         .stored = 1,
                         .narrow = q->param == c->of[PARAM]->format ? NULL : q->param,
                         .plain = {0, 1, 1, 1},
                         .name = name,
                         .compute = compute,
                         .formulas = formulas,
                         .formulas_n = sizeof formulas / sizeof formulas[0],
                         .exact = exact,
                         .origin = origin};
        for (int i = 0; i < ARRAYS; i++)
            t.found[i] = c->of[after[i]];
        s = add_rows(q, &t);
        s = s == MPSIM_OK ? judge_table_answer(&t) : s;
    }
    free(q);
    return s;
}
