/* t-golden.c -- fingerprints of all roundings, equal on every machine, compiler and build.
 *
 * tests/golden/round.sha256 has one line per format of the table and mode,
 *
 *     sha256  format  mode
 *
 * the SHA-256 of the codes of a fixed stream of binary32 inputs: the bit patterns
 * i * 0x9e3779b1 mod 2^32 for i = 0 to 2^16 - 1, then those of `specials` below, each with
 * both signs, the positive one first. A code is mpsim_format_code_bytes bytes, least
 * significant first. The options are those of mpsim_rounding_init; stochastic modes take 8
 * and 32 random bits from SEED, STREAM, and the index of the input. The line of the format
 * "-" is that of the inputs themselves, 4 bytes each, least significant first.
 *
 * The file proves nothing about correctness: that is what t-round and its kin do. A change
 * of a hash is a change of numerical results. MPSIM_GOLDEN_UPDATE=1 rewrites the file, from
 * the scalar reference; every instruction set is compared with it. */
#include <mpsim/isa.h>
#include <mpsim/round.h>

#include "sim/text/sha256.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SEED UINT64_C(20261120)
#define STREAM UINT64_C(7)

static const char golden_path[] = "tests/golden/round.sha256";

static const uint32_t specials[] = {
    0x00000000, 0x00000001, 0x00000002, 0x00003fff, 0x00400000, 0x007fffff, 0x00800000, 0x00800001, 0x2f000000,
    0x33000000, 0x33000001, 0x337fffff, 0x33800000, 0x36ffffff, 0x37000000, 0x38000000, 0x387fc000, 0x38800000,
    0x3a800000, 0x3b000000, 0x3c800000, 0x3e000000, 0x3e7fffff, 0x3e800000, 0x3e800001, 0x3f000000, 0x3f7fffff,
    0x3f800000, 0x3f800001, 0x3f808000, 0x3f810000, 0x3f818000, 0x3f880000, 0x3f900000, 0x3f900800, 0x3fa00000,
    0x3fc00000, 0x40000000, 0x40400000, 0x40a00000, 0x40c00000, 0x40e00000, 0x41000000, 0x41e00000, 0x41f00000,
    0x43600000, 0x43700000, 0x43780000, 0x43e00000, 0x43e80000, 0x43e80001, 0x43f00000, 0x477fdfff, 0x477fe000,
    0x477fefff, 0x477ff000, 0x47600000, 0x476fffff, 0x47700000, 0x47800000, 0x7f000000, 0x7f7f0000, 0x7f7f7fff,
    0x7f7f8000, 0x7f7fffff, 0x7f800000, 0x7f800001, 0x7fa00000, 0x7fbfffff, 0x7fc00000, 0x7fc00001, 0x7fff8c22,
    0x7fffe2da, 0x7fffffff};

enum { REGULAR = 1 << 16, INPUTS = REGULAR + 2 * (int)(sizeof specials / sizeof specials[0]) };

static float inputs[INPUTS];

/* A float that a function returns passes through the FPU of i386, which makes signalling NaNs quiet. */
static void put_input(size_t n, uint32_t bits)
{
    memcpy(&inputs[n], &bits, sizeof bits);
}

static void make_inputs(void)
{
    size_t n = 0;
    for (uint32_t i = 0; i < REGULAR; i++)
        put_input(n++, i * 0x9e3779b1u);
    for (size_t i = 0; i < sizeof specials / sizeof specials[0]; i++) {
        put_input(n++, specials[i]);
        put_input(n++, specials[i] | 0x80000000u);
    }
}

/* The hash of n integers of `bytes` bytes in host order, taken least significant first. */
static void hash_words(char hex[65], const unsigned char *words, size_t bytes, size_t n)
{
    static const uint16_t probe = 1;
    const int little = *(const unsigned char *)&probe == 1;
    sha256 s;
    sha256_init(&s);
    if (little)
        sha256_add(&s, words, bytes * n);
    else
        for (size_t i = 0; i < bytes * n; i++)
            sha256_add(&s, &words[i - i % bytes + (bytes - 1 - i % bytes)], 1);
    sha256_hex(&s, hex);
}

/* One line of the file. */
typedef struct line {
    char hash[65], format[56], mode[24];
} line;

/* The modes with their numbers of random bits. */
static const struct {
    mpsim_round_mode mode;
    uint8_t sr_bits;
} modes[] = {
    {MPSIM_ROUND_NEAREST_EVEN, 0}, {MPSIM_ROUND_NEAREST_AWAY, 0},
    {MPSIM_ROUND_TOWARD_ZERO, 0},  {MPSIM_ROUND_UP, 0},
    {MPSIM_ROUND_DOWN, 0},         {MPSIM_ROUND_TO_ODD, 0},
    {MPSIM_ROUND_STOCHASTIC_A, 8}, {MPSIM_ROUND_STOCHASTIC_A, 32},
    {MPSIM_ROUND_STOCHASTIC_B, 8}, {MPSIM_ROUND_STOCHASTIC_B, 32},
    {MPSIM_ROUND_STOCHASTIC_C, 8}, {MPSIM_ROUND_STOCHASTIC_C, 32},
};
enum { MODES = sizeof modes / sizeof modes[0] };

static size_t line_count(void)
{
    return 1 + mpsim_format_count() * MODES;
}

/* Line i as the library makes it. */
static void make_line(line *l, size_t i)
{
    static unsigned char codes[8 * INPUTS];
    memset(l, 0, sizeof *l);
    if (i == 0) {
        hash_words(l->hash, (const unsigned char *)inputs, sizeof inputs[0], INPUTS);
        snprintf(l->format, sizeof l->format, "-");
        snprintf(l->mode, sizeof l->mode, "inputs");
        return;
    }
    const mpsim_format *f = mpsim_format_at((i - 1) / MODES);
    const size_t m = (i - 1) % MODES;
    const mpsim_rng rng = {SEED, STREAM, 0};
    mpsim_rounding r;
    mpsim_rounding_init(&r, modes[m].mode);
    if (modes[m].sr_bits)
        r.sr_bits = modes[m].sr_bits;
    if (mpsim_encode_array_f32(f, &r, &rng, codes, inputs, INPUTS, NULL) == MPSIM_OK)
        hash_words(l->hash, codes, mpsim_format_code_bytes(f), INPUTS);
    snprintf(l->format, sizeof l->format, "%s", f->name);
    snprintf(l->mode, sizeof l->mode, modes[m].sr_bits ? "%s:%d" : "%s", mpsim_round_mode_name(modes[m].mode),
             modes[m].sr_bits);
}

static int write_golden(const char *path)
{
    FILE *out = fopen(path, "w");
    if (!out)
        return 0;
    fprintf(out, "# SHA-256 of roundings of a fixed stream: see tests/round/t-golden.c\n");
    for (size_t i = 0; i < line_count(); i++) {
        line l;
        make_line(&l, i);
        fprintf(out, "%s  %s  %s\n", l.hash, l.format, l.mode);
    }
    return fclose(out) == 0;
}

/* Lines are compared in their order: the table's, then the modes'. To nearest even by the instruction set in use each
 * day, the others in turn. */
START_TEST(codes_have_the_recorded_hashes)
{
    const char *path = test_source_path(golden_path);
    const int in_use = strcmp(mpsim_isa_at((size_t)_i), mpsim_isa_active()) == 0;
    if (!test_isa_use((size_t)_i))
        return;
    make_inputs();
    FILE *in = fopen(path, "r");
    ck_assert_msg(in != NULL, "cannot open %s; MPSIM_GOLDEN_UPDATE=1 makes it", path);
    char text[256], first[400] = "";
    size_t i = 0, wrong = 0;
    while (fgets(text, sizeof text, in)) {
        line want, got;
        if (text[0] == '#')
            continue;
        memset(&want, 0, sizeof want);
        memset(&got, 0, sizeof got);
        if (!(in_use && (i == 0 || (i - 1) % MODES == 0)) && i < line_count() && !test_in_part(i + (uint64_t)_i, 1)) {
            i++;
            continue;
        }
        if (i < line_count())
            make_line(&got, i);
        i++;
        if (sscanf(text, "%64s %55s %23s", want.hash, want.format, want.mode) == 3 &&
            memcmp(&want, &got, sizeof want) == 0)
            continue;
        if (wrong++ == 0)
            snprintf(first, sizeof first, "line %zu: expected %s %s %s, got %s %s %s", i, want.hash, want.format,
                     want.mode, got.hash, got.format, got.mode);
    }
    fclose(in);
    ck_assert_msg(wrong == 0, "%s: %zu lines differ; %s", mpsim_isa_active(), wrong, first);
    ck_assert_msg(i == line_count(), "%s has %zu lines, the table gives %zu", path, i, line_count());
}

/* ---- the hash itself ---- */

/* FIPS 180-4 and NIST's example values; "" and one million times "a" from NIST's CAVS. */
START_TEST(sha256_gives_the_known_answers)
{
    static const struct {
        const char *text, *hex;
    } known[] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
        {"abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmno"
         "ijklmnopjklmnopqklmnopqrlmnopqrsmnopqrstnopqrstu",
         "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1"},
    };
    char hex[65];
    sha256 s;
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
        sha256_init(&s);
        sha256_add(&s, known[i].text, strlen(known[i].text));
        sha256_hex(&s, hex);
        ck_assert_str_eq(hex, known[i].hex);
    }
    sha256_init(&s);
    for (int i = 0; i < 1000000; i++)
        sha256_add(&s, "a", 1);
    sha256_hex(&s, hex);
    ck_assert_str_eq(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

/* Every length around the padding's edges, in two pieces and in one. */
START_TEST(sha256_does_not_depend_on_pieces)
{
    unsigned char data[200];
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (unsigned char)(i * 7);
    size_t wrong = 0;
    for (size_t n = 0; n <= sizeof data; n++)
        for (size_t cut = 0; cut <= n; cut += 13) {
            char whole[65], parts[65];
            sha256 s;
            sha256_init(&s);
            sha256_add(&s, data, n);
            sha256_hex(&s, whole);
            sha256_init(&s);
            sha256_add(&s, data, cut);
            sha256_add(&s, data + cut, n - cut);
            sha256_hex(&s, parts);
            wrong += strcmp(whole, parts) != 0;
        }
    ck_assert_uint_eq(wrong, 0);
}

int main(void)
{
    const char *update = getenv("MPSIM_GOLDEN_UPDATE");
    if (update && strcmp(update, "1") == 0) {
        make_inputs();
        if (mpsim_isa_use("scalar") != MPSIM_OK || !write_golden(test_source_path(golden_path))) {
            printf("Bail out! cannot write %s\n", test_source_path(golden_path));
            return EXIT_FAILURE;
        }
    }
    TCase *hash = test_case("sha256", 10);
    tcase_add_test(hash, sha256_gives_the_known_answers);
    tcase_add_test(hash, sha256_does_not_depend_on_pieces);
    TCase *golden = test_case("golden", 300);
    tcase_add_loop_test(golden, codes_have_the_recorded_hashes, 0, test_isa_count());
    return test_main("golden", (TCase *const[]){hash, golden, NULL});
}
