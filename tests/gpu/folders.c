/* folders.c -- see folders.h. */
#include "folders.h"

#include "agree.h"
#include "kept.h"
#include "replay.h"
#include "support/support.h"

#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- folders ---- */

/* What is told apart by its schema: the record of mpsim-gpu and the reports of two other programs. What else there is other tests
 * read. */
enum { RECORD, STATISTICS, WATCH, OTHER, LOG, KINDS };

static int kind_of(const char *schema)
{
    static const char *const schemas[] = {"mpsim.gpu/", "mpsim.gpu-statistics/", "mpsim.cuda-check/"};
    int kind = 0;
    while (kind < OTHER && strncmp(schema, schemas[kind], strlen(schemas[kind])) != 0)
        kind++;
    return strncmp(schema, "mpsim.", 6) == 0 ? kind : RECORD; /* which will say that it is none */
}

/* A file of JSON: its kind. any: also of what is no device. */
static int test_json(const char *folder, const char *file, int any)
{
    char path[4096], beside[4096], name[512], why[WHY] = "";
    json_error_t error;
    snprintf(path, sizeof path, "%s/%s", folder, file);
    snprintf(beside, sizeof beside, "%.*s", (int)(strlen(path) - strlen(".json")), path);
    char *dash = strrchr(beside, '-');
    if (dash && !strchr(dash, '/'))
        *dash = 0;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES, &error);
    const int kind = kind_of(kept_text(root, "schema"));
    snprintf(name, sizeof name, "the library repeats %.300s", file);
    ok(root && (kind == STATISTICS ? kept_statistics(root, why)
                : kind == WATCH    ? kept_cuda_check(root, why)
                : kind == RECORD   ? replay_record(root, beside, why)
                                   : 0) == 0,
       name, root ? why : error.text);
    snprintf(name, sizeof name, "%.300s: of a device", file);
    if (!any)
        ok(replay_is_device(kept_text(root, "device")), name, kept_text(root, "device"));
    json_decref(root);
    return kind;
}

static int test_log(const char *folder, const char *file)
{
    char path[4096], name[512], why[WHY] = "";
    snprintf(path, sizeof path, "%s/%s", folder, file);
    snprintf(name, sizeof name, "%.300s: the sanitizer found nothing", file);
    ok(kept_log(path, why) == 0, name, why);
    return LOG;
}

static int is_log(const char *file)
{
    return kept_ends(file, ".txt") && (strstr(file, "memcheck") || strstr(file, "racecheck"));
}

/* All records of a folder; how many of each kind. */
static void test_folder(const char *folder, int any, int found[KINDS])
{
    char why[WHY] = "", name[512];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        if (kept_ends(e->d_name, ".json"))
            found[test_json(folder, e->d_name, any)]++;
        else if (is_log(e->d_name))
            found[test_log(folder, e->d_name)]++;
    }
    if (d)
        closedir(d);
    snprintf(name, sizeof name, "%.300s: each file has its digest", any ? "the folder" : strrchr(folder, '/') + 1);
    ok(kept_sums(folder, why) == 0, name, why);
}

void test_records(void)
{
    static const char *const kinds[KINDS] = {"records", "statistics", "tensors of torch", NULL, "logs of sanitizers"};
    int found[KINDS] = {0};
    test_folder(test_source_path("data/gpu"), 0, found);
    for (int i = 0; i < KINDS; i++)
        if (!found[i] && kinds[i])
            printf("ok %d - %s of a device # SKIP waits for a device\n", tap_next(), kinds[i]);
}

/* What devices answered through PyTorch: tests/record/t-device reads it. */
void test_answers(void)
{
    const char *folder = test_source_path("data/vectors/device");
    char path[4096], name[512];
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char why[WHY] = "";
        if (e->d_name[0] == '.' || kept_ends(e->d_name, ".md") || strncmp(e->d_name, "cpu-", 4) == 0)
            continue; /* what a CPU answered is no device's record: any CPU can be asked again */
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        snprintf(name, sizeof name, "%.300s: each file has its digest", e->d_name);
        ok(kept_sums(path, why) == 0, name, why);
    }
    if (d)
        closedir(d);
}

/* ---- a digit that changes in a device's record ---- */

/* Numbers of a kind: the key of JSON before them, or the place in a file of digests. Each becomes another one: the digest of the file
 * finds it. Files and keys take turns. */
void test_changed_digits(void)
{
    const char *folder = test_source_path("data/gpu");
    char missed[WHY] = "";
    int tried = 0;
    DIR *d = opendir(folder);
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t n;
        uint64_t seen = 0;
        if (!kept_ends(e->d_name, ".json") && !kept_ends(e->d_name, ".digests"))
            continue;
        char *bytes = kept_read(folder, e->d_name, &n);
        for (size_t i = 1; bytes && i < n; i += 1 + seen % 97) {
            if (bytes[i] < '0' || bytes[i] > '9' || !test_in_part(seen++, 40))
                continue;
            bytes[i] ^= 1;
            tried++;
            if (kept_has(folder, e->d_name, bytes, n))
                kept_complain(missed, e->d_name, "a changed digit is not found");
            bytes[i] ^= 1;
        }
        free(bytes);
    }
    if (d)
        closedir(d);
    printf("# %d digits changed\n", tried);
    ok(tried > 0 && !missed[0], "a changed digit in any file of a device is found", missed);
}

/* A training whose record says something else than its file of digests. */
void test_changed_trainings(void)
{
    static const struct {
        const char *key, *value;
    } rows[] = {{"tensors", "23501"},   {"tensors", "24000"},
                {"steps", "501"},       {"last_loss", "0.25"},
                {"first_loss", "2.31"}, {"arch", "\"ada\""},
                {"last_loss", "null"},  {"digests", "\"training-mlp-bf16.digests\""}};
    static const char *const heads[] = {"device", "driver", "date"};
    const char *folder = test_source_path("data/gpu"), *record = "nvidia-h200-2026-11-26-training.json";
    char path[4096], beside[4096], why[WHY] = "", missed[WHY] = "";
    snprintf(path, sizeof path, "%s/%s", folder, record);
    snprintf(beside, sizeof beside, "%s/nvidia-h200-2026-11-26", folder);
    json_t *root = json_load_file(path, 0, NULL), *o = json_array_get(json_object_get(root, "training"), 0);
    if (!root || strcmp(kept_text(o, "run"), "mlp-fp16") != 0)
        snprintf(missed, sizeof missed, "no record");
    for (size_t i = 0; !missed[0] && i < sizeof rows / sizeof *rows; i++) {
        json_t *changed = json_deep_copy(o);
        json_object_set_new(changed, rows[i].key, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        if (agree_training(root, o, beside, why) != 0 || agree_training(root, changed, beside, why) != 1)
            snprintf(missed, sizeof missed, "%s %s: %.300s", rows[i].key, rows[i].value, why);
        json_decref(changed);
        *why = 0;
    }
    for (size_t i = 0; !missed[0] && i < 3; i++) {
        json_t *other = json_deep_copy(root);
        json_object_set_new(other, heads[i], json_string("another"));
        if (agree_training(other, o, beside, why) != 1)
            snprintf(missed, sizeof missed, "%s", heads[i]);
        json_decref(other);
    }
    json_decref(root);
    ok(!missed[0], "a training that is not that of its digests is found", missed);
}

/* Reports and logs that are damaged. */
void test_changed_reports(void)
{
    static const char statistics[] =
        "{\"device\":\"D\",\"arrays\":[{\"format\":\"fp16\",\"numbers\":\"bell\",\"elements\":1,"
        "\"equal\":true,\"digest\":\"0123456789abcdef\"}],\"compared\":1,\"differing\":0}";
    static const char watch[] =
        "{\"device\":\"D\",\"torch\":\"2\",\"date\":\"x\",\"questions\":[{\"question\":\"stat\","
        "\"status\":\"equal\"}],\"stat_differing\":0,\"watch_differing\":0}";
    static const struct {
        int (*judge)(const json_t *root, char *why);
        const char *all, *from, *to;
    } rows[] = {
        {kept_statistics, statistics, "", ""},
        {kept_statistics, statistics, "compared\":1", "compared\":2"},
        {kept_statistics, statistics, "ing\":0", "ing\":1"},
        {kept_statistics, statistics, "true", "null"},
        {kept_statistics, statistics, "89abcdef", "89abcde"},
        {kept_statistics, statistics, "\"D\"", "\"\""},
        {kept_cuda_check, watch, "", ""},
        {kept_cuda_check, watch, "\"equal", "\"DIFFERENT"},
        {kept_cuda_check, watch, "stat_differing\":0", "stat_differing\":1"},
        {kept_cuda_check, watch, "\"x\"", "\"\""},
    };
    char missed[WHY] = "";
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char changed[512], why[WHY] = "";
        const char *at = strstr(rows[i].all, rows[i].from);
        snprintf(changed, sizeof changed, "%.*s%s%s", (int)(at - rows[i].all), rows[i].all, rows[i].to,
                 at + strlen(rows[i].from));
        json_t *root = json_loads(changed, 0, NULL);
        if (!root || (rows[i].judge(root, why) > 0) != (rows[i].from[0] != 0))
            snprintf(missed, sizeof missed, "row %zu: %.300s", i, changed);
        json_decref(root);
    }
    ok(!missed[0], "a report that is not whole, or has a difference, is found", missed);
}

/* "FOLDER/FILE", or a folder, from whatever device. */
void test_argument(char *path)
{
    DIR *d = opendir(path);
    int found[KINDS] = {0};
    char *slash = strrchr(path, '/');
    if (d) {
        closedir(d);
        test_folder(path, 1, found);
        return;
    }
    if (slash)
        *slash = 0;
    test_json(slash ? path : ".", slash ? slash + 1 : path, 1);
}
