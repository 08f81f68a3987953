/* sha256.h -- SHA-256 (FIPS 180-4): digests that sha256sum gives, too. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct sha256 {
    uint32_t h[8];           /* the hash so far                     */
    uint64_t length;         /* bytes so far                        */
    unsigned char block[64]; /* the last length % 64 bytes of input */
} sha256;

void sha256_init(sha256 *s);
void sha256_add(sha256 *s, const void *data, size_t n);

/* sha256_hex -- the hash of all that was added, as 64 hex digits and a terminating 0. The
 * state is used up. */
void sha256_hex(sha256 *s, char hex[65]);
