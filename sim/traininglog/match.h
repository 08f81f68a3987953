/* match.h -- whose rules reproduce a recorded scale. */
#pragma once

#include "track.h"

/* How well a scaler reproduces a log. */
typedef struct log_match {
    char label[96];
    uint64_t compared, agreed; /* changes of the scale and overflows            */
    int64_t step;              /* of the first difference; -1: its step is unknown */
    uint64_t at;               /* number of the overflow or change, from 1; 0: no difference */
    double recorded, computed; /* the scales there                              */
} log_match;

/* traininglog_match_scaler -- run a scaler over the overflows of a log, from the recorded first scale. With
 * windows != 0 the numbers of clean steps before growth that the log shows are tried for `window`
 * where the scaler's own does not fit. */
void traininglog_match_scaler(log_match *m, const char *label, const mpsim_scaler_config *c, const track *t,
                              int windows);
