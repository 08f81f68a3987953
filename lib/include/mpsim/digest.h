/* digest.h -- digests of a tensor's codes: what two machines compare after a step.
 *
 * The sum modulo 2^64 of a mix of (index, code): any order and any split of the elements gives the
 * same, so that a device sums in parallel. Two tensors with equal digests are equal but for a
 * chance of about 2^-64; it is no cryptographic hash. It is integer arithmetic: no floating-point
 * environment changes it. */
#ifndef MPSIM_DIGEST_H
#define MPSIM_DIGEST_H

#include <mpsim/format.h>

MPSIM_BEGIN

/* mpsim_digest -- the digest of n codes in format f, the first of which has index `first`. Every
 * NaN counts as the code whose bits are all ones; the only NaN of a format that has one
 * (MPSIM_NAN_NEGZERO) counts as itself. Digests of parts add up.
 *
 *   codes  n codes of mpsim_format_code_bytes(f) bytes each, host byte order, any alignment
 *
 * 0 if f is NULL or invalid, or codes is NULL; 0 for n = 0. The mix is lib/digest/scalar.h. */
MPSIM_API uint64_t mpsim_digest(const mpsim_format *f, const void *codes, size_t n, uint64_t first);

/* mpsim_digest_bytes -- the digest of n bytes, of a text or a file, each of which is a code that counts
 * as itself; `first` and parts as above. */
MPSIM_API uint64_t mpsim_digest_bytes(const void *bytes, size_t n, uint64_t first);

/* mpsim_digest_blocks -- another digest of the same codes, with the same NaNs, that takes less time: a sum with keys of each block
 * of MPSIM_DIGEST_BLOCK_BYTES of codes; these sums are mixed with the block's index. One changed word of 32 bits, and two codes of
 * a block that are exchanged, always change it; other changes but for a chance of about 2^-64. It is not mpsim_digest: a file
 * must say which it has.
 *
 *   first  a multiple of the codes in a block. Digests of parts that begin at such places add up
 *
 * 0 as above, and for another `first`. The definition is in lib/digest/scalar.h. */
#define MPSIM_DIGEST_BLOCK_BYTES 2048
MPSIM_API uint64_t mpsim_digest_blocks(const mpsim_format *f, const void *codes, size_t n, uint64_t first);

MPSIM_END

#endif
