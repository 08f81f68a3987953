/* t-framework.c -- the presets against recorded casts of real frameworks.
 *
 * data/vectors/casts holds what PyTorch, NumPy with ml_dtypes, and ONNX made of some 2700
 * binary32 inputs; its README says how it was recorded. Every column of every file has a row
 * below: the format, the preset and the mode that reproduce it. Where no choice can, a
 * function of the row says exactly which inputs differ, and what mpsim gives instead. */
#include <mpsim/round.h>

#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- where mpsim and a framework part ---- */

/* From what a framework gave for the input u to what mpsim is to give. */
typedef uint64_t difference(uint32_t u, uint64_t recorded);

/* NumPy's float16 cast, done in software, keeps a signalling NaN signalling, and sets the last
 * bit of one whose leading payload bits are all zero. IEEE 754-2019 6.2.3 wants it quiet: bit 9
 * of fp16, which needs no other bit. */
static uint64_t numpy_keeps_signalling_nans(uint32_t u, uint64_t recorded)
{
    const uint32_t m = u & 0x7fffffffu;
    if (m <= 0x7f800000u || m >= 0x7fc00000u)
        return recorded;
    return (m & 0x007fe000u) == 0 && (recorded & 0x7fff) == 0x7c01 ? recorded ^ 0x0201 : recorded | 0x0200;
}

/* ---- the files ---- */

enum {
    RNE = MPSIM_ROUND_NEAREST_EVEN,
    RNA = MPSIM_ROUND_NEAREST_AWAY,
    RTZ = MPSIM_ROUND_TOWARD_ZERO,
    RUP = MPSIM_ROUND_UP
};

/* One column of a file. E8M0 "nearest" of all three frameworks sends ties up. */
typedef struct column {
    const char *name, *format, *preset;
    int mode;
    difference *differs;
} column;

static const column ml_dtypes[] = {
    {"float16", "fp16", "ml-dtypes", RNE, numpy_keeps_signalling_nans},
    {"bfloat16", "bf16", "ml-dtypes", RNE, NULL},
    {"float8_e3m4", "e3m4", "ml-dtypes", RNE, NULL},
    {"float8_e4m3", "e4m3ieee", "ml-dtypes", RNE, NULL},
    {"float8_e4m3b11fnuz", "e4m3b11fnuz", "ml-dtypes", RNE, NULL},
    {"float8_e4m3fn", "e4m3", "ml-dtypes", RNE, NULL},
    {"float8_e4m3fnuz", "e4m3fnuz", "ml-dtypes", RNE, NULL},
    {"float8_e5m2", "e5m2", "ml-dtypes", RNE, NULL},
    {"float8_e5m2fnuz", "e5m2fnuz", "ml-dtypes", RNE, NULL},
    {"float8_e8m0fnu", "e8m0", "ml-dtypes", RNA, NULL},
    {"float6_e2m3fn", "e2m3", "ml-dtypes", RNE, NULL},
    {"float6_e3m2fn", "e3m2", "ml-dtypes", RNE, NULL},
    {"float4_e2m1fn", "e2m1", "ml-dtypes", RNE, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

static const column torch_new[] = {
    {"float16", "fp16", "pytorch", RNE, NULL},
    {"bfloat16", "bf16", "pytorch", RNE, NULL},
    {"float8_e4m3fn", "e4m3", "pytorch", RNE, NULL},
    {"float8_e5m2", "e5m2", "pytorch", RNE, NULL},
    {"float8_e4m3fnuz", "e4m3fnuz", "pytorch", RNE, NULL},
    {"float8_e5m2fnuz", "e5m2fnuz", "pytorch", RNE, NULL},
    {"float8_e8m0fnu", "e8m0", "pytorch", RNA, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

static const column torch_old[] = {
    {"float16", "fp16", "pytorch-2.12", RNE, NULL},
    {"bfloat16", "bf16", "pytorch-2.12", RNE, NULL},
    {"float8_e4m3fn", "e4m3", "pytorch-2.12", RNE, NULL},
    {"float8_e5m2", "e5m2", "pytorch-2.12", RNE, NULL},
    {"float8_e4m3fnuz", "e4m3fnuz", "pytorch-2.12", RNE, NULL},
    {"float8_e5m2fnuz", "e5m2fnuz", "pytorch-2.12", RNE, NULL},
    {"float8_e8m0fnu", "e8m0", "pytorch-2.12", RNA, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

static const column onnx[] = {
    {"FLOAT8E4M3FN/saturate=1", "e4m3", "onnx", RNE, NULL},
    {"FLOAT8E5M2/saturate=1", "e5m2", "onnx", RNE, NULL},
    {"FLOAT8E4M3FNUZ/saturate=1", "e4m3fnuz", "onnx", RNE, NULL},
    {"FLOAT8E5M2FNUZ/saturate=1", "e5m2fnuz", "onnx", RNE, NULL},
    {"FLOAT8E8M0/saturate=1/up", "e8m0", "onnx", RUP, NULL},
    {"FLOAT8E8M0/saturate=1/down", "e8m0", "onnx", RTZ, NULL},
    {"FLOAT8E8M0/saturate=1/nearest", "e8m0", "onnx", RNA, NULL},
    {"FLOAT8E4M3FN/saturate=0", "e4m3", "onnx-nosat", RNE, NULL},
    {"FLOAT8E5M2/saturate=0", "e5m2", "onnx-nosat", RNE, NULL},
    {"FLOAT8E4M3FNUZ/saturate=0", "e4m3fnuz", "onnx-nosat", RNE, NULL},
    {"FLOAT8E5M2FNUZ/saturate=0", "e5m2fnuz", "onnx-nosat", RNE, NULL},
    {"FLOAT8E8M0/saturate=0/up", "e8m0", "onnx-nosat", RUP, NULL},
    {"FLOAT8E8M0/saturate=0/down", "e8m0", "onnx-nosat", RTZ, NULL},
    {"FLOAT8E8M0/saturate=0/nearest", "e8m0", "onnx-nosat", RNA, NULL},
    {NULL, NULL, NULL, 0, NULL},
};

static const struct {
    const char *path;
    const column *columns;
} files[] = {
    {"data/vectors/casts/ml_dtypes.txt", ml_dtypes},
    {"data/vectors/casts/torch-2.15.0.txt", torch_new},
    {"data/vectors/casts/torch-2.12.1.txt", torch_old},
    {"data/vectors/casts/torch-2.4.1.txt", torch_old},
    {"data/vectors/casts/onnx.txt", onnx},
};
enum { FILES = sizeof files / sizeof files[0], COLUMNS = 20 };

/* ---- replay ---- */

static FILE *open_vectors(const char *path)
{
    FILE *in = fopen(test_source_path(path), "r");
    ck_assert_msg(in != NULL, "cannot open %s", path);
    return in;
}

/* What happened to one column. */
typedef struct result {
    const column *c;
    mpsim_format f;
    mpsim_rounding r;
    size_t rows, wrong, differs;
    char first[300];
} result;

/* The columns that a header line "# columns: input A B ..." names; how many. */
static size_t read_columns(result *results, const column *known, const char *path, char *names)
{
    size_t n = 0;
    for (const char *name = strtok(names, " \n"); name; name = strtok(NULL, " \n")) {
        const column *c = known;
        while (c->name && strcmp(c->name, name) != 0)
            c++;
        ck_assert_msg(c->name && n < COLUMNS, "%s: column %s has no row in this test", path, name);
        result *s = &results[n++];
        memset(s, 0, sizeof *s);
        s->c = c;
        const mpsim_preset *p = mpsim_preset_find(c->preset);
        ck_assert_msg(p != NULL, "%s, %s: no preset %s", path, name, c->preset);
        ck_assert_msg(mpsim_format_parse(&s->f, c->format) == MPSIM_OK, "no format %s", c->format);
        mpsim_rounding_preset_from(&s->r, p, &s->f, mpsim_format_find("binary32"));
        ck_assert(strstr(name, "/") || s->r.mode == c->mode);
        s->r.mode = (uint8_t)c->mode;
    }
    return n;
}

static void check_row(result *s, uint32_t u, uint64_t recorded)
{
    const uint64_t want = s->c->differs ? s->c->differs(u, recorded) : recorded;
    const uint64_t got = mpsim_encode_f32(&s->f, &s->r, f32_of_bits(u), 0, NULL);
    s->rows++;
    s->differs += want != recorded;
    if (got != want && s->wrong++ == 0)
        snprintf(s->first, sizeof s->first,
                 "%s %s %s x=%a (%#010" PRIx32 "): recorded %#" PRIx64 ", expected %#" PRIx64 ", got %#" PRIx64,
                 s->f.name, s->c->preset, mpsim_round_mode_name(s->r.mode), (double)f32_of_bits(u), u, recorded, want,
                 got);
}

CASE("casts", 10);

TESTS(presets_reproduce_recorded_casts, FILES)
{
    static const char head[] = "# columns: input ";
    const char *path = files[_i].path;
    static result results[COLUMNS];
    size_t n = 0, wrong = 0;
    char line[2048];
    FILE *in = open_vectors(path);
    while (fgets(line, sizeof line, in)) {
        if (strncmp(line, head, sizeof head - 1) == 0)
            n = read_columns(results, files[_i].columns, path, line + sizeof head - 1);
        if (line[0] == '#')
            continue;
        char *at = line, *end;
        const uint32_t u = (uint32_t)strtoul(at, &end, 16);
        for (size_t k = 0; k < n; k++) {
            at = end;
            const uint64_t recorded = strtoull(at, &end, 16);
            ck_assert_msg(end != at, "%s: short row %s", path, line);
            check_row(&results[k], u, recorded);
        }
    }
    fclose(in);
    ck_assert_msg(n > 0, "%s: no line of columns", path);
    char text[2000] = "";
    for (size_t k = 0; k < n; k++) {
        const size_t used = strlen(text);
        wrong += results[k].wrong;
        if (results[k].wrong)
            snprintf(text + used, sizeof text - used, "\n    %s: %zu of %zu wrong; %s", results[k].c->name,
                     results[k].wrong, results[k].rows, results[k].first);
        /* A difference that no input shows is no difference. */
        ck_assert_msg(!results[k].c->differs == !results[k].differs, "%s, %s: differs on %zu inputs", path,
                      results[k].c->name, results[k].differs);
        ck_assert_msg(results[k].rows > 2000, "%s: %zu rows", path, results[k].rows);
    }
    ck_assert_msg(wrong == 0, "%s:%s", path, text);
}

/* Without a preset mpsim's answer is the one of the definitions. */
TEST(differences_from_frameworks_are_deliberate)
{
    const mpsim_format *fp16 = mpsim_format_find("fp16"), *e8m0 = mpsim_format_find("e8m0");
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    r.nan = MPSIM_NANS_PAYLOAD;
    ck_assert_uint_eq(mpsim_encode_f32(fp16, &r, f32_of_bits(0x7f802000), 0, NULL), 0x7e01);
    r.mode = MPSIM_ROUND_NEAREST_AWAY;
    ck_assert_uint_eq(mpsim_encode_f32(e8m0, &r, 0x1.4p-127f, 0, NULL), 0); /* not 2^-126 */
    ck_assert_uint_eq(mpsim_encode_f32(e8m0, &r, 0x1.8p-127f, 0, NULL), 1);
    r.mode = MPSIM_ROUND_UP;
    ck_assert_uint_eq(mpsim_encode_f32(e8m0, &r, 0x1p-127f, 0, NULL), 0); /* it is exact */
    ck_assert_uint_eq(mpsim_encode_f32(e8m0, &r, 0x1p-149f, 0, NULL), 0);
}

/* ---- routes ---- */

/* torch 2.15.0 on CPU, torch.tensor(x, dtype=torch.float64).to(...), ml_dtypes 0.6.0 and NumPy 2.4.6, astype
 * of float64: all but NumPy's fp16 by way of binary32. */
static const struct {
    const char *preset, *format;
    double x;
    uint64_t code;
} wide_casts[] = {
    {"pytorch", "fp16", 0x1.0020000000001p+0, 0x3c00},
    {"pytorch", "fp16", 65519.9999999, 0x7c00},
    {"pytorch", "bf16", 0x1.0100000001p+0, 0x3f80},
    {"pytorch", "e4m3", 0x1.1000000001p+0, 0x38},
    {"pytorch", "e5m2", 0x1.2000000001p+0, 0x3c},
    {"pytorch", "e4m3fnuz", 0x1.1000000001p+0, 0x40},
    {"pytorch", "e8m0", 0x1.7ffffffffep+0, 0x80},
    {"ml-dtypes", "fp16", 0x1.0020000000001p+0, 0x3c01},
    {"ml-dtypes", "bf16", 0x1.0100000001p+0, 0x3f80},
    {"ml-dtypes", "e4m3", 0x1.1000000001p+0, 0x38},
    {"ml-dtypes", "e5m2", 0x1.2000000001p+0, 0x3c},
    {"ml-dtypes", "e8m0", 0x1.7ffffffffep+0, 0x80},
    {"pytorch", "e8m0", 3, 0x81},
    {"pytorch", "e8m0", 0.75, 0x7f},
    {"ml-dtypes", "e8m0", 3, 0x81},
    {"cuda", "e8m0", 2.5, 0x81},
    {"ieee", "e8m0", 2.5, 0x80},
    {"pytorch", "e8m0", 0x1.4p-127, 1},
};

CASE("routes", 10);

TEST(bug_20261123_route_of_binary64)
{
    const mpsim_format *binary64 = mpsim_format_find("binary64");
    for (size_t i = 0; i < sizeof wide_casts / sizeof wide_casts[0]; i++) {
        const mpsim_format *f = mpsim_format_find(wide_casts[i].format);
        mpsim_rounding r;
        uint64_t code = 0;
        mpsim_rounding_preset_from(&r, mpsim_preset_find(wide_casts[i].preset), f, binary64);
        ck_assert_uint_eq(mpsim_encode_f64(f, &r, wide_casts[i].x, 0, NULL), wide_casts[i].code);
        const mpsim_status s = mpsim_encode_array_f64(f, &r, NULL, &code, &wide_casts[i].x, 1, NULL);
        ck_assert_int_eq(s, MPSIM_OK);
        ck_assert_uint_eq(mpsim_format_code_bytes(f) == 2 ? *(uint16_t *)(void *)&code : *(uint8_t *)&code,
                          wide_casts[i].code);
    }
}

/* An exact second step does not hide that the first one was inexact, out of range or lost. */
TEST(flags_are_those_of_both_steps)
{
    const mpsim_format *f = mpsim_format_find("fp16");
    mpsim_rounding r;
    unsigned flags;
    mpsim_rounding_preset_from(&r, mpsim_preset_find("pytorch"), f, mpsim_format_find("binary64"));
    ck_assert_uint_eq(mpsim_encode_f64(f, &r, 0x1.0000000001p0, 0, &flags), 0x3c00);
    ck_assert_uint_eq(flags, MPSIM_FLAG_INEXACT);
    ck_assert_uint_eq(mpsim_encode_f64(f, &r, 1e300, 0, &flags), 0x7c00);
    ck_assert_uint_eq(flags, MPSIM_FLAG_INEXACT | MPSIM_FLAG_OVERFLOW);
    ck_assert_uint_eq(mpsim_encode_f64(f, &r, -1e-300, 0, &flags), 0x8000);
    ck_assert_uint_eq(flags, MPSIM_FLAG_INEXACT | MPSIM_FLAG_UNDERFLOW);
    ck_assert_uint_eq(mpsim_encode_f64(f, &r, 1, 0, &flags), 0x3c00);
    ck_assert_uint_eq(flags, 0);
}

/* torch 2.15.0: NaN of 16 and 8 bits becomes 0x7fc0 in bfloat16, of binary32 and binary64 0xffff. */
TEST(nan_of_short_formats)
{
    static const char *const sources[] = {"fp16", "e4m3", "e5m2", "e4m3fnuz", "e8m0", "binary32", "binary64"};
    const mpsim_format *bf16 = mpsim_format_find("bf16");
    for (size_t i = 0; i < sizeof sources / sizeof sources[0]; i++) {
        mpsim_rounding r;
        mpsim_rounding_preset_from(&r, mpsim_preset_find("pytorch"), bf16, mpsim_format_find(sources[i]));
        ck_assert_uint_eq(mpsim_encode_f32(bf16, &r, -(float)NAN, 0, NULL), i < 5 ? 0x7fc0 : 0xffff);
    }
}

/* ---- PyTorch's NaN by four routes ---- */

/* What a NaN becomes in PyTorch depends on the code path. All of them are NaN rules; the
 * preset takes the contiguous one with vector code. Routes: contiguous array, strided copy,
 * one element, no dimension. */
enum {
    PAYLOAD = MPSIM_NANS_PAYLOAD,
    SIGNED = MPSIM_NANS_SIGNED,
    POSITIVE = MPSIM_NANS_POSITIVE,
    ONES = MPSIM_NANS_ONES,
    MINUS = MPSIM_NANS_MINUS_ONES,
    ROUTES = 4
};

static const struct {
    const char *path, *preset;
    int vector; /* the contiguous route is the preset's */
    int fp16[ROUTES], bf16[ROUTES];
} routes[] = {
    {"data/vectors/casts/torch-2.15.0-nan-avx512.txt",
     "pytorch",
     1,
     {PAYLOAD, PAYLOAD, PAYLOAD, PAYLOAD},
     {MINUS, POSITIVE, MINUS, POSITIVE}},
    {"data/vectors/casts/torch-2.15.0-nan-default.txt",
     "pytorch",
     0,
     {PAYLOAD, SIGNED, PAYLOAD, PAYLOAD},
     {POSITIVE, POSITIVE, POSITIVE, POSITIVE}},
    {"data/vectors/casts/torch-2.12.1-nan-avx512.txt",
     "pytorch-2.12",
     1,
     {PAYLOAD, PAYLOAD, PAYLOAD, PAYLOAD},
     {MINUS, POSITIVE, MINUS, POSITIVE}},
    {"data/vectors/casts/torch-2.12.1-nan-default.txt",
     "pytorch-2.12",
     0,
     {PAYLOAD, SIGNED, PAYLOAD, PAYLOAD},
     {POSITIVE, POSITIVE, POSITIVE, POSITIVE}},
    {"data/vectors/casts/torch-2.4.1-nan-avx512.txt",
     "pytorch-2.12",
     1,
     {PAYLOAD, PAYLOAD, ONES, ONES},
     {MINUS, POSITIVE, MINUS, POSITIVE}},
    {"data/vectors/casts/torch-2.4.1-nan-default.txt",
     "pytorch-2.12",
     0,
     {PAYLOAD, SIGNED, ONES, ONES},
     {POSITIVE, POSITIVE, POSITIVE, POSITIVE}},
};

CASE("nan routes", 10);

TESTS(nan_routes_of_pytorch_are_nan_rules, (sizeof routes / sizeof routes[0]))
{
    const char *path = routes[_i].path;
    const mpsim_preset *p = mpsim_preset_find(routes[_i].preset);
    ck_assert_msg(p != NULL, "no preset %s", routes[_i].preset);
    FILE *in = open_vectors(path);
    size_t rows = 0, wrong = 0;
    char line[400], name[32], first[400] = "";
    while (fgets(line, sizeof line, in)) {
        unsigned u, code[ROUTES];
        if (line[0] == '#')
            continue;
        const int fields = sscanf(line, "%31s %x %x %x %x %x", name, &u, &code[0], &code[1], &code[2], &code[3]);
        const int half = strcmp(name, "float16") == 0;
        ck_assert_msg(fields == 6 && (half || strcmp(name, "bfloat16") == 0), "%s: %s", path, line);
        const mpsim_format *f = mpsim_format_find(name);
        mpsim_rounding r;
        mpsim_rounding_preset(&r, p, f);
        ck_assert_int_eq(r.nan == (half ? routes[_i].fp16[0] : routes[_i].bf16[0]), half || routes[_i].vector);
        rows++;
        for (int k = 0; k < ROUTES; k++) {
            r.nan = (uint8_t)(half ? routes[_i].fp16[k] : routes[_i].bf16[k]);
            const uint64_t got = mpsim_encode_f32(f, &r, f32_of_bits(u), 0, NULL);
            if (got != code[k] && wrong++ == 0)
                snprintf(first, sizeof first, "%s route %d rule %d input %#010x: recorded %#x, got %#" PRIx64, f->name,
                         k, r.nan, u, code[k], got);
        }
    }
    fclose(in);
    ck_assert_msg(rows >= 50, "%s: %zu rows", path, rows);
    ck_assert_msg(wrong == 0, "%s: %zu wrong; %s", path, wrong, first);
}

/* ---- decoding ---- */

CASE("decode", 10);

/* All codes of the formats of 8 bits and fewer of ml_dtypes, as binary32. */
TEST(codes_mean_what_ml_dtypes_says)
{
    FILE *in = open_vectors("data/vectors/casts/ml_dtypes_decode.txt");
    size_t rows = 0, wrong = 0;
    char line[400], name[64], first[400] = "";
    while (fgets(line, sizeof line, in)) {
        unsigned code, bits;
        if (line[0] == '#')
            continue;
        ck_assert_msg(sscanf(line, "%63s %x %x", name, &code, &bits) == 3, "%s", line);
        const mpsim_format *f = mpsim_format_find(name); /* ml_dtypes' names are aliases */
        ck_assert_msg(f != NULL, "no format %s", name);
        const double want = (double)f32_of_bits(bits), got = mpsim_decode(f, code);
        rows++;
        if ((isnan(want) ? !isnan(got) : bits_of_f64(got) != bits_of_f64(want)) && wrong++ == 0)
            snprintf(first, sizeof first, "%s code %#x: recorded %a, got %a", name, code, want, got);
    }
    fclose(in);
    ck_assert_msg(wrong == 0, "%zu wrong; %s", wrong, first);
    ck_assert_uint_eq(rows, 8 * 256 + 2 * 64 + 16);
}

TEST_MAIN("framework");
