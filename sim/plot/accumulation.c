/* accumulation.c -- data and variables of the figure accumulation: errors of models over K. */
#include "impl.h"

#include <mpsim/format.h>

#include <inttypes.h>
#include <math.h>
#include <string.h>

/* The middle of a name of this many characters is left out. */
enum { MODEL_LABEL = 40 };

/* The least and the largest error above zero; 0 if there is none. */
static int error_range(const plot_sweep *s, double *least, double *most)
{
    *least = HUGE_VAL;
    *most = 0;
    for (size_t i = 0; i < s->n_models; i++)
        for (size_t j = 0; j < s->n_lengths; j++) {
            const double x = s->models[i].errors[j];
            if (x > 0) {
                *least = fmin(*least, x);
                *most = fmax(*most, x);
            }
        }
    return *most > 0;
}

/* Half a unit in the last place of 1 in a format, what rounding a result costs at most. */
static double unit_roundoff(const char *format)
{
    mpsim_format f;
    return mpsim_format_parse(&f, format) == MPSIM_OK ? ldexp(1, -f.mbits - 1) : 0;
}

typedef struct reference {
    const char *format;
    double unit;
} reference;

/* The unit roundoffs of the formats of the results that are not further than a decade from what
 * is shown, from the largest on; they are as many as models at most. */
static size_t find_references(const plot_sweep *s, reference found[PLOT_MODELS_MAX])
{
    double least, most;
    size_t n = 0;
    const int any = error_range(s, &least, &most);
    for (size_t i = 0; s->relative && i < s->n_models; i++) {
        const reference r = {s->models[i].format, unit_roundoff(s->models[i].format)};
        int skip = r.unit == 0 || (any && (r.unit < least / 10 || r.unit > most * 10));
        for (size_t j = 0; j < n; j++)
            skip |= found[j].unit == r.unit;
        if (skip)
            continue;
        size_t to = n++;
        for (; to > 0 && found[to - 1].unit < r.unit; to--)
            found[to] = found[to - 1];
        found[to] = r;
    }
    return n;
}

/* The operands, as comments. */
static void put_operands(FILE *to, const plot_sweep *s)
{
    static const char *const names[] = {"a", "b"};
    for (size_t i = 0; i < 2; i++) {
        const plot_operand *o = &s->operands[i];
        if (!o->format || !o->values)
            continue;
        fprintf(to, "# operand %s: ", names[i]);
        plot_put_comment(to, o->format);
        fputs(", ", to);
        plot_put_comment(to, o->values);
        fprintf(to, ", scale %.17g\n", o->scale);
    }
}

void plot_put_accumulation(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_sweep *s = &in->sweep;
    reference references[PLOT_MODELS_MAX];
    const size_t n = find_references(s, references);
    (void)r;
    put_operands(to, s);
    fprintf(to,
            "\n\n# errors\n# 1 K  then for each curve %s\n"
            "# (0: exact, -1: some results are Inf or NaN, NaN: not in the report)\n",
            s->column);
    for (size_t j = 0; j < s->n_lengths; j++) {
        fprintf(to, "%" PRIu64, s->lengths[j]);
        for (size_t i = 0; i < s->n_models; i++)
            if (i == 0 || s->models[i - 1].curve != s->models[i].curve) {
                const double x = s->models[i].errors[j];
                if (x == PLOT_MISSING)
                    fputs(" NaN", to);
                else
                    fprintf(to, " %.10g", x);
            }
        fputc('\n', to);
    }
    fputs("\n\n# labels\n"
          "# 1 curve, 0: unit roundoff of a format  2 last K  3 error there  4 label  5 name\n",
          to);
    size_t next = 0;
    for (size_t i = 0; i <= s->n_models; i++) {
        const plot_model *m = &s->models[i];
        const size_t end = i < s->n_models ? plot_sweep_end(s, m) : 0;
        const double x = i < s->n_models ? m->errors[end] : 0;
        for (; next < n && x != PLOT_NOT_FINITE && references[next].unit >= x; next++) {
            fprintf(to, "0 %" PRIu64 " %.10g ", s->lengths[s->n_lengths - 1], references[next].unit);
            plot_put_label(to, references[next].format, MODEL_LABEL);
            fputc(' ', to);
            plot_put_data(to, references[next].format);
            fputc('\n', to);
        }
        if (i == s->n_models)
            break;
        fprintf(to, "%zu %" PRIu64 " %.10g ", m->curve, s->lengths[end], x);
        plot_put_label(to, m->name, MODEL_LABEL);
        fputc(' ', to);
        plot_put_data(to, m->name);
        fputc('\n', to);
    }
}

/* "1 0 2": for each curve its lane among those that have a point `kind`; 0: it has none. Returns
 * how many lanes there are. */
static size_t put_lanes(FILE *to, const plot_sweep *s, const char *name, double kind)
{
    size_t lanes = 0;
    fprintf(to, "%s = '", name);
    for (size_t i = 0; i < s->n_models; i++) {
        const plot_model *m = &s->models[i];
        int has = 0;
        if (i > 0 && m[-1].curve == m->curve)
            continue;
        for (size_t j = 0; j < s->n_lengths; j++)
            has |= m->errors[j] == kind;
        lanes += (size_t)has;
        fprintf(to, "%s%zu", i ? " " : "", has ? lanes : 0);
    }
    fputs("'\n", to);
    return lanes;
}

void plot_put_accumulation_variables(FILE *to, const plot_input *in, const plot_request *r)
{
    const plot_sweep *s = &in->sweep;
    reference references[PLOT_MODELS_MAX];
    const size_t n = find_references(s, references);
    size_t longest = 0, longest_reference = 0;
    double least, most;
    (void)r;
    error_range(s, &least, &most);
    for (size_t i = 0; i < n; i++) {
        const size_t length = plot_characters(references[i].format);
        least = fmin(least, references[i].unit);
        most = fmax(most, references[i].unit);
        longest_reference = length > longest_reference ? length : longest_reference;
    }
    for (size_t i = 0; i < s->n_models; i++) {
        const size_t length = plot_characters(s->models[i].name);
        longest = length > longest ? length : longest;
    }
    const double low = most > 0 ? floor(log10(least)) : -8;
    const double high = most > 0 ? fmax(low + 1, ceil(log10(most))) : -7;
    fprintf(to, "k_low = %" PRIu64 ".; k_high = %" PRIu64 ".\n", s->lengths[0], s->lengths[s->n_lengths - 1]);
    fprintf(to, "y_low = %g; y_high = %g # powers of ten\n", low, high);
    fprintf(to, "y_label = '%s'\n", s->axis);
    fprintf(to, "n_curves = %zu; n_models = %zu; n_references = %zu\n", s->n_curves, s->n_models, n);
    fputs("# for each curve, where it stands among those that are somewhere 0, or not finite\n", to);
    const size_t zeros = put_lanes(to, s, "zero_lane", 0);
    const size_t infinities = put_lanes(to, s, "inf_lane", PLOT_NOT_FINITE);
    fprintf(to, "n_zero = %zu; n_inf = %zu\n", zeros, infinities);
    fprintf(to, "name_length = %zu; format_length = %zu # characters\n", longest < MODEL_LABEL ? longest : MODEL_LABEL,
            longest_reference < MODEL_LABEL ? longest_reference : MODEL_LABEL);
}
