/* mpfr_rows.h -- the parts of the group mpfr beside its casts. */
#ifndef MPSIM_SIM_VERIFY_MPFR_ROWS_H
#define MPSIM_SIM_VERIFY_MPFR_ROWS_H

#include "verify.h"

/* The rows of arithmetic and of dot products; 0 or an exit code. */
int verify_mpfr_arith(verify *v, const char *judge);
int verify_mpfr_dot(verify *v, const char *judge);

#endif
