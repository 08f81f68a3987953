/* t-record.c -- records of CUDA devices (data/gpu), replayed on the CPU: every sample of every
 * check again from its inputs, by the public functions of the library, and every probe by its
 * model row. Trainings and speeds must agree with themselves and with the files of digests; train/t-digests repeats the
 * trainings. Each file has a digest (SHA256SUMS). The replay itself is proven on records of a device that the reference
 * plays. Arguments are records, too, or folders of them, from whatever "device". TAP of its own, so that a missing
 * record is a SKIP. */
#include "support/support.h"

#include "agree.h"
#include "kept.h"
#include "whole.h"

#include "../../gpu/checks/cases.h"
#include "../../gpu/checks/checks.h"
#include "../../gpu/checks/reference.h"
#include "../../gpu/program/record.h"
#include "lib/digest/scalar.h"

#include <dirent.h>
#include <inttypes.h>
#include <jansson.h>
#include <math.h>
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

/* ---- digests on the CPU ---- */

/* All outputs, some 40 CPU minutes, in make check-long; else a check of a quick instruction of tensor cores every two or three days, in
 * a second or two. */
static int whole_is_due(const gpu_check *c, size_t i)
{
    const int quick = c->is_dots && c->dots.k <= 8 && c->dots.distribution != GPU_RANDOM && c->dots.variant.chain == 0;
    return test_expensive() || (quick && c->count > 4096 && test_in_part(i, 16));
}

enum { MOST_CHECKS = 1024 };

typedef struct digests {
    int sm, quick, has_large; /* what they are of */
    uint64_t all, sample, large;
} digests;

typedef uint64_t source(const gpu_check *c, uint64_t index);

/* Of the outputs below the end that are multiples of step. */
static uint64_t digest(const gpu_check *c, source *output, uint64_t step)
{
    uint64_t sum = 0;
    for (uint64_t i = 0; i < c->count; i += step)
        sum += mpsim_mix(i, output(c, i));
    return sum;
}

/* Every output if that is quick, the large sample if it is or if time does not matter. */
static const digests *replayed(size_t i, const gpu_check *c, int sm, int quick)
{
    static digests known[MOST_CHECKS];
    digests *d = &known[i];
    const int few = c->count <= 4096;
    const int large = few || test_expensive();
    if (d->sm != sm || d->quick != quick || d->has_large != large) {
        d->sm = sm;
        d->quick = quick;
        d->has_large = large;
        d->sample = digest(c, gpu_check_reference, c->sample_step);
        d->large = large ? digest(c, gpu_check_reference, c->large_step) : 0;
        d->all = few ? digest(c, gpu_check_reference, 1) : 0;
    }
    return d;
}

/* ---- replay: the number of entries that are not as they should be, the first one in `why` ---- */

static int complain(char *why, const char *name, const char *what)
{
    return kept_complain(why, name, what);
}

static uint64_t number(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static int is_digest(const json_t *o, const char *key, uint64_t expected)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016" PRIx64, expected);
    return strcmp(text(o, key), hex) == 0;
}

static int replay_check(const json_t *o, size_t i, int sm, int quick, char *why)
{
    gpu_check c;
    mpsim_model m;
    const char *name = text(o, "name"), *status = text(o, "status");
    const int found = gpu_check_at(&c, i, sm, quick);
    if (strcmp(status, "done") != 0)
        return agree_unanswered(o, name, why);
    if (found != 1)
        return complain(why, name, "done, on a device that cannot do it");
    if (number(o, "count") != c.count || number(o, "sample_end") != c.count ||
        number(o, "sample_step") != c.sample_step || number(o, "large_step") != c.large_step)
        return complain(why, name, "other outputs than those of this version");
    /* A device that differed from the rows of its day is as good a witness as another: what counts
     * is whether today's reference gives its outputs. */
    if (number(o, "mismatches") != 0) {
        const json_t *samples = json_object_get(o, "samples");
        if (!json_object_get(o, "first") || !*text(o, "text") || json_array_size(samples) == 0)
            return complain(why, name, "mismatches without an example");
        if (c.question || (c.is_dots && c.dots.same_as >= 0))
            return 0; /* an answer; or two instructions that differ */
        for (size_t k = 0; k < json_array_size(samples); k++) {
            const json_t *pair = json_array_get(samples, k);
            const uint64_t index = (uint64_t)json_integer_value(json_array_get(pair, 0));
            const uint64_t output = (uint64_t)json_integer_value(json_array_get(pair, 1));
            if (index >= c.count || gpu_check_reference(&c, index) != output)
                return complain(why, name, "the device differs from the reference");
        }
    }
    if (c.is_dots && c.dots.same_as < 0 &&
        (gpu_model(&m, sm, gpu_instruction_at(c.dots.instruction)) != 0 || strcmp(text(o, "model"), m.name) != 0))
        return complain(why, name, "compared with another model");
    const digests *d = replayed(i, &c, sm, quick);
    if (!is_digest(o, "digest_sample", d->sample))
        return complain(why, name, "digest_sample");
    if (d->has_large && !is_digest(o, "digest_large", d->large))
        return complain(why, name, "digest_large");
    if (c.count <= 4096 && !is_digest(o, "digest_all", d->all))
        return complain(why, name, "digest_all");
    if (c.large_step == 1 && strcmp(text(o, "digest_all"), text(o, "digest_large")) != 0)
        return complain(why, name, "digest_all and digest_large, of the same outputs");
    if (whole_is_due(&c, i)) {
        printf("# %s: all %" PRIu64 " outputs\n", name, c.count);
        if (!is_digest(o, "digest_all",
                       whole_digest(&c, sm, test_expensive() ? (unsigned)sysconf(_SC_NPROCESSORS_ONLN) : 1)))
            return complain(why, name, "digest_all, of all outputs");
    }
    return 0;
}

static int same_codes(const json_t *array, const uint32_t *codes, int n)
{
    if (json_array_size(array) != (size_t)n)
        return 0;
    for (int k = 0; k < n; k++)
        if ((uint64_t)json_integer_value(json_array_get(array, (size_t)k)) != codes[k])
            return 0;
    return 1;
}

static int replay_probe(const json_t *o, size_t i, int sm, char *why)
{
    gpu_probe p;
    int instruction;
    uint32_t d;
    const char *id = text(o, "id"), *status = text(o, "status");
    if (!gpu_probe_fill(i, &p, &instruction) || strcmp(id, p.id) != 0 ||
        strcmp(text(o, "instruction"), p.instruction) != 0 || strcmp(text(o, "operands"), p.operands) != 0 ||
        strcmp(text(o, "result"), p.result) != 0)
        return complain(why, id, "not the probe of this place");
    if (!same_codes(json_object_get(o, "a"), p.a, p.k) || !same_codes(json_object_get(o, "b"), p.b, p.k) ||
        number(o, "c") != p.c)
        return complain(why, id, "other inputs than those of this version");
    if (strcmp(status, "done") != 0)
        return agree_unanswered(o, id, why);
    if (gpu_probe_reference(&p, instruction, sm, &d) != 0)
        return complain(why, id, "answered, without a model");
    return number(o, "d") == d ? 0 : complain(why, id, "the model gives another answer");
}

/* The reference "plays", or a CPU executes the kernels: no witness of hardware. */
static int is_device(const char *name)
{
    return *name && !strstr(name, "CPU") && !strstr(name, "play") && !strstr(name, "executor");
}

/* beside: see agree_training. */
static int replay(const json_t *root, const char *beside, char *why)
{
    const json_t *checks = json_object_get(root, "checks");
    const json_t *probes = json_object_get(root, "probes");
    const int sm = (int)number(root, "sm"), quick = (int)number(root, "quick");
    size_t n = 0;
    int bad = 0;
    *why = 0;
    if (strcmp(text(root, "schema"), "mpsim.gpu/1") != 0 || quick < GPU_RUN_FULL || quick > GPU_RUN_TINY)
        return complain(why, "record", "not of schema mpsim.gpu/1");
    if (json_array_size(checks) == 0 || json_array_size(probes) != gpu_probe_count())
        return complain(why, "record", "no checks, or other probes than those of this version");
    /* checks that came later are not in it; the others keep their order */
    for (size_t i = 0; i < json_array_size(checks); i++) {
        const json_t *o = json_array_get(checks, i);
        while (gpu_check_name(n) && strcmp(text(o, "name"), gpu_check_name(n)) != 0)
            n++;
        if (!gpu_check_name(n))
            return complain(why, text(o, "name"), "no check of this version, or not in its place");
        bad += replay_check(o, n++, sm, quick, why);
    }
    for (size_t i = 0; i < json_array_size(probes); i++)
        bad += replay_probe(json_array_get(probes, i), i, sm, why);
    const json_t *trainings = json_object_get(root, "training"); /* older records have none */
    const json_t *speeds = json_object_get(root, "speed");
    for (size_t i = 0; i < json_array_size(trainings); i++)
        bad += agree_training(root, json_array_get(trainings, i), beside, why);
    for (size_t i = 0; i < json_array_size(speeds); i++)
        bad += agree_speed(speeds, i, why);
    return bad;
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
    const uint64_t outputs = gpu_tile_outputs(j), tile = index / outputs;
    const int row = (int)(index % outputs) / j->columns, column = (int)(index % outputs) % j->columns;
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
    ok(root && replay(root, NULL, why) == 0, name, root ? why : "no record");
    json_decref(root);
}

/* Change a digest's last digit; back again if it is changed twice. */
static void flip_digit(json_t *o, const char *key)
{
    char hex[32];
    snprintf(hex, sizeof hex, "%s", text(o, key));
    const size_t last = strlen(hex) - 1;
    hex[last] = hex[last] == '0' ? '1' : hex[last] == '1' ? '0' : hex[last] ^ 1;
    json_object_set_new(o, key, json_string(hex));
}

static void flip_number(json_t *o, const char *key)
{
    json_object_set_new(o, key, json_integer((json_int_t)(number(o, key) ^ 1)));
}

/* Every digest and number of a record counts: one changed digit makes exactly one complaint. They take turns. */
static void test_tampered(json_t *root)
{
    static const char *const hex[] = {"digest_all", "digest_sample", "digest_large"};
    static const char *const numbers[] = {"count", "mismatches", "sample_end", "sample_step", "large_step"};
    char why[WHY] = "", first[WHY] = "";
    int missed = 0, tried = 0;
    json_t *checks = json_object_get(root, "checks"), *probes = json_object_get(root, "probes");
    ok(root && replay(root, NULL, why) == 0, "a record that the reference plays as sm_90 is replayed", why);
    for (size_t i = 0; i < json_array_size(checks); i++) {
        json_t *o = json_array_get(checks, i);
        gpu_check c;
        gpu_check_at(&c, i, 90, GPU_RUN_TINY);
        for (int k = 0; k < 8 && strcmp(text(o, "status"), "done") == 0; k++) {
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
    ok(replay(root, NULL, why) == 0, "the record is whole again", why);
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
        if (replay(root, NULL, why) != 1 && !missed[0])
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
    int whole = replay(root, NULL, why) == 0;
    json_string_set(status, "skipped");
    whole = whole && replay(root, NULL, why) == 0;
    json_object_set_new(row, "text", json_string(""));
    whole = whole && replay(root, NULL, why) == 1;
    ok(whole, "a speed that could not be measured is none of the replay's business, if it says why", why);
    ok(replay(root, "/nonexistent", why) == 3, "digests that are not there are missed", why);
    json_object_del(root, "training");
    json_object_del(root, "speed");
    ok(replay(root, NULL, why) == 0, "a record without trainings and speeds is one, too", why);
    ok(is_device("NVIDIA H200") && !is_device("CPU executor") && !is_device("host executor") &&
           !is_device("the reference \"plays\" sm_90") && !is_device(""),
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
    for (int n = 0; gpu_instruction_at(n); n++) {
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
    const int kind = kind_of(text(root, "schema"));
    snprintf(name, sizeof name, "the library repeats %.300s", file);
    ok(root && (kind == STATISTICS ? kept_statistics(root, why)
                : kind == WATCH    ? kept_cuda_check(root, why)
                : kind == RECORD   ? replay(root, beside, why)
                                   : 0) == 0,
       name, root ? why : error.text);
    snprintf(name, sizeof name, "%.300s: of a device", file);
    if (!any)
        ok(is_device(text(root, "device")), name, text(root, "device"));
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

static void test_records(void)
{
    static const char *const kinds[KINDS] = {"records", "statistics", "tensors of torch", NULL, "logs of sanitizers"};
    int found[KINDS] = {0};
    test_folder(test_source_path("data/gpu"), 0, found);
    for (int i = 0; i < KINDS; i++)
        if (!found[i] && kinds[i])
            printf("ok %d - %s of a device # SKIP waits for a device\n", ++plan, kinds[i]);
}

/* What devices answered through PyTorch: tests/record/t-device reads it. */
static void test_answers(void)
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
static void test_changed_digits(void)
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
static void test_changed_trainings(void)
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
    if (!root || strcmp(text(o, "run"), "mlp-fp16") != 0)
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
static void test_changed_reports(void)
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
static void test_argument(char *path)
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
