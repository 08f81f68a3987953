/* like.c -- see like.h. */
#include "like.h"

#include "../array/need.h"
#include "../cli/options.h"

#include <train/parallel.h>

#include <stdlib.h>
#include <string.h>

int like_parse(mpsim_scaled_mm *p, mpsim_model *shown, const char *name, const mpsim_format *fa, const mpsim_format *fb)
{
    switch (mpsim_scaled_mm_parse(p, name)) {
    case MPSIM_OK:
        break;
    case MPSIM_ENOTFOUND:
        return fail(EXIT_USAGE, "dot: --like: no product '%s'; there is torch-scaled-mm", name);
    default:
        return fail(
            EXIT_USAGE,
            "dot: --like: '%s': a word that is not known, that comes twice or does not fit the others; the words are hopper, ada; fast, slow; S=N; "
            "contiguous (hopper), serial, pairwise (ada); out=binary32, bf16, fp16, e4m3, e5m2",
            name);
    }
    if (!mpsim_model_accepts(&p->model, fa, fb))
        return fail(EXIT_USAGE, "dot: --like: '%s' does not take %s and %s but %s", name, fa->name, fb->name,
                    p->model.operands);
    if (p->parts == 0)
        return fail(
            EXIT_USAGE,
            "dot: --like: '%s': into how many parts cuBLASLt cuts K is not known here: it depends on GPU, library "
            "version, workspace, shape and formats. Say S=N; without a workspace (CUBLASLT_WORKSPACE_SIZE=0) it "
            "is S=1",
            name);
    *shown = p->model;
    memcpy(shown->name, p->name, sizeof shown->name);
    shown->result.format = p->out;
    return 0;
}

int like_measure(dot_error *e, const mpsim_scaled_mm *p, const operand *a, const operand *b, size_t depth,
                 const double *exact)
{
    const mpsim_matrix ma = {&a->format, a->codes, a->depth, 0}, mb = {&b->format, b->codes, b->depth, 1};
    const size_t n = a->rows * b->rows;
    double *d = need_memory(n, sizeof *d), *want = need_memory(n, sizeof *want);
    void *codes = need_memory(n, mpsim_format_code_bytes(&p->out));
    memset(e, 0, sizeof *e);
    mpsim_status s = mpsim_scaled_mm_run(p, a->rows, b->rows, depth, &ma, &mb, (float)(1 / a->scale),
                                         (float)(1 / b->scale), NULL, codes, &parallel_pool);
    if (s == MPSIM_OK)
        s = mpsim_decode_array(&p->out, d, codes, n);
    for (size_t i = 0; i < n; i++)
        want[i] = exact[i] / a->scale / b->scale;
    if (s == MPSIM_OK) {
        dot_error_compare(e, d, want, n, p->out.mbits + 1);
        e->first = n ? d[0] : 0;
    }
    free(codes);
    free(want);
    free(d);
    return s == MPSIM_OK ? 0 : fail(EXIT_IO, "dot: '%s': %s", p->name, mpsim_status_string(s));
}
