/* mpsim.h -- all of libmpsim. */
#ifndef MPSIM_H
#define MPSIM_H

#include <mpsim/arith.h>
#include <mpsim/block.h>
#include <mpsim/digest.h>
#include <mpsim/dot.h>
#include <mpsim/format.h>
#include <mpsim/gradient.h>
#include <mpsim/isa.h>
#include <mpsim/layer.h>
#include <mpsim/optim.h>
#include <mpsim/recipe.h>
#include <mpsim/rng.h>
#include <mpsim/round.h>
#include <mpsim/scaler.h>
#include <mpsim/stats.h>
#include <mpsim/status.h>

MPSIM_BEGIN

/* mpsim_version -- "MAJOR.MINOR.PATCH" of the library. */
MPSIM_API const char *mpsim_version(void);

MPSIM_END

#endif
