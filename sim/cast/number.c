/* number.c -- the rounding of one number, in the words of mpsim/round.h; see explain.h. */
#include "explain.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* X = |x scale|; q, S and nu as in mpsim/round.h. Where binary64 does not hold a number, the nearest one stands for it. */
typedef struct choice {
    mpsim_rounding r;
    double scaled; /* x scale                                                          */
    int about;     /* it is not a number of binary64, but near it                      */
    double read;   /* x as the route of the preset reads it: by way of binary32        */
    size_t finite; /* not zero, not Inf, not NaN: the rest holds                       */
    int q;
    double s, nu;        /* S and nu                                                         */
    int half;            /* the sign of nu - 1/2                                             */
    double below, above; /* S 2^q and (S + 1) 2^q, with the sign of x                        */
    int away;            /* the candidate away from zero was taken                           */
    double error;        /* of the result                                                    */
    uint32_t random;
    uint64_t code;
    double value;
    unsigned flags;
} choice;

/* ---- the record ---- */

typedef struct row {
    const char *typed, *code_of, *from, *format, *preset, *round;
    double x, given;
    choice c;
    char decision[192], code[24];
    const char *const *flags;
    size_t flag_count;
} row;

#define AT(member) offsetof(row, member)
static const record_field fields[] = {
    FIELD(TEXT, "typed", IN_TREE, AT(typed), "The number or code as it was typed."),
    FIELD(TEXT, "code_of", IN_TREE | FIELD_NULL, AT(code_of),
          "The format that it was taken for a code of; null: it is a number."),
    FIELD(TEXT, "from", IN_TREE | FIELD_NULL, AT(from),
          "The format of --from, which numbers are rounded to first; null: none."),
    FIELD(REAL, "x", IN_TREE, AT(x), "What is cast; the nearest number of binary64 where it is none."),
    FIELD(REAL, "given", IN_TREE, AT(given),
          "As it was typed, before it became a number of --from; the nearest number of binary64."),
    FIELD(TEXT, "format", IN_TREE, AT(format), NULL),
    FIELD(TEXT, "preset", IN_TREE | FIELD_NULL, AT(preset), NULL),
    FIELD(TEXT, "round", IN_TREE, AT(round), NULL, .words = target_modes),
    FIELD(REAL, "scale", IN_TREE, AT(c.r.scale), NULL),
    FIELD(REAL, "scaled", IN_TREE, AT(c.scaled), "x times the scale."),
    FIELD(REAL, "below", IN_TREE | FIELD_IF | FIELD_NULL, AT(c.below),
          "The candidate toward zero; null: x is zero or not finite.", .of = AT(c.finite)),
    FIELD(REAL, "above", IN_TREE | FIELD_IF | FIELD_NULL, AT(c.above), "The candidate away from zero; null as `below`.",
          .of = AT(c.finite)),
    FIELD(REAL, "between", IN_TREE | FIELD_IF | FIELD_NULL, AT(c.nu),
          "How far `scaled` is from the candidate toward zero, in units.", .of = AT(c.finite)),
    FIELD(INTEGER, "unit_exponent", IN_TREE | FIELD_IF | FIELD_NULL, AT(c.q), "The unit there is 2 to this.",
          .of = AT(c.finite)),
    FIELD(CHARS, "decision", IN_TREE, AT(decision), "Why it is the one candidate or the other."),
    FIELD(CODE, "code", IN_TREE, AT(code), NULL),
    FIELD(REAL, "value", IN_TREE, AT(c.value), NULL),
    FIELD(REAL, "error", IN_TREE, AT(c.error), "value - scaled."),
    FIELD(TEXTS, "flags", IN_TREE, AT(flags), NULL, .of = AT(flag_count), .words = element_flag_words),
    {0}};
#undef AT
const record_kind cast_explain_number_record = {"rounding", "A number in a format.", sizeof(row), fields};

/* ---- the choice ---- */

/* x as a preset reads it. */
static void read_by_route(exact_number *read, const mpsim_rounding *r, const exact_number *x)
{
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    mpsim_rounding to;
    mpsim_rounding_init(&to, MPSIM_ROUND_NEAREST_EVEN);
    *read = *x;
    if (r->via_binary32)
        exact_of(read, mpsim_decode(binary32, exact_encode(binary32, &to, x, 0, NULL, NULL)));
}

static void times(exact_number *scaled, const exact_number *x, double by)
{
    exact_number scale;
    exact_of(&scale, by);
    *scaled = *x;
    if (!x->special)
        exact_combine(scaled, MPSIM_OP_MUL, x, &scale);
}

/* The candidates around a magnitude that is not zero. Toward zero no binade and no whole number is passed by. */
static void find_candidates(choice *c, const mpsim_format *f, exact_number *magnitude)
{
    const mpsim_format *binary64 = mpsim_format_find("binary64");
    const int emin = (f->zero == MPSIM_ZERO_NONE ? 0 : 1) - f->bias;
    exact_number part, nu;
    mpsim_rounding toward;
    int e;
    mpsim_rounding_init(&toward, MPSIM_ROUND_TOWARD_ZERO);
    const double cut = mpsim_decode(binary64, exact_encode(binary64, &toward, magnitude, 0, NULL, NULL));
    (void)frexp(cut, &e);
    c->q = (e - 1 > emin ? e - 1 : emin) - f->mbits;
    c->s = floor(ldexp(cut, -c->q));
    exact_of(&part, ldexp(c->s, c->q));
    exact_combine(&nu, MPSIM_OP_SUB, magnitude, &part);
    nu.power -= c->q;
    exact_of(&part, 0.5);
    exact_combine(magnitude, MPSIM_OP_SUB, &nu, &part);
    c->half = magnitude->top.n ? magnitude->negative ? -1 : 1 : 0;
    c->nu = ldexp(nu.nearest, -c->q);
}

static void choose(choice *c, const explain_number *n)
{
    const mpsim_format *f = &n->to->format;
    exact_number x, read, scaled, result;
    unsigned tiny;
    memset(c, 0, sizeof *c);
    element_exact(&x, n->x);
    c->r = n->to->rounding;
    c->random = mpsim_rng_word(n->seed, 0, n->index);
    c->code = exact_encode(f, &c->r, &x, c->random, &c->flags, &tiny);
    c->flags |= element_ieee_underflow(c->flags, tiny);
    c->value = mpsim_decode(f, c->code);
    times(&scaled, &x, c->r.scale);
    c->scaled = scaled.nearest;
    c->about = !exact_is_binary64(&scaled);
    if (!scaled.special && isfinite(c->value)) {
        exact_of(&result, c->value);
        exact_combine(&read, MPSIM_OP_SUB, &result, &scaled);
        c->error = read.nearest;
    } else {
        c->error = c->value - c->scaled;
    }
    read_by_route(&read, &c->r, &x);
    c->read = read.nearest;
    times(&scaled, &read, c->r.scale);
    c->finite = !scaled.special && scaled.top.n;
    if (!c->finite)
        return;
    mpsim_rounding toward = c->r; /* the result toward zero, with the same choices otherwise */
    toward.mode = MPSIM_ROUND_TOWARD_ZERO;
    scaled.negative = 0;
    find_candidates(c, f, &scaled);
    c->below = copysign(ldexp(c->s, c->q), x.nearest);
    c->above = copysign(ldexp(c->s + 1, c->q), x.nearest);
    c->away = c->nu > 0 && c->code != exact_encode(f, &toward, &x, 0, NULL, NULL);
    if (c->flags & MPSIM_FLAG_OVERFLOW && fabs(c->below) <= mpsim_format_max(f))
        c->away = 1; /* to a number that there is not */
}

/* What an overflow is, and becomes. */
static const char *overflow(char *out, size_t size, const choice *c, const mpsim_format *f)
{
    const char *becomes = isnan(c->value) ? "NaN" : isinf(c->value) ? "infinity" : "saturates";
    out[0] = '\0';
    if (c->flags & MPSIM_FLAG_OVERFLOW && !mpsim_format_is_signed(f) && signbit(c->scaled))
        snprintf(out, size, "; negative, and the format has no sign");
    else if (c->flags & MPSIM_FLAG_OVERFLOW)
        snprintf(out, size, "; beyond the largest number %.9g: %s", mpsim_format_max(f), becomes);
    return out;
}

/* Why it is the one candidate or the other. */
static const char *decision(char *out, size_t size, const choice *c)
{
    const char *side = c->away ? "away from zero" : "toward zero";
    const int n = c->r.sr_bits;
    if (!c->finite)
        snprintf(out, size, "nothing to round");
    else if (c->nu == 0)
        snprintf(out, size, "exact");
    else if (c->r.mode >= MPSIM_ROUND_STOCHASTIC_A)
        snprintf(out, size, "random bits %" PRIu32 " of 2^%d: %s", n < 32 ? c->random >> (32 - n) : c->random, n, side);
    else if (c->r.mode > MPSIM_ROUND_NEAREST_AWAY)
        snprintf(out, size, "%s", side);
    else if (c->r.by_field && c->away && c->half < 0)
        snprintf(out, size, "by the exponent field of a subnormal number: %s", side);
    else if (c->half == 0)
        snprintf(out, size, "a tie: %s%s", side, c->r.mode == MPSIM_ROUND_NEAREST_EVEN ? ", to the even code" : "");
    else
        snprintf(out, size, "%s the middle: %s", c->half < 0 ? "below" : "above", side);
    return out;
}

/* A candidate, and its code if it is a number of the format. */
static void print_candidate(FILE *to, const char *what, const mpsim_format *f, double x)
{
    mpsim_rounding r;
    char code[24];
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.overflow = MPSIM_OVERFLOW_MAX;
    const uint64_t u = mpsim_encode_f64(f, &r, x, 0, NULL);
    fprintf(to, "  %-9s  %-10s  %.17g  %a\n", what,
            mpsim_decode(f, u) == x ? element_code_text(code, f, u) : "no number", x, x);
}

/* What was typed, where that is not what is cast. */
static void print_given(const explain_number *n, FILE *to)
{
    const element *x = n->x;
    if (x->is_code)
        fprintf(to, "  given      %s, a code of %s\n", x->typed, n->codes->name);
    else if (x->rounded)
        fprintf(to, "  given      %s, no number of the format that it is cast from, %s: rounded to it\n", x->typed,
                n->from->name);
}

void cast_explain_number_text(const explain_number *n, FILE *to)
{
    const mpsim_format *f = &n->to->format;
    char text[192], beyond[128], code[24], scale[32];
    choice c;
    choose(&c, n);
    if (n->x->is_code || n->x->rounded)
        fprintf(to, "%.17g as %s", n->x->value, n->to->label);
    else
        fprintf(to, "%s as %s", n->x->typed, n->to->label);
    if (c.r.scale != 1)
        fprintf(to, ", times %s %s %.17g", text_scale(scale, c.r.scale), c.about ? "about" : "=", c.scaled);
    fputc('\n', to);
    print_given(n, to);
    if (c.read != n->x->value && !isnan(c.read))
        fprintf(to, "  read as    %.17g, by way of binary32\n", c.read);
    if (c.finite && c.nu != 0) {
        print_candidate(to, "below", f, c.below);
        print_candidate(to, "above", f, c.above);
        // all digits where fewer would show a tie that is none
        fprintf(to, "  between    %s%.*g of the way, in magnitude, in units of 2^%d\n",
                c.nu != 0.5 || !c.half ? ""
                : c.half < 0           ? "less than "
                                       : "more than ",
                c.half && fabs(c.nu - 0.5) < 1e-9 ? 17 : 9, c.nu, c.q);
    }
    fprintf(to, "  rounding   %s: %s%s\n", mpsim_round_mode_name((mpsim_round_mode)c.r.mode),
            decision(text, sizeof text, &c), overflow(beyond, sizeof beyond, &c, f));
    fprintf(to, "  result     %-10s  %.17g  %a\n", element_code_text(code, f, c.code), c.value, c.value);
    if (c.finite && isfinite(c.value))
        fprintf(to, "  error      %.9g, relative %.3g, %.3g units\n", c.error, c.error / c.scaled,
                fabs(ldexp(c.error, -c.q)));
    if (element_flags_text(text, sizeof text, c.flags)[0])
        fprintf(to, "  flags      %s\n", text);
}

void cast_explain_number_row(const explain_number *n, record_writer *to)
{
    const mpsim_format *f = &n->to->format;
    const char *flags[ELEMENT_FLAGS];
    row r = {.typed = n->x->typed,
             .code_of = n->x->is_code ? n->codes->name : NULL,
             .from = n->from ? n->from->name : NULL,
             .format = f->name,
             .preset = n->to->preset,
             .x = n->x->value,
             .given = n->x->given,
             .flags = flags};
    choose(&r.c, n);
    r.round = mpsim_round_mode_name((mpsim_round_mode)r.c.r.mode);
    r.flag_count = element_flags_list(flags, r.c.flags);
    decision(r.decision, sizeof r.decision, &r.c);
    const size_t length = strlen(r.decision);
    overflow(r.decision + length, sizeof r.decision - length, &r.c, f);
    element_code_text(r.code, f, r.c.code);
    record_row_of(to, &cast_explain_number_record, &r);
}
