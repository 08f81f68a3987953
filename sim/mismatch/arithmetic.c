/* arithmetic.c -- see arithmetic.h. */
#include "arithmetic.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../dot/models.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_PARTS = 1 << 20 };

/* A format whose numbers binary32 has. */
static int narrow(mpsim_format *f, const char *text)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_format_parse(f, text) != MPSIM_OK ||
                   mpsim_round_array_f32(f, &r, NULL, NULL, NULL, 0, NULL) != MPSIM_OK
               ? -1
               : 0;
}

static int take_operands(arithmetic *a, const char *text)
{
    return mpsim_format_parse(&a->operands, text) == MPSIM_OK ? 0 : -1;
}

static int take_split(arithmetic *a, const char *text)
{
    uint64_t n;
    if (parse_count(&n, text) || n == 0 || n > MOST_PARTS)
        return -1;
    a->split.parts = (size_t)n;
    return 0;
}

static int take_workspace(arithmetic *a, const char *text)
{
    return dot_split_place(&a->split.workspace, text);
}

static int take_sum(arithmetic *a, const char *text)
{
    return dot_split_place(&a->split.sum, text);
}

static int take_logits(arithmetic *a, const char *text)
{
    return narrow(&a->logits, text);
}

static int take_softmax(arithmetic *a, const char *text)
{
    return narrow(&a->softmax, text);
}

static const struct {
    const char *key, *expected;
    int (*take)(arithmetic *a, const char *text);
} keys[] = {
    {"operands", "a format", take_operands},
    {"split", "a number of parts from 1 to 2^20", take_split},
    {"workspace", "a format of up to 25 significand bits, or binary64", take_workspace},
    {"sum", "a format of up to 25 significand bits, or binary64", take_sum},
    {"logits", "a format whose numbers are all numbers of binary32", take_logits},
    {"softmax", "a format whose numbers are all numbers of binary32", take_softmax},
};
enum { KEYS = sizeof keys / sizeof keys[0] };

static int take_word(arithmetic *a, unsigned *given, const char *option, const char *word)
{
    const size_t n = strcspn(word, "=");
    for (size_t i = 0; i < KEYS; i++) {
        if (!word[n] || strlen(keys[i].key) != n || strncmp(word, keys[i].key, n) != 0)
            continue;
        if (*given >> i & 1)
            return fail(EXIT_USAGE, "mismatch: %s: %s= is given twice", option, keys[i].key);
        *given |= 1u << i;
        return keys[i].take(a, word + n + 1) ? fail(EXIT_USAGE, "mismatch: %s: %s: '%s' is not %s", option, keys[i].key,
                                                    word + n + 1, keys[i].expected)
                                             : 0;
    }
    return fail(EXIT_USAGE,
                "mismatch: %s: '%s' is not operands=, split=, workspace=, sum=, logits= or softmax=", option, word);
}

/* Of a tensor core the first format that it takes; binary32 of what takes any. */
static void usual_operands(arithmetic *a)
{
    const char *names = a->model.operands ? a->model.operands : "binary32";
    char *first = need_part(names, strcspn(names, " "));
    (void)mpsim_format_parse(&a->operands, first);
    free(first);
}

static int check(const arithmetic *a, const char *option, unsigned given)
{
    if (!mpsim_model_accepts(&a->model, &a->operands, &a->operands))
        return fail(EXIT_USAGE, "mismatch: %s: model '%s' does not take %s but %s", option, a->model.name,
                    a->operands.name, a->model.operands);
    if (a->split.parts == 1 && given & (1u << 2 | 1u << 3))
        return fail(EXIT_USAGE, "mismatch: %s: workspace= and sum= need split=2 or more", option);
    return 0;
}

int mismatch_arithmetic_parse(arithmetic *a, const char *option, const char *text)
{
    const mpsim_format *binary32 = mpsim_format_find("binary32");
    unsigned given = 0;
    size_t n = strcspn(text, ",");
    char *word = need_part(text, n);
    memset(a, 0, sizeof *a);
    a->split = (dot_split){.parts = 1, .workspace = *binary32, .sum = *binary32};
    a->logits = a->softmax = *binary32;
    int code = dot_model_one(&a->model, "mismatch", word, NULL, "a side is one");
    free(word);
    if (!code)
        usual_operands(a);
    while (!code && text[n]) {
        text += n + 1;
        n = strcspn(text, ",");
        word = need_part(text, n);
        code = take_word(a, &given, option, word);
        free(word);
    }
    return code ? code : check(a, option, given);
}

const char *mismatch_arithmetic_text(char *out, size_t size, const arithmetic *a)
{
    char split[256] = "";
    if (a->split.parts > 1)
        snprintf(split, sizeof split, ", K in %zu parts kept in %s, added in %s", a->split.parts,
                 a->split.workspace.name, a->split.sum.name);
    snprintf(out, size, "%s of %s%s; logits in %s, log-softmax in %s", a->model.name, a->operands.name, split,
             a->logits.name, a->softmax.name);
    return out;
}

#define AT(member) offsetof(arithmetic, member)
static const record_field fields[] = {
    FIELD(CHARS, "model", IN_TREE, AT(model.name), NULL),
    FIELD(CHARS, "operands", IN_TREE, AT(operands.name), "The format that hidden states and weights are rounded to."),
    FIELD(SIZE, "split", IN_TREE, AT(split.parts), "Parts of K; 1: K is not cut."),
    FIELD(CHARS, "workspace", IN_TREE, AT(split.workspace.name), "The format in which the sums of parts are kept."),
    FIELD(CHARS, "sum", IN_TREE, AT(split.sum.name), "The format in which the sums of parts are added."),
    FIELD(CHARS, "logits", IN_TREE, AT(logits.name), "The format that logits are rounded to."),
    FIELD(CHARS, "softmax", IN_TREE, AT(softmax.name), "The format of every operation of the log-softmax."),
    {0}};
#undef AT
const record_kind mismatch_arithmetic_record = {"arithmetic", "How a side computes.", sizeof(arithmetic), fields};
