/* spec.h -- the scalers of a command line, and their states in files. */
#pragma once

#include "run.h"

enum { STATE_SPEC = 128, STATE_TEXT = 512 };

/* scaler_spec_add -- a track for a scaler as mpsim_scaler_parse takes it; once, however often it is
 * named. 0, or an exit code after a message. */
int scaler_spec_add(scalerrun *s, const char *spec);

/* scaler_spec_add_list -- several: "torch:init=2^10,window=500,apex" are two; "all" is every dynamic
 * row of the table. */
int scaler_spec_add_list(scalerrun *s, const char *text);

/* A state file is "mpsim.scaler-state/2 SPEC", the line of mpsim_scaler_save and "digest DIGEST",
 * mpsim_digest_bytes of both lines. Any other is refused. Both return 0, or an exit code after a message. */
int scaler_state_read(const char *path, char spec[STATE_SPEC], char state[STATE_TEXT]);
int scaler_state_write(const char *path, const track *t);
