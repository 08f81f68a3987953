/* t-record.c -- records of CUDA devices (data/gpu), replayed on the CPU: every sample of every
 * check again from its inputs, by the public functions of the library, and every probe by its
 * model row. Trainings and speeds must agree with themselves and with the files of digests; train/t-digests repeats the
 * trainings. Each file has a digest (SHA256SUMS). The replay itself is proven on records of a device that the reference
 * plays. Arguments are records, too, or folders of them, from whatever "device". TAP of its own, so that a missing
 * record is a SKIP. */
#include "support/support.h"

#include "folders.h"
#include "kept.h"
#include "replay.h"

#include "../../gpu/validation/checks/cases.h"
#include "../../gpu/validation/checks/checks.h"
#include "../../gpu/validation/checks/doubles.h"
#include "../../gpu/validation/checks/reference.h"
#include "../../gpu/validation/program/record.h"
#include "lib/digest/scalar.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MOST_CHECKS = 1024 };

static int plan, failures;

void ok(int passed, const char *name, const char *why)
{
    printf("%sok %d - %s\n", passed ? "" : "not ", ++plan, name);
    if (!passed && why && *why)
        printf("# %s\n", why);
    failures += !passed;
}

int tap_next(void)
{
    return ++plan;
}

/* ---- a device that the reference plays: what the kernels compute, on the CPU ---- */

static uint64_t played(const gpu_check *c, uint64_t index)
{
    if (!c->is_dots) {
        uint32_t in[3];
        gpu_scalar_case(&c->scalar, index, in);
        return gpu_scalar_reference(&c->scalar, in);
    }
    const gpu_dots *j = &c->dots;
    const uint64_t outputs = gpu_tile_outputs(j), tile = index / outputs, place = index % outputs / (uint64_t)j->words;
    const int row = (int)place / j->columns, column = (int)place % j->columns;
    if (j->words == 2)
        return gpu_double_word(gpu_double_expected(j, tile, row, column), (int)(index & 1));
    uint32_t a[GPU_MOST_DEPTH], b[GPU_MOST_DEPTH];
    for (int k = 0; k < j->k; k++) {
        a[k] = gpu_operand(j, tile, 0, row, k);
        b[k] = gpu_operand(j, tile, 1, column, gpu_chosen(j, tile, row, k));
    }
    return gpu_dot_reference(j, a, b, gpu_addend(j, tile, row, column));
}

static void play_check(gpu_result *r, size_t i, int sm)
{
    gpu_check c;
    memset(r, 0, sizeof *r);
    r->status = GPU_SKIPPED;
    snprintf(r->text, sizeof r->text, "no such instruction");
    if (gpu_check_at(&c, i, sm, GPU_RUN_TINY) != 1)
        return;
    if (c.dots.variant.chain && !test_in_part(i, 4)) { /* long sums: some each day */
        snprintf(r->text, sizeof r->text, "not played today");
        return;
    }
    r->status = GPU_DONE;
    r->question = c.question;
    r->count = r->sample_end = c.count;
    r->sample_step = c.sample_step;
    r->large_step = c.large_step;
    for (uint64_t k = 0; k < c.count; k++) {
        const uint64_t mix = mpsim_mix(k, played(&c, k));
        r->digest_all += mix;
        r->digest_sample += k % c.sample_step == 0 ? mix : 0;
        r->digest_large += k % c.large_step == 0 ? mix : 0;
    }
}

static void play_probe(gpu_probe *p, size_t i, int sm)
{
    gpu_dots j;
    int instruction;
    if (!gpu_probe_fill(i, p, &instruction) || gpu_dots_fill(&j, sm, instruction, GPU_PROBE) != 0) {
        p->status = GPU_SKIPPED;
        snprintf(p->text, sizeof p->text, "no such instruction");
        return;
    }
    p->d = gpu_dot_reference(&j, p->a, p->b, p->c);
    p->status = GPU_DONE;
}

/* Trainings of each kind. */
/* clang-format off */
static const gpu_training trainings[] = {
    {.run = "mlp-fp16", .arch = "hopper", .status = GPU_TRAINING_EQUAL, .steps = 500,
     .compared = 500, .tensors = 23500, .skipped = 9, .first_loss = 2.3f, .last_loss = 0.25f,
     .seconds = 3, .seconds_step = 1e-3, .digests = "x-mlp-fp16.digests"},
    {.run = "cnn-fp8", .arch = "hopper", .status = GPU_TRAINING_DIFFERS, .steps = 100,
     .compared = 7, .tensors = 700, .first_loss = 2.3f, .last_loss = NAN,
     .digests = "x-cnn-fp8.digests",
     .report = "step 7: out:fc1[3][0]: 0x3c74c000 by cuda, \"0x3c80e000\" by cpu"},
    {.run = "cnn-tf32", .status = GPU_TRAINING_SKIPPED, .report = "not asked for"},
};
/* clang-format on */
static const gpu_speed_row speeds[] = {
    {.name = "copy", .bytes = 2e9, .seconds = 1e-3, .share = 1, .checked = -1},
    {.name = "fp16 4096^3, wgmma", .status = GPU_FAILED, .text = "hung", .checked = -1},
    {.name = "fp16 4096^3, cuBLAS", .flops = 137438953472., .seconds = 8e-4, .share = 1, .checked = -1},
    {.name = "fp16 4096^3, \"mma\"",
     .flops = 137438953472.,
     .seconds = 2e-3,
     .share = 0.4,
     .checked = 1,
     .compared = 1 << 24},
};

/* The record of such a device, written and read. */
static json_t *play(int sm)
{
    static gpu_result results[MOST_CHECKS];
    static gpu_probe probes[MOST_CHECKS];
    gpu_record r;
    memset(&r, 0, sizeof r);
    snprintf(r.device.name, sizeof r.device.name, "the reference \"plays\" sm_%d", sm);
    snprintf(r.date, sizeof r.date, "2000-01-01T00:00:00Z");
    r.device.sm = sm;
    r.quick = GPU_RUN_TINY;
    r.result = results;
    r.probe = probes;
    r.probes = gpu_probe_count();
    for (; gpu_check_name(r.checks) && r.checks < MOST_CHECKS; r.checks++)
        play_check(&results[r.checks], r.checks, sm);
    for (size_t i = 0; i < r.probes && i < MOST_CHECKS; i++)
        play_probe(&probes[i], i, sm);
    r.training = trainings;
    r.trainings = sizeof trainings / sizeof *trainings;
    r.speed = speeds;
    r.speeds = sizeof speeds / sizeof *speeds;
    FILE *f = tmpfile();
    if (!f || gpu_record_write(f, &r) != 0)
        return NULL;
    rewind(f);
    json_t *root = json_loadf(f, JSON_REJECT_DUPLICATES, NULL);
    fclose(f);
    return root;
}

/* ---- tests ---- */

static void test_played(int sm)
{
    char name[96], why[WHY];
    json_t *root = play(sm);
    snprintf(name, sizeof name, "a record that the reference plays as sm_%d is replayed", sm);
    ok(root && replay_record(root, NULL, why) == 0, name, root ? why : "no record");
    json_decref(root);
}

/* Change a digest's last digit; back again if it is changed twice. */
static void flip_digit(json_t *o, const char *key)
{
    char hex[32];
    snprintf(hex, sizeof hex, "%s", kept_text(o, key));
    const size_t last = strlen(hex) - 1;
    hex[last] = hex[last] == '0' ? '1' : hex[last] == '1' ? '0' : hex[last] ^ 1;
    json_object_set_new(o, key, json_string(hex));
}

static void flip_number(json_t *o, const char *key)
{
    json_object_set_new(o, key, json_integer((json_int_t)(kept_number(o, key) ^ 1)));
}

/* Every digest and number of a record counts: one changed digit makes exactly one complaint. They take turns. */
static void test_tampered(json_t *root)
{
    static const char *const hex[] = {"digest_all", "digest_sample", "digest_large"};
    static const char *const numbers[] = {"count", "mismatches", "sample_end", "sample_step", "large_step"};
    char why[WHY] = "", first[WHY] = "";
    int missed = 0, tried = 0;
    json_t *checks = json_object_get(root, "checks"), *probes = json_object_get(root, "probes");
    ok(root && replay_record(root, NULL, why) == 0, "a record that the reference plays as sm_90 is replayed", why);
    for (size_t i = 0; i < json_array_size(checks); i++) {
        json_t *o = json_array_get(checks, i);
        gpu_check c;
        gpu_check_at(&c, i, 90, GPU_RUN_TINY);
        for (int k = 0; k < 8 && strcmp(kept_text(o, "status"), "done") == 0; k++) {
            if (!test_in_part(i + (size_t)k, 8) || (k == 4 && c.question)) /* mismatches of a question are none */
                continue;
            if (k < 3)
                flip_digit(o, hex[k]);
            else
                flip_number(o, numbers[k - 3]);
            *why = 0;
            if (replay_check(o, i, 90, GPU_RUN_TINY, why) != 1 && !missed++)
                snprintf(first, sizeof first, "check %zu, %s", i, k < 3 ? hex[k] : numbers[k - 3]);
            tried++;
            if (k < 3)
                flip_digit(o, hex[k]);
            else
                flip_number(o, numbers[k - 3]);
        }
    }
    for (size_t i = 0; i < json_array_size(probes); i++) {
        static const char *const keys[] = {"d", "c"};
        json_t *o = json_array_get(probes, i);
        for (int k = 0; k < 2; k++) {
            if (!test_in_part(i + (size_t)k, 8))
                continue;
            flip_number(o, keys[k]);
            *why = 0;
            if (replay_probe(o, i, 90, why) != 1 && !missed++)
                snprintf(first, sizeof first, "probe %zu, %s", i, keys[k]);
            tried++;
            flip_number(o, keys[k]);
        }
    }
    printf("# %d changes tried\n", tried);
    const double share = test_multiplier() < 1 ? test_multiplier() : 1;
    ok(missed == 0 && tried >= 100 * share, "every changed digest, count and answer is found", first);
    ok(replay_record(root, NULL, why) == 0, "the record is whole again", why);
}

/* Trainings and speeds: each row is a change that must be one complaint. */
static void test_tampered_trainings(json_t *root)
{
    static const struct {
        const char *list;
        size_t i;
        const char *key, *value; /* value: JSON; NULL: the key goes */
    } rows[] = {
        {"training", 0, "run", NULL},
        {"training", 0, "status", "\"failed\""},
        {"training", 0, "status", NULL},
        {"training", 0, "status", "\"differs\""},
        {"training", 0, "compared", "499"},
        {"training", 0, "steps", "0"},
        {"training", 0, "tensors", "499"},
        {"training", 0, "skipped_steps", "501"},
        {"training", 0, "arch", NULL},
        {"training", 0, "digests", NULL},
        {"training", 0, "digests", "\"../x\""},
        {"training", 0, "report", "\"step 3\""},
        {"training", 1, "report", NULL},
        {"training", 1, "compared", "100"},
        {"training", 1, "status", "\"equal\""},
        {"training", 2, "report", NULL},
        {"speed", 0, "name", NULL},
        {"speed", 0, "seconds", "0"},
        {"speed", 1, "text", NULL},
        {"speed", 1, "status", "\"done\""},
        {"speed", 1, "status", NULL},
        {"training", 0, "seconds", "0.1"},
        {"training", 0, "tensors", "23501"},
        {"speed", 0, "bytes", "0"},
        {"speed", 0, "flops", "1"},
        {"speed", 2, "share", "0.9"},
        {"speed", 3, "flops", "147438953472"},
        {"speed", 3, "bits", "\"different\""},
        {"speed", 3, "bits", NULL},
        {"speed", 3, "differing", "1"},
        {"speed", 3, "share", "0.5"},
        {"speed", 3, "share", "0"},
        {"speed", 3, "seconds", "3e-3"},
        {"speed", 0, "status", "\"skipped\""}, /* with a time */
        {"speed", 0, "status", "\"odd\""},
    };
    char why[WHY] = "", missed[WHY] = "";
    for (size_t i = 0; root && i < sizeof rows / sizeof *rows; i++) {
        json_t *o = json_array_get(json_object_get(root, rows[i].list), rows[i].i);
        json_t *saved = json_deep_copy(o);
        if (rows[i].value)
            json_object_set_new(o, rows[i].key, json_loads(rows[i].value, JSON_DECODE_ANY, NULL));
        else
            json_object_del(o, rows[i].key);
        if (replay_record(root, NULL, why) != 1 && !missed[0])
            snprintf(missed, sizeof missed, "row %zu: %s", i, rows[i].key);
        json_object_clear(o);
        json_object_update(o, saved);
        json_decref(saved);
    }
    ok(root && !missed[0], "a training or a speed that is not whole is found", missed);
    json_t *row = json_array_get(json_object_get(root, "speed"), 1), *status = json_string("failed");
    json_object_set_new(row, "status", status);
    json_object_set_new(row, "seconds", json_integer(0));
    json_object_set_new(row, "bits", json_string("unchecked"));
    json_object_set_new(row, "text", json_string("an illegal instruction was encountered"));
    int whole = replay_record(root, NULL, why) == 0;
    json_string_set(status, "skipped");
    whole = whole && replay_record(root, NULL, why) == 0;
    json_object_set_new(row, "text", json_string(""));
    whole = whole && replay_record(root, NULL, why) == 1;
    ok(whole, "a speed that could not be measured is none of the replay's business, if it says why", why);
    ok(replay_record(root, "/nonexistent", why) == 3, "digests that are not there are missed", why);
    json_object_del(root, "training");
    json_object_del(root, "speed");
    ok(replay_record(root, NULL, why) == 0, "a record without trainings and speeds is one, too", why);
    ok(replay_is_device("NVIDIA H200") && !replay_is_device("CPU executor") && !replay_is_device("host executor") &&
           !replay_is_device("the reference \"plays\" sm_90") && !replay_is_device(""),
       "what is no device is known by its name", NULL);
}

/* What the notes on the models expect of Hopper: the model row answers the probes so. */
static void test_expected(void)
{
    static const struct {
        const char *id, *instruction;
        uint32_t d;
    } expected[] = {
        {"P1", "mma.m16n8k16", 0x30800000},  {"P1b", "mma.m16n8k16", 0x33000000},  {"P2", "mma.m16n8k16", 0x00000002},
        {"P2d", "mma.m16n8k16", 0x00000001}, {"P12", "mma.m16n8k16", 0x0001},      {"P12b", "mma.m16n8k16", 0x0000},
        {"P6", "mma.m16n8k16", 0x7f800000},  {"P7", "mma.m16n8k16", 0x7f000000},   {"P8a", "mma.m16n8k16", 0x7fffffff},
        {"P8h", "mma.m16n8k16", 0x7fff},     {"P14b", "mma.m16n8k16", 0x33000000}, {"P14c", "mma.m16n8k16", 0},
    };
    size_t seen = 0, right = 0;
    gpu_probe p;
    int instruction;
    for (size_t i = 0; gpu_probe_fill(i, &p, &instruction); i++)
        for (size_t k = 0; k < sizeof expected / sizeof expected[0]; k++) {
            uint32_t d;
            if (strcmp(expected[k].id, p.id) != 0 || strcmp(expected[k].instruction, p.instruction) != 0)
                continue;
            seen++;
            if (gpu_probe_reference(&p, instruction, 90, &d) == 0 && d == expected[k].d)
                right++;
            else
                printf("# %s: %08" PRIx32 "\n", p.id, d);
        }
    ok(seen == sizeof expected / sizeof expected[0] && right == seen,
       "the rows of Hopper answer the probes as their sources do", NULL);
}

/* The generators reach what they are for. */
static void test_inputs(void)
{
    const int layout = GPU_LAYOUT;
    int bad = 0;
    for (int n = 0; gpu_instruction_at(n) && gpu_instruction_at(n)->family != GPU_DMMA; n++) {
        gpu_check c;
        memset(&c, 0, sizeof c);
        c.is_dots = 1;
        if (gpu_dots_fill(&c.dots, 90, n, layout) != 0) {
            bad++;
            continue;
        }
        const int outputs = c.dots.rows * GPU_COLUMNS;
        for (int i = 0; i < (c.dots.k + 1) * outputs; i++) {
            const int place = i % outputs;
            const uint32_t answer = gpu_layout_answer(&c.dots, place / GPU_COLUMNS, place % GPU_COLUMNS);
            const double value = mpsim_decode(&c.dots.sum.result.format, answer);
            bad += gpu_check_reference(&c, (uint64_t)i) != answer ||
                   value != place / GPU_COLUMNS + 64 * (place % GPU_COLUMNS);
        }
    }
    ok(bad == 0, "the layout check has one exact integer for every place, at every depth", NULL);

    uint64_t classes[GPU_DISTRIBUTIONS][5] = {{0}};
    for (int d = 0; d < GPU_DISTRIBUTIONS; d++) {
        gpu_dots j;
        if (gpu_dots_fill(&j, 90, 5, d) != 0) /* bf16 */
            bad++;
        for (uint64_t i = 0; i < 20000; i++)
            classes[d][mpsim_classify(&j.a, gpu_operand(&j, i / 16, 0, 1, (int)(i % 16)))]++;
    }
    ok(bad == 0 && classes[GPU_RANDOM][MPSIM_CLASS_NAN] > 0 && classes[GPU_NORMAL][MPSIM_CLASS_NAN] == 0 &&
           classes[GPU_WIDE][MPSIM_CLASS_NAN] == 0 && classes[GPU_WIDE][MPSIM_CLASS_INF] == 0 &&
           classes[GPU_WIDE][MPSIM_CLASS_SUBNORMAL] > 0 && classes[GPU_RELU][MPSIM_CLASS_ZERO] > 9000 &&
           classes[GPU_RELU][MPSIM_CLASS_ZERO] < 11000,
       "distributions have the classes of numbers that they name", NULL);
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        test_argument(argv[i]);
    if (argc == 1) {
        test_inputs();
        test_expected();
        if (test_in_part(0, 1))
            test_played(80);
        if (test_in_part(1, 1))
            test_played(89);
        json_t *root = play(90);
        test_tampered(root);
        test_tampered_trainings(root);
        json_decref(root);
        test_records();
        test_answers();
        test_changed_digits();
        test_changed_trainings();
        test_changed_reports();
    }
    printf("1..%d\n", plan);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
