/* generate.c -- see generate.h.
 *
 * Normal numbers are those of 'mpsim dot'. `sink` and `repeated` move the first number of queries and of one or two keys,
 * so that their scores are as far above the others as is said there whatever the size of a head is. */
#include "attention.h"

#include "../dot/operand.h"

#include <math.h>
#include <string.h>

enum { NORMAL, SINK, REPEATED, KINDS };

static const generated_values kinds[KINDS] = {
    [NORMAL] = {"normal", "normal"},
    [SINK] = {"sink", "normal, the first key a sink: scores 8 above the others"},
    [REPEATED] = {"repeated",
                  "two equal keys, scores 16 above the others; a third of the values below 0, a third above"},
};

const generated_values *attention_generate_find(const char *word)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strcmp(kinds[i].word, word) == 0)
            return &kinds[i];
    return NULL;
}

/* ---- numbers ---- */

/* The first number of all queries and of the first keys of each head: their scores become `raised` / softmax scale. */
static void raise_keys(attention_heads *h, size_t keys, double raised)
{
    const double both = sqrt(raised * sqrt((double)h->q.size));
    for (size_t i = 0; i < h->q.of.rows; i++)
        h->q.of.x[i * h->q.size] = both;
    for (size_t i = 0; i < h->k.of.rows; i++)
        h->k.of.x[i * h->k.size] = i % h->k.tokens < keys ? both : 0;
}

/* Columns in turn: all below 0, all above, and of either sign; magnitudes uniform in [2, 4). */
static void fill_signed(heads_part *v, uint64_t seed)
{
    int uniform = 0;
    (void)dot_distribution_find(&uniform, "uniform");
    for (size_t i = 0; i < v->of.rows; i++)
        for (size_t c = 0; c < v->size; c++) {
            const double u = dot_distribution_draw(uniform, seed, (2ull << 32) + i, 2 * c);
            const int other = dot_distribution_draw(uniform, seed, (2ull << 32) + i, 2 * c + 1) < 0.5;
            const int negative = c % 3 == 0 || (c % 3 == 2 && other);
            v->of.x[i * v->size + c] = (negative ? -2 : 2) * (1 + u);
        }
}

/* The second key of each head is the first again. */
static void repeat_key(heads_part *k)
{
    for (size_t h = 0; h < k->batch * k->heads && k->tokens > 1; h++) {
        double *const first = k->of.x + h * k->tokens * k->size;
        memcpy(first + k->size, first, k->size * sizeof *first);
    }
}

void attention_generate_operands(attention_heads *h, const generated_values *how, uint64_t seed)
{
    if (how == &kinds[SINK])
        raise_keys(h, 1, 8);
    if (how != &kinds[REPEATED])
        return;
    raise_keys(h, 2, 16);
    repeat_key(&h->k);
    fill_signed(&h->v, seed);
}
