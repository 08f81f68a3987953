/* fuzz-trace.c -- any bytes must be read or refused: no crash, no hang, no growth.
 *
 * With libFuzzer: clang -g -O1 -fsanitize=fuzzer,address,undefined -Ilib -Isim, this file and
 * the .c files of sim/trace, lib and lib/kernels, -ljansson -lzip -lm; then
 *   ./fuzz-trace -max_len=4096 new-corpus tests/fuzz/corpus
 * With any compiler, for the files given as arguments: -DFUZZ_STANDALONE. */
#include "fuzzfile.h"
#include "sim/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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
