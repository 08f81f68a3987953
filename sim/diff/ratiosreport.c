/* ratiosreport.c -- see ratiosreport.h. */
#include "ratiosreport.h"

#include "../cli/options.h"
#include "../text/words.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int diff_ratios_band(double *low, double *high, const char *verb, const char *text)
{
    char first[32];
    const char *comma = text ? strchr(text, ',') : NULL;
    double e;
    *low = 0.8;
    *high = 1.2;
    if (!text)
        return 0;
    if (!comma && parse_number(&e, text) == 0 && e > 0 && e < 1) {
        *low = 1 - e;
        *high = 1 + e;
        return 0;
    }
    if (comma && comma - text < (ptrdiff_t)sizeof first) {
        memcpy(first, text, (size_t)(comma - text));
        first[comma - text] = '\0';
        if (parse_number(low, first) == 0 && parse_number(high, comma + 1) == 0 && *low >= 0 && *high >= *low)
            return 0;
    }
    return fail(
        EXIT_USAGE,
        "%s: --clip: '%s' is neither two ratios as 0.8,1.2, the lower one first, nor one distance from 1 as 0.2", verb,
        text);
}

/* ---- what is told ---- */

static ratios_numbers numbers_of(const ratios *r)
{
    const double n = (double)r->tokens, mean = r->sum / n;
    return (ratios_numbers){
        .mean = mean,
        .mean_magnitude = r->sum_of_magnitudes / n,
        .deviation = sqrt(fmax(0, r->sum_of_squares / n - mean * mean)),
        .k1 = -mean,
        .k3 = r->sum_k3 / n,
        .mean_ratio = r->sum_of_ratios / n,
        .perplexity_ratio = exp(-mean),
        .effective_share = diff_ratios_effective(r),
        .mean_probability = r->probability / n,
        .max_probability = r->most_probability,
        .product_min = exp(diff_ratios_product(r, 0)),
        .product_median = exp(diff_ratios_product(r, 0.5)),
        .product_max = exp(diff_ratios_product(r, 1)),
        .magnitude = {diff_ratios_magnitude(r, 0.5), diff_ratios_magnitude(r, 0.9), diff_ratios_magnitude(r, 0.99),
                      diff_ratios_magnitude(r, 0.999), diff_ratios_magnitude(r, 1)},
        .worst = {r->worst_at[0], r->worst_at[1], r->worst[0], r->worst[1]},
        .ratio_max = r->most_ratio,
        .sequences = diff_ratios_of_sequences(r),
        .dropped = {r->above, r->outside - r->above, r->over_dual, r->over, r->lost / r->sum_of_ratios},
    };
}

ratios_summary diff_ratios_summarise(const ratios *r)
{
    ratios_summary s = {.sequences = r->sequences,
                        .tokens = r->tokens,
                        .padding = r->padding,
                        .one_sided = r->one_sided,
                        .above_zero = r->above_zero,
                        .equal = r->equal,
                        .outside = r->outside,
                        .sequences_outside = r->outside_sequences,
                        .some = r->tokens != 0};
    if (s.some)
        s.numbers = numbers_of(r);
    return s;
}

/* ---- records ---- */

#define AT(member) offsetof(ratios_magnitudes, member)
static const record_field magnitude_fields[] = {FIELD(REAL, "q50", IN_ALL, AT(q50), NULL),
                                                FIELD(REAL, "q90", IN_ALL, AT(q90), NULL),
                                                FIELD(REAL, "q99", IN_ALL, AT(q99), NULL),
                                                FIELD(REAL, "q999", IN_ALL, AT(q999), "The quantile of 99.9 %."),
                                                FIELD(REAL, "max", IN_ALL, AT(max), NULL, .title = ">largest"),
                                                {0}};
static const record_kind magnitude_record = {
    "magnitude", "Quantiles of |B - A|: the smallest number that so large a share of the tokens does not exceed.",
    sizeof(ratios_magnitudes), magnitude_fields};
#undef AT

#define AT(member) offsetof(ratios_worst, member)
static const record_field worst_fields[] = {
    FIELD(COUNT, "sequence", IN_ALL, AT(sequence), "The row of the token, from 0."),
    FIELD(COUNT, "token", IN_ALL, AT(token), "The place of the token in the row, from 0."),
    FIELD(REAL, "a", IN_ALL, AT(a), NULL),
    FIELD(REAL, "b", IN_ALL, AT(b), NULL),
    {0}};
static const record_kind worst_record = {"worst_token", "The token of the largest |B - A|.", sizeof(ratios_worst),
                                         worst_fields};
#undef AT

#define AT(member) offsetof(ratios_sequences, member)
static const record_field sequences_fields[] = {
    FIELD(REAL, "mean", IN_ALL, AT(mean), "Mean of the products of ratios."),
    FIELD(REAL, "effective_share", IN_ALL, AT(effective),
          "(sum of products)^2 / (sequences times the sum of their squares)."),
    FIELD(COUNT, "truncated", IN_ALL, AT(over), "Sequences whose product is above the truncation."),
    FIELD(REAL, "truncated_share", IN_ALL, AT(lost), "The share of the sum of products that the truncation takes."),
    {0}};
static const record_kind sequences_record = {"sequence_ratios", "Products of ratios over a sequence.",
                                             sizeof(ratios_sequences), sequences_fields};
#undef AT

#define AT(member) offsetof(ratios_dropped, member)
static const record_field dropped_fields[] = {
    FIELD(COUNT, "above", IN_ALL, AT(above),
          "Tokens with a ratio above the band: clipping drops their gradient where the advantage is positive."),
    FIELD(COUNT, "below", IN_ALL, AT(below),
          "Tokens with a ratio below the band: clipping drops their gradient where the advantage is negative."),
    FIELD(COUNT, "dual", IN_ALL, AT(dual),
          "Tokens with a ratio above the dual clip, which drops their gradient where the advantage is negative."),
    FIELD(COUNT, "truncated", IN_ALL, AT(truncated), "Tokens with a ratio above the truncation."),
    FIELD(REAL, "truncated_share", IN_ALL, AT(lost), "The share of the sum of ratios that the truncation takes."),
    {0}};
static const record_kind dropped_record = {"dropped", "What a loss leaves out of the tokens.", sizeof(ratios_dropped),
                                           dropped_fields};
#undef AT

#define AT(member) offsetof(ratios_numbers, member)
static const record_field number_fields[] = {
    FIELD(REAL, "mean", IN_ALL, AT(mean),
          "Mean of B - A. This number and those behind it are there where a token was compared."),
    FIELD(REAL, "mean_magnitude", IN_ALL, AT(mean_magnitude), "Mean of |B - A|.", .title = ">mean magnitude"),
    FIELD(REAL, "deviation", IN_ALL, AT(deviation), "Standard deviation of B - A."),
    FIELD(REAL, "k1", IN_ALL, AT(k1), "The mean of A - B, an estimate of KL."),
    FIELD(REAL, "k3", IN_ALL, AT(k3), "The mean of exp(B - A) - 1 - (B - A), an estimate of KL."),
    FIELD(REAL, "mean_ratio", IN_ALL, AT(mean_ratio), "Mean of exp(B - A)."),
    FIELD(REAL, "perplexity_ratio", IN_ALL, AT(perplexity_ratio), "Exp of the mean of A - B."),
    FIELD(REAL, "effective_share", IN_ALL, AT(effective_share),
          "(sum of ratios)^2 / (tokens times the sum of their squares): 1 where all ratios are alike."),
    FIELD(REAL, "mean_probability", IN_ALL, AT(mean_probability), "Mean of |exp(B) - exp(A)|."),
    FIELD(REAL, "max_probability", IN_ALL, AT(max_probability), "Largest |exp(B) - exp(A)|."),
    FIELD(REAL, "product_min", IN_ALL, AT(product_min), "Smallest product of the ratios of a sequence."),
    FIELD(REAL, "product_median", IN_ALL, AT(product_median),
          "The smallest product that half of the sequences do not exceed: the lower middle of an even number."),
    FIELD(REAL, "product_max", IN_ALL, AT(product_max), "Largest product of the ratios of a sequence."),
    FIELD(RECORD, "magnitude", IN_ALL, AT(magnitude), NULL, .title = "", .record = &magnitude_record),
    FIELD(RECORD, "worst", IN_ALL, AT(worst), NULL, .record = &worst_record),
    FIELD(REAL, "ratio_max", IN_ALL, AT(ratio_max), "Largest exp(B - A) of a token."),
    FIELD(RECORD, "sequence_ratios", IN_ALL, AT(sequences), NULL, .title = "", .record = &sequences_record),
    FIELD(RECORD, "dropped", IN_ALL, AT(dropped), NULL, .title = "", .record = &dropped_record),
    {0}};
static const record_kind numbers_record = {"numbers", NULL, sizeof(ratios_numbers), number_fields};
#undef AT

#define AT(member) offsetof(ratios_summary, member)
static const record_field summary_fields[] = {
    FIELD(COUNT, "sequences", IN_ALL, AT(sequences), "Sequences with a token that was compared."),
    FIELD(COUNT, "tokens", IN_ALL, AT(tokens), "Tokens that were compared.", .title = ">tokens"),
    FIELD(COUNT, "padding", IN_ALL, AT(padding),
          "Tokens left out: zeros at the end of a sequence, or no finite number in both."),
    FIELD(COUNT, "finite_in_one", IN_ALL, AT(one_sided), "Tokens left out: finite in A or B alone."),
    FIELD(COUNT, "above_zero", IN_ALL, AT(above_zero), "Numbers above 0, which are no log-probabilities."),
    FIELD(COUNT, "equal", IN_ALL, AT(equal), "Tokens with B = A."),
    FIELD(SHARE, "outside", IN_ALL, AT(outside), "Tokens whose ratio exp(B - A) is outside the band.",
          .title = ">tokens outside", .of = AT(tokens), .column = 2),
    FIELD(SHARE, "sequences_outside", IN_ALL, AT(sequences_outside),
          "Sequences whose product of ratios is outside the band.", .title = ">sequences outside", .of = AT(sequences),
          .column = 3),
    FIELD(RECORD, "numbers", IN_ALL | FIELD_INLINE | FIELD_IF | FIELD_OPTIONAL, AT(numbers), NULL, .title = "",
          .of = AT(some), .record = &numbers_record, .column = 1),
    {0}};
const record_kind diff_ratios_record = {"ratios", "Log-probabilities of the same tokens.", sizeof(ratios_summary),
                                        summary_fields};
#undef AT

/* ---- for people ---- */

static void print_differences(FILE *to, const ratios_summary *s, int say_where)
{
    const ratios_numbers *x = &s->numbers;
    const struct {
        const char *title;
        double x;
    } quantiles[] = {{"50 %", x->magnitude.q50},
                     {"90 %", x->magnitude.q90},
                     {"99 %", x->magnitude.q99},
                     {"99.9 %", x->magnitude.q999}};
    char a[32], b[32], d[32];
    fprintf(to, "\nB - A             mean %s, mean magnitude %s, deviation %s; %s equal\n", text_number(a, x->mean),
            text_number(b, x->mean_magnitude), text_number(d, x->deviation),
            text_share((char[32]){0}, s->equal, s->tokens));
    fprintf(to, "magnitudes        ");
    for (size_t i = 0; i < sizeof quantiles / sizeof *quantiles; i++)
        fprintf(to, "%s: %s, ", quantiles[i].title, text_number(a, quantiles[i].x));
    fprintf(to, "largest %s\n", text_number(a, x->magnitude.max));
    if (say_where)
        fprintf(to, "largest at        [%" PRIu64 ", %" PRIu64 "]: A %.6g, B %.6g\n", x->worst.sequence, x->worst.token,
                x->worst.a, x->worst.b);
    fprintf(to, "probabilities     |p(B) - p(A)|: mean %s, largest %s\n", text_number(a, x->mean_probability),
            text_number(b, x->max_probability));
}

static void print_dropped(FILE *to, const ratios *r, const ratios_numbers *x)
{
    char a[32], b[32], d[32], e[32];
    fprintf(to, "                  mean %.4g; effective share %.4f\n", x->sequences.mean, x->sequences.effective);
    fprintf(to, "clipping drops    %s above %g (advantage > 0), %s below %g and %s above %g (advantage < 0)\n",
            text_count(a, x->dropped.above), r->high, text_count(b, x->dropped.below), r->low,
            text_count(d, x->dropped.dual), r->dual);
    fprintf(to, "truncation at %-4g%s token%s, %s of the ratios' sum; ", r->truncated,
            text_count(a, x->dropped.truncated), text_plural(x->dropped.truncated), text_number(b, x->dropped.lost));
    fprintf(to, "%s sequence%s, %s of the products' sum\n", text_count(d, x->sequences.over),
            text_plural(x->sequences.over), text_number(e, x->sequences.lost));
}

static void print_ratios(FILE *to, const ratios *r, const ratios_summary *s)
{
    const ratios_numbers *x = &s->numbers;
    char a[32], b[32], d[32];
    fprintf(to,
            "\np(B) / p(A)       mean %.6g, largest %.4g; %s of the tokens outside of %g to %g; effective share %.4f\n",
            x->mean_ratio, x->ratio_max, text_share(a, s->outside, s->tokens), r->low, r->high, x->effective_share);
    fprintf(to, "over a sequence   product: median %.4g, %.4g to %.4g; %s of the sequences outside\n",
            x->product_median, x->product_min, x->product_max, text_share(b, s->sequences_outside, s->sequences));
    print_dropped(to, r, x);
    fprintf(to, "KL(A || B)        k1 %s, k3 %s", text_number(a, x->k1), text_number(d, x->k3));
    fprintf(to, "; perplexity of B over A's %.6g\n", x->perplexity_ratio);
}

void diff_ratios_print(FILE *to, const ratios *r, int say_where)
{
    const ratios_summary s = diff_ratios_summarise(r);
    print_differences(to, &s, say_where);
    print_ratios(to, r, &s);
}
