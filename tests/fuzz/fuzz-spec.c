/* fuzz-spec.c -- loss scalers of a command line (first line) and a saved state (the rest): what is accepted
 * is valid, goes through overflows, and its state is loaded again as it was saved. */
#include "input.h"
#include "sim/scaler/spec.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static void save_and_load(mpsim_scaler *s)
{
    char text[STATE_TEXT], again[STATE_TEXT];
    mpsim_scaler t;
    must(mpsim_scaler_save(s, text, sizeof text) < sizeof text);
    must(mpsim_scaler_init(&t, &s->config) == MPSIM_OK);
    must(mpsim_scaler_load(&t, text) == MPSIM_OK);
    (void)mpsim_scaler_save(&t, again, sizeof again);
    must(strcmp(text, again) == 0);
}

static void check_scaler(const mpsim_scaler_config *c, const char *state)
{
    mpsim_scaler s, before;
    must(mpsim_scaler_config_check(c) == MPSIM_OK);
    must(mpsim_scaler_init(&s, c) == MPSIM_OK);
    before = s;
    if (mpsim_scaler_load(&s, state) != MPSIM_OK)
        must(memcmp(&s, &before, sizeof s) == 0);
    save_and_load(&s);
    for (unsigned i = 0; i < 24; i++) {
        const mpsim_scaler_result r = mpsim_scaler_update(&s, (0xb01u >> (i % 12)) & 1);
        must(!isnan(r.next) && r.next >= 0);
    }
    save_and_load(&s);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    char *text = input_text(data, n), *end = text + strcspn(text, "\n");
    scalerrun s = {0};
    const char *state = *end ? end + 1 : end;
    *end = 0;
    messages_begin();
    const int code = scaler_spec_add_list(&s, text);
    messages_check(code);
    must(s.count <= TRACKS_MAX);
    for (size_t i = 0; i < s.count; i++) {
        check_scaler(&s.tracks[i].scaler.config, state);
        traininglog_track_clear(&s.tracks[i]);
    }
    free(s.tracks);
    free(text);
    return 0;
}
