/* t-names.c -- text that is safe to print, error lines, kinds and steps, trees of files. */
#include "support/badfile.h"
#include "support/support.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ONE "{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}"

static blob good(void)
{
    blob b = bad_safetensors(ONE, 0);
    blob_int(&b, bits_of_f32(1.5f), 4);
    blob_int(&b, bits_of_f32(-2), 4);
    return b;
}

CASE("names", 60);

TEST(text_is_escaped)
{
    static const char *const rows[][2] = {
        {"", ""},
        {"plain text, \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80", "plain text, \xc3\xa4\xe2\x82\xac\xf0\x9f\x98\x80"},
        {"a\nb\tc", "a\\nb\\tc"},
        {"\033[31m\r\x7f\1", "\\x1b[31m\\x0d\\x7f\\x01"},
        {"\xff\xfe", "\\xff\\xfe"},
        {"\xc3", "\\xc3"},
        {"\xc3(", "\\xc3("},
        {"\xc0\xaf", "\\xc0\\xaf"},
        {"\xe0\x80\x80", "\\xe0\\x80\\x80"},
        {"\xed\xa0\x80", "\\xed\\xa0\\x80"},
        {"\xf4\x90\x80\x80", "\\xf4\\x90\\x80\\x80"},
        {"\xf5", "\\xf5"},
        {"\xc2\x85", "\\u{0085}"},
        {"\xe2\x80\xae"
         "abc",
         "\\u{202e}abc"},
        {"\xe2\x80\xaa\xe2\x81\xa9\xe2\x80\x8e\xef\xbb\xbf", "\\u{202a}\\u{2069}\\u{200e}\\u{feff}"},
        {"\xf3\xa0\x80\xa0\xee\x80\x80", "\\u{e0020}\\u{e000}"}, /* a tag, private use */
        {"\\x1b", "\\x1b"},                                      /* once more does nothing */
        {"\xe2\x81\xa6\xd8\x9c\xe2\x80\xa8", "\\u{2066}\\u{061c}\\u{2028}"},
    };
    char out[100];
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        ck_assert_str_eq(escape_text(out, sizeof out, rows[i][0]), rows[i][1]);
    ck_assert_str_eq(escape_text(out, 8, "abcdefg"), "abcdefg");
    ck_assert_str_eq(escape_text(out, 8, "abcdefgh"), "abcd...");
    ck_assert_str_eq(escape_text(out, 8, "abc\xe2\x82\xac\xe2\x82\xac"), "abc...");
    ck_assert_str_eq(escape_text(out, 8, "\n\n\n\n\n"), "\\n\\n...");
    ck_assert_str_eq(escape_text(out, 1, "abc"), "");
    out[0] = 'x';
    escape_text(out, 0, "abc");
    ck_assert_int_eq(out[0], 'x');
    for (size_t n = 1; n < 12; n++) /* always terminated, never a piece of an escape */
        ck_assert_uint_lt(strlen(escape_text(out, n, "\033\033\033\033")), n);
}

TEST(messages_have_a_form)
{
    trace_error e;
    char path[3000];
    ck_assert_int_eq(trace_error_set(&e, 3, "a\nb", 7, "bad %s %d", "\033x", 5), -1);
    ck_assert_str_eq(e.text, "a\\nb: offset 7: bad \\x1bx 5");
    ck_assert_int_eq(e.exit, 3);
    trace_error_set(&e, 4, "f", UINT64_MAX, "why");
    ck_assert_str_eq(e.text, "f: why");
    ck_assert_int_eq(trace_error_set(NULL, 4, "f", 0, "why"), -1);
    for (size_t n = 0; n < sizeof path - 1; n++)
        path[n] = n % 2 ? '\033' : 'p';
    path[sizeof path - 1] = 0;
    strcpy(path + sizeof path - 5, ".npy");
    trace_error_set(&e, 3, path, 7, "the message %s", path);
    ck_assert(strlen(e.text) < sizeof e.text && strstr(e.text, ": offset 7: the message p\\x1bp"));
}

TEST(kinds_and_steps)
{
    static const struct {
        const char *path;
        int64_t step;
    } rows[] = {
        {"step_12", 12},
        {"step-12", 12},
        {"step12", 12},
        {"Step_0012", 12},
        {"iter_7", 7},
        {"rank0_iter000007", 7},
        {"x", -1},
        {"step", -1},
        {"step_", -1},
        {"step_x", -1},
        {"step_1x", -1},
        {"step_3.safetensors", 3},
        {"step_3.tar.npy", 3},
        {"globalstep9", 9},
        {"step_99999999999999999999", -1},
        {"step_9223372036854775807", INT64_MAX},
        {"12", -1},
        {"step1_step_2", 2},
        {"step_2x_step1.x", 1},
        {"iteration_5", -1},
    };
    static const struct {
        const char *name, *kind;
    } kinds[] = {{"wgrad:a.b", "wgrad"},
                 {"opt.m:x", "opt.m"},
                 {"opt.v:", "opt.v"},
                 {"master:a:b", "master"},
                 {"opt.vmax:x", "opt.vmax"},
                 {"weight", NULL},
                 {"Weight:x", NULL},
                 {"weights:x", NULL},
                 {":x", NULL},
                 {"", NULL},
                 {"agrad:x", "agrad"},
                 {"dgrad:x", "dgrad"},
                 {"act:x", "act"},
                 {"out:x", "out"},
                 {"weight:x", "weight"}};
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++) {
        const char *kind = trace_kind(kinds[i].name);
        ck_assert_msg(kind == kinds[i].kind || (kind && kinds[i].kind && !strcmp(kind, kinds[i].kind)), "%s: %s",
                      kinds[i].name, kind ? kind : "NULL");
    }
    ck_assert_int_lt(trace_kind_rank(trace_kind("weight:x")), trace_kind_rank(trace_kind("act:x")));
    ck_assert_int_lt(trace_kind_rank(trace_kind("master:x")), trace_kind_rank(NULL));

    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char path[300];
        trace_error e;
        for (int below = 0; below < 2; below++) {
            blob b = good();
            snprintf(path, sizeof path, "%s%s", rows[i].path, below ? ".dir" : "");
            if (below) {
                ck_assert(mkdir(bad_path(path), 0700) == 0);
                snprintf(path, sizeof path, "%s.dir/rank_0", rows[i].path);
            }
            trace *t = trace_open(bad_write(path, &b), NULL, &e);
            ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
            ck_assert_msg(trace_step(t) == rows[i].step, "%s: %lld", path, (long long)trace_step(t));
            trace_close(t);
        }
    }
    static const struct {
        const char *metadata;
        int64_t step;
    } metadata[] = {{"\"global_step\":\"5\"", 8},
                    {"\"step\":\"5\"", 5},
                    {"\"step\":\"5\",\"mpsim.step\":\"6\"", 6},
                    {"\"step\":\"5x\"", 8},
                    {"\"step\":\"-5\"", 8},
                    {"\"mpsim.step\":\"\"", 8},
                    {"\"step\":\"99999999999999999999\"", 8}};
    for (size_t i = 0; i < sizeof metadata / sizeof metadata[0]; i++) {
        char header[200];
        trace_error e;
        snprintf(header, sizeof header, "{\"__metadata__\":{%s}}", metadata[i].metadata);
        blob b = bad_safetensors(header, 0);
        trace *t = trace_open(bad_write("step_8", &b), NULL, &e);
        ck_assert_msg(t && trace_step(t) == metadata[i].step, "%s", header);
        trace_close(t);
    }
    blob b = bad_safetensors("{\"__metadata__\":{\"iteration\":\"7x\",\"iter_num\":\"6\"}}", 0);
    trace *t = trace_open(bad_write("nostep", &b), NULL, NULL);
    ck_assert(t && trace_step(t) == 6);
    trace_close(t);
}

static void put(const char *name)
{
    blob b = good();
    bad_write(name, &b);
}

static void check_tree(const trace_tree *tree, const char *const *names, size_t n)
{
    ck_assert_uint_eq(tree->count, n);
    for (size_t i = 0; i < n; i++)
        ck_assert_str_eq(tree->paths[i], bad_path(names[i]));
}

/* Goes on without what is refused, and counts it. */
static int count_refused(void *context, const trace_error *error)
{
    ck_assert_int_eq(error->exit, 3);
    ++*(int *)context;
    return 0;
}

TEST(trees_are_listed_in_natural_order)
{
    static const char *const names[] = {"tree/1",
                                        "tree/a",
                                        "tree/dangling",
                                        "tree/link",
                                        "tree/step_2/rank_1",
                                        "tree/step_2/rank_09",
                                        "tree/step_2/rank_9",
                                        "tree/step_2/rank_10",
                                        "tree/step_10/x"};
    static const char *const dirs[] = {"tree", "tree/step_10", "tree/step_2", "tree/.hidden"};
    static const char *const files[] = {"tree/1",
                                        "tree/a",
                                        "tree/.x",
                                        "tree/.hidden/x",
                                        "tree/step_10/x",
                                        "tree/step_2/rank_10",
                                        "tree/step_2/rank_9",
                                        "tree/step_2/rank_09",
                                        "tree/step_2/rank_1"};
    for (size_t i = 0; i < 4; i++)
        ck_assert(mkdir(bad_path(dirs[i]), 0700) == 0);
    for (size_t i = 0; i < 9; i++)
        put(files[i]);
    blob b = {0};
    blob_text(&b, "# README\n");
    bad_write("tree/README.md", &b);
    blob_text(&b, "%s", "");
    bad_write("tree/empty", &b);
    ck_assert(mkfifo(bad_path("tree/fifo"), 0600) == 0);
    ck_assert(symlink("a", bad_path("tree/link")) == 0);
    ck_assert(symlink("nowhere", bad_path("tree/dangling")) == 0);
    ck_assert(symlink("README.md", bad_path("tree/readme")) == 0);

    trace_error e;
    int refused = 0;
    trace_tree tree = {.refused = count_refused, .context = &refused};
    ck_assert(trace_tree_add(&tree, bad_path("tree"), NULL, &e) == 0);
    check_tree(&tree, names, 9);
    ck_assert(tree.skipped == 3 && refused == 1);
    trace_tree_clear(&tree);
    ck_assert(tree.count == 0 && tree.paths == NULL && tree.skipped == 0);

    /* a slash at the end is not doubled */
    char slash[5000];
    snprintf(slash, sizeof slash, "%s/", bad_path("tree/step_2"));
    ck_assert(trace_tree_add(&tree, slash, NULL, &e) == 0);
    check_tree(&tree, names + 4, 4);
    trace_tree_clear(&tree);

    /* operands are kept as they are, whatever they are */
    ck_assert(trace_tree_add(&tree, "-", NULL, &e) == 0);
    ck_assert(trace_tree_add(&tree, bad_path("tree/README.md"), NULL, &e) == 0);
    ck_assert(trace_tree_add(&tree, "/nonexistent", NULL, &e) == 0);
    ck_assert(tree.count == 3 && tree.skipped == 0);
    ck_assert_str_eq(tree.paths[0], "-");
    ck_assert_str_eq(tree.paths[2], "/nonexistent");
    trace_tree_clear(&tree);

    /* raw: every file is one */
    const trace_options raw = {.raw_format = mpsim_format_find("e4m3")};
    ck_assert(unlink(bad_path("tree/fifo")) == 0);
    ck_assert(trace_tree_add(&tree, bad_path("tree"), &raw, &e) == 0);
    ck_assert(tree.count == 12 && tree.skipped == 0);
    trace_tree_clear(&tree);

    /* sorted over operands */
    ck_assert(trace_tree_add(&tree, bad_path(names[8]), NULL, &e) == 0);
    ck_assert(trace_tree_add(&tree, bad_path(names[4]), NULL, &e) == 0);
    trace_tree_sort(&tree);
    check_tree(&tree, (const char *const[]){names[4], names[8]}, 2);
    trace_tree_clear(&tree);
}

/* Links to directories are followed; those that lead back, and what is no file, are refused. */
TEST(bug_20261122_links_to_directories_are_not_skipped)
{
    static const char *const names[] = {"links/run/step_1", "store/step_1"};
    trace_error e;
    int refused = 0;
    ck_assert(mkdir(bad_path("links"), 0700) == 0 && mkdir(bad_path("store"), 0700) == 0);
    put("store/step_1");
    ck_assert(symlink("../store", bad_path("links/run")) == 0);
    trace_tree tree = {0};
    ck_assert(trace_tree_add(&tree, bad_path("links"), NULL, &e) == 0);
    check_tree(&tree, names, 1);
    trace_tree_clear(&tree);

    ck_assert(symlink("../links", bad_path("store/up")) == 0); /* links/run/up is links again */
    ck_assert_int_eq(trace_tree_add(&tree, bad_path("links"), NULL, &e), -1);
    ck_assert(e.exit == 3 && strstr(e.text, "links/run/up: a symbolic link leads back"));
    trace_tree_clear(&tree);
    tree.refused = count_refused;
    tree.context = &refused;
    ck_assert(trace_tree_add(&tree, bad_path("links"), NULL, &e) == 0 && refused == 1);
    check_tree(&tree, names, 1);
    trace_tree_clear(&tree);
    ck_assert(unlink(bad_path("store/up")) == 0);

    ck_assert(mkfifo(bad_path("store/step_2"), 0600) == 0);
    ck_assert_int_eq(trace_tree_add(&tree, bad_path("links"), NULL, &e), -1);
    ck_assert(e.exit == 3 && strstr(e.text, "step_2: is a FIFO, not a file of tensors"));
    trace_tree_clear(&tree);
}

TEST(item_53_deep_trees_end)
{
    char name[1000] = "deep";
    trace_tree tree = {0};
    trace_error e;
    for (int i = 0; i < 66; i++) {
        ck_assert(mkdir(bad_path(name), 0700) == 0);
        strcat(name, "/d");
    }
    ck_assert(trace_tree_add(&tree, bad_path("deep"), NULL, &e) != 0);
    ck_assert(e.exit == 3 && strstr(e.text, "nested deeper than 64"));
    trace_tree_clear(&tree);
}

TEST_MAIN_BY(bad_main, "names");
