/* rounding.c -- see rounding.h. */
#include "rounding.h"

#include "support.h"

#include <stdlib.h>

mpsim_rounding rounding(int mode)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, (mpsim_round_mode)mode);
    return r;
}

static const char *const other_p3109[2][9] = {
    {"binary3p1se", "binary3p3uf", "binary4p2uf", "binary6p3se", "binary7p1uf", "binary10p10uf", "binary12p5sf",
     "binary16p11se", NULL},
    {"binary3p2ue", "binary5p1uf", "binary6p3se", "binary9p9ue", "binary16p5se", "binary16p6uf", "binary16p15sf", NULL},
};

static const char *subject_name(size_t i, int width)
{
    const size_t rows = mpsim_format_count();
    if (i < rows)
        return mpsim_format_at(i)->name;
    size_t typed = 0;
    while (oracle_typed(typed))
        typed++;
    if (i < rows + typed)
        return oracle_typed(i - rows);
    return other_p3109[width == 64][i - rows - typed];
}

void for_all_formats(format_check *one, int width)
{
    tally t = {0};
    const char *name;
    for (size_t i = 0; (name = subject_name(i, width)); i++) {
        mpsim_format f;
        const oracle_format *of = oracle_find(name);
        ck_assert_msg(of != NULL, "the oracle does not know %s", name);
        ck_assert_msg(mpsim_format_parse(&f, name) == MPSIM_OK, "%s does not parse", name);
        one(&t, &f, of);
        ck_assert_msg(t.wrong == 0, "%zu of %zu wrong, first: %s", t.wrong, t.compared, t.first);
    }
    ck_assert_uint_gt(t.compared, 0);
}

void compare_two_ways(tally *t, const oracle_format *of, const cases *c, double scale)
{
    static const int modes[] = {MPSIM_ROUND_NEAREST_EVEN, MPSIM_ROUND_TOWARD_ZERO, MPSIM_ROUND_UP, MPSIM_ROUND_DOWN};
    const int is_f32 = c->width == 32;
    for (size_t m = 0; m < 4; m++) {
        mpsim_rounding r = rounding(modes[m]);
        r.scale = scale;
        for (size_t i = 0; i < c->n; i++) {
            oracle_rounded a, b;
            unsigned fa, fb;
            oracle_round(&a, of, &r, cases_value(c, i), is_f32, 0);
            oracle_round_defined(&b, of, &r, cases_value(c, i), is_f32, 0);
            const uint64_t ca = oracle_finish(of, &r, &a, &fa);
            const uint64_t cb = oracle_finish(of, &r, &b, &fb);
            tally_code(t, of, &r, c->width, i, c->u[i], 0, ca, fa, cb, fb);
        }
    }
}

void compare_modes(tally *t, const mpsim_format *f, const oracle_format *of, const cases *c, double scale)
{
    for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
        mpsim_rounding r = rounding(m);
        r.scale = scale;
        tally_cases(t, f, of, &r, c, 0);
    }
}

void compare_in_turn(tally *t, const mpsim_format *f, const oracle_format *of, const cases *c, double scale,
                     size_t turn)
{
    for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
        mpsim_rounding r = rounding(m);
        r.scale = scale;
        if (m == MPSIM_ROUND_NEAREST_EVEN || test_in_whole_part(turn + (size_t)m, 7))
            tally_cases(t, f, of, &r, c, 0);
    }
}

void compare_thresholds(tally *t, const mpsim_format *f, const oracle_format *of, const cases *c, const uint8_t *widths,
                        size_t n)
{
    for (int m = MPSIM_ROUND_STOCHASTIC_A; m <= MPSIM_ROUND_STOCHASTIC_C; m++)
        for (size_t k = 0; k < n; k++) {
            if (!test_in_part(k + (size_t)m, 3))
                continue;
            mpsim_rounding r = rounding(m);
            r.sr_bits = widths[k];
            tally_cases(t, f, of, &r, c, 1);
        }
}

void compare_sweep(tally *t, const mpsim_format *f, const oracle_format *of, int width)
{
    cases c;
    cases_init(&c, width);
    for (int m = 0; m < MPSIM_ROUND_MODES; m++) {
        mpsim_rounding r = rounding(m);
        r.sr_bits = (uint8_t)(1 + m * 5 % 32);
        cases_sweep(&c, of, test_scaled(m ? 2000 : 8000), test_part_seed() + (uint64_t)m);
        tally_cases(t, f, of, &r, &c, 0);
        c.n = 0;
    }
    cases_clear(&c);
}

/* All 864 combinations of the choices that act after rounding, for each of the 2 x 3 that
 * act before it (flush_input; negative, which may make the sign be ignored). The oracle
 * rounds once per input and applies the choices to the result.
 *
 * Choices of a case that cannot occur in the format (zeros in e8m0, infinities in fp16)
 * must not matter; that too is tested only because they are all run through, in parts of which each has every
 * pair of values of every two choices. */
void compare_choices(tally *t, const mpsim_format *f, const oracle_format *of, int width)
{
    cases c;
    cases_init(&c, width);
    cases_edges(&c, of, 1, 0);
    oracle_rounded *in = malloc(c.n * sizeof *in);
    ck_assert(in != NULL);
    for (int m = 0; m < MPSIM_ROUND_MODES; m++)
        for (unsigned before = 0; before < 6; before++) {
            if (!test_in_part(before + (unsigned)m, 1))
                continue;
            mpsim_rounding r = rounding(m);
            r.sr_bits = (uint8_t)(m * 7 % 32 + 1);
            r.flush_input = (uint8_t)(before % 2);
            r.negative = (uint8_t)(before / 2);
            if (width == 64)
                r.flush_below = m % 2 ? 0x1p-126 : 0; /* as if the input were binary32 */
            for (size_t i = 0; i < c.n; i++)
                oracle_round(&in[i], of, &r, cases_value(&c, i), width == 32, cases_word(i));
            for (unsigned k = 0; k < 864; k++) {
                unsigned d = k;
                r.overflow = (uint8_t)(d % 2), d /= 2;
                r.infinity = (uint8_t)(d % 2), d /= 2;
                r.no_inf = (uint8_t)(d % 2), d /= 2;
                r.no_zero = (uint8_t)(d % 3), d /= 3;
                r.flush_output = (uint8_t)(d % 2), d /= 2;
                r.no_nan = (uint8_t)(d % 3), d /= 3;
                r.nan = (uint8_t)d;
                if (!test_in_whole_part(k + k / 2 + k / 4 + k / 8 + k / 24 + k / 48 + k / 144 + before + (unsigned)m,
                                        12))
                    continue;
                for (size_t i = 0; i < c.n; i++) {
                    if (k >= 48 && cannot_be_nan(of, &in[i]) && (i + k / 48) % 9)
                        continue;
                    unsigned want_flags, flags = 0xdead;
                    const uint64_t want = oracle_finish(of, &r, &in[i], &want_flags);
                    const uint64_t got = encode_bits(f, &r, width, c.u[i], cases_word(i), &flags);
                    tally_code(t, of, &r, width, i, c.u[i], cases_word(i), want, want_flags, got, flags);
                }
            }
        }
    free(in);
    cases_clear(&c);
}
