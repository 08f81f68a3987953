/* sha256.c -- see sha256.h. FIPS 180-4, sections 4.1.2, 4.2.2, 5.1.1, 5.3.3 and 6.2. */
#include "sha256.h"

#include <string.h>

/* Section 4.2.2: the first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t k[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

void sha256_init(sha256 *s)
{
    /* Section 5.3.3: the same of the square roots of the first eight primes. */
    static const sha256 start = {
        .h = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19}};
    *s = start;
}

static uint32_t rotr(uint32_t x, int n)
{
    return x >> n | x << (32 - n);
}

/* Step t of section 6.2.2. Nothing moves from a to b and so on: the next step has the variables in other places. */
#define STEP(a, b, c, d, e, f, g, h, t)                                                                        \
    do {                                                                                                       \
        const uint32_t t1 = h + (rotr(e, 6) ^ rotr(e, 11) ^ rotr(e, 25)) + ((e & f) ^ (~e & g)) + k[t] + w[t]; \
        d += t1;                                                                                               \
        h = t1 + (rotr(a, 2) ^ rotr(a, 13) ^ rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));                     \
    } while (0)

/* Section 6.2.2 for one block of 64 bytes. */
static void compress(uint32_t v[8], const unsigned char *p)
{
    uint32_t w[64], a = v[0], b = v[1], c = v[2], d = v[3], e = v[4], f = v[5], g = v[6], h = v[7];
    for (int t = 0; t < 16; t++, p += 4)
        w[t] = (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
    for (int t = 16; t < 64; t++) {
        const uint32_t x = w[t - 15], y = w[t - 2];
        w[t] = (rotr(y, 17) ^ rotr(y, 19) ^ y >> 10) + w[t - 7] + (rotr(x, 7) ^ rotr(x, 18) ^ x >> 3) + w[t - 16];
    }
    for (int t = 0; t < 64; t += 8) {
        STEP(a, b, c, d, e, f, g, h, t);
        STEP(h, a, b, c, d, e, f, g, t + 1);
        STEP(g, h, a, b, c, d, e, f, t + 2);
        STEP(f, g, h, a, b, c, d, e, t + 3);
        STEP(e, f, g, h, a, b, c, d, t + 4);
        STEP(d, e, f, g, h, a, b, c, t + 5);
        STEP(c, d, e, f, g, h, a, b, t + 6);
        STEP(b, c, d, e, f, g, h, a, t + 7);
    }
    const uint32_t sum[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        v[i] += sum[i];
}

void sha256_add(sha256 *s, const void *data, size_t n)
{
    const unsigned char *p = data;
    while (n > 0) {
        const size_t used = s->length % 64, room = 64 - used, m = n < room ? n : room;
        if (m == 64) {
            compress(s->h, p);
        } else {
            memcpy(s->block + used, p, m);
            if (m == room)
                compress(s->h, s->block);
        }
        s->length += m;
        p += m;
        n -= m;
    }
}

void sha256_hex(sha256 *s, char hex[65])
{
    static const unsigned char one = 0x80, zero = 0;
    const uint64_t bits = 8 * s->length;
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(s, &one, 1); /* section 5.1.1 */
    while (s->length % 64 != 56)
        sha256_add(s, &zero, 1);
    sha256_add(s, length, 8);
    for (int i = 0; i < 64; i++)
        hex[i] = "0123456789abcdef"[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = '\0';
}
