/* t-digests.c -- the digests of trainings, repeated on the CPU.
 *
 * tests/golden/train-NAME.digests are short runs of our own: they pin every bit of a training over
 * compilers, instruction sets and platforms. They prove nothing about correctness.
 * MPSIM_GOLDEN_UPDATE=1 rewrites them (explain it in NEWS.md), from the runs of gpu/runs, by the
 * generic loops; every instruction set is compared with them.
 *
 * data/gpu/NAME.digests are runs of real devices: the first steps always, all with
 * MPSIM_TEST_EXPENSIVE=1. Arguments are such files, too, from whatever machine: all their steps
 * are repeated. TAP of its own, so that missing files of devices are a SKIP. */
#include "support/support.h"

#include <train/digests.h>

#include <dirent.h>
#include <inttypes.h>
#include <mpsim/digest.h>
#include <mpsim/isa.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { WHY = 512, FIRST_STEPS = 3 };

static int tap_plan, failures;

static void ok(int passed, const char *name, const char *why)
{
    printf("%sok %d - %s\n", passed ? "" : "not ", ++tap_plan, name);
    if (!passed && why && *why)
        printf("# %s\n", why);
    failures += !passed;
}

static int complain(char *why, const char *what)
{
    snprintf(why, WHY, "%.500s", what);
    return -1;
}

/* ---- repeating a file ---- */

/* Steps are repeated up to `most`: 0, 1 if one differs, -1 if something is wrong with the file;
 * `why`. */
static int repeat_run(train_digest_file *d, const train_run *r, uint64_t most, uint64_t *tensors, char *why)
{
    char line[TRAIN_ERROR] = "";
    train_engine e;
    train_step_digests now = {0};
    train_step s;
    int code = 0;
    if (train_engine_cpu(&e, NULL))
        return complain(why, "no engine");
    e.digests = d->kind;
    train *t = train_open(r, &e, 0, line);
    for (uint64_t i = 0; t && !code && i < r->settings.steps && i < most; i++) {
        memset(&s, 0, sizeof s);
        if (train_next(t, &s, line) || train_digests_take(&now, t, &s, line))
            code = -1;
        else
            code = train_digest_file_compare(d, &now, why, WHY, line);
        *tensors += now.count;
        if (s.stopped)
            break;
    }
    if (!t || code < 0)
        code = complain(why, line);
    train_digests_free(&now);
    if (t)
        train_close(t);
    train_engine_close(&e);
    return code;
}

static uint64_t compared, tensors; /* by all of this program */

/* The run whose digests these are. */
static int run_of(const train_digest_file *d, train_run *r, char *line)
{
    FILE *f = fmemopen(d->run, strlen(d->run), "r");
    if (!f)
        return -1;
    const int code = train_run_read(r, f, line);
    fclose(f);
    return code;
}

static int repeat_file(FILE *f, uint64_t most, char *why)
{
    char line[TRAIN_ERROR] = "";
    train_digest_file d;
    train_run r = {0};
    int code = -1;
    *why = 0;
    if (train_digest_file_open(&d, f, line) || run_of(&d, &r, line)) {
        complain(why, line);
    } else {
        code = repeat_run(&d, &r, most, &tensors, why);
        compared += d.compared;
        if (!code && d.compared == 0)
            code = complain(why, "no steps");
    }
    train_run_clear(&r);
    train_digest_file_close(&d);
    return code;
}

static int repeat(const char *path, uint64_t most, char *why)
{
    FILE *f = fopen(path, "r");
    if (!f)
        return complain(why, "cannot be read");
    const int code = repeat_file(f, most, why);
    fclose(f);
    return code;
}

/* ---- our own runs ---- */

static const struct golden {
    const char *name, *run, *arch; /* arch: NULL: the run's */
    uint64_t steps;
    uint32_t batch, context; /* context: of transformers */
} goldens[] = {
    {"mlp-fp16", "mlp-fp16", NULL, 12, 32, 0}, /* eight overflows, then four steps */
    {"mlp-bf16", "mlp-bf16", NULL, 8, 32, 0},
    {"mlp-fp8", "mlp-fp8", NULL, 8, 32, 0},
    {"mlp-mxfp8", "mlp-mxfp8", NULL, 6, 32, 0},
    {"mlp-tf32", "mlp-tf32", NULL, 6, 32, 0},
    {"mlp-fp32", "mlp-fp32", NULL, 8, 32, 0},
    {"mlp-stochastic", "mlp-stochastic", NULL, 8, 32, 0},
    {"mlp-ampere", "mlp-masters", "ampere", 8, 32, 0},
    {"mlp-exact", "mlp-bf16", "exact", 5, 32, 0},
    {"cnn-bf16", "cnn-bf16", NULL, 3, 12, 0},
    {"cnn-fp8", "cnn-fp8", NULL, 3, 12, 0},
    {"cnn-sequential", "cnn-masters", "fp32-sequential", 3, 12, 0},
    {"gpt-fp32", "gpt-fp32", NULL, 2, 2, 12},
    {"gpt-tf32", "gpt-tf32", NULL, 2, 2, 12},
    {"gpt-bf16", "gpt-bf16", NULL, 2, 1, 20}, /* tiles of 16 and 4 */
    {"gpt-fp16", "gpt-fp16", NULL, 4, 2, 12},
    {"gpt-fp8", "gpt-fp8", NULL, 2, 2, 12},
    {"gpt-mxfp8", "gpt-mxfp8", NULL, 2, 1, 12}, /* two ranks */
};
enum { GOLDENS = sizeof goldens / sizeof *goldens };

static const char *golden_path(const struct golden *g)
{
    char path[96];
    snprintf(path, sizeof path, "tests/golden/train-%s.digests", g->name);
    return test_source_path(path);
}

static int read_run(const char *name, train_run *r, char *why)
{
    char path[96], line[TRAIN_ERROR];
    snprintf(path, sizeof path, "gpu/runs/%s.run", name);
    FILE *f = fopen(test_source_path(path), "r");
    if (!f)
        return complain(why, "a run that cannot be read");
    const int code = train_run_read(r, f, line);
    fclose(f);
    return code ? complain(why, line) : 0;
}

/* The run, made short. */
static int read_short(const struct golden *g, train_run *r, char *why)
{
    char line[TRAIN_ERROR];
    int code = read_run(g->run, r, why);
    r->settings.steps = g->steps;
    r->settings.batch = g->batch;
    if (g->arch)
        snprintf(r->settings.arch, sizeof r->settings.arch, "%s", g->arch);
    if (code || !g->context)
        return code;
    r->settings.decoder.context = g->context;
    return train_network(&r->settings, r->layers, line) ? 0 : complain(why, line);
}

/* Tensors of the first step, and of the last one unless they are many. */
static int write_steps(FILE *f, const train_run *r, int many, train_digest_kind kind, char *why)
{
    char line[TRAIN_ERROR] = "";
    train_engine e;
    train_step_digests now = {0};
    train_digest_writer w;
    train_step s;
    int code = train_engine_cpu(&e, NULL);
    e.digests = kind;
    train *t = code ? NULL : train_open(r, &e, 0, line);
    code = !t || train_digests_head(&w, f, r, e.digests);
    for (uint64_t i = 0; !code && i < r->settings.steps; i++) {
        memset(&s, 0, sizeof s);
        code = train_next(t, &s, line) || train_digests_take(&now, t, &s, line);
        if (!code)
            train_digests_write(&w, &now, i == 0 || (!many && i + 1 == r->settings.steps));
    }
    if (!code)
        train_digests_end(&w);
    train_digests_free(&now);
    if (t)
        train_close(t);
    train_engine_close(&e);
    return code || ferror(f) ? complain(why, line) : 0;
}

static int write_golden(const struct golden *g, char *why)
{
    train_run r = {0};
    int code = read_short(g, &r, why);
    FILE *f = code ? NULL : fopen(golden_path(g), "w");
    if (f) {
        code = write_steps(f, &r, g->context > 0, TRAIN_DIGEST_CODES, why);
        fclose(f);
    } else if (!code) {
        code = complain(why, "cannot be written");
    }
    train_run_clear(&r);
    return code;
}

static void update_goldens(void)
{
    char why[WHY] = "";
    int bad = mpsim_isa_use("scalar") != MPSIM_OK;
    for (int i = 0; i < GOLDENS && !bad; i++)
        bad = write_golden(&goldens[i], why);
    ok(!bad, "the digests of our own runs are written", why);
}

/* By the best instruction set one day in three, by the others more rarely. */
static void test_goldens(void)
{
    const char *best = mpsim_isa_active();
    for (size_t k = 0; mpsim_isa_at(k); k++)
        for (int i = 0; i < GOLDENS && test_isa_use((size_t)k); i++) {
            if (!(strcmp(mpsim_isa_active(), best) == 0 ? test_in_whole_part((uint64_t)i, 3)
                                                        : test_in_part(k + (size_t)i, 3)))
                continue;
            char name[128], why[WHY] = "";
            snprintf(name, sizeof name, "%s: the recorded digests by %s", goldens[i].name, mpsim_isa_active());
            ok(repeat(golden_path(&goldens[i]), UINT64_MAX, why) == 0, name, why);
        }
    for (size_t k = 0; mpsim_isa_at(k) && !test_isa_use((size_t)k); k++) /* the best one for what follows */
        ;
}

/* ---- lean trainings ---- */

/* After every step: what a checkpoint holds, and what the step says. */
typedef struct outcome {
    uint64_t digest;
    train_engine *e;
} outcome;

static int add_state(const train_item *x, void *context)
{
    outcome *o = context;
    uint64_t digest = 0;
    if (!x->state)
        return 0;
    if (o->e->ops->digest(o->e, x->tensor, &digest))
        return -1;
    o->digest = (o->digest ^ digest) * 0x100000001b3u;
    return 0;
}

static void add_bytes(outcome *o, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        o->digest = (o->digest ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
}

static int add_step(outcome *o, train *t, int first, char *line)
{
    train_step s;
    double loss = 0, accuracy;
    memset(&s, 0, sizeof s);
    if (train_next(t, &s, line) || (first && train_evaluate(t, &loss, &accuracy, line)) || train_visit(t, add_state, o))
        return -1;
    s.plan = NULL;
    s.cause = NULL;
    add_bytes(o, &s.loss, sizeof s.loss);
    add_bytes(o, &s.norm, sizeof s.norm);
    add_bytes(o, &s.next_scale, sizeof s.next_scale);
    add_bytes(o, &s.act, 3 * sizeof s.act);
    add_bytes(o, &s.updates, 2 * sizeof s.updates);
    add_bytes(o, &loss, sizeof loss);
    return s.stopped;
}

static int outcome_of(const train_run *r, int how, uint64_t *digest, char *line)
{
    train_engine e;
    if (train_engine_cpu(&e, NULL))
        return -1;
    outcome o = {.digest = 0xcbf29ce484222325u, .e = &e};
    train *t = train_open(r, &e, TRAIN_COUNT | how, line);
    int code = t ? 0 : -1;
    for (uint64_t i = 0; i < r->settings.steps && !code; i++)
        code = add_step(&o, t, i == 0, line);
    if (t)
        train_close(t);
    train_engine_close(&e);
    *digest = o.digest;
    return code;
}

static int compare_lean(const struct golden *g, uint32_t accumulate, char *why)
{
    char line[TRAIN_ERROR] = "";
    uint64_t whole = 0, lean = 1;
    train_run r = {0};
    int code = read_short(g, &r, why);
    if (g->context) {
        r.settings.decoder.accumulate = accumulate;
        r.settings.decoder.validation = 3;
    }
    if (!code && (outcome_of(&r, 0, &whole, line) || outcome_of(&r, TRAIN_LEAN, &lean, line)))
        code = complain(why, line);
    train_run_clear(&r);
    return code ? code : whole != lean ? complain(why, "another outcome") : 0;
}

static void test_lean(void)
{
    for (int i = 0; i < GOLDENS; i++) {
        char name[128], why[WHY] = "";
        if (!test_in_part((uint64_t)i + 1, 3))
            continue;
        snprintf(name, sizeof name, "%s: the same training where tensors take memory one after the other",
                 goldens[i].name);
        ok(compare_lean(&goldens[i], i % 2 ? 2 : 1, why) == 0, name, why);
    }
}

/* ---- the runs of gpu/runs ---- */

/* What each must be: a device trains it long enough, with Hopper's products, and it learns (of transformers
 * that is asked with MPSIM_TEST_EXPENSIVE=1: all their steps). */
static const struct trained {
    const char *net;
    uint64_t steps;
    float least, most, last; /* loss of the first step; of the last, 0: not asked */
} trained[] = {{"mlp", 500, 1, 4, 0}, {"cnn", 100, 1, 4, 0}, {"gpt", 200, 5, 6, 4}};

static int train_run_of(train *t, const struct trained *want, uint64_t steps, char *line)
{
    train_step s = {0};
    if (train_next(t, &s, line) || !(s.loss > want->least) || !(s.loss < want->most))
        return -1;
    for (uint64_t i = 1; i < steps; i++)
        if (train_next(t, &s, line))
            return -1;
    return steps > 1 && !(s.loss < want->last) ? -1 : 0;
}

static int check_run(const char *name, char *why)
{
    const struct trained *want = trained;
    char line[TRAIN_ERROR] = "";
    train_run r = {0};
    train_engine e = {0};
    int code = read_run(name, &r, why);
    while (want < trained + 2 && strncmp(name, want->net, 3) != 0)
        want++;
    if (!code && (strcmp(want->net, r.settings.net) != 0 || strcmp(r.settings.arch, "hopper") != 0 ||
                  r.settings.steps < want->steps))
        code = complain(why, "another network or architecture, or too few steps");
    if (!code && train_engine_cpu(&e, NULL) == 0) {
        train *t = train_open(&r, &e, 0, line);
        if (!t || train_run_of(t, want, want->last > 0 && test_expensive() ? r.settings.steps : 1, line))
            code = complain(why, line[0] ? line : "the losses of another network");
        if (t)
            train_close(t);
    }
    train_engine_close(&e);
    train_run_clear(&r);
    return code;
}

static void test_runs(void)
{
    char line[1024], why[WHY] = "";
    int n = 0, bad = 0;
    FILE *f = fopen(test_source_path("gpu/runs/list"), "r");
    while (f && !bad && fgets(line, sizeof line, f)) {
        line[strcspn(line, " \n")] = 0;
        bad = test_in_part((uint64_t)n, 1) && check_run(line, why);
        n++;
    }
    if (f)
        fclose(f);
    if (bad)
        printf("# %s\n", line);
    ok(!bad && n == 22, "the runs for devices: the CPU begins each of this part", why);
}

/* ---- the reader finds what is wrong ---- */

static char *read_text(const char *path)
{
    enum { MOST = 1 << 20 };
    FILE *f = fopen(path, "r");
    char *text = calloc(MOST, 1);
    if (f && text)
        text[fread(text, 1, MOST - 1, f)] = 0;
    if (f)
        fclose(f);
    return text;
}

/* ended: with the last line that is due instead of its own. */
static int repeat_text(const char *text, int ended, char *why)
{
    const char *end = ended ? strstr(text, "# end ") : NULL;
    const size_t n = end ? (size_t)(end - text) : strlen(text);
    FILE *f = tmpfile();
    int code = complain(why, "no temporary file");
    if (f && fwrite(text, 1, n, f) == n) {
        if (ended)
            fprintf(f, "# end %016" PRIx64 "\n", mpsim_digest_bytes(text, n, 0));
        rewind(f);
        code = repeat_file(f, UINT64_MAX, why);
    }
    if (f)
        fclose(f);
    return code;
}

/* Digits of digests all over the file, each changed alone, in turns: the step is named, and the tensor. */
static void test_changed(void)
{
    char why[WHY] = "", missed[WHY] = "";
    char *text = read_text(golden_path(&goldens[5])); /* the cheapest */
    int all = 0, tried = 0, found = 0;
    char *p = text ? strstr(text, "\n1 ") : NULL;
    for (p = p ? p + 3 : NULL; p && *p; p++) {
        char *begin = p, saved;
        while (begin > text && begin[-1] != '\n')
            begin--;
        const char *last = strchr(begin, '\n');
        if (!last || *begin == '#' || p < last - 16 || p >= last || (p - text) % 67)
            continue; /* in the digest that ends the line */
        if (!test_in_part((uint64_t)all++, 1))
            continue;
        saved = *p;
        *p = saved == '0' ? '1' : '0';
        tried++;
        const int code = repeat_text(text, 1, why);
        if (code == 1 && strncmp(why, "step ", 5) == 0 && (*begin != ' ' || strstr(why, ", tensor ") != NULL))
            found++;
        else if (!missed[0])
            snprintf(missed, sizeof missed, "%d: %.60s: %.300s", code, begin, why);
        *p = saved;
    }
    printf("# %d of %d changes tried\n", tried, all);
    ok(all > 20 && tried > 0 && found == tried, "every changed digest is found, and named", missed);
    free(text);
}

static void test_refused(void)
{
    static const struct {
        const char *head, *body; /* head: "": body alone, "e": and its end, "h": that of a golden file, body, end */
        int code;
        const char *says;
    } rows[] = {
        {"", "", -1, "line 1: not a file of digests"},
        {"", "# mpsim-train-digests/4\n", -1, "line 1: not a file of digests"},
        {"", "# mpsim-train-digests/3\n", -1, "cut off"},
        {"", "# mpsim-train-digests/2\n", -1, "cut off"},
        {"e", "# mpsim-train-digests/2\n1 40135c29 00f1e2d3c4b5a697\n", -1, "no lines '# run"},
        {"e", "# mpsim-train-digests/2\n# run mpsim-run/1\n# run net mlp\n", -1, "too early"},
        {"h", "", -1, "no steps"},
        {"h", "1 40135c29\n", -1, "not 'STEP LOSS DIGEST'"},
        {"h", "1 40135c29 00f1e2d3c4b5a69\n", -1, "not 'STEP LOSS DIGEST'"},
        {"h", "1 40135c29 00f1e2d3c4b5a6977\n", -1, "not 'STEP LOSS DIGEST'"},
        {"h", "1 40135C29 00f1e2d3c4b5a697\n", -1, "not 'STEP LOSS DIGEST'"},
        {"h", "x 40135c29 00f1e2d3c4b5a697\n", -1, "not 'STEP LOSS DIGEST'"},
        {"h", "99999999999999999999999 40135c29 00f1e2d3c4b5a697\n", -1, "not 'STEP LOSS DIGEST'"},
        {"h", "1 00000000 0000000000000000\n", 1, "step 1: loss "},
        {"h", "1 00000000 0000000000000000\n  act:fc1\n", -1, "not '  TENSOR DIGEST'"},
        {"h", "1 00000000 0000000000000000\n act:fc1 0000000000000000\n", -1, "not '  TENSOR DIGEST'"},
        {"h", "1 00000000 0000000000000000\n  other 0000000000000000\n", 1, "there it is other"},
        {"h", "3 00000000 0000000000000000\n", 1, "step 3: loss "},
        {"h", "2 00000000 0000000000000000\n2 00000000 0000000000000000\n", -1, "step 2 after step 2"},
        {"h", "3 00000000 0000000000000000\n2 00000000 0000000000000000\n", -1, "step 2 after step 3"},
        {"h", "0 00000000 0000000000000000\n", -1, "step 0 after step 0"},
        {"h", "  act:fc1 0000000000000000\n", -1, "before the first step"},
    };
    char *text = read_text(golden_path(&goldens[5])), *head = text ? strstr(text, "\n1 ") : NULL;
    char all[1 << 14], why[WHY] = "";
    int bad = !head;
    if (head)
        head[1] = 0;
    for (size_t i = 0; head && i < sizeof rows / sizeof *rows; i++) {
        snprintf(all, sizeof all, "%s%s", rows[i].head[0] == 'h' ? text : "", rows[i].body);
        const int code = repeat_text(all, rows[i].head[0], why);
        if (code == rows[i].code && strstr(why, rows[i].says))
            continue;
        bad = 1;
        printf("# row %zu: %d, %s\n", i, code, why);
    }
    ok(!bad, "what is no file of digests is refused, with its line", NULL);
    free(text);
}

/* A file of digests by blocks, whose first line says so, is repeated as one of codes is. */
static void test_blocks(void)
{
    char why[WHY] = "", line[64] = "";
    train_run r = {0};
    FILE *f = tmpfile();
    int code = !f || read_short(&goldens[5], &r, why);
    r.settings.steps = 3;
    code = code || write_steps(f, &r, 0, TRAIN_DIGEST_BLOCKS, why);
    if (!code) {
        rewind(f);
        code = !fgets(line, sizeof line, f) || strcmp(line, "# mpsim-train-digests/3\n") != 0;
        rewind(f);
    }
    ok(!code && repeat_file(f, UINT64_MAX, why) == 0, "digests by blocks are repeated", why);
    train_run_clear(&r);
    if (f)
        fclose(f);
}

/* ---- the file has a digest of its own ---- */

/* What is read as text is refused at once, before a step is repeated. */
static int refused_at_once(const char *bytes, size_t n, char *why)
{
    train_digest_file d;
    FILE *f = tmpfile();
    if (!f || fwrite(bytes, 1, n, f) != n)
        return complain(why, "no temporary file") == 0;
    rewind(f);
    const int code = train_digest_file_open(&d, f, why);
    train_digest_file_close(&d);
    fclose(f);
    return code < 0 && strncmp(why, "line ", 5) == 0;
}

/* `bytes` without its k-th line, with it twice, and with the next one before it: 0, 1, 2. */
static size_t edit_line(char *to, const char *bytes, size_t n, size_t k, int edit)
{
    const char *line = bytes, *end = bytes + n;
    for (; k; k--)
        line = strchr(line, '\n') + 1;
    const char *next = strchr(line, '\n') + 1, *after = next < end ? strchr(next, '\n') + 1 : next;
    const char *const parts[][5] = {
        {bytes, line, next, end, NULL}, {bytes, next, line, end, NULL}, {bytes, line, next, after, line}};
    const char *const *p = parts[edit];
    char *at = to;
    at = (char *)memcpy(at, p[0], (size_t)(p[1] - p[0])) + (p[1] - p[0]);
    at = (char *)memcpy(at, p[2], (size_t)(p[3] - p[2])) + (p[3] - p[2]);
    if (p[4]) {
        at = (char *)memcpy(at, line, (size_t)(next - line)) + (next - line);
        at = (char *)memcpy(at, after, (size_t)(end - after)) + (end - after);
    }
    return (size_t)(at - to);
}

/* Lines of the file that are missing, doubled, swapped. */
static int edited_lines_pass(const char *bytes, size_t n, size_t lines, char *missed)
{
    static char edited[1 << 16];
    char why[WHY];
    int passed = 0;
    for (size_t k = 0; k < lines; k++)
        for (int edit = 0; edit < 3; edit++) {
            const size_t m = edit_line(edited, bytes, n, k, edit);
            if (m == n && memcmp(edited, bytes, n) == 0)
                continue; /* two equal lines, or the last one swapped with none */
            if (!refused_at_once(edited, m, why)) {
                snprintf(missed, WHY, "line %zu, edit %d", k + 1, edit);
                passed++;
            }
        }
    return passed;
}

static void test_own_digest(void)
{
    static char bytes[1 << 15];
    char why[WHY] = "", missed[WHY] = "";
    train_run r = {0};
    size_t n = 0, lines = 0, flips = 0, positions = 0, passed = 0;
    FILE *f = tmpfile();
    int bad = !f || read_run("mlp-fp32", &r, why);
    r.settings.steps = 3;
    r.settings.batch = 16;
    if (!bad && !(bad = write_steps(f, &r, 0, TRAIN_DIGEST_CODES, why))) {
        rewind(f);
        n = fread(bytes, 1, sizeof bytes - 1, f);
        rewind(f);
        bad = repeat_file(f, UINT64_MAX, why);
    }
    ok(!bad && n > 0 && n < sizeof bytes - 1, "what is written is read", why);
    for (size_t i = 0; i < n; i++)
        lines += bytes[i] == '\n';
    for (size_t at = 0; at < n; at += 1 + n / 400, positions++)
        for (int bit = 0; bit < 8; bit++, flips++) {
            bytes[at] ^= (char)(1 << bit);
            if (!refused_at_once(bytes, n, why) && !passed++)
                snprintf(missed, sizeof missed, "bit %d of byte %zu", bit, at);
            bytes[at] ^= (char)(1 << bit);
        }
    printf("# %zu positions, %zu flips, %zu taken\n", positions, flips, passed);
    ok(positions > 200 && passed == 0, "a flipped bit is found", missed);
    passed = 0;
    for (size_t i = 0; i < n; i += 1 + n / 100)
        passed += !refused_at_once(bytes, i, why);
    passed += !refused_at_once(bytes, n - 1, why);
    strcpy(bytes + n, "\n");
    passed += !refused_at_once(bytes, n + 1, why);
    ok(passed == 0, "a file that is cut off or goes on is found", NULL);
    ok(edited_lines_pass(bytes, n, lines, missed) == 0, "missing, doubled, swapped lines are found", missed);
    if (f)
        fclose(f);
    train_run_clear(&r);
}

/* ---- devices ---- */

/* The file's "# device" line: "" without one. */
static void device_of(const char *path, char *device, size_t size)
{
    char line[1024];
    FILE *f = fopen(path, "r");
    *device = 0;
    while (f && fgets(line, sizeof line, f) && line[0] == '#')
        if (strncmp(line, "# device ", 9) == 0)
            snprintf(device, size, "%.*s", (int)strcspn(line + 9, "\n"), line + 9);
    if (f)
        fclose(f);
}

static void test_devices(void)
{
    const char *folder = test_source_path("data/gpu");
    char path[4096], name[512], device[256], why[WHY];
    DIR *d = opendir(folder);
    int found = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        const size_t n = strlen(e->d_name);
        if (n < 8 || strcmp(e->d_name + n - 8, ".digests") != 0)
            continue;
        found++;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        device_of(path, device, sizeof device);
        snprintf(name, sizeof name, "%s names its device", e->d_name);
        ok(device[0] && !strstr(device, "CPU"), name, device);
        snprintf(name, sizeof name, "the CPU repeats %s", e->d_name);
        if (test_in_part((uint64_t)found, 3))
            ok(repeat(path, test_expensive() ? UINT64_MAX : FIRST_STEPS, why) == 0, name, why);
    }
    if (d)
        closedir(d);
    if (!found)
        printf("ok %d - digests of devices # SKIP no device has recorded digests yet\n", ++tap_plan);
}

int main(int argc, char **argv)
{
    const char *update = getenv("MPSIM_GOLDEN_UPDATE");
    for (int i = 1; i < argc; i++) {
        char why[WHY] = "";
        ok(repeat(argv[i], UINT64_MAX, why) == 0, argv[i], why);
    }
    if (argc == 1) {
        if (update && strcmp(update, "1") == 0)
            update_goldens();
        test_goldens();
        test_lean();
        test_runs();
        test_changed();
        test_refused();
        test_blocks();
        test_own_digest();
        test_devices();
    }
    printf("# %" PRIu64 " steps, %" PRIu64 " tensors\n1..%d\n", compared, tensors, tap_plan);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
