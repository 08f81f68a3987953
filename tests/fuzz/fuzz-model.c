/* fuzz-model.c -- names of accumulation models: what is accepted is valid, keeps its name, and computes. */
#include "input.h"

#include <mpsim/mpsim.h>
#include <stdlib.h>
#include <string.h>

enum { PRODUCTS = 19 };

/* A dot product of fp8 numbers, from c of the result's format. */
static void compute(const mpsim_model *m, const uint8_t *data, size_t n)
{
    const mpsim_format *e4m3 = mpsim_format_find("e4m3");
    uint8_t a[PRODUCTS], b[PRODUCTS];
    uint64_t d;
    mpsim_rng random = {.seed = 1};
    for (size_t i = 0; i < PRODUCTS; i++) {
        a[i] = data[i % n];
        b[i] = data[(i * 7 + 3) % n];
    }
    const mpsim_status status = mpsim_dot(m, e4m3, a, e4m3, b, PRODUCTS, 1, &random, &d);
    must(status == MPSIM_OK || status == MPSIM_EINVAL || status == MPSIM_ERANGE);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const mpsim_model untouched = {.name = "untouched"};
    char *text = input_text(data, n);
    mpsim_model m = untouched, again;
    if (mpsim_model_parse(&m, text) == MPSIM_OK) {
        must(mpsim_model_check(&m) == MPSIM_OK);
        must(strlen(m.name) < sizeof m.name);
        must(mpsim_model_parse(&again, m.name) == MPSIM_OK && strcmp(m.name, again.name) == 0);
        compute(&m, data, n);
    } else {
        must(memcmp(&m, &untouched, sizeof m) == 0);
    }
    free(text);
    return 0;
}
