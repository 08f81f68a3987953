/* fuzz-format.c -- names of formats, roundings, operations, optimizers, recipes, numbers; and the lists of
 * targets made of them, apart at zero bytes: the lines of one, if there are several, are what -f, -s, -r, -p and --overflow take. What is
 * accepted is valid and keeps its name; what is refused leaves its variable as it was. */
#include "input.h"
#include "sim/operand/target.h"
#include "sim/trace/trace.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A code is a number that rounds to itself; its neighbours are its neighbours. */
static void check_code(const mpsim_format *f, uint64_t code)
{
    const uint64_t mask = f->bits < 64 ? ((uint64_t)1 << f->bits) - 1 : UINT64_MAX;
    const double x = mpsim_decode(f, code &= mask);
    const double up = mpsim_decode(f, mpsim_next_up(f, code));
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    (void)mpsim_ulp(f, code);
    must(isnan(x) == (mpsim_classify(f, code) == MPSIM_CLASS_NAN));
    if (isnan(x))
        return;
    must(up >= x && mpsim_decode(f, mpsim_next_down(f, code)) <= x);
    must(mpsim_decode(f, mpsim_encode_f64(f, &r, x, 0, NULL)) == x);
}

static void fuzz_format(const char *text)
{
    static const mpsim_format untouched = {.name = "untouched"};
    mpsim_format f = untouched, again;
    const mpsim_status status = mpsim_format_parse(&f, text);
    must(!mpsim_format_find(text) || status == MPSIM_OK);
    if (status != MPSIM_OK) {
        must(memcmp(&f, &untouched, sizeof f) == 0);
        return;
    }
    must(mpsim_format_check(&f) == MPSIM_OK);
    must(mpsim_format_parse(&again, f.name) == MPSIM_OK && mpsim_format_same(&f, &again));
    must(strcmp(f.name, again.name) == 0);
    const uint64_t top = (uint64_t)1 << (f.bits - 1);
    const uint64_t codes[] = {0, 1, top - 1, top, top + 1, top / 2, 2 * (top - 1) + 1, top / 3};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++)
        check_code(&f, codes[i]);
}

static void fuzz_names(const char *text)
{
    mpsim_round_mode mode, again;
    uint8_t bits = 0, bits_again = 0;
    mpsim_op op;
    mpsim_optim_algorithm algorithm;
    mpsim_clip_rule rule;
    if (mpsim_round_mode_parse(&mode, &bits, text) == MPSIM_OK) {
        must(bits <= 32 && mpsim_round_mode_name(mode) != NULL);
        must(mpsim_round_mode_parse(&again, &bits_again, mpsim_round_mode_name(mode)) == MPSIM_OK);
        must(mode == again);
    } else {
        must(bits == 0);
    }
    must(mpsim_op_parse(&op, text) != MPSIM_OK || mpsim_op_name(op));
    must(mpsim_optim_parse(&algorithm, text) != MPSIM_OK || mpsim_optim_name(algorithm));
    must(mpsim_clip_parse(&rule, text) != MPSIM_OK || mpsim_clip_name(rule));
    (void)mpsim_preset_find(text);
    (void)mpsim_block_find(text);
    (void)mpsim_optim_variant_find(text);
}

static void fuzz_numbers(const char *text)
{
    char word[64];
    suggestion near;
    uint64_t n;
    double x;
    char why[300];
    (void)trace_quantised_word(text, why, sizeof why);
    must(parse_number(&x, text) != 0 || isfinite(x));
    (void)parse_count(&n, text);
    suggestion_init(&near, text);
    suggestion_consider(&near, "ml-dtypes");
    suggestion_consider(&near, "stochastic-a");
    must_be_line(suggestion_end(&near, "none"));
    fold_word(word, sizeof word, text);
    must(strlen(word) < sizeof word);
}

/* The lines of the text, each as an option; an empty one is not given. */
static void fuzz_targets(char *text)
{
    target_options o = {.recipes = text && strlen(text) % 2};
    const char **lines[] = {&o.formats, &o.scales, &o.round, &o.preset, &o.overflow, &o.hadamard, &o.axis};
    target_list l;
    for (size_t i = 0; text && i < sizeof lines / sizeof *lines; i++) {
        char *end = strchr(text, '\n');
        if (end)
            *end++ = 0;
        *lines[i] = *text ? text : NULL;
        text = end;
    }
    messages_begin();
    const int code = target_list_make(&l, &o, "fuzz", "fp16");
    messages_check(code);
    must(code || l.count + l.blocks.count > 0);
    for (size_t i = 0; !code && i < l.count; i++) {
        must(mpsim_format_check(&l.items[i].format) == MPSIM_OK);
        must(mpsim_rounding_check(&l.items[i].rounding) == MPSIM_OK);
    }
    for (size_t i = 0; !code && i < l.blocks.count; i++)
        must(mpsim_block_check(&l.blocks.items[i].recipe) == MPSIM_OK);
    target_list_clear(&l);
}

static void read_text(const uint8_t *data, size_t n)
{
    char *text = input_text(data, n);
    fuzz_format(text);
    fuzz_names(text);
    fuzz_numbers(text);
    if (strchr(text, '\n'))
        fuzz_targets(text);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    input_pieces(data, n, read_text);
    return 0;
}
