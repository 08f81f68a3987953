/* recipe.c -- see recipe.h. A recipe of the library is computed again, and compared in every number. What other programs
 * quantise to integers is judged by the steps of its blocks, which is never certain. */
#include "impl.h"

#include "../array/need.h"
#include "../record/cells.h"
#include "../text/json.h"
#include "../text/words.h"

#include <math.h>
#include <mpsim/block.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 8, WORD = 64, BAND = 1 << 22 };

/* Recipes that may have made a side. */
typedef struct names {
    char words[WORDS][WORD];
    size_t n;
    int columns; /* blocks lie along columns        */
    int said;    /* by the file, and not its layout */
} names;

static void add_word(names *l, const char *word, const char *ends)
{
    if (word && l->n < WORDS)
        snprintf(l->words[l->n++], WORD, "%.40s%s", word, ends);
}

/* ---- what a file says ---- */

/* The recipe of mpsim's own description (sim/quant/describe.h). */
static void describe(names *l, const trace *t, const char *name)
{
    int no_memory = 0;
    char *key = need_format("mpsim.quantised.%s", name);
    const char *text = trace_metadata(t, key);
    json_t *v = text ? json_text(text, strlen(text), 0, NULL, &no_memory) : NULL;
    const char *axis = json_string_value(json_object_get(v, "axis"));
    add_word(l, json_string_value(json_object_get(v, "recipe")), "");
    l->columns = axis && strcmp(axis, "columns") == 0;
    json_decref(v);
    free(key);
}

/* Recipes whose codes and scales lie so. */
static void guess(names *l, const trace_quantised *q)
{
    static const char *const rules[] = {":floor", ":even", ":ceil", ":rceil", ":te"};
    static const struct {
        const char *codes, *scales, *word;
    } rows[] = {{"e2m1", "e8m0", "mxfp4"}, {"e2m3", "e8m0", "mxfp6e2m3"}, {"e3m2", "e8m0", "mxfp6e3m2"},
                {"e4m3", "e8m0", "mxfp8"}, {"e5m2", "e8m0", "mxfp8e5m2"}, {"e2m1", "e4m3", "nvfp4"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (strcmp(rows[i].codes, q->codes) != 0 || strcmp(rows[i].scales, q->scales) != 0)
            continue;
        for (size_t k = 0; k < sizeof rules / sizeof rules[0] && i < 5; k++)
            add_word(l, rows[i].word, rules[k]);
        if (i == 5) {
            add_word(l, "nvfp4", "");
            add_word(l, "nvfp4-torchao", "");
            add_word(l, "nvfp4:1level", "");
        }
    }
}

static void list_names(names *l, const trace *t, const trace_tensor *x)
{
    const char *axis = trace_metadata(t, "mpsim.cast.axis");
    *l = (names){.n = 0};
    describe(l, t, x->name);
    if (!l->n && trace_metadata(t, "mpsim.cast.recipe")) {
        add_word(l, trace_metadata(t, "mpsim.cast.recipe"), "");
        l->columns = axis && strcmp(axis, "columns") == 0;
    }
    l->said = l->n > 0;
    if (!l->n && x->quantised)
        guess(l, x->quantised);
}

/* ---- a recipe, computed again ---- */

/* The other side's numbers beside those of a side: bands of whole rows, or of columns as rows. */
typedef struct band {
    float *from, *to, *made;
    size_t rows, cols;
} band;

static int read_floats(verdict_case *c, int which, uint64_t first, float *to, size_t n, trace_error *error)
{
    enum { AT_ONCE = 1024 };
    double wide[AT_ONCE];
    for (size_t i = 0, m; i < n; i += m) {
        m = n - i < AT_ONCE ? n - i : AT_ONCE;
        if (pass_elements_values(&c->walk.of[which].from, first + i, wide, m, error))
            return -1;
        for (size_t k = 0; k < m; k++)
            to[i + k] = (float)wide[k];
    }
    return 0;
}

static void transpose(float **x, size_t rows, size_t cols)
{
    float *to = need_memory((uint64_t)rows * cols, sizeof *to);
    for (size_t i = 0; i < rows; i++)
        for (size_t k = 0; k < cols; k++)
            to[k * rows + i] = (*x)[i * cols + k];
    free(*x);
    *x = to;
}

static int read_band(verdict_case *c, int made, uint64_t first, size_t n, band *b, int columns, trace_error *error)
{
    if (read_floats(c, !made, first, b->from, n, error) || read_floats(c, made, first, b->to, n, error))
        return -1;
    if (columns) {
        transpose(&b->from, b->rows, b->cols);
        transpose(&b->to, b->rows, b->cols);
        const size_t rows = b->rows;
        b->rows = b->cols;
        b->cols = rows;
    }
    return 0;
}

/* How numbers that were made again are those of a file: EXACT; NEAR, but for how a layout multiplies its scales; OTHER. */
typedef enum likeness { OTHER, NEAR, EXACT } likeness;

static likeness compare(const float *a, const float *b, size_t n)
{
    likeness is = EXACT;
    for (size_t i = 0; i < n && is; i++) {
        if (a[i] == b[i] || (isnan(a[i]) && isnan(b[i])))
            continue;
        is = fabsf(a[i] - b[i]) <= 0x1p-21f * fabsf(a[i]) ? NEAR : OTHER;
    }
    return is;
}

/* How side `made` is the recipe of the other one: a likeness, or -1 with *error. */
static int try_recipe(verdict_case *c, int made, const char *word, int columns, trace_error *error)
{
    mpsim_block_recipe r;
    unsigned transform;
    const side_tensor *x = c->tensors[made];
    const uint64_t cols = x->rank ? x->shape[x->rank - 1] : 1, rows = cols ? x->count / cols : 0;
    if (mpsim_block_parse(&r, &transform, word, NULL, 0) != MPSIM_OK || transform || !rows)
        return 0;
    uint64_t each = r.block_rows && !columns ? BAND / cols / r.block_rows * r.block_rows : rows;
    each = each > rows ? rows : each;
    if (each == 0 || each * cols > BAND)
        return 0;
    band b = {.from = need_memory(each * cols, sizeof(float)),
              .to = need_memory(each * cols, sizeof(float)),
              .made = need_memory(each * cols, sizeof(float))};
    int is = EXACT;
    for (uint64_t row = 0; row < rows && is > 0; row += each) {
        b.rows = (size_t)(rows - row < each ? rows - row : each);
        b.cols = (size_t)cols;
        const mpsim_blocks out = {.values = b.made};
        if (read_band(c, made, row * cols, b.rows * b.cols, &b, columns, error)) {
            is = -1;
            break;
        }
        if (mpsim_block_quantize(&r, b.from, b.rows, b.cols, (float)c->all.amax[!made], 1, NULL, &out, NULL))
            is = OTHER;
        const likeness here = is ? compare(b.made, b.to, b.rows * b.cols) : OTHER;
        is = (int)here < is ? (int)here : is;
    }
    free(b.from);
    free(b.to);
    free(b.made);
    return is;
}

/* ---- integers in blocks ---- */

typedef struct steps {
    uint64_t n, within;
    double farthest;
} steps;

static unsigned bits_of(const char *codes)
{
    const size_t at = strcspn(codes, "0123456789");
    const int is = strncmp(codes, "int", 3) == 0 || strncmp(codes, "uint", 4) == 0;
    return is && codes[at] ? (unsigned)strtoul(codes + at, NULL, 10) : strcmp(codes, "a table of 16") == 0 ? 4 : 0;
}

/* The distance of a block, in steps of its range. */
static void add_block(steps *s, const float *a, const float *b, size_t n, unsigned bits)
{
    double low = (double)INFINITY, high = -low;
    for (size_t i = 0; i < n; i++) {
        low = fmin(low, fmin((double)a[i], (double)b[i]));
        high = fmax(high, fmax((double)a[i], (double)b[i]));
    }
    const double step = (high - low) / ((1u << bits) - 1);
    for (size_t i = 0; i < n; i++) {
        const double off = fabs((double)a[i] - (double)b[i]), far = off == 0 ? 0 : off / step;
        s->n++;
        s->within += far <= 1.001;
        s->farthest = fmax(s->farthest, far);
    }
}

/* Whether the elements of side `made` are within a step of the other's: 1, 0, or -1 with *error. */
static int try_steps(verdict_case *c, const trace_quantised *q, steps *s, trace_error *error)
{
    enum { FEWEST = 64 };
    const unsigned bits = bits_of(q->codes);
    const uint64_t cols = c->tensors[0]->rank ? c->tensors[0]->shape[c->tensors[0]->rank - 1] : 1,
                   n = c->tensors[0]->count;
    const uint64_t each = q->block_cols && q->block_cols < cols ? q->block_cols : cols;
    int bad = 0;
    if (bits < 2 || bits > 8 || q->block_rows != 1 || n < FEWEST || !each || each > BAND)
        return 0;
    float *a = need_memory(each, sizeof *a), *b = need_memory(each, sizeof *b);
    for (uint64_t at = 0, m; at < n && !bad; at += m) {
        m = cols - at % cols < each ? cols - at % cols : each;
        bad = read_floats(c, 0, at, a, (size_t)m, error) || read_floats(c, 1, at, b, (size_t)m, error);
        if (!bad)
            add_block(s, a, b, (size_t)m, bits);
    }
    free(a);
    free(b);
    return bad ? -1 : (double)s->within >= 0.99 * (double)s->n && (bits > 4 || diff_measure_correlation(&c->all) > 0.9);
}

/* ---- the judge ---- */

static void say_exact(const verdict_case *c, finding *f, int made, const char *word, int is, int said)
{
    char n[32];
    const char *a = made ? "A" : "B", *b = made ? "B" : "A";
    diff_finding_init(f, VERDICT_QUANTISED);
    snprintf(f->format, sizeof f->format, "%s", word);
    diff_finding_say(f, "%s = %s(%s) %s, for all %s elements: %s", b, word, a,
                     is == EXACT ? "exactly" : "but for the last bits of its scales", text_count(n, c->all.count),
                     said ? "its file names this recipe" : "its file has the layout of this recipe");
}

static void say_steps(finding *f, int made, const trace_quantised *q, const steps *s)
{
    char share[32], far[32];
    const char *a = made ? "A" : "B", *b = made ? "B" : "A";
    diff_finding_init(f, VERDICT_QUANTISED);
    snprintf(f->format, sizeof f->format, "%s", q->type);
    diff_finding_say(
        f,
        "%s's file holds it as %s of %s: %s of its elements are within a step of %s's in blocks of %u, the farthest "
        "%s steps away. It looks like it; the rounding is not computed again",
        b, q->type, q->layout, text_share(share, s->within, s->n), a, (unsigned)q->block_cols,
        text_number(far, s->farthest));
}

int diff_recipe_named(verdict_case *c, finding *f, trace_error *error)
{
    if (c->tensors[0]->quantised && c->tensors[1]->quantised)
        return 0;
    for (int made = 1; made >= 0; made--) {
        trace *t = diff_side_trace(c->sides[made], c->tensors[made]->file, error);
        const trace_tensor *x = t ? trace_at(t, c->tensors[made]->index) : NULL;
        names l;
        steps s = {.n = 0};
        if (!x)
            return t ? 0 : -1;
        list_names(&l, t, x);
        int is = 0;
        for (size_t i = 0; i < l.n && !is; i++) {
            is = try_recipe(c, made, l.words[i], l.columns, error);
            if (is > 0)
                say_exact(c, f, made, l.words[i], is, l.said);
        }
        if (!is && x->quantised && (is = try_steps(c, x->quantised, &s, error)) > 0)
            say_steps(f, made, x->quantised, &s);
        if (is)
            return is < 0 ? -1 : 1;
    }
    return 0;
}
