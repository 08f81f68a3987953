/* t-diff-bytes.c -- mpsim diff never calls files equal in which a byte of a tensor differs: bytes of the tensors of every layout
 * are changed, also of those whose numbers are not read, and of parts that no number is read from. */
#include "sim/process/host.h"
#include "sim/diff/sequence.h"
#include "support/badzip.h"
#include "support/extent.h"
#include "support/support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { EACH = 60 }; /* bytes at random of a file, beside the first and the last of each tensor */

/* ---- what is told ---- */

typedef struct outcome_of {
    int differs, compared, not_compared;
    verdict verdict; /* the last */
} outcome_of;

static int tell(void *context, const sequence_entry *e)
{
    static const tolerance none = {.by = TOLERANCE_NONE};
    outcome_of *o = context;
    const verdict v = e->compared ? e->compared->found.verdict : VERDICT_MISSING;
    o->differs += diff_compare_differs(v, &none);
    o->not_compared += v == VERDICT_NOT_COMPARED;
    o->compared++;
    o->verdict = v;
    return 0;
}

/* Two operands; what cannot be read differs. */
static outcome_of diff(const char *a, const char *b)
{
    outcome_of o = {0, 0, 0, VERDICT_EQUAL};
    side sides[2];
    tolerance none;
    input_options options = {.keep_going = 0};
    char *paths[2] = {strdup(a), strdup(b)};
    ck_assert(diff_tolerance_parse(&none, NULL, "diff") == 0);
    memset(sides, 0, sizeof sides);
    int code = 0;
    for (int k = 0; k < 2 && !code; k++)
        code = diff_side_open(&sides[k], "diff", &options, paths[k]);
    if (!code)
        code = diff_sequence_run(&sides[0], &sides[1], &none, tell, &o);
    o.differs += code != 0;
    for (int k = 0; k < 2; k++) {
        diff_side_close(&sides[k]);
        free(paths[k]);
    }
    return o;
}

/* ---- files ---- */

static blob load(const char *path)
{
    blob b = {NULL, 0, 0};
    unsigned char piece[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        blob_add(&b, piece, n);
    fclose(f);
    return b;
}

static void save(const char *path, const blob *b)
{
    FILE *f = fopen(path, "wb");
    ck_assert(f && fwrite(b->data, 1, b->n, f) == b->n && fclose(f) == 0);
}

/* A member of an archive that is stored: from its first byte to its end; and what its CRC is. */
static int member_at(const blob *b, size_t at, size_t *first, size_t *n)
{
    for (size_t i = 0; i + 46 <= b->n; i++) {
        if (memcmp(b->data + i, "PK\1\2", 4) != 0)
            continue;
        const unsigned char *p = b->data + i;
        const size_t local = p[42] | (size_t)p[43] << 8 | (size_t)p[44] << 16 | (size_t)p[45] << 24;
        if (local + 30 > b->n || memcmp(b->data + local, "PK\3\4", 4) != 0)
            continue;
        const unsigned char *q = b->data + local;
        *n = p[20] | (size_t)p[21] << 8 | (size_t)p[22] << 16 | (size_t)p[23] << 24;
        *first = local + 30 + (q[26] | (size_t)q[27] << 8) + (q[28] | (size_t)q[29] << 8);
        if (at >= *first && at < *first + *n)
            return 1;
    }
    return 0;
}

/* Every place outside of a member where its CRC stands. */
static void replace_crc(blob *b, size_t first, size_t n, uint32_t old, uint32_t fresh)
{
    for (size_t i = 0; i + 4 <= b->n; i++) {
        const unsigned char *p = b->data + i;
        const uint32_t x = p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
        if (x == old && (i + 4 <= first || i >= first + n))
            blob_set(b, i, fresh, 4);
    }
}

/* Change a byte, and the CRC of the member that it is of. */
static void change(blob *b, size_t at, unsigned char mask)
{
    size_t first, n;
    const int packed = b->n > 4 && memcmp(b->data, "PK\3\4", 4) == 0 && member_at(b, at, &first, &n);
    const uint32_t old = packed ? bad_crc32(b->data + first, n) : 0;
    b->data[at] ^= mask;
    if (packed)
        replace_crc(b, first, n, old, bad_crc32(b->data + first, n));
}

/* ---- places ---- */

typedef struct range {
    uint64_t begin, end;
} range;

/* The bytes of the tensors of a file, as they are stored. */
static size_t ranges_of(const char *path, range *to, size_t room)
{
    const trace_options parts = {.quantised = "parts"};
    trace_error error;
    trace_copy runs[TRACE_COPIES];
    size_t n = 0;
    trace *t = trace_open(path, &parts, &error);
    ck_assert_msg(t != NULL, "%s", t ? "" : error.text);
    for (size_t i = 0; i < trace_count(t) && n < room; i++) {
        const trace_tensor *x = trace_at(t, i);
        if (x->count && trace_stored_as(t, i, runs) == 1 && x->offset)
            to[n++] = (range){x->offset, x->offset + runs[0].units * runs[0].width};
    }
    trace_close(t);
    return n;
}

static void try_byte(const char *path, const char *other, const blob *good, uint64_t at)
{
    static const unsigned char masks[] = {1, 0x80, 0xff, 0x40};
    blob b = {NULL, 0, 0};
    blob_add(&b, good->data, good->n);
    change(&b, (size_t)at, masks[at % 4]);
    save(other, &b);
    blob_clear(&b);
    ck_assert_msg(diff(path, other).differs, "%s: a change of byte %llu is not seen", path, (unsigned long long)at);
}

/* All tensors of a file whose other copy is `other`, which is of the operands a and b. */
static void try_file(const char *path, uint64_t *state)
{
    enum { MOST = 400 };
    static range places[MOST];
    const char *other = bad_path("other");
    const size_t n = ranges_of(path, places, MOST);
    blob good = load(path);
    save(other, &good);
    const outcome_of same = diff(path, other);
    ck_assert_msg(!same.differs && same.compared, "%s", path);
    ck_assert_msg(n > 0, "%s: no tensor has a place", path);
    for (size_t i = 0; i < n; i++) {
        ck_assert_msg(places[i].end <= good.n, "%s", path);
        try_byte(path, other, &good, places[i].begin);
        try_byte(path, other, &good, places[i].end - 1);
    }
    for (size_t k = 0; k < test_scaled(EACH); k++) {
        const range *r = &places[test_random(state) % n];
        try_byte(path, other, &good, r->begin + test_random(state) % (r->end - r->begin));
    }
    unlink(other);
    blob_clear(&good);
}

static FILE *errors;

static void silent(void)
{
    errors = freopen("/dev/null", "w", stderr);
}

/* ---- recorded files ---- */

START_TEST(any_byte_of_recorded_files)
{
    static const char *const files[] = {"quantised/compressed-tensors.safetensors",
                                        "quantised/deepseek.safetensors",
                                        "quantised/gpt-oss.safetensors",
                                        "quantised/modelopt.safetensors",
                                        "quantised/packed.safetensors",
                                        "quantised/torchao.safetensors",
                                        "quantised/te.pt",
                                        "quantised/torchao.pt",
                                        "recorded/little.gguf",
                                        "recorded/big.gguf",
                                        "recorded/model.onnx",
                                        "recorded/flax.msgpack",
                                        "recorded/optimizer.pt",
                                        "recorded/jax.pkl",
                                        "recorded/tokens.bin",
                                        "recorded/model.pt2",
                                        "torch/torch-2.6.0/train.zip.pt",
                                        "torch/torch-1.0.1/state_dict.legacy.pt",
                                        "torch/torch-2.6.0/dtype_bits8.zip.pt",
                                        "torch/torch-2.6.0/dtype_complex64.legacy.pt"};
    char path[4400];
    const char *top = getenv("MPSIM_SRCDIR");
    uint64_t state = test_seed();
    snprintf(path, sizeof path, "%s/tests/trace/%s", top ? top : ".", files[_i]);
    if (access(path, R_OK) == 0) {
        silent();
        try_file(path, &state);
    }
}

/* ---- files of our own ---- */

START_TEST(any_byte_of_every_dtype)
{
    static const char header[] = "{\"a\":{\"dtype\":\"F4\",\"shape\":[2,4],\"data_offsets\":[0,4]},"
                                 "\"b\":{\"dtype\":\"F6_E2M3\",\"shape\":[4],\"data_offsets\":[4,7]},"
                                 "\"c\":{\"dtype\":\"F6_E3M2\",\"shape\":[4],\"data_offsets\":[7,10]},"
                                 "\"d\":{\"dtype\":\"C64\",\"shape\":[2],\"data_offsets\":[10,26]},"
                                 "\"e\":{\"dtype\":\"BOOL\",\"shape\":[3],\"data_offsets\":[26,29]},"
                                 "\"f\":{\"dtype\":\"I64\",\"shape\":[],\"data_offsets\":[29,37]},"
                                 "\"g\":{\"dtype\":\"U16\",\"shape\":[2,2],\"data_offsets\":[37,45]},"
                                 "\"h.qweight\":{\"dtype\":\"I32\",\"shape\":[2,2],\"data_offsets\":[45,61]},"
                                 "\"i.weight\":{\"dtype\":\"U8\",\"shape\":[2,2],\"data_offsets\":[61,65]},"
                                 "\"i.my_scales\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[65,69]},"
                                 "\"j\":{\"dtype\":\"F8_E8M0\",\"shape\":[3],\"data_offsets\":[69,72]}}";
    blob b = bad_safetensors(header, 72);
    const char *path = bad_write("dtypes.safetensors", &b), *other = bad_path("other");
    silent();
    blob good = load(path);
    for (size_t at = good.n - 72; at < good.n; at++)
        try_byte(path, other, &good, at);
    blob_clear(&good);
}

START_TEST(any_byte_of_members)
{
    static const char *const names[] = {"a.npy", "c.npy", "i.npy", "o.npy", "s.npy"};
    static const char *const dicts[] = {DICT("'<f4'", "(2,)"), DICT("'<c8'", "(2,)"), DICT("'>i8'", "(2,)"),
                                        DICT("'|O'", "(3,)"), DICT("'|S3'", "(4,)")};
    static const size_t bytes[] = {8, 16, 16, 17, 12};
    archive a = {0};
    blob x[5];
    for (int i = 0; i < 5; i++) {
        x[i] = bad_npy(1, dicts[i], "0123456789abcdefg", bytes[i]);
        archive_member(&a, names[i], &x[i], 0);
    }
    for (size_t i = 0; i < 5; i++)
        archive_central(&a, i, names[i], &x[i], 0);
    archive_end(&a);
    const char *path = bad_write("members.npz", &a.b), *other = bad_path("other");
    silent();
    blob good = load(path);
    for (size_t at = 0, first, n; at < good.n; at++)
        if (member_at(&good, at, &first, &n) && at >= first + 128)
            try_byte(path, other, &good, at);
    blob_clear(&good);
    for (int i = 0; i < 5; i++)
        blob_clear(&x[i]);
}

/* The same integers by rows and by columns. */
START_TEST(orders_of_integers)
{
    static const unsigned char rows[] = {1, 2, 3, 4, 5, 6}, columns[] = {1, 4, 2, 5, 3, 6};
    blob a = bad_npy(1, "{'descr': '|u1', 'fortran_order': False, 'shape': (2, 3), }", rows, 6);
    blob b = bad_npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", columns, 6);
    blob c = bad_npy(1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 3), }", rows, 6);
    const char *x = bad_write("rows.npy", &a), *y = bad_write("columns.npy", &b), *z = bad_write("other.npy", &c);
    const outcome_of same = diff(x, y), others = diff(x, z);
    ck_assert(same.compared && !same.differs && !same.not_compared && others.differs);
}

START_TEST(any_byte_of_blocks_that_are_not_decoded)
{
    static const struct {
        unsigned type, bytes;
    } types[] = {{16, 66}, {17, 74}, {18, 98}, {19, 50}, {29, 56}, {34, 54}};
    enum { TYPES = 6, ALIGNMENT = 32 };
    blob b = {NULL, 0, 0};
    blob_text(&b, "GGUF");
    blob_int(&b, 3, 4);
    blob_int(&b, TYPES, 8);
    blob_int(&b, 0, 8);
    for (uint64_t i = 0, at = 0; i < TYPES; i++) {
        blob_int(&b, 2, 8);
        blob_text(&b, "t%d", (int)i);
        blob_int(&b, 1, 4);
        blob_int(&b, 256, 8);
        blob_int(&b, types[i].type, 4);
        blob_int(&b, at, 8);
        at += (types[i].bytes + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
    }
    blob_fill(&b, 0, (ALIGNMENT - b.n % ALIGNMENT) % ALIGNMENT);
    for (int i = 0; i < TYPES; i++) {
        for (unsigned k = 0; k < types[i].bytes; k++)
            blob_int(&b, k, 1);
        blob_fill(&b, 0, (ALIGNMENT - b.n % ALIGNMENT) % ALIGNMENT);
    }
    uint64_t state = test_seed();
    const char *path = bad_write("blocks.gguf", &b);
    silent();
    try_file(path, &state);
}

/* An initialiser of FLOAT16 as varints, and one in a file beside the model that is not there. */
START_TEST(initialisers_that_are_not_read)
{
    static const unsigned char varints[] = {0x80, 0x78, 0x80, 0x80, 0x01, 0x05};
    blob x = {NULL, 0, 0}, y = {NULL, 0, 0}, g = {NULL, 0, 0}, b = {NULL, 0, 0};
    blob_add(&x, "\x08\x03\x10\x0a\x2a\x06", 6);
    blob_add(&x, varints, sizeof varints);
    blob_add(&x, "\x42\x01h", 3);
    blob_add(&y, "\x08\x02\x10\x01\x42\x01w\x70\x01\x6a\x11\x0a\x08location\x12\x05w.bin", 28);
    blob_add(&g, "\x2a", 1);
    blob_int(&g, x.n, 1);
    blob_add(&g, x.data, x.n);
    const size_t at = 2 + 2 + 2 + 6;
    for (int external = 0; external < 2; external++) {
        blob_add(&b, "\x08\x08\x3a", 3);
        blob_int(&b, g.n, 1);
        blob_add(&b, g.data, g.n);
        blob_add(&b, "\x42\x02\x10\x11", 4);
        const char *path = bad_write("model.onnx", &b);
        blob good = load(path);
        for (size_t i = 0; i < sizeof varints; i++)
            if (!external)
                try_byte(path, bad_path("other"), &good, 3 + at - 2 + i);
        save(bad_path("other"), &good);
        const outcome_of same = diff(path, bad_path("other"));
        ck_assert_msg(!same.differs && same.not_compared == external && same.compared == 1 + external, "%d %d %d",
                      same.differs, same.not_compared, same.compared);
        blob_clear(&good);
        blob_add(&g, "\x2a", 1);
        blob_int(&g, y.n, 1);
        blob_add(&g, y.data, y.n);
    }
    blob_clear(&x);
    blob_clear(&y);
    blob_clear(&g);
}

/* ---- the recipe that a file names is tried first ---- */

/* A GGUF file of one tensor of Q8_0, of n numbers. */
static blob q8_0(const float *x, size_t n)
{
    enum { BLOCK = 32 };
    const mpsim_format *half = mpsim_format_find("fp16");
    mpsim_rounding r;
    blob b = {NULL, 0, 0};
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    blob_text(&b, "GGUF");
    blob_int(&b, 3, 4);
    blob_int(&b, 1, 8);
    blob_int(&b, 0, 8);
    blob_int(&b, 1, 8);
    blob_text(&b, "w");
    blob_int(&b, 1, 4);
    blob_int(&b, n, 8);
    blob_int(&b, 8, 4);
    blob_int(&b, 0, 8);
    blob_fill(&b, 0, (32 - b.n % 32) % 32);
    for (size_t i = 0; i < n; i += BLOCK) {
        float amax = 0;
        for (size_t k = 0; k < BLOCK; k++)
            amax = fmaxf(amax, fabsf(x[i + k]));
        const float d = amax / 127;
        blob_int(&b, mpsim_encode_f64(half, &r, (double)d, 0, NULL), 2);
        for (size_t k = 0; k < BLOCK; k++)
            blob_int(&b, (uint64_t)(int64_t)roundf(x[i + k] / d) & 255, 1);
    }
    blob_fill(&b, 0, (32 - b.n % 32) % 32);
    return b;
}

static blob plain(const float *x, size_t n)
{
    char header[128];
    snprintf(header, sizeof header, "{\"w\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[0,%zu]}}", n, 4 * n);
    blob b = bad_safetensors(header, 4 * n);
    for (size_t i = 0; i < n; i++) {
        uint32_t code;
        memcpy(&code, &x[i], 4);
        blob_set(&b, b.n - 4 * n + 4 * i, code, 4);
    }
    return b;
}

START_TEST(quantised_as_the_file_says)
{
    enum { N = 640 };
    float x[N], y[N];
    uint64_t state = test_seed();
    for (int i = 0; i < N; i++) {
        x[i] = ((float)(test_random(&state) >> 40) - 0x1p23f) * 0x1p-20f;
        y[i] = ((float)(test_random(&state) >> 40) - 0x1p23f) * 0x1p-20f;
    }
    blob q = q8_0(x, N), a = plain(x, N), b = plain(y, N);
    const char *quantised = bad_write("q.gguf", &q), *from = bad_write("x.safetensors", &a),
               *other = bad_write("y.safetensors", &b);
    ck_assert_int_eq(diff(from, quantised).verdict, VERDICT_QUANTISED);
    ck_assert_int_eq(diff(quantised, from).verdict, VERDICT_QUANTISED);
    ck_assert_int_ne(diff(other, quantised).verdict, VERDICT_QUANTISED);
}

int main(void)
{
    TCase *bytes = tcase_create("bytes");
    tcase_set_timeout(bytes, 60);
    tcase_add_test(bytes, any_byte_of_every_dtype);
    tcase_add_test(bytes, any_byte_of_members);
    tcase_add_test(bytes, orders_of_integers);
    tcase_add_test(bytes, quantised_as_the_file_says);
    tcase_add_test(bytes, any_byte_of_blocks_that_are_not_decoded);
    tcase_add_test(bytes, initialisers_that_are_not_read);
    tcase_add_loop_test(bytes, any_byte_of_recorded_files, 0, 20);
    TCase *const cases[] = {bytes, NULL};
    return bad_main("diff-bytes", cases);
}
