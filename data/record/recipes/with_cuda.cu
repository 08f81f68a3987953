/* with_cuda.cu: arrays of a device as a trace: nvcc -o with_cuda with_cuda.cu && mkdir trace && ./with_cuda trace */
#include <cuda_runtime.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

typedef struct {
    const char *name; /* "wgrad:fc1.weight": weight, act, out, agrad, dgrad, wgrad, opt.m, opt.v or master, and whose */
    const float *device;
    size_t rows, columns;
} tensor;

#define PUT(...)                                                                                             \
    do {                                                                                                     \
        used += (size_t)snprintf(header + used, sizeof header - used, __VA_ARGS__);                          \
        if (used >= sizeof header)                                                                           \
            return -1;                                                                                       \
    } while (0)

/* Writes a safetensors file of float32 arrays: the size of a header, the header in JSON, the elements. Not 0: it could not. */
static int record(const char *trace, long step, int rank, double loss_scale, const tensor *t, size_t n)
{
    char path[4096], header[65536];
    size_t used = 0, end = 0, most = 1;
    PUT("{\"__metadata__\":{\"mpsim.schema\":\"mpsim-trace/1\",\"mpsim.step\":\"%ld\",\"mpsim.rank\":\"%d\","
        "\"mpsim.loss_scale\":\"%.17g\",\"mpsim.grads_scaled\":\"true\"}", step, rank, loss_scale);
    for (size_t i = 0; i < n; i++) {
        const size_t bytes = t[i].rows * t[i].columns * sizeof(float);
        PUT(",\"%s\":{\"dtype\":\"F32\",\"shape\":[%zu,%zu],\"data_offsets\":[%zu,%zu]}", t[i].name, t[i].rows, t[i].columns,
            end, end + bytes);
        end += bytes;
        most = bytes > most ? bytes : most;
    }
    PUT("}");
    snprintf(path, sizeof path, "%s/step_%06ld", trace, step);
    mkdir(path, 0777);
    snprintf(path, sizeof path, "%s/step_%06ld/rank_%05d.safetensors", trace, step, rank);
    FILE *f = fopen(path, "wb");
    float *host = (float *)malloc(most);
    int failed = !f || !host;
    for (int i = 0; i < 8 && !failed; i++)
        failed = putc((int)(used >> (8 * i) & 255), f) == EOF;
    failed = failed || fwrite(header, 1, used, f) != used;
    for (size_t i = 0; i < n && !failed; i++) {
        const size_t elements = t[i].rows * t[i].columns;
        failed = cudaMemcpy(host, t[i].device, elements * sizeof(float), cudaMemcpyDeviceToHost) != cudaSuccess ||
                 fwrite(host, sizeof(float), elements, f) != elements;
    }
    free(host);
    return (f && fclose(f)) || failed;
}

int main(int argc, char **argv)
{
    static float gradient[8][4];
    float *device;
    for (int i = 0; i < 32; i++)
        gradient[i / 4][i % 4] = 1024.0f * (float)(i - 16) / 1e6f; /* a gradient, times the loss scale */
    if (argc != 2 || cudaMalloc((void **)&device, sizeof gradient) != cudaSuccess ||
        cudaMemcpy(device, gradient, sizeof gradient, cudaMemcpyHostToDevice) != cudaSuccess)
        return 1;
    const tensor t[] = {{"wgrad:fc1.weight", device, 8, 4}};
    return record(argv[1], 1, 0, 1024, t, 1) != 0;
}
