/* speed.cu -- see speed.h. */
#include "products.cuh"
#include "streams.cuh"

int gpu_speed_run(gpu_speed_row *rows, size_t max, size_t *count, const gpu_speed_plan *plan,
                  char *why, size_t size)
{
    cudaDeviceProp device;
    session s = {plan, rows, max, 0, 1, 0, cudaSuccess};
    *count = 0;
    if (plan->runs < 1 || plan->runs > 100 || plan->elements % 8 || plan->order % 128) {
        snprintf(why, size, "speed: runs, elements or order out of range");
        return -1;
    }
    keep_error(&s, cudaGetDeviceProperties(&device, 0));
    s.multiprocessors = device.multiProcessorCount;
    if (s.error == cudaSuccess && plan->elements)
        measure_streams(&s);
    if (s.error == cudaSuccess && plan->order)
        measure_gemm(&s);
    *count = s.count;
    if (s.error != cudaSuccess) {
        snprintf(why, size, "speed: %s", cudaGetErrorString(s.error));
        return -1;
    }
    return 0;
}

/* ---- reports ---- */

static const char *speed_verdict(const gpu_speed_row *r)
{
    return r->checked < 0 ? "-" : r->checked ? "equal" : "DIFFERENT";
}

void gpu_speed_table(FILE *to, const gpu_speed_row *rows, size_t count)
{
    fprintf(to, "%-46s %10s %12s %7s  %-9s  %s\n", "", "ms", "", "share", "bits", "");
    for (size_t i = 0; i < count; i++) {
        const gpu_speed_row *r = &rows[i];
        const double rate = r->seconds > 0 ? (r->bytes + r->flops) / r->seconds : 0;
        fprintf(to, "%-46s %10.3f %7.1f %s %6.1f%%  %-9s  %s", r->name, r->seconds * 1e3,
                r->bytes > 0 ? rate * 1e-9 : rate * 1e-12, r->bytes > 0 ? "GB/s" : "Tf/s",
                r->share * 100, speed_verdict(r), r->text);
        if (r->differing)
            fprintf(to, ": %llu of %llu differ", (unsigned long long)r->differing,
                    (unsigned long long)r->compared);
        if (r->difference > 0)
            fprintf(to, ", largest difference %.2g of the largest number", r->difference);
        putc('\n', to);
    }
}
