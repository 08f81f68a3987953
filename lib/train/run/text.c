/* text.c -- runs as text: written from tables, read by the same tables; see train.h.
 *
 * What is read is not trusted: every line is one of those that are due, every key of it is there
 * once (recipes, and depths that are 0, may be missing), every number and word is in its domain. */
#include "../trainer.h"
#include "fields.h"

#include <stddef.h>
#include <stdlib.h>

/* ---- writing ---- */

static void write_pairs(FILE *out, const train_fields *all, const void *base, char before)
{
    const train_field *f = all->list;
    for (size_t i = 0; i < all->n; i++) {
        if (train_is_missing(&f[i], base))
            continue;
        fprintf(out, "%c%s=", before == ':' && i ? ',' : before, f[i].key);
        train_write_value(out, &f[i], base);
    }
}

static int has_muon(const train_run *r, const train_plan *p)
{
    for (size_t i = 0; i < r->n_layers; i++)
        if (p->layers[i].muon)
            return 1;
    return 0;
}

static void write_plan(const train_run *r, const train_plan *p, FILE *f)
{
    fprintf(f, "plan %llu\nprecision %s\nmaster %s\nscaler %s", (unsigned long long)p->from,
            p->precision[0] ? p->precision : "-", train_master_words[p->master], p->scaler.name);
    write_pairs(f, &train_scaler_fields, &p->scaler, ':');
    fprintf(f, "\noptimizer %s variant=%s", mpsim_optim_name((mpsim_optim_algorithm)p->optimizer.algorithm),
            p->optimizer.variant->name);
    write_pairs(f, &train_optim_fields, &p->optimizer, ' ');
    fprintf(f, "\nclip %s max=%a%s\nfp8 delayed=%d", mpsim_clip_name(p->clip), p->max_norm,
            p->clip_scaled ? " scaled=1" : "", p->delayed != 0);
    write_pairs(f, &train_history_fields, &p->history, ' ');
    fputc('\n', f);
    for (size_t i = 0; i < r->n_layers; i++) {
        fprintf(f, "layer %s", r->layers[i].name);
        write_pairs(f, &train_layer_fields, &p->layers[i], ' ');
        fputc('\n', f);
    }
    if (has_muon(r, p)) {
        fprintf(f, "muon %s", p->muon.variant->name);
        write_pairs(f, &train_muon_fields, &p->muon, ' ');
        fputc('\n', f);
    }
}

static void write_lines(FILE *out, const train_fields *all, const void *base)
{
    for (size_t i = 0; i < all->n; i++) {
        fprintf(out, "%s ", all->list[i].key);
        train_write_value(out, &all->list[i], base);
        fputc('\n', out);
    }
}

int train_run_write(const train_run *r, FILE *f)
{
    fputs("mpsim-run/1\n", f);
    write_lines(f, &train_settings_fields, &r->settings);
    if (train_is_text(&r->settings))
        write_lines(f, &train_decoder_fields, &r->settings.decoder);
    for (size_t i = 0; i < r->n_plans; i++)
        write_plan(r, &r->plans[i], f);
    fputs("end\n", f);
    return ferror(f) ? -1 : 0;
}

/* ---- reading: lines and words ---- */

typedef struct reader {
    FILE *f;
    char *error;
    unsigned long line;
    char text[4096];
    char *rest; /* what follows the words taken so far */
} reader;

static int bad(reader *r, const char *what, const char *word)
{
    char clean[48];
    size_t n = 0;
    for (; word && word[n] && n + 1 < sizeof clean; n++)
        clean[n] = word[n] > ' ' && word[n] < 127 ? word[n] : '?';
    clean[n] = 0;
    return train_fail(r->error, "run, line %lu: %.120s%s%s%s", r->line, what, word ? " '" : "", clean, word ? "'" : "");
}

static int next_line(reader *r)
{
    r->line++;
    r->rest = r->text;
    if (!fgets(r->text, sizeof r->text, r->f)) {
        r->text[0] = 0;
        return bad(r, ferror(r->f) ? "cannot be read" : "the text ends too early", NULL);
    }
    const size_t n = strlen(r->text);
    if (n == 0 || r->text[n - 1] != '\n')
        return bad(r, "too long, or not a line", NULL);
    r->text[n - 1] = 0;
    return 0;
}

/* The next word of the line, or NULL; words are separated by one space. */
static char *next_word(reader *r)
{
    char *word = r->rest;
    if (!word || !*word)
        return NULL;
    char *space = strchr(word, ' ');
    if (space)
        *space = 0;
    r->rest = space ? space + 1 : NULL;
    return word;
}

/* A line "KEY VALUE ...": the value. */
static char *due(reader *r, const char *key)
{
    if (next_line(r))
        return NULL;
    const char *word = next_word(r);
    if (!word || strcmp(word, key) != 0) {
        char text[64];
        snprintf(text, sizeof text, "'%s' is due here, not", key);
        bad(r, text, word ? word : "");
        return NULL;
    }
    char *value = next_word(r);
    if (!value)
        bad(r, "no value for", key);
    return value;
}

static int line_ends(reader *r)
{
    return r->rest ? bad(r, "expected the end of the line, found", r->rest) : 0;
}

/* The rest of a line: "key=value" of every field, each once, in any order. */
static int read_pairs(reader *r, const train_fields *all, void *base)
{
    const train_field *f = all->list;
    const size_t n = all->n;
    uint64_t seen = 0;
    for (char *word = next_word(r); word; word = next_word(r)) {
        char *value = strchr(word, '=');
        size_t i = 0;
        if (!value)
            return bad(r, "no '=' in", word);
        *value++ = 0;
        while (i < n && strcmp(f[i].key, word) != 0)
            i++;
        if (i == n || seen >> i & 1)
            return bad(r, i == n ? "unknown key" : "a second time:", word);
        seen |= (uint64_t)1 << i;
        if (train_read_value(&f[i], base, value))
            return bad(r, "not a value here:", value);
    }
    for (size_t i = 0; i < n; i++)
        if (!(seen >> i & 1) && !train_may_miss(&f[i]))
            return bad(r, "missing:", f[i].key);
    return r->rest ? bad(r, "more than one space, or one at the end", NULL) : 0;
}

/* ---- reading: plans ---- */

static int read_scaler(reader *r, train_plan *p)
{
    const char *text = due(r, "scaler");
    if (!text)
        return -1;
    if (mpsim_scaler_parse(&p->scaler, text))
        return bad(r, "not a scaler:", text);
    return line_ends(r);
}

static int read_optimizer(reader *r, train_plan *p)
{
    const char *name = due(r, "optimizer"), *variant = name ? next_word(r) : NULL;
    mpsim_optim_algorithm algorithm;
    if (!name)
        return -1;
    if (mpsim_optim_parse(&algorithm, name))
        return bad(r, "not an optimizer:", name);
    if (!variant || strncmp(variant, "variant=", 8) != 0)
        return bad(r, "missing:", "variant");
    const mpsim_optim_variant *v = mpsim_optim_variant_find(variant + 8);
    if (!v)
        return bad(r, "not a variant:", variant + 8);
    mpsim_optim_init(&p->optimizer, algorithm, v);
    p->optimizer.beta2_decay = p->optimizer.eps2 = p->optimizer.d = 0; /* where they are not written */
    if (read_pairs(r, &train_optim_fields, &p->optimizer))
        return -1;
    return mpsim_optim_check(&p->optimizer) == MPSIM_EINVAL ? bad(r, "no optimizer has such settings", NULL) : 0;
}

static int read_clip(reader *r, train_plan *p)
{
    static const train_field list[] = {{"max", F64, offsetof(train_plan, max_norm), 0, NULL},
                                       {"scaled", DEPTH, offsetof(train_plan, clip_scaled), 0, NULL}};
    static const train_fields fields = {list, 2};
    const char *name = due(r, "clip");
    if (!name)
        return -1;
    if (mpsim_clip_parse(&p->clip, name))
        return bad(r, "not a rule:", name);
    if (read_pairs(r, &fields, p))
        return -1;
    if (p->clip_scaled > 1 || (p->clip_scaled && (p->clip == MPSIM_CLIP_NONE || mpsim_clip_unscales(p->clip))))
        return bad(r, "scaled is 1, of a rule that does not unscale", NULL);
    return p->clip != MPSIM_CLIP_NONE && !(p->max_norm > 0) ? bad(r, "max is not above 0", NULL) : 0;
}

static int read_history(reader *r, train_plan *p)
{
    const char *text = due(r, "fp8");
    if (!text)
        return -1;
    if (strcmp(text, "delayed=0") != 0 && strcmp(text, "delayed=1") != 0)
        return bad(r, "delayed= is 0 or 1, not", text);
    p->delayed = text[8] == '1';
    mpsim_delayed_config_init(&p->history, mpsim_format_find("e4m3"));
    if (read_pairs(r, &train_history_fields, &p->history))
        return -1;
    return (p->delayed && mpsim_delayed_config_check(&p->history)) || p->history.history > 1u << 20
               ? bad(r, "no history has such settings", NULL)
               : 0;
}

/* After the layers, where one has Muon. */
static int read_muon(reader *r, mpsim_muon *o)
{
    const char *name = due(r, "muon");
    const mpsim_optim_variant *v = name ? mpsim_optim_variant_find(name) : NULL;
    char model[sizeof o->model.name];
    if (!v)
        return name ? bad(r, "not a variant:", name) : -1;
    mpsim_muon_init(o, MPSIM_MUON_TORCH, v);
    if (read_pairs(r, &train_muon_fields, o))
        return -1;
    snprintf(model, sizeof model, "%s", o->model.name);
    if (mpsim_model_parse(&o->model, model))
        return bad(r, "not a model:", model);
    return mpsim_muon_check(o) ? bad(r, "no Muon has such settings", NULL) : 0;
}

static int read_plan(reader *r, const train_run *run, train_plan *p)
{
    const char *text = due(r, "precision");
    unsigned master;
    if (!text)
        return -1;
    if (train_read_text(text, p->precision, sizeof p->precision))
        return bad(r, "too long:", text);
    if (strcmp(text, "-") == 0)
        p->precision[0] = 0;
    if (line_ends(r) || (text = due(r, "master")) == NULL)
        return -1;
    if (train_read_word(text, train_master_words, &master))
        return bad(r, "not a kind of master:", text);
    p->master = (train_master)master;
    if (line_ends(r) || read_scaler(r, p) || read_optimizer(r, p) || read_clip(r, p) || read_history(r, p))
        return -1;
    for (size_t i = 0; i < run->n_layers; i++) {
        if ((text = due(r, "layer")) == NULL)
            return -1;
        if (strcmp(text, run->layers[i].name) != 0)
            return bad(r, "not the layer that is due:", text);
        if (read_pairs(r, &train_layer_fields, &p->layers[i]))
            return -1;
    }
    return has_muon(run, p) ? read_muon(r, &p->muon) : 0;
}

/* "plan FROM" or "end": 1, 0 at the end, -1. */
static int read_from(reader *r, const train_run *run, uint64_t *from)
{
    if (next_line(r))
        return -1;
    const char *word = next_word(r), *value = next_word(r);
    if (word && strcmp(word, "end") == 0 && !value && !r->rest)
        return run->n_plans ? 0 : bad(r, "no plan", NULL);
    if (!word || strcmp(word, "plan") != 0 || !value || r->rest)
        return bad(r, "expected 'plan STEP' or 'end', not", word ? word : "");
    if (run->n_plans == TRAIN_PLANS)
        return bad(r, "too many plans", NULL);
    if (train_read_integer(value, UINT64_MAX, from) ||
        (run->n_plans ? *from <= run->plans[run->n_plans - 1].from : *from != 0))
        return bad(r, "the first plan is of step 0, the others in order; not", value);
    return 1;
}

/* A line for each field. */
static int read_lines(reader *r, const train_fields *all, void *base)
{
    for (size_t i = 0; i < all->n; i++) {
        const train_field *f = &all->list[i];
        const char *value = due(r, f->key);
        if (!value || line_ends(r))
            return -1;
        if (train_read_value(f, base, value))
            return bad(r, "not a value here:", value);
    }
    return 0;
}

static int read_settings(reader *r, train_run *run)
{
    train_settings *s = &run->settings;
    char line[TRAIN_ERROR];
    if (next_line(r))
        return -1;
    if (strcmp(r->text, "mpsim-run/1") != 0)
        return bad(r, "expected 'mpsim-run/1', not", r->text);
    train_settings_init(s, "mlp"); /* of others: they have no decoder */
    if (read_lines(r, &train_settings_fields, s) ||
        (train_is_text(s) && read_lines(r, &train_decoder_fields, &s->decoder)))
        return -1;
    run->n_layers = train_network(s, run->layers, line);
    return run->n_layers ? 0 : train_fail(r->error, "run: %.200s", line);
}

static int read_run(reader *r, train_run *run)
{
    uint64_t from = 0;
    int code;
    if (read_settings(r, run))
        return -1;
    while ((code = read_from(r, run, &from)) == 1) {
        train_plan *plans = realloc(run->plans, (run->n_plans + 1) * sizeof *plans);
        if (!plans)
            return train_fail(r->error, "out of memory");
        train_plan *p = &plans[run->n_plans];
        memset(p, 0, sizeof *p);
        p->from = from;
        run->plans = plans;
        run->n_plans++;
        if (read_plan(r, run, p))
            return -1;
    }
    return code;
}

int train_run_read(train_run *run, FILE *f, char *error)
{
    reader *r = malloc(sizeof *r);
    int code;
    memset(run, 0, sizeof *run);
    if (!r)
        return train_fail(error, "out of memory");
    *r = (reader){.f = f, .error = error};
    code = read_run(r, run);
    if (!code && fgetc(f) != EOF) {
        r->line++;
        code = bad(r, "text after the end", NULL);
    }
    free(r);
    if (code)
        train_run_clear(run);
    return code;
}

void train_run_clear(train_run *r)
{
    free(r->plans);
    r->plans = NULL;
    r->n_plans = 0;
}
