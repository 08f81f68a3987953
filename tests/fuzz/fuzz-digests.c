/* fuzz-digests.c -- files of digests (mpsim train --check-digests): compared with three steps, or refused; as they
 * are, and with the digest that is due as their last line. */
#include "input.h"

#include <train/digests.h>
#include <stdlib.h>
#include <string.h>

static void compare(train_digest_file *d)
{
    train_tensor_digest tensors[] = {{"act:fc1", 0x0011223344556677}, {"out:fc1", 0xffffffffffffffff}};
    train_step_digests s = {.loss = 0x40135c29, .tensors = tensors, .count = 2, .room = 2};
    char difference[512] = "", error[TRAIN_ERROR] = "";
    for (s.step = 1; s.step <= 3; s.step++) {
        s.all = 0x00f1e2d3c4b5a697 + s.step;
        const int code = train_digest_file_compare(d, &s, difference, sizeof difference, error);
        must(code == 0 || code == 1 || code == -1);
        must(d->compared <= s.step);
        if (code < 0) {
            must_be_line(error);
            return;
        }
        if (code)
            must_be_line(difference);
    }
}

static void check_file(char *text, size_t n)
{
    char error[TRAIN_ERROR] = "";
    FILE *f = fmemopen(text, n, "r");
    train_digest_file d;
    must(f != NULL);
    if (train_digest_file_open(&d, f, error))
        must_be_line(error);
    else
        compare(&d);
    train_digest_file_close(&d);
    fclose(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t size;
    char *text = input_text(data, n), *ended = input_with_digest(data, n, "# end ", &size);
    if (n)
        check_file(text, n);
    check_file(ended, size);
    free(text);
    free(ended);
    return 0;
}
