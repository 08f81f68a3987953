/* t-conventions.c -- names of other programs: what each means, and what nobody may take for what it is not. The tables
 * hold files: "@ PATH [KEY=VALUE...]", then a line for each tensor: name, shape, kind, fqn ("-": no kind; the last word of
 * a line may be "missed": the truth is known, and that it is not found is accepted; finding another is not). */
#include "sim/trace/namemap.h"
#include "support/badfile.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FIELDS = 400, LINES = 1000 };

typedef struct row {
    char *name, *shape, *kind, *fqn;
    int missed, line;
} row;

typedef struct file {
    char *path;
    char *metadata[FIELDS];
    size_t n_metadata;
    row rows[LINES];
    size_t n;
    int line;
} file;

static size_t checked, recognised, missed;

/* ---- a file ---- */

static uint64_t elements(const char *shape)
{
    uint64_t n = 1;
    for (const char *p = shape; *p >= '0' && *p <= '9'; p += *p == 'x') {
        char *end;
        n *= strtoull(p, &end, 10);
        p = end;
    }
    return n;
}

static void make_folders(const char *path)
{
    char folder[2000];
    for (const char *p = strchr(path, '/'); p; p = strchr(p + 1, '/')) {
        snprintf(folder, sizeof folder, "%.*s", (int)(p - path), path);
        mkdir(bad_path(folder), 0700);
    }
}

/* "4x2:U8": the dtype, F32 where none is said, and its bytes. */
static const char *dtype_of(const char *shape)
{
    const char *colon = strchr(shape, ':');
    return colon ? colon + 1 : "F32";
}

static uint64_t bytes_of(const char *shape)
{
    const char *bits = dtype_of(shape) + strcspn(dtype_of(shape), "0123456789");
    return *bits ? (uint64_t)atoi(bits) / 8 : 1;
}

/* A safetensors file of zeros, whatever its name says: what is in it is told by its content. */
static const char *write_file(const file *f)
{
    blob header = {0};
    uint64_t at = 0;
    blob_text(&header, "{\"__metadata__\":{");
    for (size_t i = 0; i < f->n_metadata; i++) {
        const char *equal = strchr(f->metadata[i], '=');
        blob_text(&header, "%s\"%.*s\":\"%s\"", i ? "," : "", (int)(equal - f->metadata[i]), f->metadata[i], equal + 1);
    }
    blob_text(&header, "}");
    for (size_t i = 0; i < f->n; i++) {
        const uint64_t bytes = bytes_of(f->rows[i].shape) * elements(f->rows[i].shape);
        blob_text(&header, ",\"%s\":{\"dtype\":\"%s\",\"shape\":[", f->rows[i].name, dtype_of(f->rows[i].shape));
        for (const char *p = f->rows[i].shape; *p && *p != '(' && *p != ':'; p++)
            blob_text(&header, "%c", *p == 'x' ? ',' : *p);
        blob_text(&header, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at, (unsigned long long)(at + bytes));
        at += bytes;
    }
    blob_text(&header, "}");
    blob all = {0};
    blob_int(&all, header.n, 8);
    blob_add(&all, header.data, header.n);
    const uint64_t size = all.n + at;
    blob_clear(&header);
    make_folders(f->path);
    const char *path = bad_write(f->path, &all);
    ck_assert(truncate(path, (off_t)size) == 0);
    return path;
}

static const trace_tensor *find(const trace *t, const char *name)
{
    for (size_t i = 0; i < trace_count(t); i++)
        if (strcmp(trace_at(t, i)->name, name) == 0)
            return trace_at(t, i);
    return NULL;
}

static void check_row(const trace *t, const row *r, const char *table)
{
    const trace_tensor *x = find(t, r->name);
    ck_assert_msg(x != NULL, "%s:%d: no tensor", table, r->line);
    checked++;
    if (r->missed && !x->kind) {
        missed++;
        return;
    }
    const char *kind = x->kind ? x->kind : "-", *fqn = x->kind ? x->fqn : "";
    recognised += x->kind != NULL;
    ck_assert_msg(strcmp(kind, r->kind) == 0 && strcmp(fqn, r->fqn) == 0, "%s:%d: %s is %s %s, expected %s %s", table,
                  r->line, r->name, kind, fqn, r->kind, r->fqn);
    ck_assert_msg(x->kind || strcmp(x->fqn, x->name) == 0, "%s:%d: fqn without a kind", table, r->line);
}

/* Where a model says how many parameters it has, its weights have as many elements. */
static void check_parameters(const trace *t, const file *f, const char *table)
{
    const char *said = trace_metadata(t, "parameters");
    uint64_t n = 0;
    for (size_t i = 0; i < trace_count(t); i++)
        n += trace_at(t, i)->kind && strcmp(trace_at(t, i)->kind, "weight") == 0 ? trace_at(t, i)->count : 0;
    ck_assert_msg(!said || strtoull(said, NULL, 10) == n,
                  "%s:%d: %llu elements of weights, the model has %s parameters", table, f->line, (unsigned long long)n,
                  said);
}

static void check_file(file *f, const char *table)
{
    trace_error e;
    const trace_options as_stored = {.quantised = "parts"};
    if (!f->path)
        return;
    trace *t = trace_open(write_file(f), &as_stored, &e);
    ck_assert_msg(t != NULL, "%s:%d: %s", table, f->line, t ? "" : e.text);
    ck_assert_msg(!trace_clash(t), "%s:%d: %s", table, f->line, trace_clash(t));
    for (size_t i = 0; i < f->n; i++)
        check_row(t, &f->rows[i], table);
    check_parameters(t, f, table);
    trace_close(t);
    unlink(bad_path(f->path));
}

static size_t split(char *line, char **fields)
{
    size_t n = 0;
    for (char *p = line; n < FIELDS; p++) {
        fields[n++] = p;
        p = strpbrk(p, "\t\n");
        if (!p)
            break;
        const int end = *p == '\n';
        *p = '\0';
        if (end)
            break;
    }
    return n;
}

static void check_table(const char *name)
{
    static file f;
    char path[1000], *line = NULL, *lines[2 * LINES];
    size_t room = 0, n_lines = 0;
    const char *source = getenv("MPSIM_SRCDIR");
    snprintf(path, sizeof path, "%s/tests/trace/%s", source ? source : ".", name);
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "%s", path);
    memset(&f, 0, sizeof f);
    for (int number = 1; getline(&line, &room, in) > 0; number++) {
        char *fields[FIELDS];
        if (line[0] == '#' || line[0] == '\n')
            continue;
        char *kept = strdup(line);
        const size_t n = split(kept, fields);
        if (strcmp(fields[0], "@") == 0) {
            check_file(&f, name);
            while (n_lines)
                free(lines[--n_lines]);
            f = (file){.path = fields[1], .line = number, .n_metadata = n - 2};
            memcpy(f.metadata, fields + 2, (n - 2) * sizeof *fields);
        } else {
            ck_assert_msg(n >= 3 && f.n < LINES, "%s:%d: a line of %zu fields", name, number, n);
            char *const fqn = strcmp(fields[2], "-") == 0 ? fields[2] + 1 : fields[3]; /* "" where there is no kind */
            const int accepted = n > 4 && strcmp(fields[4], "missed") == 0;
            f.rows[f.n++] = (row){fields[0], fields[1], fields[2], fqn, accepted, number};
        }
        lines[n_lines++] = kept;
    }
    check_file(&f, name);
    while (n_lines)
        free(lines[--n_lines]);
    free(line);
    fclose(in);
}

CASE("conventions", 60);

TEST(names_mean_what_sources_say)
{
    check_table("conventions.tsv");
    printf("# %zu names, %zu with a kind\n", checked, recognised);
}

TEST(names_mean_what_frameworks_say)
{
    checked = recognised = missed = 0;
    check_table("conventions-recorded.tsv");
    printf("# %zu names, %zu with a kind, %zu parameters that are not known as such\n", checked, recognised, missed);
    ck_assert_uint_lt(missed * 20, checked);
}

TEST(bug_20261123_all_parameters_of_a_model_are_weights)
{
    checked = recognised = missed = 0;
    check_table("models.tsv");
    printf("# %zu names of models, %zu of parameters\n", checked, recognised);
    ck_assert_uint_gt(checked, 2000);
}

/* ---- two that would be the same ---- */

static trace *open_names(const char *const *names, size_t n, const trace_options *o, trace_error *e)
{
    blob b = {0};
    char header[4000] = "{";
    for (size_t i = 0; i < n; i++)
        snprintf(header + strlen(header), sizeof header - strlen(header),
                 "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[%zu,%zu]}", i ? "," : "", names[i], 8 * i,
                 8 * i + 8);
    strcat(header, "}");
    b = bad_safetensors(header, 8 * n);
    return trace_open(bad_write("x.safetensors", &b), o, e);
}

TEST(clashes_are_told_and_not_followed)
{
    static const char *const names[] = {"model/fc.weight", "state_dict/fc.weight", "model/fc.bias", "grads/fc.bias"};
    trace_error e;
    trace *t = open_names(names, 4, NULL, &e);
    ck_assert(t && trace_clash(t));
    ck_assert_str_eq(trace_clash(t), "'model/fc.weight' and 'state_dict/fc.weight' would both be weight:fc.weight");
    ck_assert(!find(t, names[0])->kind && !find(t, names[1])->kind);
    ck_assert_str_eq(find(t, names[1])->fqn, names[1]);
    ck_assert_str_eq(find(t, names[2])->kind, "weight");
    ck_assert_str_eq(trace_convention(t), "PyTorch checkpoint, gradients");
    trace_close(t);

    namemap *m = trace_namemap_new("--map");
    char why[200];
    ck_assert(m && trace_namemap_add(m, "state_dict/(.*)=none", 20, why) == 0);
    const trace_options o = {.map = m};
    t = open_names(names, 4, &o, &e);
    ck_assert(t && !trace_clash(t) && !find(t, names[1])->kind);
    ck_assert_str_eq(find(t, names[0])->kind, "weight");
    ck_assert_str_eq(trace_convention(t), "--map, PyTorch checkpoint, gradients");
    trace_close(t);
    ck_assert(trace_namemap_add(m, "(model|grads)/(.*)=agrad:\\2", 27, why) == 0);
    ck_assert(!open_names(names, 4, &o, &e) && e.exit == 3);
    ck_assert_msg(strstr(e.text, "--map: 'model/fc.bias' and 'grads/fc.bias' would both be agrad:fc.bias"), "%s",
                  e.text);
    trace_namemap_free(m);
}

/* ---- rules ---- */

TEST(rules_take_whole_names)
{
    static const char *const rules[] = {"grad/(.*)=wgrad:\\1",
                                        "a|bc=act:x",
                                        "(x)?(y)z=out:\\2\\1",
                                        "[]a]+=none",
                                        "[[:alpha:]]+_(m|v)=opt.m:\\1",
                                        "a=b=weight:w",
                                        "(a)(b)(c)(d)(e)(f)(g)(h)(i)=out:\\9\\1"};
    static const struct {
        const char *name, *kind, *fqn; /* kind "": no rule */
    } rows[] = {{"grad/fc.weight", "wgrad", "fc.weight"},
                {"xgrad/fc", "", NULL},
                {"a", "act", "x"},
                {"bc", "act", "x"},
                {"abc", "", NULL},
                {"ac", "", NULL},
                {"xyz", "out", "yx"},
                {"yz", "out", "y"},
                {"]a", NULL, "]a"},
                {"b_m", "opt.m", "m"},
                {"1_m", "", NULL},
                {"a=b", "weight", "w"},
                {"abcdefghi", "out", "ia"},
                {"grad/", "wgrad", ""}};
    namemap *m = trace_namemap_new("here");
    char why[200];
    trace_error e;
    trace *t = open_names(rules, 0, NULL, &e);
    for (size_t i = 0; i < sizeof rules / sizeof rules[0]; i++)
        ck_assert_msg(trace_namemap_add(m, rules[i], strlen(rules[i]), why) == 0, "%s: %s", rules[i], why);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const char *kind = "", *fqn = NULL;
        const int found = trace_namemap_find(m, t, rows[i].name, &kind, &fqn);
        const int expected = !rows[i].kind || *rows[i].kind;
        ck_assert_msg(found == expected, "%s: %d", rows[i].name, found);
        if (!found)
            continue;
        ck_assert_msg(kind == rows[i].kind || strcmp(kind, rows[i].kind) == 0, "%s: %s", rows[i].name, kind);
        ck_assert_str_eq(fqn, rows[i].fqn);
    }
    trace_close(t);
    trace_namemap_free(m);
}

TEST(bad_rules_are_told_with_their_place)
{
    static const char *const rows[][2] = {
        {"", "at 1: expected REGEX=KIND:NAME"},
        {"grad", "at 5: expected"},
        {"=wgrad:x", "at 1: expected"},
        {"a=wgrad", "at 8: ':' and a name are missing"},
        {"a=grad:x", "at 3: not one of weight"},
        {"a=:x", "at 3: not one of"},
        {"a=", "at 3: not one of"},
        {"a=none:x", "at 3: not one of"},
        {"a=wgrad:", "at 9: an empty name"},
        {"a=wgrad:\\1", "at 9: so many parentheses"},
        {"(a)=wgrad:x\\2", "at 12: so many"},
        {"(a)=wgrad:\\x", "at 11: after a backslash stands 1 to 9"},
        {"(a)=wgrad:\\", "at 11: after a backslash"},
        {"(a=wgrad:x", "at 1: a parenthesis that is not closed"},
        {"b(a(c)=wgrad:x", "at 2: a parenthesis that is not closed"},
        {"a)=wgrad:x", "at 2: a parenthesis that is not opened"},
        {"a)|(b=wgrad:x", "at 2: a parenthesis that is not opened"},
        {"[a=wgrad:x", "at 1: a bracket"},
        {"x[=wgrad:x", "at 2: a bracket"},
        {"(a)\\1=wgrad:x", "at 4: no back references"},
        {"a{1000}=wgrad:x", "at 2: no braces"},
        {"(a*)*=wgrad:x", "at 5: a group that repeats or chooses"},
        {"((a|b)c)+=wgrad:x", "at 9: a group that repeats"},
        {"a\\=wgrad:x", "at 2: a backslash at the end"},
        {"a++=wgrad:x", "at 3: repeated twice"},
        {"(a)?*b=wgrad:x", "at 5: repeated twice"},
        {"*a=wgrad:x", NULL}, /* regcomp's to say */
    };
    namemap *m = trace_namemap_new("here");
    char why[200], longest[NAMEMAP_LONGEST + 40];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const int bad = trace_namemap_add(m, rows[i][0], strlen(rows[i][0]), why);
        ck_assert_msg(!rows[i][1] || (bad && strncmp(why, rows[i][1], strlen(rows[i][1])) == 0), "%s: %s", rows[i][0],
                      bad ? why : "accepted");
    }
    memset(longest, '(', sizeof longest);
    memcpy(longest + NAMEMAP_LONGEST - 5, "=none", 5);
    ck_assert(trace_namemap_add(m, longest, NAMEMAP_LONGEST, why) && strstr(why, "nested too deep"));
    memset(longest, 'a', sizeof longest);
    ck_assert(trace_namemap_add(m, longest, sizeof longest, why) && strstr(why, "longer than"));
    while (trace_namemap_count(m) < NAMEMAP_RULES)
        ck_assert(trace_namemap_add(m, "a=none", 6, why) == 0);
    ck_assert(trace_namemap_add(m, "a=none", 6, why) && strstr(why, "more than 200 rules"));
    trace_namemap_free(m);
}

/* ---- limits ---- */

/* Many names of the most tedious kind, and one that is as long as any. */
TEST(long_and_many_names_end)
{
    enum { MANY = 20000, LONG = 60000 };
    blob h = {0};
    blob_text(&h, "{\"");
    for (int i = 0; i < LONG / 2; i++)
        blob_text(&h, "._");
    blob_text(&h, "weight.grad\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}");
    for (int i = 0; i < MANY; i++)
        blob_text(
            &h,
            ",\"optimizer/state/%d_orig_mod._fsdp_wrapped_module./exp_avg.grad.grad_grad/vars/kernel%d\":{\"dtype\":"
            "\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}",
            i, i);
    blob_text(&h, "}");
    blob all = {0};
    blob_int(&all, h.n, 8);
    blob_add(&all, h.data, h.n);
    blob_clear(&h);
    bad_within_limits("names", bad_read_ok, bad_write("many.safetensors", &all), 16);
}

TEST_MAIN_BY(bad_main, "conventions");
