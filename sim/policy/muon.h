/* muon.h -- the block `muon` of an optimizer: Muon for matrices of hidden layers. */
#ifndef MPSIM_SIM_POLICY_MUON_H
#define MPSIM_SIM_POLICY_MUON_H

#include "value.h"

/* resolve_muon -- 0, or -1 with the error set. The parameter's format is that of each layer. */
int resolve_muon(policy_reader *r, const yaml_value *v, mpsim_muon *o);

/* muon_describe -- "muon: torch, newton-schulz 5 in bf16, model exact, ..." */
const char *muon_describe(const mpsim_muon *o, char *out, size_t size);

#endif
