/* fuzz-vectors.c -- recorded outputs of tensor cores (mpsim verify vectors): sets of numbers, or refused. */
#include "input.h"
#include "sim/verify/vectors.h"

#include <string.h>

static void check_set(const vector_set *s)
{
    uint64_t sum = 0;
    const size_t bytes = mpsim_format_code_bytes(&s->operand);
    must(s->n > 0 && s->k > 0 && strlen(s->name) < sizeof s->name);
    for (size_t i = 0; i < s->n * s->k * bytes; i++)
        sum += s->a[i] + s->b[i];
    for (size_t i = 0; i < s->n; i++)
        sum += s->c[i] + s->d[i];
    must(sum < UINT64_MAX); /* all of it is there to be read */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *path = input_path(data, n);
    trace_error e = {0};
    vector_file f;
    if (verify_vectors_load(&f, path, &e)) {
        must(e.exit == 3 || e.exit == 4);
        must_be_line(e.text);
        return 0;
    }
    must(f.count > 0);
    for (size_t i = 0; i < f.count; i++)
        check_set(&f.sets[i]);
    verify_vectors_clear(&f);
    return 0;
}
