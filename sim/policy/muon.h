/* muon.h -- the block `muon` of an optimizer: Muon for matrices of hidden layers. */
#pragma once

#include "value.h"

/* policy_resolve_muon -- 0, or -1 with the error set. The parameter's format is that of each layer. given: a set of muon_key. */
int policy_resolve_muon(policy_reader *r, const yaml_value *v, mpsim_muon *o, unsigned *given);

/* policy_muon_scale_of -- the mpsim_muon_scale of a word; -1: none. */
int policy_muon_scale_of(const char *word);

/* policy_muon_describe -- "muon: torch, newton-schulz 5 in bf16, model exact, ..." */
const char *policy_muon_describe(const mpsim_muon *o, char *out, size_t size);
