/* t-orders.c -- orders of additions in memory (gpu/validation/checks/orders.h): the reader names the way by which sums were played,
 * finds a chain that it does not know, and a changed digit. Records of devices: which way gives their sums. Arguments are
 * records, too. TAP of its own, so that a missing record is a SKIP. */
#include "support/support.h"

#include "../../gpu/validation/checks/checks.h"
#include "../../gpu/validation/checks/orders.h"

#include <dirent.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int plan, failures;

static void ok(int passed, const char *name)
{
    printf("%sok %d - %s\n", passed ? "" : "not ", ++plan, name);
    failures += !passed;
}

/* Sums of order i by way k: its name, or NULL. */
static const char *play(gpu_order *o, size_t i, size_t k)
{
    const char *name = NULL;
    gpu_order_list(i, o);
    for (int sum = 0; sum < o->sums; sum++)
        if (!(name = gpu_order_played(i, k, sum, &o->result[sum])))
            return NULL;
    o->status = GPU_DONE;
    return name;
}

static const char *first_way(size_t i, const gpu_order *o)
{
    size_t next = 0;
    return gpu_order_fits(i, o, &next);
}

static int is_among_fits(size_t i, const gpu_order *o, const char *name, int *others)
{
    int found = 0;
    *others = 0;
    const char *way;
    for (size_t next = 0; (way = gpu_order_fits(i, o, &next)) != NULL;) {
        found |= strcmp(way, name) == 0;
        *others += strcmp(way, name) != 0;
    }
    return found;
}

/* Every way that is known, played: it is named, alone; with a changed digit it is not. In binary32 no sum of fp16 is
 * rounded on its way, whatever the order. */
static void test_ways(size_t i, const char *instruction)
{
    gpu_order o;
    char name[128];
    const char *way;
    int ways = 0, bad = 0, twins = 0, others;
    uint64_t state = 1;
    for (size_t k = 0; (way = play(&o, i, k)) != NULL; k++) {
        char played[96];
        snprintf(played, sizeof played, "%s", way);
        ways++;
        if (!is_among_fits(i, &o, played, &others))
            bad += printf("# %s is not named\n", played) > 0;
        if (others && !(strcmp(o.format, "fp16") == 0 && strstr(played, "binary32")))
            twins += printf("# %s has %d twins\n", played, others) > 0;
        o.result[test_random(&state) % (uint64_t)o.sums] ^= 1;
        bad += first_way(i, &o) != NULL;
    }
    snprintf(name, sizeof name, "%s: each of %d ways is named, and no other one; not with a changed digit", instruction,
             ways);
    ok(bad == 0 && twins == 0 && ways > 50, name);
}

/* Lanes in any sequence. */
static void test_chain(size_t i, const char *instruction)
{
    gpu_order o;
    gpu_order_plan p;
    mpsim_arith add;
    char name[128];
    int lanes[GPU_ORDER_LANES], found[GPU_ORDER_LANES];
    uint64_t state = 2;
    gpu_order_list(i, &o);
    gpu_order_fill(i, &p);
    mpsim_arith_init(&add, MPSIM_OP_ADD, mpsim_format_find(o.format), MPSIM_ROUND_NEAREST_EVEN);
    for (int k = 0; k < GPU_ORDER_LANES; k++) {
        const int at = (int)(test_random(&state) % (uint64_t)(k + 1));
        lanes[k] = lanes[at];
        lanes[at] = k;
    }
    for (int sum = 0; sum < o.sums; sum++) {
        uint64_t total = gpu_order_start(&p, sum);
        for (int k = 0; k < GPU_ORDER_LANES; k++)
            total = mpsim_arith_apply(&add, total, gpu_order_operand(&p, sum, lanes[k]), 0, 0, NULL);
        o.result[sum] = (uint32_t)total;
    }
    o.status = GPU_DONE;
    const int is_found = gpu_order_chain(i, &o, found) && memcmp(lanes, found, sizeof lanes) == 0;
    int bad = 0;
    for (int sum = 0; sum < o.sums; sum++) {
        o.result[sum] ^= 1;
        bad += gpu_order_chain(i, &o, found);
        o.result[sum] ^= 1;
    }
    snprintf(name, sizeof name, "%s: any chain of lanes is found, and a changed digit in any of its sums", instruction);
    ok(is_found && bad == 0 && !first_way(i, &o), name);
}

static void test_played(void)
{
    static const char *const names[] = {"red.global.add.f32, a warp", "red.global.add.noftz.f16x2, a warp",
                                        "red.global.add.noftz.bf16x2, a warp"};
    gpu_order o;
    size_t seen = 0;
    for (size_t i = 0; gpu_order_list(i, &o); i++)
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (strcmp(o.name, names[k]) == 0) {
                test_ways(i, names[k]);
                test_chain(i, names[k]);
                seen++;
            }
    ok(seen == 3 && gpu_order_count() > 50, "orders are asked of red, atom and cp.reduce");
}

/* ---- records ---- */

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* 0, or -1: not the order of this place, or not whole. */
static int read_order(gpu_order *o, size_t i, const json_t *entry)
{
    const char *digits = text(entry, "sums");
    if (!gpu_order_list(i, o) || strcmp(o->name, text(entry, "name")) != 0 ||
        strcmp(o->format, text(entry, "format")) != 0)
        return -1;
    const size_t each = (size_t)(mpsim_format_find(o->format)->bits + 3) / 4;
    if (strlen(digits) != each * (size_t)o->sums)
        return -1;
    for (int k = 0; k < o->sums; k++) {
        char code[9], *end;
        memcpy(code, digits + (size_t)k * each, each);
        code[each] = 0;
        o->result[k] = (uint32_t)strtoul(code, &end, 16);
        if (*end)
            return -1;
    }
    o->status = GPU_DONE;
    o->changed = (int)json_integer_value(json_object_get(entry, "changed"));
    return 0;
}

static void print_way(size_t i, const gpu_order *o)
{
    const char *way = first_way(i, o);
    int lanes[GPU_ORDER_LANES];
    printf("# %s: ", o->name);
    if (way)
        printf("%s", way);
    else if (gpu_order_chain(i, o, lanes))
        for (int k = 0; k < GPU_ORDER_LANES; k++)
            printf("%s%d", k ? " " : "lanes ", lanes[k]);
    else
        printf("no way that is known");
    printf(o->changed ? "; %d sums change from round to round\n" : "\n", o->changed);
}

/* How many orders of a record have an answer; -1: one of them is not whole, or breaks what is settled. */
static int read_record(const char *path)
{
    json_t *root = json_load_file(path, 0, NULL), *orders = json_object_get(root, "orders"), *entry;
    size_t i;
    int answers = 0;
    json_array_foreach(orders, i, entry)
    {
        gpu_order o;
        if (strcmp(text(entry, "status"), "done") != 0)
            continue;
        if (read_order(&o, i, entry) != 0 || gpu_order_is_wrong(i, &o)) {
            printf("# %s: not as its name says\n", text(entry, "name"));
            answers = -1;
            break;
        }
        print_way(i, &o);
        answers++;
    }
    json_decref(root);
    return answers;
}

static int test_record(const char *path, const char *name)
{
    char what[512];
    const int answers = read_record(path);
    snprintf(what, sizeof what, "orders of %.400s: %d answers", name, answers);
    if (answers)
        ok(answers > 0, what);
    return answers != 0;
}

static void test_records(void)
{
    const char *folder = test_source_path("data/gpu");
    DIR *d = opendir(folder);
    int found = 0;
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        char path[4096];
        const size_t n = strlen(e->d_name);
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (n > 5 && strcmp(e->d_name + n - 5, ".json") == 0)
            found += test_record(path, e->d_name);
    }
    if (d)
        closedir(d);
    if (!found)
        printf("ok %d - orders of devices # SKIP waits for a device\n", ++plan);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        ok(test_record(argv[i], argv[i]), "a record with orders");
    if (argc == 1) {
        test_played();
        test_records();
    }
    printf("1..%d\n", plan);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
