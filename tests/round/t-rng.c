/* t-rng.c -- the promises of <mpsim/rng.h>. */
#include <mpsim/rng.h>

#include "support/support.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

CASE("rng", 10);

/* Known answers of the authors' implementation, Random123: file kat_vectors, philox4x32 10. */
TEST(philox_gives_the_known_answers)
{
    static const struct {
        uint32_t counter[4], key[2], out[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, /* digits of pi */
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        uint32_t out[4];
        mpsim_philox(out, known[i].counter, known[i].key);
        ck_assert_msg(memcmp(out, known[i].out, sizeof out) == 0,
                      "vector %zu: got %08" PRIx32 " %08" PRIx32 " %08" PRIx32 " %08" PRIx32, i, out[0], out[1], out[2],
                      out[3]);
    }
}

TEST(philox_leaves_its_inputs_alone)
{
    uint32_t counter[4] = {1, 2, 3, 4}, key[2] = {5, 6}, out[4], again[4];
    mpsim_philox(out, counter, key);
    ck_assert(counter[0] == 1 && counter[1] == 2 && counter[2] == 3 && counter[3] == 4);
    ck_assert(key[0] == 5 && key[1] == 6);
    mpsim_philox(again, counter, key);
    ck_assert_mem_eq(out, again, sizeof out);
}

/* The word of an element, spelled out from the header: word i mod 4 of the block whose
 * counter is (i/4 low, i/4 high, stream low, stream high), key (seed low, seed high). */
static uint32_t word_by_definition(uint64_t seed, uint64_t stream, uint64_t i)
{
    const uint64_t block = i >> 2;
    const uint32_t counter[4] = {(uint32_t)(block & 0xffffffffu), (uint32_t)(block >> 32),
                                 (uint32_t)(stream & 0xffffffffu), (uint32_t)(stream >> 32)};
    const uint32_t key[2] = {(uint32_t)(seed & 0xffffffffu), (uint32_t)(seed >> 32)};
    uint32_t out[4];
    mpsim_philox(out, counter, key);
    return out[i & 3];
}

TEST(word_is_indexed_as_documented)
{
    /* Around every carry of the index, and at random places. */
    static const uint64_t corner[] = {0,
                                      1,
                                      2,
                                      3,
                                      4,
                                      5,
                                      0xffffffffu,
                                      0x100000000u,
                                      0x3ffffffffu,
                                      0x400000000u,
                                      0x400000001u,
                                      0x7fffffffffffffffu,
                                      0xffffffffffffffffu};
    enum { CORNERS = sizeof corner / sizeof corner[0] };
    uint64_t state = test_seed();
    char first[200] = "";
    const size_t n = CORNERS * CORNERS * CORNERS + test_scaled(20000);
    for (size_t i = 0; i < n && !first[0]; i++) {
        const int random = i >= CORNERS * CORNERS * CORNERS;
        const uint64_t seed = random ? test_random(&state) : corner[i % CORNERS];
        const uint64_t stream = random ? test_random(&state) : corner[i / CORNERS % CORNERS];
        const uint64_t index = random ? test_random(&state) : corner[i / CORNERS / CORNERS];
        const uint32_t got = mpsim_rng_word(seed, stream, index);
        const uint32_t want = word_by_definition(seed, stream, index);
        if (got != want)
            snprintf(first, sizeof first,
                     "seed %016" PRIx64 " stream %016" PRIx64 " index %016" PRIx64 ": expected %08" PRIx32
                     ", got %08" PRIx32,
                     seed, stream, index, want, got);
    }
    ck_assert_msg(!first[0], "%s", first);
}

/* The first known answer once more, now by seed, stream and index: the documented order of
 * the words, without any helper in between. And the vector of pi, which tells the halves of
 * seed, stream and block from one another. */
TEST(words_of_known_blocks)
{
    ck_assert_uint_eq(mpsim_rng_word(0, 0, 0), 0x6627e8d5);
    ck_assert_uint_eq(mpsim_rng_word(0, 0, 1), 0xe169c58d);
    ck_assert_uint_eq(mpsim_rng_word(0, 0, 2), 0xbc57ac4c);
    ck_assert_uint_eq(mpsim_rng_word(0, 0, 3), 0x9b00dbd8);
    /* Block 0x05a308d3_243f6a88: the index 4 * block + w must fit in 64 bits, so the top of
     * the second counter word of the vector is out of reach; stream and seed are not. */
    const uint64_t seed = 0x299f31d0a4093822u, stream = 0x0370734413198a2eu;
    const uint64_t block = 0x05a308d3243f6a88u;
    const uint32_t counter[4] = {0x243f6a88, 0x05a308d3, 0x13198a2e, 0x03707344};
    const uint32_t key[2] = {0xa4093822, 0x299f31d0};
    uint32_t out[4];
    mpsim_philox(out, counter, key);
    for (unsigned w = 0; w < 4; w++)
        ck_assert_uint_eq(mpsim_rng_word(seed, stream, 4 * block + w), out[w]);
}

/* Words that differ in one bit of seed, stream or index have nothing to do with each other:
 * of 32 bits about half differ. n pairs give 32 n fair bits, whose sum has the standard
 * deviation sqrt(32 n) / 2; five of them are allowed. The inputs are fixed. */
TEST(neighbouring_seeds_streams_and_elements_are_independent)
{
    for (int what = 0; what < 3; what++) {
        uint64_t differ = 0;
        const uint64_t n = 64 * 200;
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t bit = (uint64_t)1 << (i % 64), at = i * 0x9e3779b97f4a7c15u;
            const uint32_t a = mpsim_rng_word(at, ~at, at >> 7);
            const uint32_t b = mpsim_rng_word(at ^ (what == 0 ? bit : 0), ~at ^ (what == 1 ? bit : 0),
                                              at >> 7 ^ (what == 2 ? bit : 0));
            for (uint32_t d = a ^ b; d; d &= d - 1)
                differ++;
        }
        const double off = (double)differ - 16.0 * (double)n;
        ck_assert_msg(off * off <= 25 * 8.0 * (double)n, "change of %s: %" PRIu64 " of %" PRIu64 " bits differ",
                      what == 0   ? "seed"
                      : what == 1 ? "stream"
                                  : "index",
                      differ, 32 * n);
    }
}

TEST_MAIN("rng");
