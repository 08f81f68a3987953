/* probes.c -- single dot products whose answers decide what is not settled about a model: a table.
 *
 * P1 to P12b are those of the notes on which the models rest; the rest follows the same questions
 * through the other formats. Every row is put to each instruction that takes its formats. */
#include "checks.h"

#include <math.h>
#include <string.h>

/* n times the product a b */
typedef struct term {
    int n;
    double a, b;
} term;

typedef struct row {
    const char *id, *question, *meaning;
    const char *a, *b, *d;
    double c;
    term terms[4];
} row;

#define BF16 "bf16", "bf16", "binary32"
#define FP16 "fp16", "fp16", "binary32"
#define TF32 "tf32", "tf32", "binary32"
#define HALF "fp16", "fp16", "fp16"
#define E4M3 "e4m3", "e4m3", "binary32"
#define E5M2 "e5m2", "e5m2", "binary32"
#define E4M3H "e4m3", "e4m3", "fp16"
#define E5M2H "e5m2", "e5m2", "fp16"

#define INF ((double)INFINITY)
#define QNAN ((double)NAN)

#define ZERO_Q "does a zero factor take part in the largest exponent?"
#define FLOOR_Q "how low may the exponent of alignment be?"
#define SIGN_Q "what sign has a zero sum?"
#define OVER_Q "what does an overflow give?"
#define NAN_Q "which bits has a NaN, and when is there one?"
#define BITS_Q "how many bits below the largest exponent are kept?"
#define C_Q "is an addend cut to the kept bits like a product?"
#define SUB_Q "which bits has a result below the normal range?"

#define ZERO_M(x) "dropped: " x "; zero with the smallest exponent times the other factor: 0"
#define SIGN_M "+0 or -0"

/* clang-format off */
static const row rows[] = {
    {"P1", ZERO_Q, ZERO_M("2^-30"), BF16, 0, {{1, 0, 0x1p127}, {1, 1, 0x1p-30}}},
    {"P1t", ZERO_Q, ZERO_M("2^-30"), TF32, 0, {{1, 0, 0x1p127}, {1, 1, 0x1p-30}}},
    {"P1b", ZERO_Q, ZERO_M("2^-25"), FP16, 0, {{1, 0, 0x1p15}, {1, 0x1p-13, 0x1p-12}}},
    {"P1c", ZERO_Q, ZERO_M("2^-12"), E4M3, 0, {{1, 0, 0x1p8}, {1, 0x1p-6, 0x1p-6}}},
    {"P1d", ZERO_Q, ZERO_M("2^-16"), E5M2, 0, {{1, 0, 0x1p15}, {1, 0x1p-14, 0x1p-2}}},

    {"P2", FLOOR_Q, "2^-148: -133 or none; 0: zero addend at -126", BF16, 0,
     {{16, 0x1p-76, 0x1p-76}}},
    {"P2t", FLOOR_Q, "2^-149: -133 or none; 0: zero addend at -126", TF32, 0,
     {{8, 0x1p-76, 0x1p-76}}},
    {"P2d", FLOOR_Q, "2^-149: -133, or zero addend at -126; 0: none", BF16, 0,
     {{1, 0x1p-75, 0x1p-74}, {1, -0x1p-80, 0x1p-80}}},
    {"P2e", FLOOR_Q, "2^-149: -133, or zero addend at -126; 0: none", TF32, 0,
     {{1, 0x1p-75, 0x1p-74}, {1, -0x1p-80, 0x1p-80}}},
    {"P2f", FLOOR_Q, "0: the term 2^-158 counts (-133 or below); 2^-149: it is cut", BF16, 0,
     {{1, 0x1p-75, 0x1p-74}, {1, -0x1p-79, 0x1p-79}}},
    {"P12", FLOOR_Q, "2^-24 by every rule", HALF, 0,
     {{1, 0x1p-12, 0x1p-13}, {1, 0x1p-23, 0x1p-23}}},
    {"P12b", FLOOR_Q, "0: -21; 2^-24: none, or zero addend at -126", HALF, 0,
     {{1, 0x1p-12, 0x1p-13}, {1, 0x1p-23, 0x1p-24}}},
    {"P12c", FLOOR_Q, "2^-24: the term 2^-45 counts (25 bits: -20 or below); 0: it is cut", HALF, 0,
     {{1, 0x1p-12, 0x1p-13}, {1, 0x1p-22, 0x1p-23}}},

    {"P3a", SIGN_Q, SIGN_M, FP16, -0.0, {{32, -1, 0}}},
    {"P3b", SIGN_Q, SIGN_M, FP16, 0, {{32, -1, 0}}},
    {"P3c", SIGN_Q, SIGN_M, FP16, 0, {{1, 1, 1}, {1, -1, 1}}},
    {"P3d", SIGN_Q, SIGN_M, FP16, -1, {{1, 1, 1}}},
    {"P3e", SIGN_Q, "-0: the sign of the sum stays; +0", BF16, 0, {{1, -0x1p-75, 0x1p-75}}},
    {"P3f", SIGN_Q, SIGN_M, BF16, 0, {{1, 1, 1}, {1, -1, 1}, {1, -0x1p-30, 0x1p-10}}},
    {"P3g", SIGN_Q, "-0: the sign of the sum stays; +0", HALF, 0, {{1, -0x1p-13, 0x1p-13}}},
    {"P3h", SIGN_Q, SIGN_M, HALF, -0.0, {{32, -1, 0}}},
    {"P3i", SIGN_Q, SIGN_M, E5M2, -0.0, {{32, -1, 0}}},
    {"P3j", SIGN_Q, SIGN_M, E5M2, 0, {{1, 1, 1}, {1, -1, 1}}},
    {"P3k", SIGN_Q, SIGN_M, E5M2H, -0.0, {{32, -1, 0}}},
    {"P3l", SIGN_Q, SIGN_M, E4M3, 0,
     {{1, 1, 1}, {1, -1, 1}, {1, -0x1p-9, 0x1p-9}}},

    {"P6", OVER_Q, "infinity, or the largest number", BF16, 0, {{2, 0x1p64, 0x1p63}}},
    {"P6b", OVER_Q, "the largest number: truncated", BF16, 0x1.fffffep127, {{1, 0x1p103, 1}}},
    {"P6c", OVER_Q, "infinity, or the largest number", BF16, 0x1.fffffep127, {{1, 0x1p104, 1}}},
    {"P6d", OVER_Q, "infinity, or 65504", HALF, 65504, {{1, 4, 4}}},
    {"P6e", OVER_Q, "infinity, or 65504", E4M3H, 0, {{1, 448, 448}}},
    {"P6f", OVER_Q, "infinity, or the largest number", TF32, 0, {{2, -0x1p64, 0x1p63}}},
    {"P6g", OVER_Q, "an addend near the top alone", E5M2, 0x1.fffffep127, {{1, 1, 1}}},
    {"P7", OVER_Q, "2^127: no intermediate overflow", BF16, 0,
     {{1, 0x1p65, 0x1p64}, {1, -0x1p65, 0x1p64}, {1, 0x1p64, 0x1p63}}},
    {"P7h", OVER_Q, "32768: no intermediate overflow", HALF, 0,
     {{1, 32768, 2}, {1, -32768, 2}, {1, 32768, 1}}},

    {"P8a", NAN_Q, "7fffffff", FP16, 0, {{1, QNAN, 1}}},
    {"P8b", NAN_Q, "7fffffff", FP16, 0, {{1, INF, 0}}},
    {"P8c", NAN_Q, "7fffffff", FP16, 0, {{1, INF, 1}, {1, -INF, 1}}},
    {"P8d", NAN_Q, "infinity", FP16, 0, {{1, INF, 1}, {1, -1, 1}}},
    {"P8e", NAN_Q, "7fffffff", FP16, -QNAN, {{1, 1, 1}}},
    {"P8f", NAN_Q, "7fffffff", FP16, INF, {{1, INF, -1}}},
    {"P8g", NAN_Q, "-infinity", FP16, -INF, {{1, 65504, 65504}}},
    {"P8h", NAN_Q, "7fff", HALF, 0, {{1, -QNAN, 1}}},
    {"P8i", NAN_Q, "7fff", HALF, 0, {{1, INF, 0}}},
    {"P8j", NAN_Q, "7fffffff", BF16, 0, {{1, -QNAN, 0}}},
    {"P8k", NAN_Q, "7fffffff", TF32, 0, {{1, QNAN, 0}}},
    {"P8l", NAN_Q, "7fffffff", E4M3, 0, {{1, QNAN, 1}}},
    {"P8m", NAN_Q, "7fffffff", E5M2, 0, {{1, INF, 0}}},
    {"P8n", NAN_Q, "infinity", E5M2, 1, {{1, INF, 1}}},
    {"P8o", NAN_Q, "7fff", E4M3H, 0, {{1, -QNAN, 0}}},
    {"P8p", NAN_Q, "7fffffff", E4M3, -QNAN, {{1, 1, 1}}},
    {"P8q", NAN_Q, "7fff", E5M2H, -INF, {{1, INF, 1}}},

    {"P10a", C_Q, "1 + 2^-13: 13 bits or more", E4M3, 0x1.0008p0, {{1, 0, 0}}},
    {"P10b", C_Q, "1: 13 bits; 1 + 2^-14: more", E4M3, 0x1.0004p0, {{1, 0, 0}}},
    {"P10c", C_Q, "1 + 2^-9: 13 bits", E4M3, 0x1.0004p0, {{1, 0x1p-6, 0x1p-3}}},
    {"P10d", C_Q, "2: cut before the sum; 2 + 2^-12: after it", E4M3, 0x1.0004p0,
     {{1, 1, 1}, {3, 0x1p-7, 0x1p-7}}},
    {"P10e", C_Q, "-1: magnitude is cut; -1 - 2^-13: toward -infinity", E4M3, -0x1.0004p0,
     {{1, 0, 0}}},
    {"P10f", C_Q, "1: 13 bits and a tie; 1 + 2^-10: more", E4M3H, 1,
     {{1, 0x1p-9, 0x1p-2}, {1, 0x1p-9, 0x1p-5}}},
    {"P10g", C_Q, "1 + 2^-10: above the tie", E4M3H, 1, {{1, 0x1p-9, 0x1p-2}, {1, 0x1p-9, 0x1p-4}}},
    {"P10h", SUB_Q, "2^-130 + 2^-139", E4M3, 0x1.008p-130, {{1, 0, 0}}},
    {"P10i", SUB_Q, "2^-130: multiples of 2^-139; 2^-130 + 2^-140", E4M3, 0x1.004p-130, {{1, 0, 0}}},
    {"P10j", SUB_Q, "0: multiples of 2^-139; 2^-149", E4M3, 0x1p-149, {{1, 0, 0}}},
    {"P10k", SUB_Q, "2^-126 + 2^-139", E5M2, 0x1.0008p-126, {{1, 0, 0}}},
    {"P10l", SUB_Q, "-0: the sign of the addend stays; +0", E5M2, -0x1p-149, {{1, 0, 0}}},

    {"P14a", BITS_Q, "2^-24: 24 bits or more", FP16, 0,
     {{1, 1, 1}, {1, -1, 1}, {1, 0x1p-12, 0x1p-12}}},
    {"P14b", BITS_Q, "2^-25: 25 bits or more; 0: 24", FP16, 0,
     {{1, 1, 1}, {1, -1, 1}, {1, 0x1p-12, 0x1p-13}}},
    {"P14c", BITS_Q, "2^-26: 26 bits or more; 0: 25", FP16, 0,
     {{1, 1, 1}, {1, -1, 1}, {1, 0x1p-13, 0x1p-13}}},
    {"P14d", BITS_Q, "2^-25: products are not normalised; 0: they are", FP16, 0,
     {{1, 1.5, 1.5}, {1, -1.5, 1.5}, {1, 0x1p-12, 0x1p-13}}},
    {"P14e", BITS_Q, "0: every magnitude is cut; -2^-25: toward -infinity", FP16, 0,
     {{1, 1, 1}, {1, -1, 1}, {1, -0x1p-13, 0x1p-14}}},
    {"P14f", BITS_Q, "2^-13: 13 bits or more", E4M3, 0,
     {{1, 1, 1}, {1, -1, 1}, {1, 0x1p-9, 0x1p-4}}},
    {"P14g", BITS_Q, "0: 13 bits; 2^-14: more", E4M3, 0,
     {{1, 1, 1}, {1, -1, 1}, {1, 0x1p-9, 0x1p-5}}},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof rows[0] };

static int takes(const row *r, const gpu_instruction *in)
{
    int products = 0;
    for (int i = 0; i < 4; i++)
        products += r->terms[i].n == 32 ? 1 : r->terms[i].n; /* 32: all there are */
    return strcmp(r->a, in->a) == 0 && strcmp(r->b, in->b) == 0 && strcmp(r->d, in->d) == 0 && products <= in->k;
}

/* NaN by the canonical code with its sign; other numbers of the table are exact. */
static uint32_t code_of(const char *format, double x)
{
    const mpsim_format *f = mpsim_format_find(format);
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return (uint32_t)mpsim_encode_f64(f, &r, x, 0, NULL);
}

static void fill(gpu_probe *p, const row *r, const gpu_instruction *in)
{
    memset(p, 0, sizeof *p);
    strncpy(p->id, r->id, sizeof p->id - 1);
    p->instruction = in->name;
    p->operands = in->a;
    p->result = in->d;
    p->question = r->question;
    p->meaning = r->meaning;
    p->status = GPU_SKIPPED;
    p->c = code_of(in->d, r->c);
    p->k = in->k;
    int k = 0;
    for (int i = 0; i < 4; i++)
        for (int n = 0; n < r->terms[i].n && k < in->k; n++, k++) {
            p->a[k] = code_of(in->a, r->terms[i].a);
            p->b[k] = code_of(in->b, r->terms[i].b);
        }
}

int gpu_probe_fill(size_t i, gpu_probe *p, int *instruction)
{
    for (size_t n = 0; n < ROWS; n++) {
        const gpu_instruction *in;
        for (int j = 0; (in = gpu_instruction_at(j)) != NULL; j++) {
            if (!takes(&rows[n], in))
                continue;
            if (i == 0) {
                fill(p, &rows[n], in);
                *instruction = j;
                return 1;
            }
            i--;
        }
    }
    return 0;
}

size_t gpu_probe_count(void)
{
    size_t n = 0;
    for (size_t k = 0; k < ROWS; k++) {
        const gpu_instruction *in;
        for (int j = 0; (in = gpu_instruction_at(j)) != NULL; j++)
            n += takes(&rows[k], in) != 0;
    }
    return n;
}
