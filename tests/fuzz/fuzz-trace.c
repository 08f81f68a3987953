/* fuzz-trace.c -- any bytes must be read or refused: no crash, no hang, no growth.
 *
 * With libFuzzer: clang -g -O1 -fsanitize=fuzzer,address,undefined -Ilib -Isim, this file and
 * the .c files of sim/trace, lib and lib/kernels, -ljansson -lzip -lm; then
 *   ./fuzz-trace -max_len=4096 new-corpus tests/fuzz/corpus
 * With any compiler, for the files given as arguments: -DFUZZ_STANDALONE. */
#include "trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static char path[4096];

static void remove_file(void)
{
    unlink(path);
}

/* The one file that all inputs are written to. */
static int input_file(void)
{
    static int fd = -1;
    if (fd < 0) {
        const char *dir = getenv("TMPDIR");
        snprintf(path, sizeof path, "%s/mpsim-fuzz-XXXXXX", dir && *dir ? dir : "/tmp");
        fd = mkstemp(path);
        if (fd < 0) {
            perror(path);
            exit(EXIT_FAILURE);
        }
        atexit(remove_file);
    }
    return fd;
}

/* Whatever a message says, it is one line that a terminal can be shown. */
static void check(const trace_error *e)
{
    if ((e->exit != 3 && e->exit != 4) || !e->text[0])
        abort();
    for (const char *s = e->text; *s; s++)
        if ((unsigned char)*s < 0x20 || *s == 0x7f)
            abort();
}

static void read_all(const trace_options *options)
{
    trace_error e;
    double values[300];
    trace *t = trace_open(path, options, &e);
    if (!t) {
        check(&e);
        return;
    }
    for (size_t i = 0; trace_metadata_key(t, i); i++)
        if (!trace_metadata(t, trace_metadata_key(t, i)))
            abort();
    if (trace_step(t) < -1)
        abort();
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        uint64_t n = 0;
        size_t got = 1;
        (void)trace_kind(x->name);
        if (trace_select(t, i, &e)) {
            check(&e);
            continue;
        }
        while (got && trace_read(t, values, 300, &got, &e) == 0)
            n += got;
        if (got == 0 && n > x->count)
            abort();
    }
    trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const mpsim_format *bf16 = mpsim_format_find("bf16"), *e4m3 = mpsim_format_find("e4m3");
    const uint64_t shape[] = {2, 3};
    const trace_options options[] = {
        {.max_header = 1 << 20},
        {.assume_v1 = e4m3, .assume_v2 = bf16, .as_int16 = bf16, .as_int8 = e4m3},
        {.raw_format = bf16, .raw_offset = 1},
        {.raw_format = e4m3, .raw_shape = shape, .raw_rank = 2},
    };
    const int fd = input_file();
    if (ftruncate(fd, 0) || pwrite(fd, data, n, 0) != (ssize_t)n)
        return 0;
    (void)trace_probe(path, NULL);
    for (size_t i = 0; i < sizeof options / sizeof options[0]; i++)
        read_all(&options[i]);
    return 0;
}

#ifdef FUZZ_STANDALONE
int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        FILE *f = fopen(argv[i], "rb");
        uint8_t *data = malloc(1 << 24);
        if (!f || !data) {
            perror(argv[i]);
            return EXIT_FAILURE;
        }
        const size_t n = fread(data, 1, 1 << 24, f);
        fclose(f);
        LLVMFuzzerTestOneInput(data, n);
        free(data);
    }
    return EXIT_SUCCESS;
}
#endif
