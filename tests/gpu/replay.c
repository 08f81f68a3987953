/* replay.c -- see replay.h. */
#include "replay.h"

#include "agree.h"
#include "kept.h"
#include "whole.h"

#include "../../gpu/validation/checks/checks.h"
#include "../../gpu/validation/program/record.h"
#include "lib/digest/scalar.h"
#include "support/extent.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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

/* ---- what a record says ---- */

static int is_digest(const json_t *o, const char *key, uint64_t expected)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016" PRIx64, expected);
    return strcmp(kept_text(o, key), hex) == 0;
}

int replay_check(const json_t *o, size_t i, int sm, int quick, char *why)
{
    gpu_check c;
    mpsim_model m;
    const char *name = kept_text(o, "name"), *status = kept_text(o, "status");
    const int found = gpu_check_at(&c, i, sm, quick);
    if (strcmp(status, "done") != 0)
        return agree_unanswered(o, name, why);
    if (found != 1)
        return kept_complain(why, name, "done, on a device that cannot do it");
    if (kept_number(o, "count") != c.count || kept_number(o, "sample_end") != c.count ||
        kept_number(o, "sample_step") != c.sample_step || kept_number(o, "large_step") != c.large_step)
        return kept_complain(why, name, "other outputs than those of this version");
    /* A device that differed from the rows of its day is as good a witness as another: what counts
     * is whether today's reference gives its outputs. */
    if (kept_number(o, "mismatches") != 0) {
        const json_t *samples = json_object_get(o, "samples");
        if (!json_object_get(o, "first") || !*kept_text(o, "text") || json_array_size(samples) == 0)
            return kept_complain(why, name, "mismatches without an example");
        if (c.question || (c.is_dots && c.dots.same_as >= 0))
            return 0; /* an answer; or two instructions that differ */
        for (size_t k = 0; k < json_array_size(samples); k++) {
            const json_t *pair = json_array_get(samples, k);
            const uint64_t index = (uint64_t)json_integer_value(json_array_get(pair, 0));
            const uint64_t output = (uint64_t)json_integer_value(json_array_get(pair, 1));
            if (index >= c.count || gpu_check_reference(&c, index) != output)
                return kept_complain(why, name, "the device differs from the reference");
        }
    }
    if (c.is_dots && c.dots.same_as < 0 &&
        (gpu_model(&m, sm, gpu_instruction_at(c.dots.instruction)) != 0 || strcmp(kept_text(o, "model"), m.name) != 0))
        return kept_complain(why, name, "compared with another model");
    const digests *d = replayed(i, &c, sm, quick);
    if (!is_digest(o, "digest_sample", d->sample))
        return kept_complain(why, name, "digest_sample");
    if (d->has_large && !is_digest(o, "digest_large", d->large))
        return kept_complain(why, name, "digest_large");
    if (c.count <= 4096 && !is_digest(o, "digest_all", d->all))
        return kept_complain(why, name, "digest_all");
    if (c.large_step == 1 && strcmp(kept_text(o, "digest_all"), kept_text(o, "digest_large")) != 0)
        return kept_complain(why, name, "digest_all and digest_large, of the same outputs");
    if (whole_is_due(&c, i)) {
        printf("# %s: all %" PRIu64 " outputs\n", name, c.count);
        if (!is_digest(o, "digest_all",
                       whole_digest(&c, sm, test_expensive() ? (unsigned)sysconf(_SC_NPROCESSORS_ONLN) : 1)))
            return kept_complain(why, name, "digest_all, of all outputs");
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

int replay_probe(const json_t *o, size_t i, int sm, char *why)
{
    gpu_probe p;
    int instruction;
    uint32_t d;
    const char *id = kept_text(o, "id"), *status = kept_text(o, "status");
    if (!gpu_probe_fill(i, &p, &instruction) || strcmp(id, p.id) != 0 ||
        strcmp(kept_text(o, "instruction"), p.instruction) != 0 || strcmp(kept_text(o, "operands"), p.operands) != 0 ||
        strcmp(kept_text(o, "result"), p.result) != 0)
        return kept_complain(why, id, "not the probe of this place");
    if (!same_codes(json_object_get(o, "a"), p.a, p.k) || !same_codes(json_object_get(o, "b"), p.b, p.k) ||
        kept_number(o, "c") != p.c)
        return kept_complain(why, id, "other inputs than those of this version");
    if (strcmp(status, "done") != 0)
        return agree_unanswered(o, id, why);
    if (gpu_probe_reference(&p, instruction, sm, &d) != 0)
        return kept_complain(why, id, "answered, without a model");
    return kept_number(o, "d") == d ? 0 : kept_complain(why, id, "the model gives another answer");
}

int replay_is_device(const char *name)
{
    return *name && !strstr(name, "CPU") && !strstr(name, "play") && !strstr(name, "executor");
}

int replay_record(const json_t *root, const char *beside, char *why)
{
    const json_t *checks = json_object_get(root, "checks");
    const json_t *probes = json_object_get(root, "probes");
    const int sm = (int)kept_number(root, "sm"), quick = (int)kept_number(root, "quick");
    size_t n = 0;
    int bad = 0;
    *why = 0;
    if (strcmp(kept_text(root, "schema"), "mpsim.gpu/1") != 0 || quick < GPU_RUN_FULL || quick > GPU_RUN_TINY)
        return kept_complain(why, "record", "not of schema mpsim.gpu/1");
    if (json_array_size(checks) == 0 || json_array_size(probes) != gpu_probe_count())
        return kept_complain(why, "record", "no checks, or other probes than those of this version");
    /* checks that came later are not in it; the others keep their order */
    for (size_t i = 0; i < json_array_size(checks); i++) {
        const json_t *o = json_array_get(checks, i);
        while (gpu_check_name(n) && strcmp(kept_text(o, "name"), gpu_check_name(n)) != 0)
            n++;
        if (!gpu_check_name(n))
            return kept_complain(why, kept_text(o, "name"), "no check of this version, or not in its place");
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
