/* metric.c -- see metric.h. */
#include "metric.h"

#include "../array/need.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* ---- names ---- */

/* Words are parts of a name; "=kl" is one between its marks. All groups of a row have to be there, of each group one word. */
enum { GROUPS = 3 };

/* Limits: NeMo RL draws samples whose token_mult_prob_error is above 1.05 (nemo_rl/algorithms/grpo.py) and its nightly
 * tests take a mean gen_kl_error up to 0.01. 1.05 is the mean of exp |difference of log-probabilities|, so that 0.05 is
 * as far for differences themselves. A KL of 1 is a policy that gives its tokens a third of the probability that they
 * had; clipping 0.3 of all tokens is far outside what the clip range of PPO and GRPO is for. */
static const struct row {
    const char *groups[GROUPS], *but;
    metric_kind kind;
    double limit;
} rows[] = {
    /* a spread, an extreme, a setting of one of them is not judged */
    {{"=std =max =min =var =p99 =count =num coef =beta target thresh =lr weight range =eps =window _every interval penalty_c"},
     "",
     METRIC_KNOWN,
     0},
    {{"prob", "mult", "err ratio"}, "", METRIC_GAP, 1.05},
    {{"kl", "err mismatch corr diff gap vllm sglang infer"}, "correct", METRIC_GAP, 0.01},
    {{"=js =jsd js_div", "err mismatch diff gap"}, "", METRIC_GAP, 0.01},
    {{"prob logp", "diff gap err mismatch delta", "rollout vllm sglang infer sampl gen local trainer"},
     "",
     METRIC_GAP,
     0.05},
    {{"=kl =kld kl_ _kl approxkl kldiv klloss"}, "", METRIC_KL, 1},
    {{"clip", "frac ratio pct percent rate share"}, "grad norm =vf =val value critic", METRIC_CLIP, 0.3},
    {{"reward =score"}, "loss margin acc chosen reject", METRIC_REWARD, 0},
    {{"entropy"}, "coef cross loss_f", METRIC_ENTROPY, 0},
    {{"loss"}, "scal crossent", METRIC_LOSS, 0},
    {{"loss crossent cross_ent xent objective scal norm nll ppl perplex =bpb =bpc bits_per =trl =tel"},
     "",
     METRIC_KNOWN,
     0},
    {{"step iter epoch batch =update num_update =it =s skip overflow tracker rank episode percent =gpu device worker =pid level seed"},
     "",
     METRIC_KNOWN,
     0},
    {{"lr learning_rate learning_rate rate =wd decay moment beta warmup"}, "", METRIC_KNOWN, 0},
    {{"time sec =ms =eta elapsed latency wall dur hour speed fps =ips thr =ups =wps =tps =qps /s flop mfu util"},
     "",
     METRIC_KNOWN,
     0},
    {{"mem =gb =mb gib mib alloc reserved cache bytes =bsz =wpb"}, "", METRIC_KNOWN, 0},
    {{"tok sample len seen consumed count num_ total n_ size words examples images data =seq"}, "", METRIC_KNOWN, 0},
    {{"acc =em f1 bleu rouge top1 top5 top map =ap iou dice auc precision recall hit_ err wer cer"},
     "",
     METRIC_KNOWN,
     0},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static int is_mark(char c)
{
    return !isalnum((unsigned char)c);
}

/* Whether a name has one of the words, which are separated by blanks. */
static int has_one(const char *name, const char *words)
{
    for (size_t n; *(words += strspn(words, " ")); words += n) {
        n = strcspn(words, " ");
        const int whole = *words == '=';
        for (const char *p = name; (p = memmem(p, strlen(p), words + whole, n - (size_t)whole)) != NULL; p++)
            if (!whole || ((p == name || is_mark(p[-1])) && is_mark(p[n - 1])))
                return 1;
    }
    return 0;
}

/* The first row that fits a name; ROWS: none. */
static size_t row_of(const char *name)
{
    for (size_t i = 0; i < ROWS; i++) {
        int all = !has_one(name, rows[i].but);
        for (size_t k = 0; k < GROUPS && rows[i].groups[k]; k++)
            all &= has_one(name, rows[i].groups[k]);
        if (all)
            return i;
    }
    return ROWS;
}

metric_kind traininglog_metric_kind_of(const char *name, double *limit)
{
    const size_t row = row_of(name);
    *limit = row < ROWS ? rows[row].limit : 0;
    return row < ROWS ? rows[row].kind : METRIC_UNREAD;
}

const char *traininglog_metric_kind_name(metric_kind kind)
{
    static const char *const names[] = {[METRIC_GAP] = "trainer and sampler",
                                        [METRIC_KL] = "KL",
                                        [METRIC_CLIP] = "clipped",
                                        [METRIC_REWARD] = "reward",
                                        [METRIC_ENTROPY] = "entropy",
                                        [METRIC_LOSS] = "loss",
                                        [METRIC_KNOWN] = "known",
                                        [METRIC_UNREAD] = "not read"};
    return names[kind];
}

/* The end of a name without folders, or "average", that has the same meaning. */
static const char *shortest(const char *name, metric_kind kind, double limit)
{
    static const char *const words[] = {"average ", "avg ", "mean "};
    double other;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        name += strncmp(name, words[i], strlen(words[i])) == 0 ? strlen(words[i]) : 0;
    const char *short_one = name;
    for (const char *p = name; (p = strchr(p, '/')) != NULL && p[1];)
        if (traininglog_metric_kind_of(++p, &other) == kind && other == limit)
            short_one = p;
    return short_one;
}

/* ---- columns ---- */

/* The name of a field, in lower case; "" where no letter is in it. *marked: ':' or '=' stands between it and its number. */
static void name_of(char out[METRIC_NAME], const char *line, const field *f, int *marked)
{
    const char *p = line + f->name, *end = line + f->begin;
    size_t n = 0;
    *marked = 0;
    for (; end > p && strchr(" :=\"'([|-+", end[-1]); end--)
        *marked |= end[-1] == ':' || end[-1] == '=';
    while (p < end && !isalpha((unsigned char)*p))
        p++;
    for (; p < end && n + 1 < METRIC_NAME; p++)
        out[n++] = (char)tolower((unsigned char)*p);
    out[n] = 0;
}

static int name_for(metric_values *all, const metric_column *c, double limit)
{
    for (size_t i = 0; i < all->n_names; i++)
        if (strcmp(all->names[i].name, c->text) == 0)
            return (int)i;
    if (all->n_names == METRIC_NAMES)
        return -1;
    metric *m = &all->names[all->n_names];
    *m = (metric){.kind = c->kind, .limit = limit};
    memcpy(m->name, c->text, sizeof m->name);
    m->shown = (size_t)(shortest(m->name, m->kind, limit) - m->name);
    return (int)all->n_names++;
}

/* The column of a field, which may be a new one; NULL: it has no name, or there are too many. */
static metric_column *column_of(metric_values *all, const char *line, const field *f)
{
    for (size_t i = 0; i < all->n_columns; i++)
        if (all->columns[i].key == f->key)
            return &all->columns[i];
    metric_column new = {.key = f->key, .name = -1};
    double limit;
    int marked;
    name_of(new.text, line, f, &marked);
    if (!new.text[0] || all->n_columns == METRIC_COLUMNS)
        return NULL;
    new.kind = traininglog_metric_kind_of(new.text, &limit);
    const int place = f->name && strchr("([", line[f->name - 1]) && strchr(")]:", line[f->end]); /* (trainer:581) */
    if (new.kind == METRIC_UNREAD && (!marked || place || !new.text[1] || strchr(new.text, '.')))
        new.kind = METRIC_KNOWN;
    if (new.kind <= METRIC_ENTROPY)
        new.name = name_for(all, &new, limit);
    all->columns[all->n_columns] = new;
    return &all->columns[all->n_columns++];
}

static void add_value(metric_values *all, metric_value v)
{
    if (all->count == METRICS_MAX) {
        all->truncated = 1;
        return;
    }
    need_room(&all->at, all->count, sizeof *all->at);
    all->at[all->count++] = v;
}

void traininglog_metric_values_take(metric_values *all, const char *text, uint64_t line, int64_t step)
{
    fields f;
    traininglog_fields_find(&f, text);
    for (size_t i = 0; i < f.count; i++) {
        metric_column *c = f.at[i].traits & (FIELD_FRACTION | FIELD_RANK) ? NULL : column_of(all, text, &f.at[i]);
        if (!c || c->kind == METRIC_KNOWN)
            continue;
        metric_value v = {.line = line, .step = step};
        v.kind = traininglog_words_value(text + f.at[i].begin - (f.at[i].begin && text[f.at[i].begin - 1] == '-'),
                                         &v.value);
        if (v.kind == VALUE_UNSAID)
            continue;
        c->first = c->lines++ ? c->first : v.value;
        c->varies |= v.value != c->first;
        v.metric = (unsigned)c->name;
        if (c->name >= 0)
            add_value(all, v);
    }
}

int traininglog_metric_is_in(const char *text)
{
    fields f;
    double limit;
    traininglog_fields_find(&f, text);
    for (size_t i = 0; i < f.count; i++) {
        char name[METRIC_NAME];
        int marked;
        name_of(name, text, &f.at[i], &marked);
        if (name[0] && !(f.at[i].traits & FIELD_FRACTION) && traininglog_metric_kind_of(name, &limit) <= METRIC_ENTROPY)
            return 1;
    }
    return 0;
}

void traininglog_metric_values_sort(metric_values *all)
{
    unsigned to[METRIC_NAMES];
    metric sorted[METRIC_NAMES];
    unsigned n = 0;
    for (size_t row = 0; row < ROWS; row++)
        for (size_t i = 0; i < all->n_names; i++)
            if (row_of(all->names[i].name) == row) {
                to[i] = n;
                sorted[n++] = all->names[i];
            }
    memcpy(all->names, sorted, n * sizeof sorted[0]);
    for (size_t i = 0; i < all->count; i++)
        all->at[i].metric = to[all->at[i].metric];
}

/* ---- what was not read ---- */

static int is_unread(const metric_column *c, int lossless)
{
    enum { SEVERAL = 3 };
    return (c->kind == METRIC_UNREAD || (c->kind == METRIC_LOSS && lossless)) && c->lines >= SEVERAL && c->varies;
}

const char *traininglog_metric_unread(const metric_values *all, size_t i)
{
    for (size_t k = 0; k < all->n_columns; k++)
        if (is_unread(&all->columns[k], all->lossless) && i-- == 0)
            return all->columns[k].text;
    return NULL;
}
