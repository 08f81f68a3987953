/* words.c -- recipes as people type them; see mpsim_block_parse in mpsim/block.h. */
#include <mpsim/block.h>

#include "../base/words.h"

/* ---- writing ---- */

/* Text that ends where there is no room; `cut` says so. */
typedef struct writer {
    char *text;
    size_t size, n;
    int cut;
} writer;

static void put(writer *w, const char *text, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (w->n + 1 >= w->size) {
            w->cut = 1;
            return;
        }
        /* of what was typed, what cannot be printed stays out of a line */
        w->text[w->n++] = text[i] >= ' ' && text[i] <= '~' ? text[i] : '?';
        w->text[w->n] = 0;
    }
}

static void put_word(writer *w, const char *word)
{
    put(w, word, strlen(word));
}

static void put_number(writer *w, uint32_t x)
{
    char digits[12];
    size_t at = sizeof digits;
    do
        digits[--at] = (char)('0' + x % 10);
    while ((x /= 10) > 0);
    put(w, digits + at, sizeof digits - at);
}

/* ---- words ---- */

/* Names that take the same words. */
enum { MX = 1, TILES = 2, NVFP4 = 4, NVFP4_TORCHAO = 8, OTHER = 16, ALL = 31 };

/* What a word decides; two that decide the same contradict each other. */
enum { RULE, SHAPE, ELEMENTS, TRANSFORM, SUBJECTS };
enum { ONE_LEVEL = 1, RANDOM = 2 }; /* of ELEMENTS: 1level has no rounding by random bits */

typedef struct word {
    const char *name, *canonical;
    unsigned of; /* the names that take it             */
    uint8_t subject;
    uint8_t value; /* RULE: the rule; others: as above, or a number */
} word;

#define SCALES(name, rule)                                    \
    {                                                         \
        name, name, MX | TILES, RULE, MPSIM_SCALE_E8M0_##rule \
    }
#define TORCHAO_018(name, rule)                                                              \
    {                                                                                        \
        "torchao-0.18-" name, "torchao-0.18-" name, MX, RULE, MPSIM_SCALE_TORCHAO_018_##rule \
    }
#define HADAMARD(name, size)                    \
    {                                           \
        name, "rht" #size, ALL, TRANSFORM, size \
    }

static const word words[] = {
    SCALES("floor", FLOOR),
    SCALES("even", EVEN),
    SCALES("ceil", CEIL),
    SCALES("rceil", RCEIL),
    SCALES("te", TE),
    SCALES("microx", MICROX),
    TORCHAO_018("floor", FLOOR),
    TORCHAO_018("even", EVEN),
    TORCHAO_018("ceil", CEIL),
    TORCHAO_018("rceil", RCEIL),
    {"ue8m0", "ue8m0", TILES, RULE, MPSIM_SCALE_E8M0_DEEPGEMM},
    {"f32", "f32", TILES, RULE, MPSIM_SCALE_AMAX_DEEPSEEK},
    {"2d", "2d", NVFP4, SHAPE, 16},
    {"1level", "1level", NVFP4 | NVFP4_TORCHAO, ELEMENTS, ONE_LEVEL},
    {"sr", "sr", NVFP4, ELEMENTS, RANDOM},
    HADAMARD("rht", 16),
    HADAMARD("rht16", 16),
    HADAMARD("rht32", 32),
    HADAMARD("rht64", 64),
    HADAMARD("rht128", 128),
};

enum { WORDS = sizeof words / sizeof words[0] };

static const char tile_source[] = "DeepSeek-V3 @06231633, inference/kernel.py act_quant; its element "
                                  "is e4m3, its blocks are 1x128 and 128x128";
static const char tile_source_ue8m0[] = "DeepGEMM @38939a4c, ceil_to_ue8m0; there amax is at least "
                                        "1e-4, the element e4m3, blocks are 1x128 and 128x128";

/* The names of the table whose words are not those of `OTHER`. */
static const struct {
    const char *name;
    unsigned is;
} families[] = {
    {"mxfp8", MX},
    {"mxfp8-e5m2", MX},
    {"mxfp6-e3m2", MX},
    {"mxfp6-e2m3", MX},
    {"mxfp4", MX},
    {"nvfp4", NVFP4},
    {"nvfp4-torchao", NVFP4_TORCHAO},
};

static unsigned family_of(const char *name)
{
    for (size_t i = 0; i < sizeof families / sizeof families[0]; i++)
        if (strcmp(families[i].name, name) == 0)
            return families[i].is;
    return OTHER;
}

/* ---- names ---- */

/* A piece of what was typed. */
typedef struct piece {
    const char *text;
    size_t n;
} piece;

static piece until(const char *text, size_t n, char end)
{
    piece p = {text, 0};
    while (p.n < n && text[p.n] != end)
        p.n++;
    return p;
}

/* Whether p is the name, '-' and '_' left out or not. */
static int is_name(piece p, const char *name)
{
    size_t i = 0;
    for (; *name; name++) {
        if (*name == '-') {
            i += i < p.n && mpsim_fold(p.text[i]) == '_';
            continue;
        }
        if (i == p.n || mpsim_fold(p.text[i]) != *name)
            return 0;
        i++;
    }
    return i == p.n;
}

static const mpsim_block_recipe *find(piece name)
{
    for (size_t i = 0; i < mpsim_block_count(); i++)
        if (is_name(name, mpsim_block_at(i)->name))
            return mpsim_block_at(i);
    return NULL;
}

/* A whole number from 1 to 2^32 - 1. */
static int number(piece p, uint32_t *value)
{
    uint64_t v = 0;
    for (size_t i = 0; i < p.n; i++) {
        if (p.text[i] < '0' || p.text[i] > '9')
            return 0;
        v = 10 * v + (uint64_t)(p.text[i] - '0');
        if (v > UINT32_MAX)
            return 0;
    }
    *value = (uint32_t)v;
    return v > 0;
}

static int shape(mpsim_block_recipe *b, piece p)
{
    const piece rows = until(p.text, p.n, 'x');
    if (mpsim_same_word(p.text, p.n, "tensor") || mpsim_same_word(p.text, p.n, "row")) {
        b->block_rows = p.n == 3;
        return 1;
    }
    if (rows.n == p.n || !number(rows, &b->block_rows))
        return 0;
    const piece cols = {p.text + rows.n + 1, p.n - rows.n - 1};
    return number(cols, &b->block_cols);
}

static void put_shape(writer *w, const mpsim_block_recipe *b)
{
    put_word(w, "/");
    if (b->block_cols == 0) {
        put_word(w, b->block_rows ? "row" : "tensor");
        return;
    }
    put_number(w, b->block_rows);
    put_word(w, "x");
    put_number(w, b->block_cols);
}

/* ---- recipes ---- */

typedef struct parser {
    mpsim_block_recipe b;
    unsigned family;
    const word *chosen[SUBJECTS];
    writer error;
} parser;

static mpsim_status refuse(parser *p, piece what, const char *why)
{
    put_word(&p->error, "\"");
    put(&p->error, what.text, what.n);
    put_word(&p->error, "\" is ");
    put_word(&p->error, why);
    return MPSIM_EINVAL;
}

/* ELEMENT/SHAPE */
static mpsim_status tiles(parser *p, piece element, piece blocks)
{
    mpsim_block_recipe *b = &p->b;
    char typed[sizeof b->element] = "";
    *b = (mpsim_block_recipe){.rule = MPSIM_SCALE_AMAX_DEEPSEEK, .source = tile_source};
    p->family = TILES;
    if (element.n < sizeof typed)
        memcpy(typed, element.text, element.n);
    const mpsim_format *f = mpsim_format_find(typed);
    if (!f)
        return refuse(p, element, "not a format of elements");
    if (strlen(f->name) < sizeof b->element)
        memcpy(b->element, f->name, strlen(f->name) + 1);
    if (mpsim_block_check(b) != MPSIM_OK)
        return refuse(p, element, "not a format of elements: these have a sign, a significand and at most 8 bits");
    if (!shape(b, blocks))
        return refuse(p, blocks, "not a shape of blocks: expected RxC, tensor or row");
    return MPSIM_OK;
}

static mpsim_status take_name(parser *p, piece name)
{
    const mpsim_block_recipe *row = find(name);
    const piece element = until(name.text, name.n, '/');
    if (row) {
        p->b = *row;
        p->family = family_of(row->name);
        return MPSIM_OK;
    }
    if (element.n == name.n)
        return MPSIM_ENOTFOUND;
    const piece blocks = {name.text + element.n + 1, name.n - element.n - 1};
    return tiles(p, element, blocks);
}

static mpsim_status unknown(parser *p, piece typed)
{
    (void)refuse(p, typed, "not a word of this recipe; its words are");
    for (size_t i = 0; i < WORDS; i++)
        if (words[i].of & p->family) {
            put_word(&p->error, " ");
            put_word(&p->error, words[i].name);
        }
    return MPSIM_EINVAL;
}

static mpsim_status take_word(parser *p, piece typed)
{
    size_t i = 0;
    while (i < WORDS && !((words[i].of & p->family) && mpsim_same_word(typed.text, typed.n, words[i].name)))
        i++;
    if (i == WORDS)
        return unknown(p, typed);
    const word **chosen = &p->chosen[words[i].subject];
    if (*chosen) {
        (void)refuse(p, typed, "one too many beside \"");
        put_word(&p->error, (*chosen)->name);
        put_word(&p->error, "\"");
        return MPSIM_EINVAL;
    }
    *chosen = &words[i];
    return MPSIM_OK;
}

/* The rule, its source and the rounding that comes with it, from a row of the table that has it. */
static void take_rule(mpsim_block_recipe *b, unsigned rule)
{
    for (size_t i = 0; i < mpsim_block_count(); i++) {
        const mpsim_block_recipe *row = mpsim_block_at(i);
        if (row->rule == rule) {
            b->source = row->source;
            b->element_mode = row->element_mode;
        }
    }
    b->rule = (uint8_t)rule;
}

static void apply(parser *p)
{
    mpsim_block_recipe *b = &p->b;
    if (p->chosen[RULE] && p->chosen[RULE]->value != MPSIM_SCALE_AMAX_DEEPSEEK)
        take_rule(b, p->chosen[RULE]->value);
    if (b->rule == MPSIM_SCALE_E8M0_DEEPGEMM && p->family == TILES)
        b->source = tile_source_ue8m0;
    if (p->chosen[SHAPE])
        b->block_rows = p->chosen[SHAPE]->value;
    if (p->chosen[ELEMENTS] && p->chosen[ELEMENTS]->value == ONE_LEVEL) {
        take_rule(b, MPSIM_SCALE_NVFP4_1LEVEL);
    } else if (p->chosen[ELEMENTS]) {
        b->element_mode = MPSIM_ROUND_STOCHASTIC_A;
        b->sr_bits = 8;
    }
}

/* The name in one spelling; 0: it has no room. */
static int put_name(parser *p)
{
    char name[sizeof p->b.name] = "";
    writer w = {.text = name, .size = sizeof name};
    put_word(&w, p->family == TILES ? p->b.element : p->b.name);
    if (p->family == TILES)
        put_shape(&w, &p->b);
    for (int i = 0; i < SUBJECTS; i++)
        if (p->chosen[i]) {
            put_word(&w, ":");
            put_word(&w, p->chosen[i]->canonical);
        }
    memcpy(p->b.name, name, sizeof name);
    return !w.cut;
}

mpsim_status mpsim_block_parse(mpsim_block_recipe *b, unsigned *transform, const char *text, char *error, size_t size)
{
    parser p = {.error = {.text = error, .size = error ? size : 0}};
    if (p.error.size > 0)
        error[0] = 0;
    size_t n = text ? strlen(text) : 0;
    if (!b || !transform || !text)
        return MPSIM_EINVAL;
    piece at = until(text, n, ':');
    mpsim_status s = take_name(&p, at);
    while (s == MPSIM_OK && at.n < n) {
        text += at.n + 1;
        n -= at.n + 1;
        at = until(text, n, ':');
        s = take_word(&p, at);
    }
    if (s != MPSIM_OK)
        return s;
    if (!put_name(&p))
        return refuse(&p, at, "the name is too long");
    apply(&p);
    *b = p.b;
    *transform = p.chosen[TRANSFORM] ? p.chosen[TRANSFORM]->value : 0;
    return MPSIM_OK;
}
