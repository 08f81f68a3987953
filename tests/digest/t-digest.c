/* t-digest.c -- digests of tensors: the mix, order and splits, NaNs, arguments; the same of the digest by blocks. */
#include "support/support.h"

#include <mpsim/digest.h>
#include <mpsim/isa.h>

#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

enum { CODES = 4096 };

/* ---- the digest again: a number is mixed by the index, then by the code ---- */

/* The finaliser of splitmix64 (Steele, Lea, Flood 2014), as its steps of shift and factor. */
static uint64_t finalise(uint64_t z)
{
    static const struct {
        int shift;
        uint64_t factor;
    } steps[3] = {{30, 0xbf58476d1ce4e5b9u}, {27, 0x94d049bb133111ebu}, {31, 1}};
    for (int i = 0; i < 3; i++)
        z = (z ^ z >> steps[i].shift) * steps[i].factor;
    return z;
}

static uint64_t mixed(uint64_t index, uint64_t code)
{
    const uint64_t of_index = finalise(0x632be59bd9b4e019u + 0x9e3779b97f4a7c15u * index);
    return finalise(of_index ^ 0xd6e8feb86659fd93u * code);
}

/* ---- formats, with their NaNs typed from the standards ---- */

/* A code is NaN if its bits below `mask` lie above `above`, or it is `only`. */
typedef struct nans {
    const char *name;
    int bits;
    uint64_t mask, above;
    uint64_t only; /* 0: none */
} nans;

#define NEVER UINT64_MAX

static const nans table[] = {
    {"fp16", 16, 0x7fff, 0x7c00, 0},
    {"bf16", 16, 0x7fff, 0x7f80, 0},
    {"e5m2", 8, 0x7f, 0x7c, 0},
    {"e4m3", 8, 0x7f, 0x7e, 0},
    {"e4m3ieee", 8, 0x7f, 0x78, 0},
    {"e3m4", 8, 0x7f, 0x70, 0},
    {"e8m0", 8, 0, NEVER, 0xff},
    {"e4m3fnuz", 8, 0, NEVER, 0x80},
    {"e5m2fnuz", 8, 0, NEVER, 0x80},
    {"binary8p3se", 8, 0, NEVER, 0x80},
    {"binary8p3ue", 8, 0, NEVER, 0xff},
    {"e2m1", 4, 0, NEVER, 0},
    {"e3m2", 6, 0, NEVER, 0},
    {"tf32", 19, 0x3ffff, 0x3fc00, 0},
    {"binary32", 32, 0x7fffffff, 0x7f800000, 0},
    {"e11m51", 63, 0x3fffffffffffffff, 0x3ff8000000000000, 0},
    {"binary64", 64, 0x7fffffffffffffff, 0x7ff0000000000000, 0},
};
enum { FORMATS = sizeof table / sizeof table[0] };

static size_t bytes_of(const nans *f)
{
    return f->bits <= 8 ? 1 : f->bits <= 16 ? 2 : f->bits <= 32 ? 4 : 8;
}

static uint64_t all_ones(const nans *f)
{
    return UINT64_MAX >> (64 - f->bits);
}

static int is_nan(const nans *f, uint64_t code)
{
    return (code & f->mask) > f->above || (f->only && code == f->only);
}

/* Where a format has several NaNs they count as the code of ones; a single one is itself. */
static uint64_t counted(const nans *f, uint64_t code)
{
    return is_nan(f, code) && !f->only ? all_ones(f) : code;
}

static uint64_t expected(const nans *f, const uint64_t *codes, size_t n, uint64_t first)
{
    uint64_t sum = 0;
    for (size_t i = n; i-- > 0;)
        sum += mixed(first + i, counted(f, codes[i]));
    return sum;
}

static mpsim_format format_of(const char *name)
{
    mpsim_format f;
    ck_assert_msg(mpsim_format_parse(&f, name) == MPSIM_OK, "no format %s", name);
    return f;
}

static uint64_t digest_of(const nans *f, const uint64_t *codes, size_t n, uint64_t first, size_t shift)
{
    static unsigned char packed[8 * CODES + 8];
    const mpsim_format format = format_of(f->name);
    for (size_t i = 0; i < n; i++)
        code_store(packed + shift + i * bytes_of(f), bytes_of(f), codes[i]);
    return mpsim_digest(&format, packed + shift, n, first);
}

/* Random codes, an eighth of them with the magnitude of an infinity or of a NaN. */
static void fill(const nans *f, uint64_t *codes, size_t n, uint64_t *state)
{
    for (size_t i = 0; i < n; i++) {
        const uint64_t r = test_random(state);
        codes[i] = r & all_ones(f);
        if (r % 8 == 0 && f->above != NEVER)
            codes[i] |= f->above;
        if (r % 8 == 1 && f->only)
            codes[i] = f->only;
    }
}

/* ---- the mix ---- */

#define DIGEST(name, first, ...)                                                                                     \
    digest_of(find(name), (const uint64_t[]){__VA_ARGS__}, sizeof(const uint64_t[]){__VA_ARGS__} / sizeof(uint64_t), \
              first, 0)

static const nans *find(const char *name)
{
    for (size_t i = 0; i < FORMATS; i++)
        if (strcmp(table[i].name, name) == 0)
            return &table[i];
    ck_abort_msg("no %s in the table", name);
    return NULL;
}

CASE("digest", 20);

/* Computed apart, with integers of any size reduced modulo 2^64. */
TEST(digests_are_the_known_ones)
{
    ck_assert_uint_eq(DIGEST("fp16", 0, 0), 0x58016df76f315627u);
    ck_assert_uint_eq(DIGEST("fp16", 0, 0x3c00, 0xbc00, 0x7bff, 0x8000), 0xd11370c74dd507bau);
    ck_assert_uint_eq(DIGEST("binary32", UINT64_MAX, 0x3f800000, 0x7f800001), 0x107ebc55993fce60u);
    ck_assert_uint_eq(DIGEST("e4m3", 12345678901234567890u, 0x40, 0x7f, 0xff), 0x01c3a733e149a709u);
    ck_assert_uint_eq(DIGEST("binary64", 7, 0xfff0000000000000, 0x7ff8000000000000, 1), 0x0f4987cb2e61536eu);
}

/* Bytes are the codes of a format of eight bits all of which count as themselves. */
TEST(bytes_are_codes)
{
    unsigned char bytes[256];
    uint64_t parts = 0;
    const mpsim_format format = format_of("e4m3fnuz");
    for (unsigned i = 0; i < 256; i++)
        bytes[i] = (unsigned char)i;
    const uint64_t all = mpsim_digest_bytes(bytes, 256, 7);
    ck_assert_uint_eq(all, mpsim_digest(&format, bytes, 256, 7));
    for (unsigned i = 0; i < 256; i++)
        parts += mpsim_digest_bytes(bytes + i, 1, 7 + i);
    ck_assert_uint_eq(all, parts);
    ck_assert_uint_eq(mpsim_digest_bytes(bytes, 0, 7), 0);
    ck_assert_uint_eq(mpsim_digest_bytes(NULL, 3, 7), 0);
    for (unsigned bit = 0; bit < 2048; bit++) {
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        ck_assert_uint_ne(mpsim_digest_bytes(bytes, 256, 7), all);
        bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
}

TEST(every_code_is_mixed_with_its_index)
{
    uint64_t state = test_seed(), codes[1];
    for (size_t k = 0; k < FORMATS; k++) {
        const nans *f = &table[k];
        const uint64_t n = f->bits <= 16 ? (uint64_t)1 << f->bits : CODES;
        for (uint64_t i = 0; i < n; i++) {
            const uint64_t index = test_random(&state) >> (i % 64);
            if (f->bits <= 16)
                codes[0] = i;
            else
                fill(f, codes, 1, &state);
            const uint64_t got = digest_of(f, codes, 1, index, 0);
            ck_assert_msg(got == expected(f, codes, 1, index), "%s, code %#" PRIx64 ", index %" PRIu64 ": %#" PRIx64,
                          f->name, codes[0], index, got);
        }
    }
}

/* Bits above the format's are no part of a code. */
TEST(bits_above_the_code_are_ignored)
{
    const uint64_t codes[3] = {0x05, 0x0f, 0x08}, dirty[3] = {0xf5, 0x3f, 0x98};
    ck_assert(digest_of(find("e2m1"), codes, 3, 1, 0) == digest_of(find("e2m1"), dirty, 3, 1, 0));
    const uint64_t tf32[1] = {0x1fc00}, high[1] = {0xfff9fc00};
    ck_assert(digest_of(find("tf32"), tf32, 1, 1, 0) == digest_of(find("tf32"), high, 1, 1, 0));
}

/* ---- order, splits, addresses ---- */

TEST(parts_add_up_in_any_order_at_any_address)
{
    static uint64_t codes[CODES];
    uint64_t state = test_seed();
    for (size_t k = 0; k < FORMATS; k++) {
        const nans *f = &table[k];
        const uint64_t first = k % 2 ? 0 : test_random(&state);
        fill(f, codes, CODES, &state);
        const uint64_t whole = digest_of(f, codes, CODES, first, 0);
        ck_assert_msg(whole == expected(f, codes, CODES, first), "%s: %#" PRIx64, f->name, whole);
        for (size_t shift = 1; shift < 8; shift++)
            ck_assert_uint_eq(digest_of(f, codes, CODES, first, shift), whole);
        uint64_t sum = 0; /* parts of random lengths, the last one first */
        for (size_t end = CODES; end > 0;) {
            const size_t n = (size_t)(test_random(&state) % 200) % (end + 1);
            end -= n;
            sum += digest_of(f, codes + end, n, first + end, end % 3);
        }
        ck_assert_msg(sum == whole, "%s: parts %#" PRIx64 ", %#" PRIx64, f->name, sum, whole);
    }
}

/* Two elements exchanged, one bit changed, another first index, one element more. */
TEST(what_differs_has_another_digest)
{
    static uint64_t codes[CODES + 1];
    uint64_t state = test_seed();
    const nans *f = find("bf16");
    for (size_t i = 0; i <= CODES; i++)
        codes[i] = test_random(&state) & 0x3fff;
    const uint64_t whole = digest_of(f, codes, CODES - 1, 0, 0);
    ck_assert(whole != digest_of(f, codes, CODES - 1, 1, 0));
    ck_assert(whole != digest_of(f, codes, CODES, 0, 0));
    for (size_t i = 0; i + 1 < 200; i++) {
        const uint64_t a = codes[i], b = codes[i + 1];
        codes[i] = b;
        codes[i + 1] = a;
        ck_assert(a == b || whole != digest_of(f, codes, CODES - 1, 0, 0));
        codes[i] = a;
        codes[i + 1] = b ^ (uint64_t)1 << i % 14;
        ck_assert(whole != digest_of(f, codes, CODES - 1, 0, 0));
        codes[i + 1] = b;
    }
    codes[0] = 0;
    const uint64_t plus = digest_of(f, codes, 1, 0, 0);
    codes[0] = 0x8000;
    ck_assert(plus != digest_of(f, codes, 1, 0, 0));
}

/* ---- NaNs ---- */

/* Of the codes of a format only its NaNs, if it has several, share a digest. */
TEST(only_nans_share_a_digest)
{
    static uint64_t digests[65536];
    for (size_t k = 0; k < FORMATS; k++) {
        const nans *f = &table[k];
        if (f->bits > 16)
            continue;
        const uint64_t n = (uint64_t)1 << f->bits, ones[1] = {all_ones(f)};
        const uint64_t nan = digest_of(f, ones, 1, 5, 0);
        uint64_t same = 0, want = 0;
        for (uint64_t i = 0; i < n; i++) {
            digests[i] = digest_of(f, &i, 1, 5, 0);
            same += digests[i] == nan;
            want += is_nan(f, i) && !f->only;
            ck_assert_msg((digests[i] == nan) == (i == ones[0] || (is_nan(f, i) && !f->only)), "%s: %#" PRIx64, f->name,
                          i);
        }
        ck_assert_uint_eq(same, want ? want : 1);
        for (uint64_t i = 0; n <= 256 && i < n; i++)
            for (uint64_t j = 0; j < i; j++)
                ck_assert_msg(digests[i] != digests[j] || digests[i] == nan, "%s: %#" PRIx64 " and %#" PRIx64, f->name,
                              i, j);
    }
}

/* ---- the digest by blocks ---- */

enum { WORDS = MPSIM_DIGEST_BLOCK_BYTES / 4, LONG = 3 * 2048 + 77 };

static uint64_t key(uint64_t j)
{
    return finalise((j + 1) * 0x9e3779b97f4a7c15u) | 1;
}

/* Of bytes in memory, each code in its place, little-endian. */
static uint64_t expected_blocks(const nans *f, const uint64_t *codes, size_t n, uint64_t first)
{
    const size_t block = MPSIM_DIGEST_BLOCK_BYTES / bytes_of(f);
    uint64_t sum = 0;
    for (size_t b = 0; b * block < n; b++) {
        const size_t m = n - b * block < block ? n - b * block : block;
        uint32_t words[WORDS] = {0};
        uint64_t inner = m * key(WORDS);
        for (size_t i = 0; i < m; i++)
            for (size_t k = 0; k < bytes_of(f); k++) {
                const size_t at = i * bytes_of(f) + k;
                words[at / 4] |= (uint32_t)(counted(f, codes[b * block + i]) >> 8 * k & 0xff) << 8 * (at % 4);
            }
        for (size_t j = 0; j < WORDS; j++)
            inner += words[j] * key(j);
        sum += mixed(first / block + b, inner);
    }
    return sum;
}

static uint64_t blocks_of(const nans *f, const uint64_t *codes, size_t n, uint64_t first, size_t shift)
{
    static unsigned char packed[8 * LONG + 8];
    const mpsim_format format = format_of(f->name);
    for (size_t i = 0; i < n; i++)
        code_store(packed + shift + i * bytes_of(f), bytes_of(f), codes[i]);
    return mpsim_digest_blocks(&format, packed + shift, n, first);
}

/* Computed apart, as those above. */
TEST(blocks_are_pinned)
{
    const uint64_t halves[] = {0x3c00, 0xbc00, 0x7bff, 0x8000}, words[] = {0x3f800000, 0x7f800001};
    ck_assert_uint_eq(blocks_of(find("fp16"), halves, 4, 0, 0), 0x683419fc6043f360u);
    ck_assert_uint_eq(blocks_of(find("binary32"), words, 2, 3 * WORDS, 0), 0x64748c006bedf47au);
}

/* Every format, instruction set and alignment; parts add up. */
TEST(blocks_are_the_known_ones)
{
    static uint64_t codes[LONG];
    static const size_t sizes[] = {1, 3, 511, 2048, LONG};
    uint64_t state = test_seed();
    for (size_t k = 0; k < FORMATS; k++) {
        const nans *f = &table[k];
        const uint64_t first = k % 2 ? 0 : test_random(&state) << 11;
        fill(f, codes, LONG, &state);
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            const uint64_t want = expected_blocks(f, codes, sizes[s], first);
            for (size_t isa = 0; mpsim_isa_at(isa); isa++) {
                if (mpsim_isa_use(mpsim_isa_at(isa)) != MPSIM_OK)
                    continue;
                const uint64_t got = blocks_of(f, codes, sizes[s], first, (s + isa) % 8);
                ck_assert_msg(got == want, "%s, %zu codes, %s: %#" PRIx64 ", expected %#" PRIx64, f->name, sizes[s],
                              mpsim_isa_at(isa), got, want);
            }
        }
        mpsim_isa_use(mpsim_isa_at(0));
        ck_assert_uint_eq(blocks_of(f, codes, 2048, first, 0) +
                              blocks_of(f, codes + 2048, LONG - 2048, first + 2048, 0),
                          blocks_of(f, codes, LONG, first, 0));
    }
}

/* Every code of 16 bits and fewer, whatever lies above it. */
TEST(blocks_know_every_nan)
{
    static uint64_t codes[65536];
    for (size_t k = 0; k < FORMATS; k++) {
        const nans *f = &table[k];
        for (uint64_t i = 0; f->bits <= 16 && i < 65536; i++) {
            const uint64_t code = i & all_ones(f);
            codes[0] = code;
            codes[1] = i;
            const uint64_t ones[2] = {counted(f, code), counted(f, code)};
            if ((i & 0xfff) < 256 || f->bits == 16)
                ck_assert_msg(blocks_of(f, codes, 2, 0, 0) == expected_blocks(f, ones, 2, 0), "%s: %#" PRIx64, f->name,
                              i);
        }
    }
}

/* What the head of scalar.h says of the keys: no two are equal, or each other's negative, modulo 2^32. */
TEST(keys_are_odd_and_apart)
{
    for (uint64_t i = 0; i <= WORDS; i++) {
        ck_assert(key(i) & 1);
        for (uint64_t j = 0; j < i; j++)
            ck_assert_msg((uint32_t)key(i) != (uint32_t)key(j) && (uint32_t)(key(i) + key(j)) != 0,
                          "keys %" PRIu64 " and %" PRIu64, i, j);
    }
}

static void exchange(uint64_t *a, uint64_t *b)
{
    const uint64_t c = *a;
    *a = *b;
    *b = c;
}

/* A flipped bit, exchanged elements, rows and blocks, signs, zeros more. */
TEST(blocks_see_what_differs)
{
    static uint64_t codes[LONG];
    uint64_t state = test_seed();
    for (size_t k = 0; k < FORMATS; k++) {
        const nans *f = &table[k];
        const size_t n = 3 * (MPSIM_DIGEST_BLOCK_BYTES / bytes_of(f)) - 5;
        for (size_t i = 0; i < LONG; i++)
            codes[i] = test_random(&state) & all_ones(f) >> 2; /* no NaN has another */
        const uint64_t whole = blocks_of(f, codes, n, 0, 0);
        for (int turn = 0; turn < 40; turn++) {
            const size_t i = (size_t)(test_random(&state) % n), j = (i + 1 + (size_t)turn * 37) % n;
            const uint64_t bit = (uint64_t)1 << (unsigned)turn % (unsigned)(f->bits - 2);
            codes[i] ^= bit;
            ck_assert_uint_ne(blocks_of(f, codes, n, 0, 0), whole);
            codes[j] ^= bit;
            ck_assert(i == j || blocks_of(f, codes, n, 0, 0) != whole);
            codes[i] ^= bit;
            codes[j] ^= bit;
            exchange(&codes[i], &codes[j]);
            ck_assert(codes[i] == codes[j] || blocks_of(f, codes, n, 0, 0) != whole);
            exchange(&codes[i], &codes[j]);
        }
        for (size_t row = 64; row < n / 2; row *= 2) { /* two rows, or blocks */
            for (size_t i = 0; i < row; i++)
                exchange(&codes[i], &codes[row + i]);
            ck_assert_uint_ne(blocks_of(f, codes, n, 0, 0), whole);
            for (size_t i = 0; i < row; i++)
                exchange(&codes[i], &codes[row + i]);
        }
        memset(codes + n, 0, 5 * sizeof *codes);
        for (size_t more = 1; more < 5; more++)
            ck_assert_uint_ne(blocks_of(f, codes, n + more, 0, 0), whole);
        memset(codes, 0, sizeof codes);
        ck_assert_uint_ne(blocks_of(f, codes, n, 0, 0), blocks_of(f, codes, n + 5, 0, 0));
    }
}

/* ---- arguments ---- */

TEST(bad_arguments_give_zero)
{
    const mpsim_format good = format_of("fp16");
    mpsim_format bad = good;
    const uint16_t codes[2] = {0x3c00, 0x7e00};
    bad.bits = 15;
    ck_assert(mpsim_digest(&good, codes, 2, 0) != 0);
    ck_assert_uint_eq(mpsim_digest(NULL, codes, 2, 0), 0);
    ck_assert_uint_eq(mpsim_digest(&bad, codes, 2, 0), 0);
    ck_assert_uint_eq(mpsim_digest(&good, NULL, 2, 0), 0);
    ck_assert_uint_eq(mpsim_digest(&good, codes, SIZE_MAX, 0), 0);
    ck_assert_uint_eq(mpsim_digest(&good, NULL, 0, 0), 0);
    ck_assert_uint_eq(mpsim_digest(&good, codes, 0, 9), 0);
    ck_assert(mpsim_digest_blocks(&good, codes, 2, 1024) != 0);
    ck_assert_uint_eq(mpsim_digest_blocks(&good, codes, 2, 1023), 0);
    ck_assert_uint_eq(mpsim_digest_blocks(NULL, codes, 2, 0), 0);
    ck_assert_uint_eq(mpsim_digest_blocks(&bad, codes, 2, 0), 0);
    ck_assert_uint_eq(mpsim_digest_blocks(&good, NULL, 2, 0), 0);
    ck_assert_uint_eq(mpsim_digest_blocks(&good, codes, SIZE_MAX, 0), 0);
    ck_assert_uint_eq(mpsim_digest_blocks(&good, codes, 0, 0), 0);
}

TEST_MAIN("digest");
