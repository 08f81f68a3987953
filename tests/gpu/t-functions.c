/* t-functions.c -- records of the special function unit (data/gpu/NAME-functions.json, with NAME-functions.tables): tables unpack
 * to what their digests say, nothing contradicts itself, and the rules by which all results would follow from the tables are
 * tried; what fits is said, and kept in NAME-functions.answers (MPSIM_GOLDEN_UPDATE=1 writes it). The reader proves itself on
 * what a made-up unit gives (unit.h). Arguments are records, too. TAP of its own, so that a missing record is a SKIP. */
#include "functionsjudge.h"

#include "support/extent.h"
#include "unit.h"
#include "unitfit.h"

#include "../../gpu/functions/cases.h"
#include "../../gpu/functions/exact.h"
#include "../../gpu/functions/pack.h"
#include "../../gpu/functions/session.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int plan, failures;

static void ok(int passed, const char *name, const char *why)
{
    printf("%sok %d - %s\n", passed ? "" : "not ", ++plan, name);
    if (!passed && why && *why)
        printf("# %s\n", why);
    failures += !passed;
}

/* ---- a record of the made-up unit ---- */

/* What tables.c asks a device. */
int gpu_functions_values(const gpu_table *t, const gpu_extent *e, uint32_t *results, uint32_t *exact, char *why,
                         size_t size)
{
    (void)why;
    (void)size;
    for (uint32_t i = 0; i < gpu_table_count(t, e); i++) {
        int open = 0;
        const uint32_t x = gpu_table_operand(t, e, i);
        results[i] = test_unit(t->operation, x, 0);
        exact[i] = t->operation < GPU_FUNCTIONS ? gpu_exact((gpu_function)t->operation, x, &open) : 0;
    }
    return 0;
}

static void play_halves(gpu_functions_session *s, int operation)
{
    gpu_binade *b = s->digests[operation];
    for (uint32_t low = 0; low < 1 << 16; low++) {
        const uint32_t high = gpu_function_partner(low), y = test_unit(operation, high << 16 | low, 0);
        if (gpu_operation_at(operation)->shape == GPU_HALF) {
            b[0].digest += mpsim_mix(low, test_unit(operation, low, 0));
        } else {
            b[0].digest += mpsim_mix(low, y & 0xffff);
            b[1].digest += mpsim_mix(high, y >> 16);
        }
    }
}

/* Digests of samples; whole ones where they are quick. */
static void play_digests(gpu_functions_session *s, int operation)
{
    const gpu_shape shape = gpu_operation_at(operation)->shape;
    const int is_pair = shape == GPU_BINARY, is_whole = s->options.tiny;
    const uint32_t n = is_pair ? s->extent.pairs : gpu_extent_count(&s->extent);
    s->digests_of[operation].is_asked = 1;
    if (shape == GPU_HALF || shape == GPU_PACKED) {
        play_halves(s, operation);
        return;
    }
    for (uint32_t k = 0; k < (is_pair ? 2 : GPU_BINADES); k++)
        for (uint32_t i = 0; i < n; i += is_whole ? 1 : s->extent.sample_step) {
            uint32_t a = k << 23 | i << s->extent.shift, b = 0;
            if (is_pair)
                gpu_function_pair((int)k, s->extent.shift, i, &a, &b);
            const uint64_t mix = mpsim_mix(is_pair ? i : a, test_unit(operation, a, b));
            s->digests[operation][k].digest += mix;
            s->digests[operation][k].sample += i % s->extent.sample_step ? 0 : mix;
        }
}

/* All of a tiny run; of a whole one the first tables of a function and what follows from them. */
static void play(gpu_functions_session *s, int function, int tables)
{
    gpu_extent_of(&s->extent, s->options.tiny);
    snprintf(s->device.name, sizeof s->device.name, "made-up unit");
    for (int i = 0; i < GPU_OPERATIONS; i++)
        if (function < 0 || i == function || (function == GPU_RCP && gpu_operation_at(i)->shape == GPU_BINARY))
            play_digests(s, i);
    for (size_t i = 0; i < gpu_tables(); i++) {
        const gpu_table t = gpu_table_at(i);
        s->table_of[i].is_asked = function < 0 || (t.operation == function && tables-- > 0);
        if (s->table_of[i].is_asked)
            gpu_functions_keep(s, i);
        if (s->table_of[i].is_asked && !s->options.tiny)
            s->digests[t.operation][t.first >> 23].digest = s->table[i].digest;
    }
}

static int write_played(const gpu_functions_session *s, const char *record, const char *tables)
{
    FILE *f = fopen(record, "w"), *g = fopen(tables, "wb");
    const int bad = !f || !g || gpu_functions_write(f, s) || fwrite(s->packed, 1, s->used, g) != s->used;
    return (f && fclose(f)) | (g && fclose(g)) | bad;
}

/* ---- the reader, proven ---- */

typedef struct files {
    char record[64], tables[64];
} files;

static gpu_functions_session *new_session(int tiny)
{
    gpu_functions_session *s = calloc(1, sizeof *s);
    if (s) {
        s->options.tiny = tiny;
        s->options.most = 20000000;
        s->packed = calloc(1, s->options.most);
    }
    if (!s || !s->packed)
        abort();
    return s;
}

/* Operations whose answers fit; -1: the record is bad, `why` says so. `tell`: those that do not, to stdout. */
static int count_fits(const files *f, char *why, int tell)
{
    static functions_record r;
    char line[FUNCTIONS_LINE];
    int n = 0;
    const int bad = functions_read(&r, f->record, f->tables, -1) != 0;
    snprintf(why, FUNCTIONS_LINE, "%s", r.why);
    n = bad || functions_contradiction(&r, why) ? -1 : 0;
    for (int i = 0; i < GPU_OPERATIONS && n >= 0; i++) {
        const int fits = functions_answer(&r, i, line) && strncmp(line, "fits", 4) == 0;
        n += fits;
        if (tell && !fits && r.has_digests[i])
            printf("# %s: %s\n", gpu_operation_at(i)->name, line);
    }
    functions_free(&r);
    return n;
}

/* All operations, few operands: each follows from its tables as the unit is made; a changed digit or byte is found. */
static void prove_tiny(const files *f)
{
    char why[FUNCTIONS_LINE] = "";
    gpu_functions_session *s = new_session(1);
    play(s, -1, 0);
    ok(write_played(s, f->record, f->tables) == 0 && count_fits(f, why, 1) == GPU_OPERATIONS,
       "all operations of a made-up unit follow from its tables", why);
    for (size_t i = 0, seen = 0; i < gpu_tables(); i++) { /* of each function the binade of its first table */
        const gpu_table t = gpu_table_at(i);
        if (t.operation < GPU_FUNCTIONS && !(seen >> t.operation & 1))
            s->digests[t.operation][t.first >> 23].sample ^= 1;
        seen |= (size_t)1 << t.operation;
    }
    s->digests[20][1].digest ^= 1;
    ok(write_played(s, f->record, f->tables) == 0 && count_fits(f, why, 0) == GPU_OPERATIONS - GPU_FUNCTIONS - 1,
       "changed samples of a binade do not fit", why);
    s->digests[16][0].digest ^= 1;
    ok(write_played(s, f->record, f->tables) == 0 && count_fits(f, why, 0) < 0 && strstr(why, "different digest"),
       "a changed digest contradicts its table", why);
    s->digests[16][0].digest ^= 1;
    s->packed[s->table[7].offset + 9] ^= 4;
    ok(write_played(s, f->record, f->tables) == 0 && count_fits(f, why, 0) < 0 && strstr(why, "another digest"),
       "a changed byte of a table is found", why);
    s->packed[s->table[7].offset + 9] ^= 4;
    s->used = s->table[6].offset + 1;
    ok(write_played(s, f->record, f->tables) == 0 && count_fits(f, why, 0) >= 0,
       "a file of tables that is cut has the first ones", why);
    free(s->packed);
    free(s);
}

/* All 2^23 results of the binades that a function follows from; each function has its day. */
static void prove_whole(const files *f)
{
    static const struct {
        int function, tables, fit;
    } rows[] = {{GPU_RCP, 1, 5}, {GPU_EX2, 1, 1}, {GPU_RSQRT, 2, 1},
                {GPU_LG2, 2, 1}, {GPU_SIN, 1, 1}, {GPU_SQRT, 2, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char name[120], why[FUNCTIONS_LINE] = "";
        if (!test_in_part(i, sizeof rows / sizeof *rows))
            continue;
        gpu_functions_session *s = new_session(0);
        play(s, rows[i].function, rows[i].tables);
        snprintf(name, sizeof name, "%s: a sample of all operands follows from %d whole tables of %zu bytes",
                 gpu_operation_at(rows[i].function)->name, rows[i].tables, s->used);
        ok(write_played(s, f->record, f->tables) == 0 && count_fits(f, why, 1) == rows[i].fit, name, why);
        free(s->packed);
        free(s);
    }
}

/* The fitter finds coefficients of the made-up unit from its results alone: of some segments; each table has its day. */
static void prove_fit(void)
{
    static const struct {
        int function;
        uint32_t first;
    } rows[] = {{GPU_RCP, 0x3f800000}, {GPU_EX2, 0x3f800000},  {GPU_RSQRT, 0x3f800000}, {GPU_RSQRT, 0x40000000},
                {GPU_LG2, 0x3f800000}, {GPU_SQRT, 0x3f800000}, {GPU_SQRT, 0x40000000}};
    const int segments = test_expensive() ? 0 : 4;
    static fit f;
    uint32_t *y = malloc(sizeof *y << 23);
    for (size_t k = 0; y && k < sizeof rows / sizeof *rows; k++) {
        char name[160];
        if (!test_in_part(k, sizeof rows / sizeof *rows))
            continue;
        for (uint32_t i = 0; i < 1 << 23; i++)
            y[i] = test_unit_mufu(rows[k].function, rows[k].first + i);
        const int found = fit_table(&f, y, 23, segments);
        snprintf(name, sizeof name, "%s from %08x: quadratics of %d bits, found from the results, give every bit",
                 gpu_operation_at(rows[k].function)->name, (unsigned)rows[k].first, f.shape.low_bits);
        ok(found && f.left_out < 2, name, NULL);
        y[((size_t)1 << 23) - 5000] ^= 1;
        const size_t last = ((size_t)1 << 23) - ((size_t)1 << f.shape.low_bits);
        ok(!fit_one(&f.shape, y + last, 0, &f.segment[0]), "and with a changed bit there are none", NULL);
    }
    free(y);
}

static void prove_packing(void)
{
    enum { N = 5000 };
    static uint32_t y[N], exact[N], again[N];
    static uint8_t bytes[8 * N];
    int bad = 0;
    for (uint32_t shape = 0; shape < 6; shape++) {
        for (uint32_t i = 0; i < N; i++) {
            const uint32_t w = (uint32_t)mpsim_mix(i, shape);
            exact[i] = 0x3f800000 + 3 * i;
            y[i] = shape == 0   ? exact[i]
                   : shape == 1 ? exact[i] + (w % 3) - 1
                   : shape == 2 ? w
                   : shape == 3 ? w << 31
                   : shape == 4 ? exact[i] & ~63u
                                : i * 70 / 4;
        }
        const size_t n = gpu_pack(y, exact, N, 32, bytes, sizeof bytes);
        bad += !n || gpu_unpack(again, exact, N, 32, bytes, n) || memcmp(y, again, sizeof y) != 0;
        bad += gpu_unpack(again, exact, N, 32, bytes, n - 1) == 0 || gpu_pack(y, exact, N, 32, bytes, 5) != 0;
    }
    ok(bad == 0, "results packed are the same unpacked; what is cut short is refused", NULL);
}

/* ---- records ---- */

static void beside(char *to, size_t size, const char *record, const char *ending)
{
    snprintf(to, size, "%.*s%s", (int)(strlen(record) - strlen(".json")), record, ending);
}

/* 1: the file has this line. */
static int has_line(const char *path, const char *line)
{
    char have[FUNCTIONS_LINE + 64];
    int found = 0;
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(have, sizeof have, f)) {
        have[strcspn(have, "\n")] = 0;
        found = strcmp(have, line) == 0;
    }
    if (f)
        fclose(f);
    return found;
}

/* What is said of operations; a part of them a day, since tables take a second each. */
static void answer(const functions_record *r, int operation, const char *path, FILE *renewed)
{
    char line[FUNCTIONS_LINE], whole[FUNCTIONS_LINE + 40];
    if (!functions_answer(r, operation, line))
        return;
    snprintf(whole, sizeof whole, "%s: %s", gpu_operation_at(operation)->name, line);
    printf("# %s\n", whole);
    if (renewed)
        fprintf(renewed, "%s\n", whole);
    else if (access(path, R_OK) == 0)
        ok(has_line(path, whole), "the answer that is kept", whole);
}

static void check_record(const char *path)
{
    static functions_record r;
    char tables[4200], answers[4200], line[FUNCTIONS_LINE] = "";
    const int update = getenv("MPSIM_GOLDEN_UPDATE") != NULL;
    beside(tables, sizeof tables, path, ".tables");
    beside(answers, sizeof answers, path, ".answers");
    FILE *renewed = update ? fopen(answers, "w") : NULL;
    const int bad = functions_read(&r, path, tables, -1);
    ok(!bad && !functions_contradiction(&r, line), path, bad ? r.why : line);
    printf("# %s, %s: %zu items, %zu failed, %zu tables are not here%s%s\n", r.device, r.date, r.asked, r.failed,
           r.left_out, r.failed ? "; first: " : "", r.failed ? r.why : "");
    for (int i = 0; i < GPU_OPERATIONS && !bad; i++)
        answer(&r, i, answers, renewed);
    functions_free(&r);
    if (renewed)
        fclose(renewed);
}

/* Records of the folder. */
static int check_folder(const char *folder)
{
    DIR *d = opendir(folder);
    int n = 0;
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[4200];
        const size_t length = strlen(e->d_name);
        if (length < 15 || strcmp(e->d_name + length - 15, "-functions.json") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        n++;
        if (test_in_whole_part((uint64_t)n, 5))
            check_record(path);
        else
            printf("# %s waits for its day\n", path);
    }
    if (d)
        closedir(d);
    return n;
}

int main(int argc, char **argv)
{
    char folder[] = "t-functions-XXXXXX", data[4096];
    const char *source = getenv("MPSIM_SRCDIR");
    files f;
    for (int i = 1; i < argc; i++)
        check_record(argv[i]);
    if (argc == 1 && mkdtemp(folder)) {
        snprintf(f.record, sizeof f.record, "%s/played.json", folder);
        snprintf(f.tables, sizeof f.tables, "%s/played.tables", folder);
        prove_packing();
        prove_tiny(&f);
        prove_whole(&f);
        prove_fit();
        (void)remove(f.record);
        (void)remove(f.tables);
        (void)rmdir(folder);
        snprintf(data, sizeof data, "%s/data/gpu", source ? source : ".");
        if (!check_folder(data))
            printf("ok %d - results of a device's special function unit # SKIP waits for a device\n", ++plan);
    }
    printf("1..%d\n", plan);
    return failures != 0;
}
