/* scalerword.h -- a loss scaler as users give it, in options and policies. */
#pragma once

#include <mpsim/scaler.h>

/* A scaler that is read change by change. */
typedef struct scaler_draft {
    mpsim_scaler_config config;
    unsigned given; /* of mpsim_scaler_set */
} scaler_draft;

/* scaler_begin -- a row's name with its changes, "torch:init=4,window=3". scaler_set -- one more change. scaler_end -- whether all
 * of it is a scaler whose first scale can multiply a loss (the library's state machine also takes what is 0 or infinite in binary32,
 * as the frameworks' do), and that the framework accepts. NULL; else what is wrong, a phrase. The row's name may be wrong as well:
 * mpsim_scaler_find tells. */
const char *scaler_begin(scaler_draft *d, const char *spec);
const char *scaler_set(scaler_draft *d, const char *key, const char *value);
const char *scaler_end(const scaler_draft *d);

/* scaler_read -- the scaler of a text alone. */
const char *scaler_read(mpsim_scaler_config *c, const char *spec);
