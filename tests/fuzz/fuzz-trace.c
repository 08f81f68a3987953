/* fuzz-trace.c -- any bytes must be read as tensors or be refused: no crash, no hang, no growth. */
#include "config.h"
#include "input.h"
#include "sim/trace/trace.h"

#ifdef HAVE_HDF5
/* Its library loses memory on some damaged files (tests/trace/t-hdf5.c). */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
    return "leak:libhdf5";
}
#endif

enum {
    ELEMENTS = 1 << 16, /* of a tensor: one element may stand for very many */
    LOOKED_UP = 100 /* keys of metadata: a file may have tens of thousands, and each is looked for from the first on */
};

static void check(const trace_error *e)
{
    must(e->exit == 3 || e->exit == 4);
    must_be_line(e->text);
}

/* All that a file says. Whether it is a file of tensors. */
static int read_all(const char *path, const trace_options *options)
{
    trace_error e;
    double values[300];
    trace *t = trace_open(path, options, &e);
    if (!t) {
        check(&e);
        return 0;
    }
    for (size_t i = 0; trace_metadata_key(t, i); i++)
        must(trace_metadata_value(t, i) && (i >= LOOKED_UP || trace_metadata(t, trace_metadata_key(t, i))));
    /* an index names other files, which are not there: one that is read has none */
    must(trace_step(t) >= -1 && trace_size(t) > 0 && (!trace_has_index(t) || trace_count(t) == 0));
    for (int i = 0; i < 3; i++) {
        const char *note = i == 0 ? trace_clash(t) : i == 1 ? trace_quantised_note(t) : trace_unread_note(t);
        must(!note || *note);
    }
    for (size_t i = 0; i < trace_count(t); i++) {
        const trace_tensor *x = trace_at(t, i);
        uint64_t n = 0;
        size_t got = 1;
        (void)trace_kind(x->name);
        trace_scale_stats scales;
        if (x->quantised && trace_scales(t, i, &scales, &e))
            check(&e);
        if (trace_select(t, i, &e)) {
            check(&e);
            continue;
        }
        while (got && n < ELEMENTS && trace_read(t, values, 300, &got, &e) == 0)
            n += got;
        must(got != 0 || n <= x->count);
    }
    trace_close(t);
    return 1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const mpsim_format *bf16 = mpsim_format_find("bf16"), *e4m3 = mpsim_format_find("e4m3");
    const uint64_t shape[] = {2, 3};
    const trace_options plain = {.max_header = 1 << 20};
    const trace_options others[] = {
        {.assume_v1 = e4m3, .assume_v2 = bf16, .as_int16 = bf16, .as_int8 = e4m3},
        {.max_header = 1 << 20, .quantised = "parts"},
        {.max_header = 1 << 20, .quantised = "te:e5m2"},
        {.max_header = 1 << 20, .quantised = "compressed-tensors"},
        {.max_header = 1 << 20, .quantised = "gptq-v2"},
        {.raw_format = bf16, .raw_offset = 1},
        {.raw_format = e4m3, .raw_shape = shape, .raw_rank = 2},
    };
    const char *path = input_path(data, n);
    (void)trace_probe(path, NULL);
    if (read_all(path, &plain)) {
        for (size_t k = 0; k < sizeof others / sizeof others[0]; k++)
            (void)read_all(path, &others[k]);
    } else { /* a few bytes decide: one other way will do */
        (void)read_all(path, &others[n % (sizeof others / sizeof others[0])]);
    }
    return 0;
}
