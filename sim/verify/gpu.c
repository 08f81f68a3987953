/* gpu.c -- verify: the hardware's own instructions, through gpu/gpu.h. */
#include "verify.h"

#include "../cli/options.h"
#include "../process/progress.h"

#include "../../gpu/gpu.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void device_text(const gpu_device *d, char *text, size_t size)
{
    snprintf(text, size, "%s, sm_%d, CUDA %d.%d%s%s", d->name, d->sm, d->runtime / 1000, d->runtime % 1000 / 10,
             d->driver_name[0] ? ", driver " : "", d->driver_name);
}

int verify_gpu_here(const verify *v, char *text, size_t size)
{
    gpu_device d;
    char why[160] = "no GPU";
    (void)v;
    if (gpu_open(&d, why, sizeof why)) {
        snprintf(text, size, "%s", why);
        return 0;
    }
    device_text(&d, text, size);
    return 1;
}

static void run_check(verify *v, size_t i, const char *device)
{
    gpu_result r;
    progress_say("gpu: %s", gpu_check_name(i));
    gpu_check_run(i, v->thorough ? GPU_RUN_FULL : GPU_RUN_QUICK, &r);
    verify_row *row = verify_add(v, "gpu", "%s", gpu_check_name(i));
    snprintf(row->with, sizeof row->with, "%s", device);
    row->status = r.status == GPU_DONE ? VERIFY_DONE : r.status == GPU_SKIPPED ? VERIFY_SKIPPED : VERIFY_FAILED;
    if (r.status != GPU_DONE) {
        snprintf(row->text, sizeof row->text, "%s", r.text);
        return;
    }
    row->compared = r.count;
    if (r.question && r.mismatches) { /* an answer, not an error */
        snprintf(row->note, sizeof row->note, "not what the reference says: %" PRIu64 " of them", r.mismatches);
        return;
    }
    row->mismatches = r.mismatches;
    if (r.mismatches)
        snprintf(row->text, sizeof row->text, "%s", r.text);
}

/* All probes as one row: what the rows of the models say against what the device answers. */
static void run_probes(verify *v, int sm, const char *device)
{
    progress_say("gpu: probes");
    verify_row *row = verify_add(v, "gpu", "probes of single instructions");
    snprintf(row->with, sizeof row->with, "%s", device);
    for (size_t i = 0; i < gpu_probe_count(); i++) {
        gpu_probe p;
        uint32_t expected;
        gpu_probe_run(i, &p);
        const int agrees = gpu_probe_agrees(&p, i, sm, &expected);
        row->compared += agrees >= 0;
        if (p.status == GPU_FAILED)
            row->status = VERIFY_FAILED;
        if (agrees == 0)
            verify_differs(row, "%s, %s of %s to %s: the device gives 0x%" PRIx32 ", the model 0x%" PRIx32, p.id,
                           p.instruction, p.operands, p.result, p.d, expected);
    }
}

int verify_gpu(verify *v)
{
    char text[256] = "", why[160];
    gpu_device d;
    if (gpu_open(&d, why, sizeof why) != 0)
        return fail(EXIT_IO, "verify: %s", why);
    device_text(&d, text, sizeof text);
    for (size_t i = 0; gpu_check_name(i); i++)
        run_check(v, i, text);
    run_probes(v, d.sm, text);
    return 0;
}
