/* table.h -- the table of loss scalers; configurations in words and in JSON. */
#pragma once

#include "../record/record.h"

#include <mpsim/scaler.h>

/* scaler_list -- the table of scalers, in full for the rows that are named. 0, or an exit code. */
int scaler_list(FILE *to, report_style style, char **names, int n);

extern const report_kind scaler_scalers_kind;
extern const record_kind scaler_config_record; /* of an mpsim_scaler_config, as mpsim_scaler_parse spells its keys */
/* scaler_config_text -- "65536, x 2 after 2000 clean steps, x 0.5 on overflow; ..." */
const char *scaler_config_text(char *out, size_t size, const mpsim_scaler_config *c);

/* scaler_print_wrapped -- text in lines of at most 96 columns, after `first`, then after blanks. */
void scaler_print_wrapped(FILE *to, const char *first, const char *text);
