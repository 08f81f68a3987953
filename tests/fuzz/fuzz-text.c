/* fuzz-text.c -- any bytes as a text, and as tokens of llm.c (mpsim train --text, --tokens): the first byte says
 * which vocabulary. What is accepted has tokens below it, the last tenth of them held back. */
#include "input.h"
#include "sim/train/text.h"

#include <string.h>

static void check_text(const text_file *x)
{
    const size_t n = x->text.trained + x->text.held;
    must(x->text.held == n / 10 && strlen(x->text.name) > 0 && strlen(x->text.name) < 64);
    for (size_t i = 0; i < n; i++)
        must(train_token(&x->text, i) < x->text.vocabulary);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const uint32_t vocabularies[] = {0, 2, 128, 256, 300, 65536};
    if (n == 0)
        return 0;
    const char *path = input_path(data + 1, n - 1);
    for (int tokens = 0; tokens < 2; tokens++) {
        trace_error e = {0};
        text_file x = {.bytes = NULL};
        if (train_text_file_tokens(&x, path, tokens, vocabularies[data[0] % 6], &e) == 0) {
            check_text(&x);
        } else {
            must(e.exit == 3 || e.exit == 4);
            must_be_line(e.text);
        }
        train_text_file_clear(&x);
    }
    return 0;
}
