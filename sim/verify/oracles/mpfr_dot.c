/* mpfr_dot.c -- verify: dot products of every model, against the same sentences in GMP. */
#include "../../operand/element.h"
#include "../../process/progress.h"
#include "../impl.h"
#include "oracle_dot.h"

#include <gmp.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { SIDE = 2, DEPTH = 300, FORMATS = 8 }; /* SIDE x SIDE results of up to DEPTH products */

/* One matrix product: operands as codes, and packed as the library takes them. */
typedef struct product {
    mpsim_format fa, fb;
    const oracle_format *ofa, *ofb;
    size_t depth;
    uint64_t a[SIDE][DEPTH], b[SIDE][DEPTH], c[SIDE][SIDE];
    uint64_t packed_a[SIDE * DEPTH], packed_b[SIDE * DEPTH], packed_c[SIDE * SIDE];
    uint64_t d[SIDE * SIDE];
} product;

/* The formats that a model takes. */
static size_t formats_of(const mpsim_model *m, mpsim_format list[FORMATS])
{
    char names[200];
    size_t n = 0;
    snprintf(names, sizeof names, "%s", m->operands ? m->operands : "fp16 bf16 tf32 binary32 e4m3 e5m2 e2m1");
    for (char *save = NULL, *s = strtok_r(names, " ", &save); s && n < FORMATS; s = strtok_r(NULL, " ", &save))
        if (mpsim_format_parse(&list[n], s) == MPSIM_OK)
            n++;
    return n;
}

/* Numbers near 1, to which small ones and specials are added; or any codes; or every second
 * product the opposite of the one before it, so that sums cancel. */
static void fill(product *p, const mpsim_model *m, uint64_t *state)
{
    const oracle_format *ofd = oracle_dot_format(m->result.format.name);
    const uint64_t how = verify_inputs_word(state) % 4;
    for (size_t i = 0; i < SIDE; i++) {
        for (size_t k = 0; k < p->depth; k++) {
            do
                p->a[i][k] = verify_inputs_code(p->ofa, state);
            while (how && oracle_classify(p->ofa, p->a[i][k]) <= ORACLE_INF);
            do
                p->b[i][k] = verify_inputs_code(p->ofb, state);
            while (how && oracle_classify(p->ofb, p->b[i][k]) <= ORACLE_INF);
            if (how == 1 && k % 2 && p->ofb->is_signed) {
                p->a[i][k] = p->a[i][k - 1];
                p->b[i][k] = p->b[i][k - 1] ^ (uint64_t)1 << (p->ofb->bits - 1);
            }
        }
        for (size_t k = 0; k < p->depth; k++) {
            element_put_code(p->packed_a, mpsim_format_code_bytes(&p->fa), i * p->depth + k, p->a[i][k]);
            element_put_code(p->packed_b, mpsim_format_code_bytes(&p->fb), i * p->depth + k, p->b[i][k]);
        }
        for (size_t j = 0; j < SIDE; j++) {
            p->c[i][j] = how == 2 ? 0 : verify_inputs_code(ofd, state);
            element_put_code(p->packed_c, mpsim_format_code_bytes(&m->result.format), i * SIDE + j, p->c[i][j]);
        }
    }
}

static void report(verify_row *row, const mpsim_model *m, const product *p, uint64_t c, uint64_t got, uint64_t want)
{
    verify_differs(row, "%s, %zu products of %s and %s, c = 0x%" PRIx64 ": 0x%" PRIx64 " (%a), GMP 0x%" PRIx64 " (%a)",
                   m->name, p->depth, p->fa.name, p->fb.name, c, got, mpsim_decode(&m->result.format, got), want,
                   mpsim_decode(&m->result.format, want));
}

/* mpsim_gemm, which is what commands use, and mpsim_dot for one of its results. */
static void compare(verify_row *row, const mpsim_model *m, const oracle_model *om, product *p)
{
    const mpsim_matrix a = {&p->fa, p->packed_a, p->depth, 0};
    const mpsim_matrix b = {&p->fb, p->packed_b, p->depth, 1};
    const mpsim_matrix c = {&m->result.format, p->packed_c, SIDE, 0};
    mpsim_status s = mpsim_gemm(m, SIDE, SIDE, p->depth, &a, &b, &c, p->d, SIDE, NULL, NULL);
    uint64_t one = 0;
    if (s == MPSIM_OK)
        s = mpsim_dot(m, &p->fa, p->packed_a, &p->fb, p->packed_b, p->depth, p->c[0][0], NULL, &one);
    if (s != MPSIM_OK)
        verify_differs(row, "%s of %s and %s: %s", m->name, p->fa.name, p->fb.name, mpsim_status_string(s));
    for (size_t i = 0; s == MPSIM_OK && i < (size_t)SIDE * SIDE; i++) {
        const uint64_t addend = p->c[i / SIDE][i % SIDE];
        const uint64_t want = oracle_dot(om, p->ofa, p->a[i / SIDE], p->ofb, p->b[i % SIDE], p->depth, addend, NULL,
                                         NULL);
        const uint64_t got = element_code(p->d, mpsim_format_code_bytes(&m->result.format), i);
        row->compared++;
        if (got != want || (i == 0 && one != want))
            report(row, m, p, addend, got != want ? got : one, want);
    }
}

static void one_model(verify *v, verify_row *row, const mpsim_model *m, uint64_t *state)
{
    static product p;
    mpsim_format list[FORMATS];
    oracle_model om;
    const size_t n = formats_of(m, list), unit = m->chunk ? m->chunk : m->length;
    const size_t step = unit > 16 ? unit : 16;
    if (n == 0 || !oracle_model_init(&om, m)) {
        verify_differs(row, "the oracle does not know %s", m->name);
        return;
    }
    for (size_t i = 0; i < (v->thorough ? 20000 : 1500); i++) {
        p.fa = list[verify_inputs_word(state) % n];
        p.fb = list[verify_inputs_word(state) % n];
        p.ofa = oracle_find(p.fa.name);
        p.ofb = oracle_find(p.fb.name);
        p.depth = 1 + (size_t)(verify_inputs_word(state) % (i % 8 ? step + step / 2 + 2 : 2 * step + 7));
        p.depth = p.depth < DEPTH ? p.depth : DEPTH;
        fill(&p, m, state);
        compare(row, m, &om, &p);
    }
}

/* A row for each architecture: its models are neighbours in the table. */
int verify_mpfr_dot(verify *v, const char *judge)
{
    uint64_t state = v->seed + 100;
    mpsim_model m;
    verify_row *row = NULL;
    const char *last = "";
    size_t models = 0;
    (void)judge;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++) {
        const char *name = m.architecture ? m.architecture : "software";
        if (strcmp(name, last) != 0) {
            row = verify_add(v, "mpfr", " ");
            snprintf(row->with, sizeof row->with, "GMP %s", gmp_version);
            models = 0;
            last = name;
        }
        models++;
        snprintf(row->what, sizeof row->what, "dot products, %zu models: %s", models, name);
        progress_say("mpfr: %s", row->what);
        one_model(v, row, &m, &state);
    }
    return 0;
}
