/* gpu.c -- verify: the hardware's own instructions, through gpu/gpu.h. */
#include "verify.h"

#include "../../gpu/gpu.h"

#include <stdio.h>
#include <string.h>

int verify_gpu_here(const verify *v, char *text, size_t size)
{
    gpu_device d;
    char why[160] = "no GPU";
    (void)v;
    if (gpu_open(&d, why, sizeof why)) {
        snprintf(text, size, "%s", why);
        return 0;
    }
    snprintf(text, size, "%s, sm_%d, CUDA %d.%d%s%s", d.name, d.sm, d.runtime / 1000,
             d.runtime % 1000 / 10, d.driver_name[0] ? ", driver " : "", d.driver_name);
    return 1;
}

int verify_gpu(verify *v)
{
    char device[sizeof((verify_row *)0)->with] = "";
    verify_gpu_here(v, device, sizeof device);
    for (size_t i = 0; gpu_check_name(i); i++) {
        gpu_result r;
        verify_progress(v, "gpu", gpu_check_name(i));
        gpu_check_run(i, !v->thorough, &r);
        verify_row *row = verify_add(v, "gpu", "%s", gpu_check_name(i));
        memcpy(row->with, device, sizeof row->with);
        row->status = r.status == GPU_DONE      ? VERIFY_DONE
                      : r.status == GPU_SKIPPED ? VERIFY_SKIPPED
                                                : VERIFY_FAILED;
        row->compared = r.status == GPU_DONE ? r.count : 0;
        row->mismatches = r.status == GPU_DONE ? r.mismatches : 0;
        if (r.status != GPU_DONE || r.mismatches)
            snprintf(row->text, sizeof row->text, "%.*s", (int)sizeof row->text - 1,
                     r.text);
    }
    return 0;
}
