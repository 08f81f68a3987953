/* inputsout.h -- mpsim judge --inputs: a file with inputs, and which rows they do not tell apart. */
#pragma once

#include "../record/cells.h"

#include <mpsim/format.h>

/* judge_inputs_command -- row: a row or a kind; path: of the safetensors file, NULL: none. 0, or an exit code after a message. */
int judge_inputs_command(const char *row, const mpsim_format *from, const char *path, report_style style);
