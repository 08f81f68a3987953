/* fuzz-operands.c -- files of tensors, the first three members of a zip archive, as the operands of mpsim attention (Q, K, V) and
 * mpsim mismatch (hidden states, head, tokens), each computed or refused in one line; a fourth is how a side computes. */
#include "input.h"
#include "members.h"
#include "sim/attention/measure.h"
#include "sim/cli/options.h"
#include "sim/mismatch/measure.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { OPERANDS = 3, MOST_PRODUCTS = 1 << 16 }; /* beyond, nothing is computed: exact sums take their time */

static int is_little(uint64_t a, uint64_t b, uint64_t c)
{
    return a < MOST_PRODUCTS && b < MOST_PRODUCTS && c < MOST_PRODUCTS && a * b * c < MOST_PRODUCTS;
}

static int compute_attention(const attention_heads *h)
{
    mpsim_model m;
    mpsim_attention a;
    dot_truth exact;
    attention_result x;
    must(mpsim_model_parse(&m, "hopper-bf16-fp32:result=bf16") == MPSIM_OK);
    mpsim_attention_init(&a, h->q.size);
    a.scores = a.context = &m;
    a.p.format = *mpsim_format_find("bf16");
    a.tile = 3;
    a.causal = 1;
    int code = attention_exactly(&exact, &a, h, -1);
    if (!code && !(code = attention_measure(&x, &a, h, &exact, 1)))
        must(x.counts.rows == h->q.batch * h->q.heads * h->q.tokens && x.error.count == x.counts.rows * h->v.size &&
             x.counts.p_zero + x.counts.p_one <= x.counts.elements && fabs(x.lean) <= 1 + 1e-9);
    dot_truth_clear(&exact);
    return code;
}

static void run_attention(char *files[OPERANDS], int tokens_first)
{
    const heads_source from = {.files = files, .n = OPERANDS, .tokens_first = tokens_first, .verb = "attention"};
    const mpsim_format *bf16 = mpsim_format_find("bf16");
    attention_heads h;
    messages_begin();
    int code = attention_heads_make(&h, &from);
    must(code || (h.q.heads % h.k.heads == 0 && h.k.tokens == h.v.tokens && h.q.size == h.k.size));
    if (!code)
        code = attention_heads_round(&h, "attention", bf16, bf16);
    if (!code && is_little(attention_heads_count(&h) * h.q.tokens, h.k.tokens, h.q.size + h.v.size))
        code = compute_attention(&h);
    messages_check(code);
    attention_heads_clear(&h);
}

static int compute_mismatch(const mismatch_operands *o)
{
    arithmetic sides[2];
    must(mismatch_arithmetic_parse(&sides[0], "-a", "hopper-bf16-fp32,softmax=bf16") == 0);
    must(mismatch_arithmetic_parse(&sides[1], "-b", "fma,split=3,logits=fp16") == 0);
    mismatch m = {.o = o, .sides = sides, .seed = 1};
    const int code = mismatch_measure(&m);
    for (size_t i = 0; i < o->count && !code; i++) {
        const mismatch_token *t = &m.tokens[i];
        must(t->id < o->vocabulary && !(t->exact > 0) && !(t->kl < 0));
        must(!(t->lp[0] > 0) && !(t->lp[1] > 0));
    }
    mismatch_clear(&m);
    return code;
}

static void run_mismatch(char *files[OPERANDS], int drawn)
{
    const mismatch_source from = {.hidden = files[0], .head = files[1], .tokens = drawn ? NULL : files[2]};
    mismatch_operands o;
    messages_begin();
    int code = mismatch_operands_make(&o, &from);
    must(code || (o.length > 0 && o.count % o.length == 0 && o.vocabulary > 0));
    for (size_t i = 0; i < o.count && !code && o.tokens; i++)
        must(o.tokens[i] < o.vocabulary);
    if (!code && is_little(o.count, o.vocabulary, o.size))
        code = compute_mismatch(&o);
    messages_check(code);
    mismatch_operands_clear(&o);
}

static void run_side(const member *m)
{
    char *text = input_text(m->bytes, m->n);
    arithmetic a;
    messages_begin();
    const int code = mismatch_arithmetic_parse(&a, "-a", text);
    must(code || (mpsim_model_check(&a.model) == MPSIM_OK && a.split.parts > 0));
    messages_check(code);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static members m;
    char *files[OPERANDS];
    if (members_read(&m, data, n))
        return 0;
    for (size_t i = 0; i < OPERANDS && m.count >= OPERANDS; i++) {
        const char *path = input_path_of(i, m.of[i].bytes, m.of[i].n);
        files[i] = input_text((const uint8_t *)path, strlen(path));
    }
    if (m.count >= OPERANDS) {
        run_attention(files, n % 2 != 0);
        run_mismatch(files, n % 3 == 0);
        for (size_t i = 0; i < OPERANDS; i++)
            free(files[i]);
    }
    if (m.count > OPERANDS)
        run_side(&m.of[OPERANDS]);
    members_clear(&m);
    return 0;
}
