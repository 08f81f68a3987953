/* train.c -- speed of whole training steps, as `mpsim train` tells it: multiply-adds in products a second
 * and core, of the products alone and with all else. MPSIM_POLICIES: where the policies are. */
#include "command.h"
#include "frame.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const struct {
    const char *what, *policy, *net;
    int width, batch, steps;
} runs[] = {
    {"fp32", "fp32", "mlp", 512, 256, 6},
    {"fp16", "pytorch-amp-fp16", "mlp", 512, 256, 6},
    {"bf16", "pytorch-amp-bf16", "mlp", 512, 256, 6},
    {"fp8", "nemo-fp8-hybrid-recent", "mlp", 512, 256, 6},
    {"fp16", "pytorch-amp-fp16", "cnn", 32, 64, 4},
    {"fp8", "nemo-fp8-hybrid-recent", "cnn", 32, 64, 4},
    {"fp32", "fp32", "gpt", 64, 8, 8},
    {"fp16", "pytorch-amp-fp16", "gpt", 64, 8, 8},
    {"bf16", "pytorch-amp-bf16", "gpt", 64, 8, 8},
    {"fp8", "nemo-fp8-hybrid-recent", "gpt", 64, 8, 8},
    {"mxfp8", "te-mxfp8", "gpt", 64, 8, 8},
    {"nvfp4", "te-nvfp4", "gpt", 64, 8, 8},
    {"fp16", "pytorch-amp-fp16", "gpt", 256, 8, 3},
    {"bf16", "pytorch-amp-bf16", "gpt", 256, 8, 3},
    {"fp8", "nemo-fp8-hybrid-recent", "gpt", 256, 8, 3},
    {"mxfp8", "te-mxfp8", "gpt", 256, 8, 3},
    {"nvfp4", "te-nvfp4", "gpt", 256, 8, 3},
    {"bf16", "pytorch-amp-bf16", "gpt", 768, 8, 2},
    {"fp8", "nemo-fp8-hybrid-recent", "gpt", 768, 8, 2},
};

/* The words of the line "speed": millions in products, a second and core, with all else. */
static int read_speed(const char *path, double speed[3])
{
    char line[512];
    int found = 0;
    FILE *f = fopen(path, "r");
    while (f && !found && fgets(line, sizeof line, f))
        found = sscanf(line, "speed of the emulator: %lf million multiply-adds, %lf a second and core; %lf with",
                       &speed[0], &speed[1], &speed[2]) == 3;
    if (f)
        fclose(f);
    return found;
}

static void put(bench *b, size_t run, const char *part, double n, double per_second)
{
    char how[64];
    snprintf(how, sizeof how, "%s %d %s", runs[run].net, runs[run].width, part);
    const bench_row r = {.operation = "train", .what = runs[run].what, .how = how, .n = n, .per_second = per_second};
    bench_print(b, &r);
}

static int run_one(bench *b, size_t run, const char *path)
{
    char line[256];
    double speed[3];
    const int tiny = b->n < 1 << 20;
    const char *more = strcmp(runs[run].net, "gpt") == 0 ? " --validation 1" : "";
    snprintf(line, sizeof line, "train -P %s --net %s%s --width %d --batch %d --steps %d -o %s", runs[run].policy,
             runs[run].net, more, tiny ? 16 : runs[run].width, tiny ? 16 : runs[run].batch,
             b->quick ? 2 : runs[run].steps, path);
    if (bench_command(line) != 0)
        return 1;
    if (!read_speed(path, speed))
        return tiny ? 0 : 1; /* too short for a clock */
    put(b, run, "products", 1e6 * speed[0], 1e6 * speed[1]);
    put(b, run, "step", 1e6 * speed[0], 1e6 * speed[2]);
    return 0;
}

int main(int argc, char **argv)
{
    bench b;
    char path[] = "bench-train-XXXXXX";
    int code = bench_begin(&b, argc, argv, "train");
    if (code)
        return code;
    const int fd = mkstemp(path);
    if (fd < 0) {
        perror(path);
        return 1;
    }
    close(fd);
    bench_part(&b, "Training steps: multiply-adds a second");
    for (size_t i = 0; !code && i < sizeof runs / sizeof *runs; i++)
        if (bench_wants(&b, "train", runs[i].what) && (!b.quick || (i % 4 < 2 && i < 10)))
            code = run_one(&b, i, path);
    unlink(path);
    return bench_end(&b) || code;
}
