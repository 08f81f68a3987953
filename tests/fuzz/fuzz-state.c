/* fuzz-state.c -- files of mpsim scaler --state-in: a scaler and a state, or refused; with their own last line, and
 * with the digest that is due. */
#include "input.h"
#include "sim/scaler/spec.h"

#include <mpsim/scaler.h>
#include <stdlib.h>
#include <string.h>

static void check_file(const uint8_t *data, size_t n)
{
    const char *path = input_path(data, n);
    char spec[STATE_SPEC], state[STATE_TEXT];
    mpsim_scaler_config c;
    mpsim_scaler s;
    messages_begin();
    const int code = scaler_state_read(path, spec, state);
    messages_check(code);
    if (code)
        return;
    must(strlen(spec) < sizeof spec && strlen(state) < sizeof state);
    if (mpsim_scaler_parse(&c, spec) == MPSIM_OK && mpsim_scaler_init(&s, &c) == MPSIM_OK)
        (void)mpsim_scaler_load(&s, state);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static const char head[] = "mpsim.scaler-state/2 ";
    size_t size;
    check_file(data, n);
    if (n >= sizeof head - 1 && memcmp(data, head, sizeof head - 1) == 0) {
        char *text = input_with_digest(data, n, "digest ", &size);
        check_file((const uint8_t *)text, size);
        free(text);
    }
    return 0;
}
