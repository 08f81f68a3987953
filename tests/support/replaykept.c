/* replaykept.c -- see replaykept.h. */
#include "replaykept.h"

#include "sim/input/input.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

char replay_top[512];

struct scrap {
    struct scrap *next;
    double data[];
};

static void *keep(run *r, const void *p, size_t n)
{
    scrap *s = malloc(sizeof *s + n);
    ck_assert_ptr_nonnull(s);
    s->next = r->scraps;
    r->scraps = s;
    return n ? memcpy(s->data, p, n) : s->data;
}

static const char *keep_text(run *r, const char *s)
{
    return s ? keep(r, s, strlen(s) + 1) : NULL;
}

static int keep_step(const replay_step *s, void *context)
{
    run *r = context;
    ck_assert_uint_lt(r->n, 64);
    replay_step *k = &r->step[r->n++];
    *k = *s;
    k->cause = keep_text(r, s->cause);
    replay_cast *c = keep(r, s->casts, s->n_casts * sizeof *c);
    replay_weight *w = keep(r, s->weights, s->n_weights * sizeof *w);
    for (size_t i = 0; i < s->n_casts; i++) {
        c[i].name = keep_text(r, c[i].name);
        c[i].kind = keep_text(r, c[i].kind);
    }
    for (size_t i = 0; i < s->n_weights; i++) {
        w[i].name = keep_text(r, w[i].name);
        w[i].storage = keep_text(r, w[i].storage);
        w[i].grads = keep_text(r, w[i].grads);
    }
    k->casts = c;
    k->weights = w;
    k->plan = NULL;
    k->settings = s->settings ? keep(r, s->settings, s->n_settings * sizeof *s->settings) : NULL;
    k->notes = keep(r, s->notes, sizeof *s->notes);
    k->unheld_in = keep_text(r, s->unheld_in);
    k->gradient_format = keep_text(r, s->gradient_format);
    k->optimizer = s->optimizer ? keep(r, s->optimizer, sizeof *s->optimizer) : NULL;
    return 0;
}

void forget(run *r)
{
    for (scrap *next, *s = r->scraps; s; s = next) {
        next = s->next;
        free(s);
    }
    r->scraps = NULL;
    r->n = 0;
}

/* A policy: the path of a file below the top of the source tree, or the text of one. */
static policy load_policy(const char *text)
{
    char path[1024];
    policy p;
    trace_error error;
    if (strchr(text, ':')) {
        snprintf(path, sizeof path, "%s/policy.yaml", replay_top);
        FILE *f = fopen(path, "w");
        ck_assert_ptr_nonnull(f);
        fputs(text, f);
        ck_assert_int_eq(fclose(f), 0);
    } else {
        snprintf(path, sizeof path, "%s", test_source_path(text));
    }
    const int code = policy_load(&p, path, 0, &error);
    ck_assert_msg(code == 0, "%s", error.text);
    return p;
}

void replay_files(run *r, const char *text, char **files, int n, const replay_options *o)
{
    input in;
    const input_options none = {0};
    policy p = load_policy(text);
    char path[1024];
    memset(r, 0, sizeof *r);
    snprintf(path, sizeof path, "%s/stderr", replay_top);
    fflush(NULL);
    const int old = dup(2);
    ck_assert_ptr_nonnull(freopen(path, "w", stderr));
    r->code = input_open(&in, "replay", &none, files, n);
    if (!r->code)
        r->code = replay_run(&p, &in, o, keep_step, r, NULL, 0);
    input_close(&in);
    policy_clear(&p);
    fflush(stderr);
    dup2(old, 2);
    close(old);
    FILE *f = fopen(path, "r");
    r->error[fread(r->error, 1, sizeof r->error - 1, f)] = 0;
    fclose(f);
}

void replay_path(run *r, const char *text, const char *where, replay_weights w)
{
    char path[1024];
    char *files[1] = {path};
    const replay_options o = {.weights = w, .references = 1};
    snprintf(path, sizeof path, "%s", *where == '/' ? where : test_source_path(where));
    replay_files(r, text, files, 1, &o);
}

void replay_ok(run *r, const char *text, const char *where)
{
    replay_path(r, text, where, REPLAY_AUTO);
    ck_assert_msg(r->code == 0, "%s: exit %d: %s", where, r->code, r->error);
    ck_assert_msg(r->error[0] == 0, "%s: %s", where, r->error);
}

void refused(const char *text, const char *where, const char *what)
{
    run r;
    replay_path(&r, text, where, REPLAY_AUTO);
    const char *end = strchr(r.error, '\n');
    ck_assert_msg(r.code == 3 && strncmp(r.error, "mpsim: ", 7) == 0 && end && end[1] == 0, "%s: exit %d, error '%s'",
                  what, r.code, r.error);
    ck_assert_msg(strstr(r.error, what) != NULL, "'%s' is not in: %s", what, r.error);
    forget(&r);
}

const replay_cast *cast_of(const replay_step *s, const char *name)
{
    for (size_t i = 0; i < s->n_casts; i++)
        if (strcmp(s->casts[i].name, name) == 0)
            return &s->casts[i];
    return NULL;
}

const replay_weight *weight_of(const replay_step *s, const char *name)
{
    for (size_t i = 0; i < s->n_weights; i++)
        if (strcmp(s->weights[i].name, name) == 0)
            return &s->weights[i];
    return NULL;
}

sums sum_step(const replay_step *s)
{
    sums t = {0};
    for (size_t i = 0; i < s->n_weights; i++) {
        t.updates += s->weights[i].updates;
        t.lost += s->weights[i].lost;
        t.lost_model += s->weights[i].lost_model;
        t.compared += s->weights[i].compared;
        t.differ += s->weights[i].differ;
    }
    return t;
}

sums sum_run(const run *r)
{
    sums t = {0};
    for (size_t i = 0; i < r->n; i++) {
        const sums s = sum_step(&r->step[i]);
        t.updates += s.updates;
        t.lost += s.lost;
        t.lost_model += s.lost_model;
        t.compared += s.compared;
        t.differ += s.differ;
    }
    return t;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
    (void)st;
    (void)type;
    (void)ftw;
    return remove(path);
}

int replay_test_main(const char *suite, TCase *const *cases)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(replay_top, sizeof replay_top, "%s/mpsim-replay-XXXXXX", tmp && *tmp ? tmp : "/tmp");
    if (!mkdtemp(replay_top))
        return EXIT_FAILURE;
    const int code = test_main(suite, cases);
    nftw(replay_top, remove_one, 8, FTW_DEPTH | FTW_PHYS);
    return code;
}
