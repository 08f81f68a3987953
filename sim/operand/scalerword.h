/* scalerword.h -- a loss scaler as users give it, in options and policies. */
#pragma once

#include <mpsim/scaler.h>

/* scaler_read -- mpsim_scaler_parse, and a first scale that can multiply a loss: the library's state
 * machine also takes what is 0 or infinite in binary32, as the frameworks' do. NULL; else what is
 * wrong, a phrase. The row's name may be wrong as well: mpsim_scaler_find tells. */
const char *scaler_read(mpsim_scaler_config *c, const char *spec);
