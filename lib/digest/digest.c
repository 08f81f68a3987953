/* digest.c -- see mpsim/digest.h. */
#include <mpsim/digest.h>

#include "../base/extent.h"
#include "../base/codes.h"
#include "scalar.h"

/* A code as it is digested. A format with one NaN needs no change, and has a number where other
 * formats have a NaN of ones. */
static uint64_t digested(const mpsim_format *f, uint64_t code, uint64_t ones)
{
    return f->nan == MPSIM_NAN_TOP && mpsim_classify(f, code) == MPSIM_CLASS_NAN ? ones : code;
}

uint64_t mpsim_digest(const mpsim_format *f, const void *codes, size_t n, uint64_t first)
{
    uint64_t sum = 0;
    if (!codes || mpsim_format_check(f) != MPSIM_OK)
        return 0;
    const uint64_t ones = f->bits >= 64 ? UINT64_MAX : ((uint64_t)1 << f->bits) - 1;
    const size_t bytes = mpsim_format_code_bytes(f);
    if (!mpsim_fits(n, bytes))
        return 0;
    for (size_t i = 0; i < n; i++) {
        const uint64_t code = mpsim_code_load(codes, bytes, i) & ones;
        sum += mpsim_mix(first + i, digested(f, code, ones));
    }
    return sum;
}

uint64_t mpsim_digest_bytes(const void *bytes, size_t n, uint64_t first)
{
    const unsigned char *p = bytes;
    uint64_t sum = 0;
    for (size_t i = 0; p && mpsim_fits(n, 1) && i < n; i++)
        sum += mpsim_mix(first + i, p[i]);
    return sum;
}
