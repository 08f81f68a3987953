/* t-conversions.c -- what gpu/validation/checks expects of conversions and reductions, number by number, as PTX's text has it; that
 * nothing is left out of both halves of a question; that inputs reach what they are for. TAP of its own. */
#include "../../gpu/validation/checks/checks.h"
#include "../../gpu/validation/checks/reference.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int plan, failures;

static void ok(int passed, const char *name)
{
    printf("%sok %d - %s\n", passed ? "" : "not ", ++plan, name);
    failures += !passed;
}

static int find(gpu_check *c, const char *name)
{
    for (size_t i = 0; gpu_check_name(i); i++)
        if (strcmp(gpu_check_name(i), name) == 0)
            return gpu_check_at(c, i, 100, GPU_RUN_FULL) == 1;
    return 0;
}

#define OUT GPU_NOT_ASKED

/* Input (of two words the upper one in y), and what the check and the one of its open question expect. */
static const struct {
    const char *name;
    uint32_t x, y;
    uint64_t expected;
} rows[] = {
    {"cvt.rm.f16.f32", 0x3f800001, 0, 0x3c00}, /* 1 + 2^-23 */
    {"cvt.rm.f16.f32", 0xbf800001, 0, 0xbc01},
    {"cvt.rp.f16.f32", 0x3f800001, 0, 0x3c01},
    {"cvt.rp.f16.f32", 0xbf800001, 0, 0xbc00},
    {"cvt.rp.f16.f32", 0x00000001, 0, 0x0001}, /* 2^-149 */
    {"cvt.rm.f16.f32", 0x477fffff, 0, 0x7bff}, /* just below 65536 */
    {"cvt.rp.f16.f32", 0x477fffff, 0, 0x7c00},
    {"cvt.rp.f16.f32", 0xc77fffff, 0, 0xfbff},
    {"cvt.rp.f16.f32", 0x7fc00000, 0, OUT},
    {"cvt.rp.f16.f32, NaNs", 0x7fc00000, 0, 0x7fff},
    {"cvt.rp.f16.f32, NaNs", 0x3f800001, 0, OUT},
    {"cvt.rn.relu.f16.f32", 0xbf800000, 0, 0}, /* -1 */
    {"cvt.rn.relu.f16.f32", 0x3f800000, 0, 0x3c00},
    {"cvt.rn.relu.f16.f32", 0xff800000, 0, 0}, /* -infinity */
    {"cvt.rn.relu.f16.f32", 0x7f800000, 0, 0x7c00},
    {"cvt.rn.relu.f16.f32", 0xffc12345, 0, 0x7fff}, /* NaN: canonical */
    {"cvt.rn.relu.f16.f32", 0x80000000, 0, OUT},    /* -0 */
    {"cvt.rn.relu.f16.f32", 0xb3800000, 0, OUT},    /* -2^-24 */
    {"cvt.rn.relu.f16.f32", 0xb3800001, 0, 0},
    {"cvt.rn.relu.f16.f32, small negatives", 0x80000000, 0, 0},
    {"cvt.rn.relu.f16.f32, small negatives", 0xbf800000, 0, OUT},
    {"cvt.rn.satfinite.f16.f32", 0x47800000, 0, 0x7bff}, /* 65536 */
    {"cvt.rn.satfinite.f16.f32", 0xff800000, 0, 0xfbff},
    {"cvt.rz.relu.satfinite.bf16.f32", 0x7f800000, 0, 0x7f7f},
    {"cvt.rn.bf16x2.f32", 0x7f800001, 0, 0x7fff},
    {"cvt.rna.satfinite.tf32.f32", 0x7f7fffff, 0, 0x3fbff},
    {"cvt.rz.relu.tf32.f32", 0x3f801fff, 0, 0x3f800000 >> 13},
    {"cvt.rn.satfinite.e4m3x2.f32", 0x7f800000, 0, 0x7e},
    {"cvt.rn.satfinite.relu.e5m2x2.f32", 0xff800000, 0, 0},
    {"cvt.rn.satfinite.e4m3x2.f16x2", 0x7bff, 0x3c00, 0x7e},
    {"cvt.rn.satfinite.e5m2x2.f16x2", 0xfc00, 0x3c00, 0xfb},
    {"cvt.rn.satfinite.e5m2x2.f16x2", 0x7e00, 0x3c00, OUT},
    {"cvt.rn.f16x2.e4m3x2", 0x7e, 0xff, 0x5f00}, /* 448 */
    {"cvt.rn.f16x2.e5m2x2", 0xfc, 0, 0xfc00},
    {"cvt.rn.relu.f16x2.e4m3x2", 0xfe, 0, 0},
    {"cvt.rn.relu.f16x2.e4m3x2", 0xff, 0, 0x7fff},
    {"cvt.rn.relu.f16x2.e4m3x2", 0x80, 0, OUT},
    {"cvt.f32.f16", 0x0001, 0, 0x33800000},
    {"cvt.f32.bf16", 0x8001, 0, 0x80010000},
    {"cvt.rz.bf16.f16", 0x3c0f, 0, 0x3f81}, /* 1 + 15/1024 */
    {"cvt.rp.f16.bf16", 0x0001, 0, 0x0001},
    {"cvt.rm.f32.f64", 0x00000001, 0xbff00000, 0xbf800001},
    {"cvt.rn.f16.f64", 0x00000001, 0x3ff00200, 0x3c01}, /* above the middle by 2^-52: binary32 would lose it */
    {"cvt.rn.bf16.f64", 0x00000001, 0x3ff01000, 0x3f81},
    {"cvt.rn.satfinite.e2m1x2.f32", 0xc0a00000, 0, 0xe}, /* -5: the tie goes to -4 */
    {"cvt.rn.satfinite.e2m1x2.f32", 0x7f800000, 0, 0x7},
    {"cvt.rn.satfinite.e2m1x2.f32", 0x7fc00000, 0, OUT},
    {"cvt.rn.satfinite.e2m1x2.f32, NaNs", 0xffc00000, 0, 0x7},
    {"cvt.rn.satfinite.relu.e2m3x2.f32", 0xc1000000, 0, 0},
    {"cvt.rn.f16x2.e3m2x2", 0x3f, 0, 0xcf00}, /* -28 */
    {"cvt.rn.relu.f16x2.e2m1x2", 0x7, 0xf, 0x4600},
    {"cvt.rz.ue8m0x2.f32", 0x3fffffff, 0, 0x7f},
    {"cvt.rp.ue8m0x2.f32", 0xbf800001, 0, 0x80}, /* the sign is ignored */
    {"cvt.rp.ue8m0x2.f32", 0x7f800000, 0, OUT},
    {"cvt.rp.ue8m0x2.f32, NaNs", 0x7f800000, 0, 0xff},
    {"cvt.rz.satfinite.ue8m0x2.f32", 0x7f800000, 0, 0xfe},
    {"cvt.rp.satfinite.ue8m0x2.bf16x2", 0x0001, 0, 0x00}, /* 2^-133 */
    {"cvt.rn.bf16x2.ue8m0x2", 0x00, 0, 0x0040},
    {"cvt.rn.satfinite.tf32.f32", 0xff800000, 0, 0x7fbff},
    {"memory red.global.add.noftz.f16x2", 0x0001, 0x0002, 0x0003}, /* subnormal numbers stay */
    {"memory red.global.add.noftz.f16x2", 0x6800, 0x3c00, 0x6800}, /* 2048 + 1: a tie */
    {"memory red.global.add.noftz.f16x2", 0x6800, 0x3e00, 0x6801},
    {"memory red.global.add.noftz.f16x2", 0x7bff, 0x4c00, 0x7c00},
    {"memory red.global.add.noftz.f16x2", 0x8000, 0x8000, 0x8000},
    {"memory red.global.add.noftz.f16x2", 0x7c00, 0xfc00, OUT},
    {"memory red.global.add.noftz.f16x2, NaNs", 0x7c00, 0xfc00, 0x7fff},
    {"memory red.global.add.f32", 0x00400000, 0x3f800000, 0x3f800000},
    {"memory red.global.add.f32", 0x807fffff, 0x80000001, 0x80000000}, /* flushed, of its sign */
    {"memory red.global.add.f32", 0x80800001, 0x00800000, 0x80000000}, /* so is a result */
    {"memory red.shared.add.f32", 0x80800001, 0x00800000, 0x80000001},
    {"memory cp.reduce.async.bulk.add.f32", 0x807fffff, 0x80000001, 0x80000000},
    {"memory cp.reduce.async.bulk.add.noftz.bf16", 0x0001, 0x8003, 0x8002},
    {"memory red.global.min.noftz.v8.f16", 0x0001, 0x8001, 0x8001},
    {"memory red.global.max.noftz.v8.f16", 0xfc00, 0x8001, 0x8001},
    {"memory red.global.max.noftz.v8.f16", 0xfc00, 0x7e00, OUT},
    {"memory red.global.max.noftz.v8.f16", 0x8000, 0x0000, OUT},
    {"memory red.global.max.noftz.v8.f16, NaNs", 0x8000, 0x0000, 0x0000},
    {"memory red.global.min.noftz.v8.f16, NaNs", 0xfe00, 0x3c00, 0x3c00},
    {"memory cp.reduce.async.bulk.min.bf16", 0xff80, 0x7f80, 0xff80},
};

static void test_numbers(void)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        gpu_check c;
        char name[160];
        const uint32_t in[3] = {rows[i].x, rows[i].y, 0};
        const uint64_t got = find(&c, rows[i].name) ? gpu_scalar_expected(&c.scalar, in) : ~(uint64_t)1;
        snprintf(name, sizeof name, "%s of %" PRIx32 " %" PRIx32 "%s", rows[i].name, in[0], in[1],
                 rows[i].expected == OUT ? " is left to another check" : "");
        ok(got == rows[i].expected, name);
        if (got != rows[i].expected)
            printf("# %" PRIx64 "\n", got);
    }
}

/* A question has its own check, of all that its check leaves out, and nothing else. */
static void test_questions(void)
{
    int checks = 0, questions = 0, bad = 0;
    for (size_t i = 0; gpu_check_name(i); i++) {
        gpu_check c, open;
        char name[80];
        if (gpu_check_at(&c, i, 100, GPU_RUN_TINY) != 1 || c.is_dots || !c.scalar.open || c.question)
            continue;
        checks++;
        snprintf(name, sizeof name, "%s%s", c.name, c.scalar.open & GPU_OPEN_NANS ? ", NaNs" : ", small negatives");
        if (!find(&open, name) || !open.question) {
            bad++;
            continue;
        }
        uint64_t left = 0;
        for (uint64_t k = 0; k < c.count; k++) {
            uint32_t in[3];
            gpu_scalar_case(&open.scalar, k, in);
            bad += (gpu_scalar_expected(&c.scalar, in) == OUT) == (gpu_scalar_expected(&open.scalar, in) == OUT);
            left += gpu_scalar_expected(&open.scalar, in) != OUT;
        }
        questions += left > 0;
    }
    ok(bad == 0 && checks > 40 && questions == checks, "what a check leaves out, its question asks");
}

/* Every code in both places; ties and what is next to them. */
static void test_inputs(void)
{
    static unsigned char seen[2][1 << 16];
    gpu_check c;
    int codes = 0, ties = 0, near = 0, found = find(&c, "cvt.rn.satfinite.e4m3x2.f16x2");
    for (uint64_t i = 0; found && i < c.count; i++) {
        uint32_t in[3];
        gpu_scalar_case(&c.scalar, i, in);
        codes += !seen[in[2]][in[0]]++;
    }
    ok(codes == 2 << 16, "all codes of fp16 are asked, above and below");
    found = find(&c, "cvt.rn.f32.f64");
    for (uint64_t i = 0; found && i < 100000; i++) {
        uint32_t in[3];
        gpu_scalar_case(&c.scalar, i, in);
        const uint32_t low = in[0] & 0x1fffffff;
        ties += low == 0x10000000;
        near += low == 0x0fffffff || low == 0x10000001;
    }
    ok(ties > 5000 && near > 5000, "middles between numbers of binary32, and their neighbours");
}

int main(void)
{
    test_numbers();
    test_questions();
    test_inputs();
    printf("1..%d\n", plan);
    return failures ? EXIT_FAILURE : EXIT_SUCCESS;
}
