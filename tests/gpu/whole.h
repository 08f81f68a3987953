/* whole.h -- the digest of all outputs of a check, by the fast paths of the library. */
#pragma once

#include "../../gpu/validation/checks/checks.h"

/* whole_digest -- the sum of mpsim_mix over all outputs, what a record has as digest_all. Millions of outputs: of a
 * tensor core by mpsim_gemm, of conversions from binary32 by mpsim_encode_array_f32, of other
 * scalar operations by mpsim_arith_array; 0 if something fails. */
uint64_t whole_digest(const gpu_check *c, int sm, unsigned threads);
