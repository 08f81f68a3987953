/* fuzz-explain.c -- any text as a message of a framework: the rows that it holds, the longest first, and the nearest. */
#include "input.h"
#include "sim/explain/match.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = input_text(data, n);
    match found[MATCHES_MAX];
    const size_t count = explain_match_find(found, text);
    must(count <= MATCHES_MAX);
    for (size_t i = 0; i < count; i++) {
        must(found[i].message != NULL && (i == 0 || found[i].score <= found[i - 1].score));
        for (size_t k = 0; k < i; k++)
            must(found[k].message != found[i].message);
    }
    const message *near = explain_match_nearest(text);
    must(!near || near->name);
    free(text);
    return 0;
}
