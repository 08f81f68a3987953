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

static const struct {
    const char *key, *title;
    double q;
} quantiles[] = {{"q50", "50 %", 0.5}, {"q90", "90 %", 0.9}, {"q99", "99 %", 0.99}, {"q999", "99.9 %", 0.999}};
enum { QUANTILES = sizeof quantiles / sizeof quantiles[0] };

static json_t *worst_json(const ratios *r)
{
    return json_pack("{s:o,s:o,s:o,s:o}", "sequence", json_of_count(r->worst_at[0]), "token",
                     json_of_count(r->worst_at[1]), "a", json_of_double(r->worst[0]), "b", json_of_double(r->worst[1]));
}

static void put_counts(json_t *v, const ratios *r)
{
    const struct {
        const char *key;
        uint64_t n;
    } counts[] = {{"sequences", r->sequences},   {"tokens", r->tokens},
                  {"padding", r->padding},       {"finite_in_one", r->one_sided},
                  {"above_zero", r->above_zero}, {"equal", r->equal},
                  {"outside", r->outside},       {"sequences_outside", r->outside_sequences}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++)
        json_object_set_new(v, counts[i].key, json_of_count(counts[i].n));
}

json_t *ratios_json(const ratios *r)
{
    const double n = (double)r->tokens, mean = r->sum / n;
    json_t *v = json_object();
    put_counts(v, r);
    if (r->tokens == 0)
        return v;
    json_t *size = json_object();
    for (int i = 0; i < QUANTILES; i++)
        json_object_set_new(size, quantiles[i].key, json_of_double(ratios_magnitude(r, quantiles[i].q)));
    json_object_set_new(size, "max", json_of_double(ratios_magnitude(r, 1)));
    const struct {
        const char *key;
        double x;
    } numbers[] = {{"mean", mean},
                   {"mean_magnitude", r->sum_of_magnitudes / n},
                   {"deviation", sqrt(fmax(0, r->sum_of_squares / n - mean * mean))},
                   {"k1", -mean},
                   {"k3", r->sum_k3 / n},
                   {"mean_ratio", r->sum_of_ratios / n},
                   {"perplexity_ratio", exp(-mean)},
                   {"effective_share", ratios_effective(r)},
                   {"mean_probability", r->probability / n},
                   {"max_probability", r->most_probability},
                   {"product_min", exp(ratios_product(r, 0))},
                   {"product_median", exp(ratios_product(r, 0.5))},
                   {"product_max", exp(ratios_product(r, 1))}};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        json_object_set_new(v, numbers[i].key, json_of_double(numbers[i].x));
    json_object_set_new(v, "magnitude", size);
    json_object_set_new(v, "worst", worst_json(r));
    return v;
}

static void print_differences(FILE *to, const ratios *r, int say_where)
{
    const double n = (double)r->tokens, mean = r->sum / n;
    char a[32], b[32], d[32];
    fprintf(to, "\nB - A             mean %s, mean magnitude %s, deviation %s; %s equal\n", text_number(a, mean),
            text_number(b, r->sum_of_magnitudes / n),
            text_number(d, sqrt(fmax(0, r->sum_of_squares / n - mean * mean))),
            text_share((char[32]){0}, r->equal, r->tokens));
    fprintf(to, "magnitudes        ");
    for (int i = 0; i < QUANTILES; i++)
        fprintf(to, "%s: %s, ", quantiles[i].title, text_number(a, ratios_magnitude(r, quantiles[i].q)));
    fprintf(to, "largest %s\n", text_number(a, ratios_magnitude(r, 1)));
    if (say_where)
        fprintf(to, "largest at        [%" PRIu64 ", %" PRIu64 "]: A %.6g, B %.6g\n", r->worst_at[0], r->worst_at[1],
                r->worst[0], r->worst[1]);
    fprintf(to, "probabilities     |p(B) - p(A)|: mean %s, largest %s\n", text_number(a, r->probability / n),
            text_number(b, r->most_probability));
}

static void print_ratios(FILE *to, const ratios *r)
{
    const double n = (double)r->tokens;
    char a[32], b[32], d[32];
    fprintf(to, "\np(B) / p(A)       mean %.6g; %s of the tokens outside of %g to %g; effective share %.4f\n",
            r->sum_of_ratios / n, text_share(a, r->outside, r->tokens), r->low, r->high, ratios_effective(r));
    fprintf(to, "over a sequence   product: median %.4g, %.4g to %.4g; %s of the sequences outside\n",
            exp(ratios_product(r, 0.5)), exp(ratios_product(r, 0)), exp(ratios_product(r, 1)),
            text_share(b, r->outside_sequences, r->sequences));
    fprintf(to, "KL(A || B)        k1 %s, k3 %s", text_number(a, -r->sum / n), text_number(d, r->sum_k3 / n));
    fprintf(to, "; perplexity of B over A's %.6g\n", exp(-r->sum / n));
}

void ratios_print(FILE *to, const ratios *r, int say_where)
{
    print_differences(to, r, say_where);
    print_ratios(to, r);
}
