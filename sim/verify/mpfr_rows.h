/* mpfr_rows.h -- the parts of the group mpfr beside its casts. */
#pragma once

#include "verify.h"

/* The rows of arithmetic and of dot products; 0 or an exit code. */
int verify_mpfr_arith(verify *v, const char *judge);
int verify_mpfr_dot(verify *v, const char *judge);
