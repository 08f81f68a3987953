/* models.cuh -- measurements of mpsim_cuda_gemm: products by models of other devices. */
#pragma once

#include "products.cuh"

#include "../../include/mpsim/cudagemm.h"

namespace
{

/* Stacks of n x n codes, rows contiguous. */
mpsim_stack stack_of(const product *x, const mpsim_format *f, void *codes)
{
    mpsim_stack s = {};
    s.format = f;
    s.codes = codes;
    s.rank = 2;
    s.shape[0] = s.shape[1] = x->n;
    s.strides[0] = static_cast<int64_t>(x->n);
    s.strides[1] = 1;
    return s;
}

/* A product by the library, and its workspace. */
struct library_product {
    mpsim_stack a, b, d;
    mpsim_cuda_operand of_a, of_b;
    mpsim_product p;
    memory room;
    mpsim_cuda_call call;
    char why[128];

    library_product(product *x, session *s)
        : a(stack_of(x, x->format, x->a.p)), b(stack_of(x, x->format, x->across.p)),
          d(stack_of(x, mpsim_format_find("binary32"), x->d.p)), of_a(), of_b(), call(), why("")
    {
        mpsim_operand_init(&of_a.of, &a, NULL, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_operand_init(&of_b.of, &b, NULL, MPSIM_ROUND_NEAREST_EVEN);
        mpsim_product_init(&p);
        p.model = &x->model;
        p.d = &d;
        call.bytes = mpsim_cuda_gemm_room(&p, &of_a, &of_b);
        room.get(s, call.bytes);
        call.room = room.p;
        call.why = why;
        call.why_size = sizeof why;
    }
    mpsim_status run()
    {
        return mpsim_cuda_gemm(&p, &of_a, &of_b, &call);
    }
};

void measure_model(session *s, const item *it)
{
    product x;
    if (product_set(&x, s, it) != 0)
        return;
    library_product l(&x, s);
    if (s->error == cudaSuccess && l.run() != MPSIM_OK) {
        give_up(s, GPU_FAILED, l.why);
        return;
    }
    keep_error(s, cudaDeviceSynchronize());
    if (s->error == cudaSuccess)
        check_sample(&x, "");
    if (s->error == cudaSuccess && s->row->status == GPU_DONE)
        measure_time(s, [&] { (void)l.run(); });
}

void list_models(item_list *list, const gpu_speed_plan *plan)
{
    static const product_case cases[] = {{"fp16", "volta-fp16-fp32", "", 1, 0},
                                         {"fp16", "ampere-fp16-fp32", "", 1, 0},
                                         {"e4m3", "ada-fp8-fp32", "", 1, 0},
                                         {"bf16", "fma:bf16", "", 1, 0},
                                         {"bf16", "sequential:bf16", "", 1, 0},
                                         {"fp16", "cdna3-fp16-fp32", "", 1, 0},
                                         {"e4m3fnuz", "cdna3-fp8-fp32", "", 1, 0},
                                         {"e2m1", "blackwell-tcgen05-mxf4", "", 1, 0},
                                         {"fp16", "cdna2-fp16-fp32", "", 1, 0},
                                         {"fp16", "cdna1-fp16-fp32", "", 1, 0},
                                         {"bf16", "exact", "", 1, 0}};
    const double n = static_cast<double>(plan->order);
    for (const product_case &c : cases) {
        if (gpu_gemm_has(c.model, plan->sm))
            continue; /* a row of products.cuh */
        item *it = add_item(list, "models", measure_model);
        snprintf(it->name, sizeof it->name, "%.8s %zu^3, model %.32s", c.format, plan->order, c.model);
        snprintf(it->model, sizeof it->model, "%s", c.model);
        it->flops = 2 * n * n * n;
        it->product = &c;
    }
}

} // namespace
