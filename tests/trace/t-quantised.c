/* t-quantised.c -- quantised tensors: every number as the packages read it that wrote the files (tests/trace/quantised:
 * values.txt, record.py), through every way of reading; layouts that no package writes here, made by hand; what is not
 * recognised; and the bad inputs. */
#include "sim/trace/impl.h"
#include "support/badfile.h"
#include "sim/text/sha256.h"
#include "support/support.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { LINE = 1024, CHUNK = 777, NUMBERS = 1 << 16 };

static size_t find(const trace *t, const char *name)
{
    for (size_t i = 0; i < trace_count(t); i++)
        if (strcmp(trace_at(t, i)->name, name) == 0)
            return i;
    return SIZE_MAX;
}

static trace *open_ok(const char *path, const trace_options *options)
{
    trace_error error;
    trace *t = trace_open(path, options, &error);
    ck_assert_msg(t != NULL, "%s", error.text);
    return t;
}

/* ---- recorded files ---- */

/* All numbers of a tensor, `chunk` at a time. */
static void digest_of(const trace *t, size_t i, size_t chunk, char hex[65])
{
    static float values[NUMBERS];
    const uint64_t n = trace_at(t, i)->count;
    trace_error error;
    sha256 s;
    sha256_init(&s);
    for (uint64_t first = 0; first < n; first += chunk) {
        const size_t m = n - first < chunk ? (size_t)(n - first) : chunk;
        ck_assert_msg(trace_codes(t, i, first, values, m, &error) == 0, "%s", error.text);
        for (size_t k = 0; k < m; k++) {
            uint32_t code;
            memcpy(&code, &values[k], 4);
            const unsigned char bytes[] = {(unsigned char)code, (unsigned char)(code >> 8), (unsigned char)(code >> 16),
                                           (unsigned char)(code >> 24)};
            sha256_add(&s, bytes, sizeof bytes);
        }
    }
    sha256_hex(&s, hex);
}

/* A line of the list: FILE NAME SHAPE DIGEST. */
static void compare(const trace *t, char *const field[4], int *quantised)
{
    static const size_t chunks[] = {1, 31, CHUNK, NUMBERS};
    char shape[LINE], hex[65];
    size_t n = 0;
    const size_t i = find(t, field[1]);
    ck_assert_msg(i != SIZE_MAX, "%s: no tensor '%s'", field[0], field[1]);
    const trace_tensor *x = trace_at(t, i);
    for (size_t k = 0; k < x->rank; k++)
        n += (size_t)snprintf(shape + n, sizeof shape - n, "%s%llu", k ? "," : "", (unsigned long long)x->shape[k]);
    ck_assert_str_eq(shape, field[2]);
    ck_assert_str_eq(x->format->name, "binary32");
    for (size_t k = 0; k < sizeof chunks / sizeof chunks[0]; k++) {
        digest_of(t, i, chunks[k], hex);
        ck_assert_msg(strcmp(hex, field[3]) == 0, "%s: '%s' has other numbers", field[0], field[1]);
    }
    *quantised += x->quantised != NULL;
}

CASE("quantised", 120);

TEST(numbers_as_the_packages_read_them)
{
    char path[2 * LINE], line[LINE], name[LINE] = "";
    trace *t = NULL;
    int tensors = 0, quantised = 0;
    FILE *f = fopen(test_source_path("tests/trace/quantised/values.txt"), "r");
    ck_assert(f != NULL);
    while (fgets(line, sizeof line, f)) {
        char *field[4] = {line};
        line[strcspn(line, "\n")] = 0;
        for (int i = 1; i < 4; i++) {
            field[i] = strchr(field[i - 1], '\t');
            ck_assert(field[i] != NULL);
            *field[i]++ = 0;
        }
        if (strcmp(name, field[0]) != 0) {
            trace_close(t);
            snprintf(name, sizeof name, "%s", field[0]);
            snprintf(path, sizeof path, "%s/%s", test_source_path("tests/trace/quantised"), name);
            t = open_ok(path, NULL);
        }
        compare(t, field, &quantised);
        tensors++;
    }
    trace_close(t);
    fclose(f);
    printf("# %d tensors, %d of them quantised\n", tensors, quantised);
    ck_assert_int_ge(quantised, 35);
}

/* ---- files made here ---- */

/* Tensors of a safetensors file, of bytes. */
typedef struct item {
    const char *name, *dtype, *shape;
    size_t n;
    const void *bytes;
} item;

static const char *write_items(const char *file, const char *metadata, const item *items, size_t n)
{
    blob header = {0}, b = {0};
    size_t at = 0;
    blob_text(&header, "{");
    if (metadata)
        blob_text(&header, "\"__metadata__\":%s%s", metadata, n ? "," : "");
    for (size_t i = 0; i < n; at += items[i++].n)
        blob_text(&header, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":%s,\"data_offsets\":[%zu,%zu]}", i ? "," : "",
                  items[i].name, items[i].dtype, items[i].shape, at, at + items[i].n);
    blob_text(&header, "}");
    blob_int(&b, header.n, 8);
    blob_add(&b, header.data, header.n);
    for (size_t i = 0; i < n; i++) {
        if (items[i].bytes)
            blob_add(&b, items[i].bytes, items[i].n);
        else
            blob_fill(&b, 0x38, items[i].n); /* E4M3: 1 */
    }
    blob_clear(&header);
    return bad_write(file, &b);
}

static void numbers_of(const char *path, const trace_options *options, const char *name, const float *expected,
                       size_t n)
{
    static float values[NUMBERS];
    trace_error error;
    trace *t = open_ok(path, options);
    const size_t i = find(t, name);
    ck_assert_msg(i != SIZE_MAX, "%s: no tensor '%s'", path, name);
    ck_assert_uint_eq(trace_at(t, i)->count, n);
    ck_assert_msg(trace_codes(t, i, 0, values, n, &error) == 0, "%s", error.text);
    for (size_t k = 0; k < n; k++)
        ck_assert_msg(values[k] == expected[k], "%s: element %zu is %g and not %g", path, k, (double)values[k],
                      (double)expected[k]);
    trace_close(t);
}

static const uint32_t half = 0x3f000000, two = 0x40000000; /* binary32, on a little-endian machine */

static const void *f32(const uint32_t *u, unsigned char out[4])
{
    for (int i = 0; i < 4; i++)
        out[i] = (unsigned char)(*u >> 8 * i);
    return out;
}

/* NVFP4 as compressed-tensors and ModelOpt have it: the same numbers, one scale divides, the other multiplies. */
TEST(scales_that_divide_and_multiply)
{
    unsigned char codes[2 * 8], scales[2] = {0x38, 0x40}, h[4], d[4]; /* 1, 2 */
    float expected[32];
    for (int i = 0; i < 16; i++)
        codes[i] = 0xA1; /* 0.5, then -1 */
    for (int i = 0; i < 32; i++)
        expected[i] = (i % 2 ? -1.0f : 0.5f) * (i < 16 ? 0.5f : 1.0f);
    const item divided[] = {{"w_packed", "U8", "[2,8]", 16, codes},
                            {"w_scale", "F8_E4M3", "[2,1]", 2, scales},
                            {"w_global_scale", "F32", "[1]", 4, f32(&two, d)}};
    const item multiplied[] = {{"w", "U8", "[2,8]", 16, codes},
                               {"w_scale", "F8_E4M3", "[2,1]", 2, scales},
                               {"w_scale_2", "F32", "[]", 4, f32(&half, h)}};
    numbers_of(write_items("d.safetensors", NULL, divided, 3), NULL, "w", expected, 32);
    numbers_of(write_items("m.safetensors", NULL, multiplied, 3), NULL, "w", expected, 32);
}

/* Codes and scales in different files of an index, or one of them without it. */
TEST(codes_and_scales_in_two_files)
{
    static const char index[] = "{\"weight_map\":{\"w\":\"one.safetensors\",\"w_scale\":\"two.safetensors\"}}";
    float expected[8];
    unsigned char h[4];
    for (int i = 0; i < 8; i++)
        expected[i] = 0.5f;
    const item codes = {"w", "F8_E4M3", "[2,4]", 8, NULL}, scale = {"w_scale", "F32", "[1]", 4, f32(&half, h)};
    write_items("one.safetensors", NULL, &codes, 1);
    write_items("two.safetensors", NULL, &scale, 1);
    blob b = {0};
    blob_text(&b, "%s", index);
    const char *path = bad_write("model.safetensors.index.json", &b);
    numbers_of(path, NULL, "w", expected, 8);
    for (int i = 0; i < 8; i++)
        expected[i] = 1;
    trace *t = open_ok(bad_path("one.safetensors"), NULL);
    ck_assert_str_eq(trace_at(t, 0)->format->name, "e4m3");
    ck_assert_ptr_null(trace_at(t, 0)->quantised);
    trace_close(t);
}

/* What has no scales, or is not asked for, is as it was. */
TEST(files_that_are_read_as_before)
{
    const item items[] = {{"w", "F8_E4M3", "[2,4]", 8, NULL},    {"w_scale", "F32", "[1]", 4, NULL},
                          {"norm", "F8_E4M3", "[4]", 4, NULL},   {"norm.scale", "F32", "[4]", 16, NULL},
                          {"q_packed", "U8", "[2,8]", 16, NULL}, {"i", "I8", "[2,4]", 8, NULL},
                          {"i_scale", "F32", "[1]", 4, NULL}};
    const char *path = write_items("mixed.safetensors", NULL, items, 7);
    const trace_options parts = {.quantised = "parts"};
    trace *t = open_ok(path, NULL);
    ck_assert_uint_eq(trace_count(t), 6);
    ck_assert_ptr_nonnull(trace_at(t, find(t, "w"))->quantised);
    ck_assert_str_eq(trace_at(t, find(t, "norm"))->format->name, "e4m3");
    ck_assert_ptr_null(trace_at(t, find(t, "i"))->format);
    ck_assert_str_eq(trace_quantised_note(t), "'q_packed' is there without 'q_scale'");
    trace_close(t);
    t = open_ok(path, &parts);
    ck_assert_uint_eq(trace_count(t), 7);
    ck_assert_ptr_null(trace_at(t, find(t, "w"))->quantised);
    ck_assert_ptr_null(trace_quantised_note(t));
    trace_close(t);
}

TEST(words_of_the_option)
{
    char why[256];
    ck_assert_int_eq(trace_quantised_word("parts", why, sizeof why), 0);
    ck_assert_int_eq(trace_quantised_word("torchao", why, sizeof why), 0);
    ck_assert_int_eq(trace_quantised_word("te:e5m2", why, sizeof why), 0);
    ck_assert_int_eq(trace_quantised_word("gptq-v2", why, sizeof why), 0);
    ck_assert_int_eq(trace_quantised_word("te:e5m", why, sizeof why), -1);
    ck_assert_str_eq(why, "'e5m' is not a format of elements");
    ck_assert_int_eq(trace_quantised_word("", why, sizeof why), -1);
    ck_assert_int_eq(trace_quantised_word("tea", why, sizeof why), -1);
    ck_assert_msg(strstr(why, "'tea' is not one of parts plain torchao te"), "%s", why);
}

/* What the scales of a tensor are. */
TEST(what_scales_are)
{
    unsigned char codes[6 * 32] = {0};
    const unsigned char scales[6] = {0, 1, 127, 254, 255, 128};
    const item items[] = {{"w", "F8_E4M3", "[6,32]", sizeof codes, codes}, {"w_scale", "U8", "[6,1]", 6, scales}};
    trace *t = open_ok(write_items("scales.safetensors", NULL, items, 2), NULL);
    trace_scale_stats s;
    trace_error error;
    ck_assert_int_eq(trace_scales(t, 0, &s, &error), 0);
    ck_assert_uint_eq(s.count, 6);
    ck_assert(s.least == ldexp(1, -127) && s.largest == ldexp(1, 127));
    ck_assert_uint_eq(s.least_codes, 1);
    ck_assert_uint_eq(s.largest_codes, 1);
    ck_assert_uint_eq(s.nonfinite, 1);
    ck_assert_uint_eq(s.zeros + s.negative, 0);
    ck_assert_int_eq(trace_scales(t, 1, &s, &error), -1);
    trace_close(t);
}

/* ---- bad inputs ---- */

#define AO(type, more) "{\"w.x\":\"{\\\"_type\\\":\\\"" type "\\\",\\\"_data\\\":{" more "}}\"}"
#define OWN(layout, element, shape, block)                                                   \
    "{\"mpsim.quantised.w\":\"{\\\"layout\\\":\\\"" layout                                   \
    "\\\",\\\"recipe\\\":\\\"r\\\",\\\"element\\\":\\\"" element                             \
    "\\\",\\\"scale\\\":\\\"e8m0\\\",\\\"shape\\\":" shape ",\\\"block\\\":" block           \
    ",\\\"axis\\\":\\\"rows\\\",\\\"packing\\\":\\\"bytes\\\",\\\"scales\\\":\\\"plain\\\"," \
    "\\\"tensor_scale\\\":\\\"none\\\",\\\"transform\\\":0}\"}"

typedef struct bad {
    const char *what, *metadata;
    item items[4];
    const char *quantised, *fragment;
} bad;

/* clang-format off */
static const bad rows[] = {
    {"scales of another shape", NULL, {{"w", "F8_E4M3", "[4,64]", 256, NULL}, {"w_scale", "U8", "[4,3]", 12, NULL}}, NULL,
     "codes 'w' with scales 'w_scale' do not fit mxfp8-quantized of compressed-tensors: the shape of the scales does not fit"},
    {"scales of another rank", NULL, {{"w", "F8_E4M3", "[4,64]", 256, NULL}, {"w_scale", "F32", "[2,2,2]", 32, NULL}}, NULL,
     "(--stored parts reads what is stored)"},
    {"scales of another dtype", NULL, {{"w", "F8_E4M3", "[4,64]", 256, NULL}, {"w_scale_inv", "I64", "[1,1]", 8, NULL}}, NULL,
     "the dtype of the scales"},
    {"tiles that are too few", NULL, {{"w", "F8_E4M3", "[4,640]", 2560, NULL}, {"w_scale_inv", "F32", "[1,4]", 16, NULL}}, NULL,
     "do not fit DeepSeek-V3 of deepseek"},
    {"no multiple of the block", NULL, {{"w", "F8_E4M3", "[4,40]", 160, NULL}, {"w_scale", "U8", "[4,2]", 8, NULL}}, NULL,
     "its 40 columns are not a multiple of 32"},
    {"one dimension", NULL, {{"w_packed", "U8", "[16]", 16, NULL}, {"w_scale", "U8", "[1]", 1, NULL}}, NULL,
     "the codes have none of the shapes of"},
    {"packed codes that end within a group", NULL, {{"w_packed", "U8", "[1,25]", 25, NULL}, {"w_scale", "U8", "[1,1]", 1, NULL}}, NULL,
     "do not fit mxfp4-pack-quantized"},
    {"no scale of the tensor", NULL, {{"w_packed", "U8", "[1,16]", 16, NULL}, {"w_scale", "F8_E4M3", "[1,2]", 2, NULL}},
     "compressed-tensors", "'w_packed' is there without 'w_global_scale'"},
    {"no scales", NULL, {{"w_blocks", "U8", "[1,1,16]", 16, NULL}}, "gpt-oss", "'w_blocks' is there without 'w_scales'"},
    {"no codes", NULL, {{"w_scales", "U8", "[1,1]", 1, NULL}, {"x", "U8", "[1]", 1, NULL}}, "gpt-oss",
     "'w_scales' is there without 'w_blocks'"},
    {"several scales of the tensor", NULL, {{"w_packed", "U8", "[1,16]", 16, NULL}, {"w_scale", "F8_E4M3", "[1,2]", 2, NULL},
     {"w_global_scale", "F32", "[2]", 8, NULL}}, NULL, "there is more than one number"},
    {"the scale of the tensor in binary64", NULL, {{"w_packed", "U8", "[1,16]", 16, NULL}, {"w_scale", "F8_E4M3", "[1,2]", 2, NULL},
     {"w_global_scale", "F64", "[1]", 8, NULL}}, NULL, "the dtype of the tensor's scale"},
    {"two layouts", NULL, {{"w", "F8_E4M3", "[128,128]", 16384, NULL}, {"w_scale", "F32", "[1]", 4, NULL},
     {"w_scale_inv", "F32", "[1,1]", 4, NULL}}, NULL,
     "tensor 'w' may be float-quantized of compressed-tensors or DeepSeek-V3 of deepseek: say which with --stored"},
    {"the tensor beside its codes", NULL, {{"w_blocks", "U8", "[1,1,16]", 16, NULL}, {"w_scales", "U8", "[1,1]", 1, NULL},
     {"w", "F32", "[32]", 128, NULL}}, NULL, "tensor 'w' is there beside its codes 'w_blocks'"},
    {"elements that nobody tells", NULL, {{"w.rowwise_data", "U8", "[32,32]", 1024, NULL},
     {"w.rowwise_scale_inv", "U8", "[128,4]", 512, NULL}}, "te", "nothing says which elements the codes 'w.rowwise_data' are"},
    {"a description that is none", "{\"mpsim.quantised.w\":\"[]\"}", {{"w", "F8_E4M3", "[1,32]", 32, NULL},
     {"w.scale", "F8_E8M0", "[1,1]", 1, NULL}}, NULL, "tensor 'w': its description has no object that can be read"},
    {"a layout that is none", OWN("x", "e4m3", "[1,32]", "[1,32]"), {{"w", "F8_E4M3", "[1,32]", 32, NULL},
     {"w.scale", "F8_E8M0", "[1,1]", 1, NULL}}, NULL, "its description names the layout 'x'"},
    {"an element that is none", OWN("plain", "x", "[1,32]", "[1,32]"), {{"w", "F8_E4M3", "[1,32]", 32, NULL},
     {"w.scale", "F8_E8M0", "[1,1]", 1, NULL}}, NULL, "its description names the element 'x'"},
    {"another shape described", OWN("plain", "e4m3", "[2,32]", "[1,32]"), {{"w", "F8_E4M3", "[1,32]", 32, NULL},
     {"w.scale", "F8_E8M0", "[1,1]", 1, NULL}}, NULL, "their shapes are not those of their description"},
    {"a shape described that overflows", OWN("plain", "e4m3", "[4294967296,4294967296,4294967296]", "[1,32]"),
     {{"w", "F8_E4M3", "[1,32]", 32, NULL}, {"w.scale", "F8_E8M0", "[1,1]", 1, NULL}}, NULL, "it is too large"},
    {"GPTQ without scales", NULL, {{"m.qweight", "I32", "[4,32]", 512, NULL}, {"m.qzeros", "I32", "[1,4]", 16, NULL}}, "gptq",
     "'m.qweight' is there without its scales"},
    {"GPTQ of no bits", NULL, {{"m.qweight", "I32", "[4,32]", 512, NULL}, {"m.qzeros", "I32", "[1,9]", 36, NULL},
     {"m.scales", "F16", "[1,32]", 64, NULL}}, NULL, "shapes of codes, qzeros and scales fit neither GPTQ nor AWQ"},
    {"more groups than inputs", NULL, {{"m.qweight", "I32", "[1,8]", 32, NULL}, {"m.qzeros", "I32", "[9,1]", 36, NULL},
     {"m.scales", "F16", "[9,8]", 144, NULL}}, NULL, "fit neither GPTQ nor AWQ"},
    {"scales that are integers", NULL, {{"m.qweight", "I32", "[1,8]", 32, NULL}, {"m.qzeros", "I32", "[1,1]", 4, NULL},
     {"m.scales", "I16", "[1,8]", 16, NULL}}, NULL, "its qzeros or scales are not matrices of int32 and of numbers"},
    {"groups of other inputs", NULL, {{"m.qweight", "I32", "[1,8]", 32, NULL}, {"m.qzeros", "I32", "[1,1]", 4, NULL},
     {"m.scales", "F16", "[1,8]", 16, NULL}, {"m.g_idx", "I32", "[7]", 28, NULL}}, NULL, "its g_idx is not an int32 for each input"},
    {"a state that is no JSON", NULL, {{"m.weight", "U8", "[4,1]", 4, NULL}, {"m.weight.absmax", "F32", "[1]", 4, NULL},
     {"m.weight.quant_map", "F32", "[16]", 64, NULL}, {"m.weight.quant_state.bitsandbytes__nf4", "U8", "[9]", 9, NULL}}, NULL,
     "its quant_state, absmax and tables are not those of bitsandbytes"},
    {"codes in bf16", NULL, {{"m.weight", "BF16", "[4,1]", 8, NULL}, {"m.weight.quant_state.bitsandbytes__fp4", "U8", "[9]", 9, NULL}},
     NULL, "codes of bitsandbytes in another dtype than uint8 (bnb_4bit_quant_storage) are not read"},
    {"int8 in tiles", NULL, {{"m.weight", "I8", "[2,2]", 4, NULL}, {"m.SCB", "F32", "[2]", 8, NULL}, {"m.weight_format", "U8", "[]", 1, NULL}},
     NULL, "its weight_format is not 0"},
    {"int8 with too few scales", NULL, {{"m.weight", "I8", "[2,2]", 4, NULL}, {"m.SCB", "F32", "[1]", 4, NULL}}, NULL,
     "its SCB is not a number for each row"},
    {"torchao says it is swizzled", AO("MXTensor", "\\\"is_swizzled_scales\\\":true"), {{"w._x_qdata", "F8_E4M3", "[4,32]", 128, NULL},
     {"w._x_scale", "F8_E8M0", "[4,1]", 4, NULL}}, NULL, "the shape of the scales does not fit"},
};
/* clang-format on */

TEST(bad_files)
{
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const bad *r = &rows[i];
        const trace_options options = {.quantised = r->quantised}, parts = {.quantised = "parts"};
        size_t n = 0;
        while (n < 4 && r->items[n].name)
            n++;
        const char *path = write_items("bad.safetensors", r->metadata, r->items, n);
        bad_expect(58, r->what, path, &options, 3, r->fragment);
        ck_assert_msg(!bad_read(path, &parts).failed, "%s", r->what);
    }
}

/* The scale of a whole tensor is looked at when numbers are read. */
TEST(scales_of_tensors_that_are_none)
{
    static const uint32_t codes[] = {0x7fc00000, 0x7f800000, 0xbf800000, 0}; /* NaN, Inf, -1, 0 */
    static const char *const words[] = {"is nan", "is inf", "is -1", "is 0"};
    for (size_t i = 0; i < 4; i++) {
        unsigned char b[4];
        const item items[] = {{"w_packed", "U8", "[1,8]", 8, NULL},
                              {"w_scale", "F8_E4M3", "[1,1]", 1, NULL},
                              {"w_global_scale", "F32", "[1]", 4, f32(&codes[i], b)}};
        const outcome o = bad_read(write_items("scale.safetensors", NULL, items, 3), NULL);
        ck_assert(o.failed && o.error.exit == 3);
        ck_assert_msg(strstr(o.error.text, words[i] + (i == 0 ? 3 : 0)), "%s", o.error.text);
    }
}

/* A scale that stands for NaN makes numbers NaN, one code whatever the machine. */
TEST(nan_has_one_code)
{
    unsigned char codes[32];
    for (int i = 0; i < 32; i++)
        codes[i] = (unsigned char)(i * 8);
    const unsigned char nan_scale = 255;
    const item items[] = {{"w", "F8_E4M3", "[1,32]", 32, codes}, {"w_scale", "U8", "[1,1]", 1, &nan_scale}};
    trace *t = open_ok(write_items("nan.safetensors", NULL, items, 2), NULL);
    uint32_t values[32];
    trace_error error;
    ck_assert_int_eq(trace_codes(t, 0, 0, values, 32, &error), 0);
    for (int i = 0; i < 32; i++)
        ck_assert_uint_eq(values[i], 0x7fc00000);
    trace_close(t);
}

/* A group of a column that is not there is found when the column is read. */
TEST(groups_that_are_not_there)
{
    unsigned char groups[8 * 4] = {0};
    const item items[] = {{"m.qweight", "I32", "[1,8]", 32, NULL},
                          {"m.qzeros", "I32", "[1,1]", 4, NULL},
                          {"m.scales", "F16", "[1,8]", 16, NULL},
                          {"m.g_idx", "I32", "[8]", 32, groups}};
    groups[20] = 1;
    const outcome o = bad_read(write_items("groups.safetensors", NULL, items, 4), NULL);
    ck_assert(o.failed && o.error.exit == 3);
    ck_assert_msg(strstr(o.error.text, "'m.g_idx': group 1 of input 5 is not one of 1"), "%s", o.error.text);
}

TEST(damage_of_packed_integers)
{
    static const char state[] = "{\"blocksize\":4,\"shape\":[2,3]}";
    unsigned char groups[8 * 4] = {0};
    const item items[] = {{"m.qweight", "I32", "[1,8]", 32, NULL},
                          {"m.qzeros", "I32", "[1,1]", 4, NULL},
                          {"m.scales", "F16", "[1,8]", 16, NULL},
                          {"m.g_idx", "I32", "[8]", 32, groups},
                          {"w", "U8", "[3,1]", 3, NULL},
                          {"w.absmax", "F32", "[2]", 8, NULL},
                          {"w.quant_map", "F32", "[16]", 64, NULL},
                          {"w.quant_state.bitsandbytes__nf4", "U8", "[29]", sizeof state - 1, state}};
    ck_assert_uint_eq(sizeof state - 1, 29);
    write_items("packed.safetensors", NULL, items, 8);
    blob good = {0};
    FILE *f = fopen(bad_path("packed.safetensors"), "rb");
    ck_assert(f != NULL);
    for (int c; (c = fgetc(f)) != EOF;)
        blob_int(&good, (uint64_t)c, 1);
    fclose(f);
    bad_damage_all("packed", &good, NULL);
    blob_clear(&good);
}

TEST(any_damage_is_read_or_refused)
{
    unsigned char d[4];
    const item items[] = {{"w_packed", "U8", "[2,16]", 32, NULL},
                          {"w_scale", "F8_E4M3", "[2,2]", 4, NULL},
                          {"w_global_scale", "F32", "[1]", 4, f32(&two, d)}};
    write_items("good.safetensors", NULL, items, 3);
    blob good = {0};
    FILE *f = fopen(bad_path("good.safetensors"), "rb");
    ck_assert(f != NULL);
    for (int c; (c = fgetc(f)) != EOF;)
        blob_int(&good, (uint64_t)c, 1);
    fclose(f);
    bad_damage_all("quantised", &good, NULL);
    blob_clear(&good);
}

TEST_MAIN_BY(bad_main, "quantised");
