/* mpsim.h -- all of libmpsim.
 *
 * The library leaves the floating-point environment as it finds it, flags included. Conversions, operations, dot
 * and matrix products and digests give the same bits in any: operations and products set the default one where they compute in
 * floating point, and put the caller's back. The other headers say that they need the
 * default one, as a thread begins with: round to nearest, subnormal numbers neither flushed nor read as
 * zero (fesetenv(FE_DFL_ENV) restores it).
 *
 * Where a header says nothing else, everywhere:
 *
 *   pointers   A function that returns mpsim_status gives MPSIM_EINVAL for one that is needed and NULL, and for a
 *              description (format, rounding, model, ...) that its _check function refuses. Others ask nothing: what
 *              they are given is valid. Functions that find something by name or by number give NULL for what is not
 *              there. An array of 0 elements may be NULL.
 *   sizes      No array has more than PTRDIFF_MAX bytes, gaps between its lines included. A function that returns mpsim_status
 *              gives MPSIM_EINVAL for a size or a stride beyond that, without a look at the array. Of others norms and sums are
 *              NaN then, mpsim_unscale_array finds all that it looks for, and the rest does nothing.
 *   arrays     hold what their sizes say. Results overlap neither operands nor each other; "y may be x" means the
 *              same place. float, double and integers are aligned as C asks; codes need not be.
 *   indices    of random words count modulo 2^64.
 *   threads    All may call at once, each with results of its own: nothing is kept between calls but the choice of
 *              mpsim_isa_use.
 *   names      are bytes; letter case is that of ASCII, in any locale. */
#ifndef MPSIM_H
#define MPSIM_H

#include <mpsim/arith.h>
#include <mpsim/attention.h>
#include <mpsim/between.h>
#include <mpsim/block.h>
#include <mpsim/blockstats.h>
#include <mpsim/convolution.h>
#include <mpsim/digest.h>
#include <mpsim/dot.h>
#include <mpsim/format.h>
#include <mpsim/function.h>
#include <mpsim/gradient.h>
#include <mpsim/isa.h>
#include <mpsim/layer.h>
#include <mpsim/loop.h>
#include <mpsim/muon.h>
#include <mpsim/optim.h>
#include <mpsim/optimstate.h>
#include <mpsim/placement.h>
#include <mpsim/product.h>
#include <mpsim/recipe.h>
#include <mpsim/rng.h>
#include <mpsim/round.h>
#include <mpsim/scaledmm.h>
#include <mpsim/scaler.h>
#include <mpsim/stats.h>
#include <mpsim/status.h>
#include <mpsim/summary.h>
#include <mpsim/torchmm.h>
#include <mpsim/transformer.h>
#include <mpsim/update.h>

MPSIM_BEGIN

/* mpsim_version -- "MAJOR.MINOR.PATCH" of the library. */
MPSIM_API const char *mpsim_version(void);

MPSIM_END

#endif
