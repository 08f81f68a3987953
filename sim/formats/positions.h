/* positions.h -- mpsim formats --positions: what a format does to positions and to their rotary angles. */
#pragma once

#include "../operand/target.h"
#include "../record/record.h"

extern const report_kind formats_positions_kind;

/* formats_positions_print -- of positions 0 to n - 1 in each format: which become the same, and how far off angles are. */
void formats_positions_print(uint64_t n, const target_list *list, report_style style, FILE *to);
