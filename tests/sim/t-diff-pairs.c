/* t-diff-pairs.c -- what mpsim diff says of pairs of tensors with known causes (pairs/pairs.h), and a table of how
 * often it was right. No pair may be named falsely; how many are named right must not become fewer. */
#include "sim/diff/sequence.h"
#include "sim/pairs/pairs.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST = 200 };

typedef enum answer { RIGHT, NEAR, UNKNOWN, FALSE_ANSWER, ANSWERS } answer;

/* A pair, made; and what was said of it. */
typedef struct made {
    const pair *of;
    char name[64];
    pair_tensor sides[2];
    finding said;
    int told;
} made;

static made *all;
static int count;

static void make_pair(made *m, const pair *p, int number)
{
    uint64_t random = test_seed() + (uint64_t)number;
    m->of = p;
    if (p->fqn)
        snprintf(m->name, sizeof m->name, "%s.%d.weight", p->fqn, number);
    else
        snprintf(m->name, sizeof m->name, "weight:layers.%d.weight", number);
    p->base(&m->sides[0], &random);
    m->sides[1] = m->sides[0];
    for (size_t i = 0; p->element && i < m->sides[1].n; i++)
        m->sides[1].x[i] = p->element(m->sides[0].x[i], i);
    if (p->make)
        p->make(&m->sides[0], &m->sides[1], &random);
}

static void make_list(const pair *list)
{
    for (; list->name; list++) {
        ck_assert_int_lt(count, MOST);
        make_pair(&all[count], list, count);
        count++;
    }
}

/* ---- files ---- */

static void put(trace_writer *w, const made *m, int which)
{
    const pair_tensor *t = &m->sides[which];
    const mpsim_format *f = mpsim_format_find(t->format);
    const size_t bytes = mpsim_format_code_bytes(f);
    static uint64_t codes[PAIR_MOST];
    static unsigned char out[8 * PAIR_MOST];
    mpsim_rounding r;
    trace_error e;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (size_t i = 0; i < t->n; i++)
        codes[i] = mpsim_encode_f64(f, &r, t->x[i], 0, NULL);
    if (which && m->of->codes)
        m->of->codes(codes, t->n);
    for (size_t i = 0; i < t->n; i++)
        code_store(out + i * bytes, bytes, codes[i]);
    trace_to_little_endian(out, bytes, t->n);
    ck_assert(trace_writer_data(w, out, t->n * bytes, &e) == 0);
}

static void write_side(const char *path, int which)
{
    static trace_tensor tensors[MOST];
    static uint64_t shapes[MOST][3];
    trace_error e;
    for (int i = 0; i < count; i++) {
        const pair_tensor *t = &all[i].sides[which];
        size_t rank = 0;
        for (; rank < 3 && t->shape[rank]; rank++)
            shapes[i][rank] = t->shape[rank];
        tensors[i] = (trace_tensor){.name = all[i].name,
                                    .format = mpsim_format_find(t->format),
                                    .shape = shapes[i],
                                    .rank = rank,
                                    .count = t->n};
    }
    trace_writer *w = trace_writer_safetensors(path, tensors, (size_t)count, NULL, 0, &e);
    ck_assert_msg(w != NULL, "%s", e.text);
    for (int i = 0; i < count; i++)
        put(w, &all[i], which);
    ck_assert(trace_writer_finish(w, &e) == 0);
}

/* ---- what is said ---- */

static int tell(void *context, const sequence_entry *e)
{
    (void)context;
    ck_assert(e->tensors[0] && e->tensors[1] && e->compared);
    for (int i = 0; i < count; i++)
        if (strcmp(all[i].name, e->tensors[0]->name) == 0) {
            all[i].said = e->compared->found;
            all[i].told++;
        }
    return 0;
}

static void compare(char *paths[2])
{
    const tolerance none = {.by = TOLERANCE_NONE};
    input_options o = {.keep_going = 0};
    side sides[2];
    for (int k = 0; k < 2; k++) {
        write_side(paths[k], k);
        ck_assert_int_eq(diff_side_open(&sides[k], "diff", &o, paths[k]), 0);
    }
    ck_assert_int_eq(diff_sequence_run(&sides[0], &sides[1], &none, tell, NULL), 0);
    for (int k = 0; k < 2; k++) {
        diff_side_close(&sides[k]);
        unlink(paths[k]);
    }
}

/* ---- the table ---- */

static int is_in(const char *list, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = list; (p = strstr(p, word)); p += n)
        if ((p == list || p[-1] == ' ') && (!p[n] || p[n] == ' '))
            return 1;
    return 0;
}

/* Whether a verdict claims no cause; that numbers are related is a claim where they are not. */
static int claims_nothing(const made *m)
{
    const verdict v = m->said.verdict;
    return v == VERDICT_CLOSE || v == VERDICT_UNRELATED || (v == VERDICT_RELATED && !is_in(m->of->right, "unrelated"));
}

static answer judge(const made *m)
{
    const char *word = diff_verdict_words[m->said.verdict];
    return is_in(m->of->right, word)  ? RIGHT
           : is_in(m->of->near, word) ? NEAR
           : claims_nothing(m)        ? UNKNOWN
                                      : FALSE_ANSWER;
}

static void print(const made *m, answer a)
{
    static const char *const words[] = {"right", "near", "unknown", "FALSE"};
    printf("# %-7s  %-24s %s: %s; %.160s\n", words[a], m->of->name, m->of->cause, diff_verdict_words[m->said.verdict],
           m->said.evidence);
}

CASE("pairs", 20);

TEST(no_pair_is_named_falsely)
{
    enum { LEAST_RIGHT = 118 };
    char paths[2][64];
    int sums[ANSWERS] = {0};
    all = calloc(MOST, sizeof *all);
    make_list(pairs_elements), make_list(pairs_rounded), make_list(pairs_tensors);
    for (int k = 0; k < 2; k++)
        snprintf(paths[k], sizeof paths[k], "t-diff-pairs-%ld-%d.tmp", (long)getpid(), k);
    compare((char *[]){paths[0], paths[1]});
    for (int i = 0; i < count; i++) {
        const answer a = judge(&all[i]);
        ck_assert_int_eq(all[i].told, 1);
        sums[a]++;
        if (a != RIGHT)
            print(&all[i], a);
    }
    printf("# of %d pairs: right %d, near %d, unknown %d, false %d\n", count, sums[RIGHT], sums[NEAR], sums[UNKNOWN],
           sums[FALSE_ANSWER]);
    fflush(stdout);
    free(all);
    ck_assert_int_eq(sums[FALSE_ANSWER], 0);
    ck_assert_int_ge(sums[RIGHT], LEAST_RIGHT);
}

TEST_MAIN("diff-pairs");
