/* agree.c -- see agree.h. */
#include "agree.h"

#include "kept.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/digest.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double real(const json_t *o, const char *key)
{
    return json_number_value(json_object_get(o, key));
}

static int is(const json_t *o, const char *key, const char *value)
{
    return strcmp(kept_text(o, key), value) == 0;
}

int agree_unanswered(const json_t *o, const char *name, char *why)
{
    if (!is(o, "status", "skipped") && !is(o, "status", "failed"))
        return kept_complain(why, name, "no status");
    return *kept_text(o, "text") ? 0 : kept_complain(why, name, "without an answer and without a reason");
}

/* ---- trainings ---- */

/* What a file of digests says. */
typedef struct digest_facts {
    char device[512], arch[64];
    uint64_t planned, steps, tensors; /* planned: steps of its run; tensors: of the first step */
    uint32_t first_loss, last_loss;
    int whole; /* its end is that of these bytes */
} digest_facts;

static void read_line(digest_facts *d, const char *line)
{
    uint64_t step, digest;
    uint32_t loss;
    (void)sscanf(line, "# device %511[^\n]", d->device);
    (void)sscanf(line, "# run arch %63s", d->arch);
    (void)sscanf(line, "# run steps %" SCNu64, &d->planned);
    d->tensors += d->steps == 1 && line[0] == ' ';
    if (line[0] < '0' || line[0] > '9' || sscanf(line, "%" SCNu64 " %" SCNx32 " %" SCNx64, &step, &loss, &digest) != 3)
        return;
    if (d->steps++ == 0)
        d->first_loss = loss;
    d->last_loss = loss;
}

static void read_digests(digest_facts *d, const char *all)
{
    memset(d, 0, sizeof *d);
    for (const char *line = all; *line; line = strchr(line, '\n') + 1) {
        char end[32];
        snprintf(end, sizeof end, "# end %016" PRIx64 "\n", mpsim_digest_bytes(all, (size_t)(line - all), 0));
        d->whole = line[0] == '#' && line[2] == 'e' && strcmp(line, end) == 0;
        read_line(d, line);
        if (!strchr(line, '\n'))
            break;
    }
}

/* Binary32; no number in a record is null. */
static int is_loss(const json_t *o, const char *key, uint32_t bits)
{
    const json_t *x = json_object_get(o, key);
    float loss;
    memcpy(&loss, &bits, sizeof loss);
    return isfinite(loss) ? json_is_number(x) && (float)json_number_value(x) == loss : json_is_null(x);
}

/* The record and its training beside the file; NULL, or what differs. */
static const char *compare_digests(const json_t *root, const json_t *o, const digest_facts *d)
{
    char device[1024];
    const int equal = is(o, "status", "equal");
    snprintf(device, sizeof device, "%.400s, driver %.64s, %.64s", kept_text(root, "device"), kept_text(root, "driver"),
             kept_text(root, "date"));
    return !d->whole                                               ? "its digests are cut or changed"
           : strncmp(device, d->device, sizeof d->device - 1) != 0 ? "its digests are of another device, driver or date"
           : strcmp(kept_text(o, "arch"), d->arch) != 0            ? "its digests are of another architecture"
           : kept_number(o, "steps") != d->planned                 ? "its digests are of a run of other steps"
           : kept_number(o, "steps") != d->steps                   ? "its digests have other steps"
           : equal && kept_number(o, "tensors") != d->steps * d->tensors ? "its digests have other tensors"
           : !is_loss(o, "first_loss", d->first_loss)                    ? "its digests have another first loss"
           : !is_loss(o, "last_loss", d->last_loss)                      ? "its digests have another last loss"
                                                                         : NULL;
}

static int agree_digests(const json_t *root, const json_t *o, const char *beside, char *why)
{
    const char *slash = strrchr(beside, '/'), *file = kept_text(o, "digests"), *differs;
    char folder[4096], longer[4096];
    digest_facts d;
    size_t n;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - beside) : 1, slash ? beside : ".");
    snprintf(longer, sizeof longer, "%s-%s", slash ? slash + 1 : beside, file);
    char *all = kept_read(folder, longer, &n);
    all = all ? all : kept_read(folder, file, &n);
    if (!all || n == 0 || all[n - 1] != '\n') {
        free(all);
        return kept_complain(why, kept_text(o, "run"), "its digests are not there, or cut");
    }
    read_digests(&d, all);
    free(all);
    differs = compare_digests(root, o, &d);
    return differs ? kept_complain(why, kept_text(o, "run"), differs) : 0;
}

int agree_training(const json_t *root, const json_t *o, const char *beside, char *why)
{
    const char *name = kept_text(o, "run"), *file = kept_text(o, "digests");
    const uint64_t steps = kept_number(o, "steps"), compared = kept_number(o, "compared");
    const int has_report = kept_text(o, "report")[0] != 0, differs = is(o, "status", "differs");
    if (!*name)
        return kept_complain(why, "training", "without a run");
    if (is(o, "status", "skipped") || is(o, "status", "failed"))
        return has_report ? 0 : kept_complain(why, name, "not trained, and no reason");
    if (!differs && !is(o, "status", "equal"))
        return kept_complain(why, name, "no status");
    /* a difference of its day: the digests are the device's, and judge today's library */
    if (steps == 0 || (differs ? compared >= steps || !has_report : compared != steps || has_report))
        return kept_complain(why, name, "steps and status do not fit");
    if (kept_number(o, "tensors") < compared || (compared && kept_number(o, "tensors") % compared && !differs) ||
        kept_number(o, "skipped_steps") > steps || !*kept_text(o, "arch"))
        return kept_complain(why, name, "tensors, skipped steps or architecture");
    if (real(o, "seconds") <
        (double)steps * real(o, "seconds_step") / 2) /* the median of the device's part of each step */
        return kept_complain(why, name, "its steps take longer than all of it");
    if (!*file || strchr(file, '/'))
        return kept_complain(why, name, "no file of digests");
    return beside ? agree_digests(root, o, beside, why) : 0;
}

/* ---- speeds ---- */

static double rate(const json_t *o)
{
    return is(o, "status", "done") && real(o, "seconds") > 0
               ? (real(o, "bytes") + real(o, "flops")) / real(o, "seconds")
               : 0;
}

/* What the row is of, "fp16 4096^3" of "fp16 4096^3, wgmma": length of these words. */
static int subject(const char *name)
{
    return (int)strcspn(name, ",");
}

/* Whether a row is what the shares of row o are of: a library's with the same operands, or a copy. */
static int is_measure(const json_t *measure, const json_t *o)
{
    const char *name = kept_text(measure, "name"), *of = kept_text(o, "name");
    if (real(o, "flops") > 0)
        return (strstr(name, ", cuBLAS") || strstr(name, ", cublasLt")) && subject(name) == subject(of) &&
               strncmp(name, of, (size_t)subject(of)) == 0;
    return strncmp(name, "copy", 4) == 0;
}

/* Its share is that of its rate in the rate of a measure up to this row; 0 where there is none. */
static int has_its_share(const json_t *rows, size_t i)
{
    const json_t *o = json_array_get(rows, i);
    int measures = 0, found = 0;
    for (size_t k = 0; k <= i; k++) {
        const json_t *measure = json_array_get(rows, k);
        if (!is_measure(measure, o) || rate(measure) == 0)
            continue;
        measures++;
        found += fabs(real(o, "share") * rate(measure) - rate(o)) <= 1e-6 * rate(o);
    }
    return found > 0 || (measures == 0 && real(o, "share") == 0);
}

/* "fp16 4096^3": two operations for each product. */
static int has_its_operations(const json_t *o)
{
    const char *power = strstr(kept_text(o, "name"), "^3,");
    const char *order = power;
    while (order && order > kept_text(o, "name") && order[-1] >= '0' && order[-1] <= '9')
        order--;
    const double n = order ? strtod(order, NULL) : 0;
    return !power || fabs(real(o, "flops") - 2 * n * n * n) <= 1e-8 * real(o, "flops");
}

int agree_speed(const json_t *rows, size_t i, char *why)
{
    const json_t *o = json_array_get(rows, i);
    const char *name = kept_text(o, "name");
    const double seconds = real(o, "seconds");
    if (*name && !is(o, "status", "done"))
        return seconds > 0 ? kept_complain(why, name, "a time, without an answer") : agree_unanswered(o, name, why);
    if (!*name || !(seconds > 0))
        return kept_complain(why, name, "no speed");
    if ((!is(o, "bits", "equal") && !is(o, "bits", "unchecked")) || kept_number(o, "differing"))
        return kept_complain(why, name, "what was measured differs");
    if (!(real(o, "bytes") >= 0) || !(real(o, "flops") >= 0) || (real(o, "bytes") > 0) == (real(o, "flops") > 0))
        return kept_complain(why, name, "neither bytes alone nor operations alone");
    if (!has_its_operations(o))
        return kept_complain(why, name, "operations that are not those of its size");
    return has_its_share(rows, i) ? 0 : kept_complain(why, name, "its share is another one");
}
