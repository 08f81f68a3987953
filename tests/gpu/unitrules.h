/* unitrules.h -- how all results of the special function unit would follow from its tables: rules that are assumed, to be
 * compared with a device's digests. */
#pragma once

#include "../../gpu/functions/functions.h"

enum { UNIT_TABLES = 64 };

/* Tables, unpacked; NULL: not there. */
typedef struct unit_tables {
    gpu_extent extent;
    uint32_t *results[UNIT_TABLES];
    uint32_t *quarter; /* of sin, made of its table by unit_quarter */
} unit_tables;

/* 0; -1: no memory. */
int unit_quarter(unit_tables *t);
void unit_free(unit_tables *t);

/* The rules that are tried for a function, by number; NULL past the last. x is an operand, of sin and cos, too. 0 if *y is known. */
const char *unit_rule_name(int function, int rule);
int unit_rule(const unit_tables *t, int function, int rule, uint32_t x, uint32_t *y);

/* A result that a table has. 0 if so. */
int unit_table_result(const unit_tables *t, int operation, uint32_t x, uint32_t *y);
