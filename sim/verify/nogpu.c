/* nogpu.c -- what stands for gpu.c in a build without CUDA. */
#include "verify.h"

#include <stdio.h>

int verify_gpu_here(const verify *v, char *text, size_t size)
{
    (void)v;
    snprintf(text, size, "built without CUDA");
    return 0;
}

/* Called by nobody: the group is not here. */
int verify_gpu(verify *v)
{
    verify_row *row = verify_add(v, "gpu", "CUDA");
    row->status = VERIFY_FAILED;
    snprintf(row->text, sizeof row->text, "built without CUDA");
    return 0;
}
