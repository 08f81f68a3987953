/* ratiosreport.c -- see ratiosreport.h. */
#include "ratiosreport.h"

#include "../cli/options.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

int ratios_band(double *low, double *high, const char *verb, const char *text)
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

/* ---- the record ---- */

#define AT(member) offsetof(ratios, member)
static const record_field counts_fields[] = {
    FIELD(SIZE, "sequences", IN_ALL, AT(sequences), "Sequences with a token that is compared."),
    FIELD(SIZE, "tokens", IN_ALL, AT(tokens), "Tokens that are compared."),
    FIELD(COUNT, "padding", IN_ALL, AT(padding),
          "Tokens left out: zeros at the end of a sequence, or no finite number in both."),
    FIELD(COUNT, "finite_in_one", IN_ALL, AT(one_sided), "Tokens left out: finite in A or B alone."),
    FIELD(COUNT, "above_zero", IN_ALL, AT(above_zero), "Numbers above 0, which are no log-probabilities."),
    FIELD(COUNT, "equal", IN_ALL, AT(equal), "Tokens with B = A."),
    FIELD(COUNT, "outside", IN_ALL, AT(outside), "Tokens whose ratio exp(B - A) is outside the band."),
    FIELD(COUNT, "sequences_outside", IN_ALL, AT(outside_sequences),
          "Sequences whose product of ratios is outside the band."),
    {0}};
static const record_kind counts_record = {"counts", NULL, sizeof(ratios), counts_fields};

static const record_field worst_fields[] = {
    FIELD(COUNT, "sequence", IN_ALL, AT(worst_at[0]), "The row of the token, from 0."),
    FIELD(COUNT, "token", IN_ALL, AT(worst_at[1]), "The place of the token in the row, from 0."),
    FIELD(REAL, "a", IN_ALL, AT(worst[0]), NULL),
    FIELD(REAL, "b", IN_ALL, AT(worst[1]), NULL),
    {0}};
static const record_kind worst_record = {"worst_token", "The token of the largest |B - A|.", sizeof(ratios),
                                         worst_fields};
#undef AT

#define AT(i) ((i) * sizeof(double))
static const record_field magnitude_fields[] = {
    FIELD(REAL, "q50", IN_ALL, AT(0), NULL), FIELD(REAL, "q90", IN_ALL, AT(1), NULL),
    FIELD(REAL, "q99", IN_ALL, AT(2), NULL), FIELD(REAL, "q999", IN_ALL, AT(3), "99.9 %."),
    FIELD(REAL, "max", IN_ALL, AT(4), NULL), {0}};
static const record_kind magnitude_record = {
    "magnitude", "Quantiles of |B - A|: the smallest number that a share of the tokens does not exceed.",
    RATIOS_QUANTILES * sizeof(double), magnitude_fields};
#undef AT

#define AT(member) offsetof(ratios_summary, member)
static const record_field numbers_fields[] = {
    FIELD(REAL, "mean", IN_ALL, AT(mean), "Mean of B - A. This and what follows is there if a token is compared."),
    FIELD(REAL, "mean_magnitude", IN_ALL, AT(mean_magnitude), "Mean of |B - A|."),
    FIELD(REAL, "deviation", IN_ALL, AT(deviation), "Standard deviation of B - A."),
    FIELD(REAL, "k1", IN_ALL, AT(k1), "The estimate of KL(A || B) that is the mean of A - B."),
    FIELD(REAL, "k3", IN_ALL, AT(k3), "The estimate of KL(A || B) that is the mean of exp(B - A) - 1 - (B - A)."),
    FIELD(REAL, "mean_ratio", IN_ALL, AT(mean_ratio), "Mean of exp(B - A)."),
    FIELD(REAL, "perplexity_ratio", IN_ALL, AT(perplexity_ratio), "exp of the mean of A - B."),
    FIELD(REAL, "effective_share", IN_ALL, AT(effective_share),
          "(sum of ratios)^2 / (tokens times the sum of their squares): 1 where all are alike."),
    FIELD(REAL, "mean_probability", IN_ALL, AT(mean_probability), "Mean of |exp(B) - exp(A)|."),
    FIELD(REAL, "max_probability", IN_ALL, AT(max_probability), "Largest |exp(B) - exp(A)|."),
    FIELD(REAL, "product_min", IN_ALL, AT(products[0]), "Smallest product of the ratios of a sequence."),
    FIELD(REAL, "product_median", IN_ALL, AT(products[1]),
          "The smallest product that half of the sequences do not exceed: of an even number the lower middle."),
    FIELD(REAL, "product_max", IN_ALL, AT(products[2]), "Largest product of the ratios of a sequence."),
    FIELD(RECORD, "magnitude", IN_ALL, AT(magnitudes), NULL, .record = &magnitude_record),
    FIELD(RECORD, "worst", IN_ALL | FIELD_POINTER, AT(of), NULL, .record = &worst_record),
    {0}};
static const record_kind numbers_record = {"numbers", NULL, sizeof(ratios_summary), numbers_fields};

static const record_field ratios_fields[] = {
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE | FIELD_POINTER, AT(of), NULL, .record = &counts_record),
    FIELD(RECORD, "", IN_ALL | FIELD_INLINE | FIELD_IF | FIELD_OPTIONAL, 0, NULL, .of = AT(tokens),
          .record = &numbers_record),
    {0}};
const record_kind ratios_record = {"ratios", "A's and B's log-probabilities of the tokens.", sizeof(ratios_summary),
                                   ratios_fields};
#undef AT

static const double quantiles[RATIOS_QUANTILES] = {0.5, 0.9, 0.99, 0.999, 1};

ratios_summary ratios_summarise(const ratios *r)
{
    const double n = (double)r->tokens, mean = r->sum / n;
    ratios_summary s = {
        .of = r,
        .tokens = r->tokens,
        .mean = mean,
        .mean_magnitude = r->sum_of_magnitudes / n,
        .deviation = sqrt(fmax(0, r->sum_of_squares / n - mean * mean)),
        .k1 = -mean,
        .k3 = r->sum_k3 / n,
        .mean_ratio = r->sum_of_ratios / n,
        .perplexity_ratio = exp(-mean),
        .effective_share = ratios_effective(r),
        .mean_probability = r->probability / n,
        .max_probability = r->most_probability,
        .products = {exp(ratios_product(r, 0)), exp(ratios_product(r, 0.5)), exp(ratios_product(r, 1))}};
    for (int i = 0; i < RATIOS_QUANTILES; i++)
        s.magnitudes[i] = ratios_magnitude(r, quantiles[i]);
    return s;
}

/* ---- text ---- */

static void print_differences(FILE *to, const ratios_summary *s, int say_where)
{
    static const char *const titles[RATIOS_QUANTILES] = {"50 %: ", ", 90 %: ", ", 99 %: ", ", 99.9 %: ", ", largest "};
    const ratios *r = s->of;
    char a[32], b[32], d[32];
    fprintf(to, "\nB - A             mean %s, mean magnitude %s, deviation %s; %s equal\n", text_number(a, s->mean),
            text_number(b, s->mean_magnitude), text_number(d, s->deviation),
            text_share((char[32]){0}, r->equal, r->tokens));
    fprintf(to, "magnitudes        ");
    for (int i = 0; i < RATIOS_QUANTILES; i++)
        fprintf(to, "%s%s", titles[i], text_number(a, s->magnitudes[i]));
    fputc('\n', to);
    if (say_where)
        fprintf(to, "largest at        [%" PRIu64 ", %" PRIu64 "]: A %.6g, B %.6g\n", r->worst_at[0], r->worst_at[1],
                r->worst[0], r->worst[1]);
    fprintf(to, "probabilities     |p(B) - p(A)|: mean %s, largest %s\n", text_number(a, s->mean_probability),
            text_number(b, s->max_probability));
}

static void print_ratios(FILE *to, const ratios_summary *s)
{
    const ratios *r = s->of;
    char a[32], b[32], d[32];
    fprintf(to, "\np(B) / p(A)       mean %.6g; %s of the tokens outside of %g to %g; effective share %.4f\n",
            s->mean_ratio, text_share(a, r->outside, r->tokens), r->low, r->high, s->effective_share);
    fprintf(to, "over a sequence   product: median %.4g, %.4g to %.4g; %s of the sequences outside\n", s->products[1],
            s->products[0], s->products[2], text_share(b, r->outside_sequences, r->sequences));
    fprintf(to, "KL(A || B)        k1 %s, k3 %s", text_number(a, s->k1), text_number(d, s->k3));
    fprintf(to, "; perplexity of B over A's %.6g\n", s->perplexity_ratio);
}

void ratios_print(FILE *to, const ratios *r, int say_where)
{
    const ratios_summary s = ratios_summarise(r);
    print_differences(to, &s, say_where);
    print_ratios(to, &s);
}
