/* like.c -- see like.h. */
#include "like.h"

#include "../array/need.h"
#include "../cli/options.h"

#include <threads/parallel.h>

#include <stdlib.h>
#include <string.h>

static int parse_scaled(like_product *l, const char *name, const mpsim_format *fa, const mpsim_format *fb)
{
    mpsim_scaled_mm *p = &l->scaled;
    if (mpsim_scaled_mm_parse(p, name) != MPSIM_OK)
        return fail(
            EXIT_USAGE,
            "dot: --like: '%s': a word that is not known, that comes twice or does not fit the others; the words are hopper, ada; fast, slow; S=N; "
            "contiguous (hopper), serial, pairwise (ada); out=binary32, bf16, fp16, e4m3, e5m2",
            name);
    if (!mpsim_model_accepts(&p->model, fa, fb))
        return fail(EXIT_USAGE, "dot: --like: '%s' does not take %s and %s but %s", name, fa->name, fb->name,
                    p->model.operands);
    if (p->parts == 0)
        return fail(
            EXIT_USAGE,
            "dot: --like: '%s': the number of parts into which cuBLASLt cuts K is unknown: it depends on GPU, library "
            "version, workspace, shape and formats. Say S=N; without a workspace (CUBLASLT_WORKSPACE_SIZE=0) it "
            "is S=1",
            name);
    l->shown = p->model;
    memcpy(l->shown.name, p->name, sizeof l->shown.name);
    l->shown.result.format = p->out;
    return 0;
}

static int parse_torch(like_product *l, const char *name, const mpsim_format *fa, const mpsim_format *fb)
{
    mpsim_torch_mm *p = &l->torch;
    l->cpu = 1;
    if (mpsim_torch_mm_parse(p, name) != MPSIM_OK)
        return fail(
            EXIT_USAGE,
            "dot: --like: '%s': a word that is not known, that comes twice or does not fit the others; the words are avx512 or amx; "
            "threads=N, at most 256, left-transposed, right-transposed; without threads part=N, of amx chunk=N, tiles=32, "
            "tiles=equal, N a multiple of 32",
            name);
    if (!mpsim_format_same(fa, fb) || mpsim_torch_mm_model(&l->shown, p, fa) != MPSIM_OK)
        return fail(EXIT_USAGE, "dot: --like: '%s' does not take %s and %s but %s", name, fa->name, fb->name,
                    p->by == MPSIM_TORCH_MM_AMX ? "bf16" : "bf16 or fp16");
    memcpy(l->shown.name, p->name, sizeof l->shown.name);
    l->shown.result.format = *fa;
    return 0;
}

int dot_like_parse(like_product *p, const char *name, const mpsim_format *fa, const mpsim_format *fb)
{
    memset(p, 0, sizeof *p);
    if (mpsim_scaled_mm_parse(&p->scaled, name) != MPSIM_ENOTFOUND)
        return parse_scaled(p, name, fa, fb);
    if (mpsim_torch_mm_parse(&p->torch, name) != MPSIM_ENOTFOUND)
        return parse_torch(p, name, fa, fb);
    return fail(EXIT_USAGE, "dot: --like: no product '%s'; there are torch-scaled-mm and torch-mm", name);
}

static int failed(const like_product *p, const operand *a, const operand *b, size_t depth, mpsim_status s)
{
    if (s == MPSIM_ERANGE && p->cpu && (a->rows < 2 || b->rows < 2))
        return fail(EXIT_USAGE,
                    "dot: '%s': products with a vector (one row or one column) are summed in another, unknown order",
                    p->shown.name);
    if (s == MPSIM_ERANGE && p->cpu && depth <= 4096 / a->rows / b->rows)
        return fail(EXIT_USAGE, "dot: '%s': torch does not use oneDNN for products of 4096 multiply-adds or fewer",
                    p->shown.name);
    if (s == MPSIM_ERANGE && p->cpu)
        return fail(
            EXIT_USAGE,
            "dot: '%s': how oneDNN cuts a K of %zu with AMX depends on shape, layout, threads and caches. Say threads=N, "
            "and left-transposed, right-transposed for operands that lie so: by oneDNN's rule; or %s",
            p->shown.name, depth,
            p->torch.cut || depth < 255 ? "tiles=equal, or tiles=32" : "chunk=N, and part=N; chunk=0: not at all");
    return fail(EXIT_IO, "dot: '%s': %s", p->shown.name, mpsim_status_string(s));
}

/* Exact results without the scales of the operands. */
static void unscale(double *to, const double *exact, const operand *a, const operand *b)
{
    for (size_t i = 0; i < a->rows * b->rows; i++)
        to[i] = exact[i] / a->scale / b->scale;
}

static mpsim_status multiply(double *d, const like_product *p, const operand *a, const operand *b, size_t depth)
{
    const mpsim_format *out = &p->shown.result.format;
    const mpsim_matrix ma = {&a->format, a->codes, a->depth, 0}, mb = {&b->format, b->codes, b->depth, 1};
    const size_t n = a->rows * b->rows;
    void *codes = need_memory(n, mpsim_format_code_bytes(out));
    mpsim_status s = p->cpu ? mpsim_torch_mm_run(&p->torch, a->rows, b->rows, depth, &ma, &mb, codes, &parallel_pool)
                            : mpsim_scaled_mm_run(&p->scaled, a->rows, b->rows, depth, &ma, &mb, (float)(1 / a->scale),
                                                  (float)(1 / b->scale), NULL, codes, &parallel_pool);
    if (s == MPSIM_OK)
        s = mpsim_decode_array(out, d, codes, n);
    for (size_t i = 0; i < n && p->cpu; i++)
        d[i] = d[i] / a->scale / b->scale;
    free(codes);
    return s;
}

int dot_like_measure(dot_error *e, const like_product *p, const operand *a, const operand *b, size_t depth,
                     const dot_truth *truth)
{
    const size_t n = a->rows * b->rows;
    double *d = need_memory(n, sizeof *d);
    dot_truth plain = dot_truth_make(n, truth->given == truth->rounded, truth->above);
    unscale(plain.rounded, truth->rounded, a, b);
    unscale(plain.given, truth->given, a, b);
    memset(e, 0, sizeof *e);
    const mpsim_status s = multiply(d, p, a, b, depth);
    if (s == MPSIM_OK) {
        dot_error_compare(e, d, &plain, n, p->shown.result.format.mbits + 1);
        e->first = n ? d[0] : 0;
    }
    dot_truth_clear(&plain);
    free(d);
    return s == MPSIM_OK ? 0 : failed(p, a, b, depth, s);
}
