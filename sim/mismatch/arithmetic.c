/* arithmetic.c -- see arithmetic.h. */
#include "arithmetic.h"

#include "../array/need.h"
#include "../cli/options.h"
#include "../dot/models.h"
#include "../text/words.h"

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

static int take_temperature(arithmetic *a, const char *text)
{
    return parse_number(&a->temperature, text) == 0 && a->temperature > 0 ? 0 : -1;
}

static int take_top_p(arithmetic *a, const char *text)
{
    return parse_number(&a->top_p, text) == 0 && a->top_p > 0 && a->top_p <= 1 ? 0 : -1;
}

static int take_number(size_t *to, const char *text, uint64_t most)
{
    uint64_t n;
    if (parse_count(&n, text) || n == 0 || n > most)
        return -1;
    *to = (size_t)n;
    return 0;
}

static int take_top_k(arithmetic *a, const char *text)
{
    return take_number(&a->top_k, text, UINT32_MAX);
}

static int take_chunk(arithmetic *a, const char *text)
{
    return take_number(&a->chunk, text, UINT32_MAX);
}

static int take_ranks(arithmetic *a, const char *text)
{
    return take_number(&a->ranks, text, ARITHMETIC_RANKS);
}

static int take_reduce(arithmetic *a, const char *text)
{
    return narrow(&a->reduce, text);
}

static const char *const orders[] = {"chain", "tree", NULL};
static const char *const scales[] = {"token", "tensor", "1", NULL};
static const char *const kv_scales[] = {"tensor", "head", "token", "1", NULL};

static int take_word_of(unsigned *to, const char *const *words, const char *text)
{
    for (unsigned i = 0; words[i]; i++)
        if (strcmp(words[i], text) == 0) {
            *to = i;
            return 0;
        }
    return -1;
}

static int take_order(arithmetic *a, const char *text)
{
    return take_word_of(&a->order, orders, text);
}

static int take_cache(arithmetic *a, const char *text)
{
    a->cached = 1;
    return narrow(&a->cache, text);
}

static int take_scale(arithmetic *a, const char *text)
{
    return take_word_of(&a->scale, scales, text);
}

static int take_kv(arithmetic *a, const char *text)
{
    a->kv_cached = 1;
    return narrow(&a->kv, text);
}

static int take_kv_scale(arithmetic *a, const char *text)
{
    return take_word_of(&a->kv_scale, kv_scales, text);
}

/* In the order of `keys`. */
enum {
    KEY_OPERANDS,
    KEY_SPLIT,
    KEY_WORKSPACE,
    KEY_SUM,
    KEY_LOGITS,
    KEY_SOFTMAX,
    KEY_TEMPERATURE,
    KEY_TOP_K,
    KEY_TOP_P,
    KEY_CHUNK,
    KEY_RANKS,
    KEY_REDUCE,
    KEY_ORDER,
    KEY_CACHE,
    KEY_SCALE,
    KEY_KV,
    KEY_KV_SCALE
};

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
    {"temperature", "a number above 0", take_temperature},
    {"top-k", "a number of words", take_top_k},
    {"top-p", "a share above 0 and at most 1", take_top_p},
    {"chunk", "a number of words", take_chunk},
    {"ranks", "a number of ranks from 1 to 1024", take_ranks},
    {"reduce", "a format whose numbers are all numbers of binary32", take_reduce},
    {"order", "chain or tree", take_order},
    {"cache", "a format whose numbers are all numbers of binary32", take_cache},
    {"scale", "token, tensor or 1", take_scale},
    {"kv", "a format whose numbers are all numbers of binary32", take_kv},
    {"kv-scale", "tensor, head, token or 1", take_kv_scale},
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
    return fail(
        EXIT_USAGE,
        "mismatch: %s: '%s' is not operands=, split=, workspace=, sum=, logits=, softmax=, temperature=, top-k=, "
        "top-p=, chunk=, ranks=, reduce=, order=, cache=, scale=, kv= or kv-scale=",
        option, word);
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
    if (a->split.parts == 1 && given & (1u << KEY_WORKSPACE | 1u << KEY_SUM))
        return fail(EXIT_USAGE, "mismatch: %s: workspace= and sum= need split=2 or more", option);
    if (a->ranks == 1 && given & (1u << KEY_REDUCE | 1u << KEY_ORDER))
        return fail(EXIT_USAGE, "mismatch: %s: reduce= and order= need ranks=2 or more", option);
    if (a->ranks > 1 && a->chunk)
        return fail(EXIT_USAGE, "mismatch: %s: chunk= and ranks= exclude each other", option);
    if (!a->cached && given & 1u << KEY_SCALE)
        return fail(EXIT_USAGE, "mismatch: %s: scale= needs cache=", option);
    if (!a->kv_cached && given & 1u << KEY_KV_SCALE)
        return fail(EXIT_USAGE, "mismatch: %s: kv-scale= needs kv=", option);
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
    a->logits = a->softmax = a->reduce = a->cache = a->kv = *binary32;
    a->temperature = a->top_p = 1;
    a->ranks = 1;
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

static const char *const scale_words[] = {"each token", "the tensor", "1"};
static const char *const kv_scale_words[] = {"the tensor", "each head", "each token of a head", "1"};

const char *mismatch_arithmetic_text(char *out, size_t size, const arithmetic *a)
{
    char split[256] = "";
    if (a->split.parts > 1)
        snprintf(split, sizeof split, ", K in %zu parts kept in %s, added in %s", a->split.parts,
                 a->split.workspace.name, a->split.sum.name);
    snprintf(out, size, "%s of %s%s", a->model.name, a->operands.name, split);
    if (a->kv_cached)
        text_add(out, size, ", K and V kept in %s with a scale of %s", a->kv.name, kv_scale_words[a->kv_scale]);
    if (a->cached)
        text_add(out, size, ", H kept in %s with a scale of %s", a->cache.name, scale_words[a->scale]);
    text_add(out, size, "; logits in %s", a->logits.name);
    if (a->temperature != 1)
        text_add(out, size, ", at temperature %g", a->temperature);
    if (a->top_k)
        text_add(out, size, ", top-k %zu", a->top_k);
    if (a->top_p < 1)
        text_add(out, size, ", top-p %g", a->top_p);
    text_add(out, size, ", log-softmax in %s", a->softmax.name);
    if (a->chunk)
        text_add(out, size, " in chunks of %zu words", a->chunk);
    if (a->ranks > 1)
        text_add(out, size, " on %zu ranks, added in %s as a %s", a->ranks, a->reduce.name, orders[a->order]);
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
    FIELD(REAL, "temperature", IN_TREE, AT(temperature), "Logits are divided by it."),
    FIELD(SIZE, "top_k", IN_TREE, AT(top_k), "The words that top-k keeps; 0: all."),
    FIELD(REAL, "top_p", IN_TREE, AT(top_p), "The share of probability that top-p keeps."),
    FIELD(SIZE, "chunk", IN_TREE, AT(chunk), "Words of a chunk of the log-softmax; 0: it is in one piece."),
    FIELD(SIZE, "ranks", IN_TREE, AT(ranks), "Ranks that share the words."),
    FIELD(CHARS, "reduce", IN_TREE, AT(reduce.name), "The format in which ranks add their sums."),
    FIELD(WORD, "order", IN_TREE, AT(order), "The order in which ranks add their sums.", .words = orders),
    FIELD(CHARS, "cache", IN_TREE, AT(cache.name),
          "The format in which hidden states are kept before they are rounded to `operands`; binary32: as they are."),
    FIELD(WORD, "scale", IN_TREE, AT(scale), "What has a scale in the cache.", .words = scales),
    FIELD(CHARS, "kv", IN_TREE, AT(kv.name), "The format in which K and V are kept; binary32: as they are."),
    FIELD(WORD, "kv_scale", IN_TREE, AT(kv_scale), "What has a scale in the cache of K and V.", .words = kv_scales),
    {0}};
#undef AT
const record_kind mismatch_arithmetic_record = {"arithmetic", "How a side computes.", sizeof(arithmetic), fields};
