/* elementwise.c -- casts, functions and quotients of devices: what has a result for each element. */
#include "device.h"

#include "lib/digest/scalar.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/block.h>
#include <mpsim/digest.h>
#include <mpsim/function.h>
#include <mpsim/round.h>
#include <mpsim/transformer.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- casts ---- */

static const unsigned low_halves[] = {0x0000, 0x0001, 0x0fff, 0x1000, 0x1001, 0x7fff, 0x8000, 0x8001, 0xffff};
enum { LOWS = sizeof low_halves / sizeof low_halves[0] };

static float cast_source(const mpsim_format *f, size_t i)
{
    if (f->bits == 32)
        return f32_of_bits((uint32_t)(i / LOWS) << 16 | low_halves[i % LOWS]);
    return (float)mpsim_decode(f, i);
}

/* What torch casts a NaN of 16 bits by way of: binary32, its payload kept; a device's instruction makes one NaN
 * of those of fp16. */
static float nan_kept(const mpsim_format *f, size_t i, float x, int cuda)
{
    if (!isnan(x) || f->bits == 32)
        return x;
    if (cuda && strcmp(f->name, "fp16") == 0)
        return f32_of_bits(0x7fffffff);
    const uint32_t fraction = f->bits == 16 && strcmp(f->name, "bf16") == 0 ? 16 : 13;
    const uint32_t sign = (uint32_t)(i >> 15) << 31;
    return f32_of_bits(sign | 0x7f800000u | ((uint32_t)i << fraction & 0x007fffffu));
}

typedef struct cast_result {
    size_t wrong, nans, subnormals;      /* that differ: numbers, NaNs, subnormals that become E8M0 */
    uint64_t digest, nan_digest, theirs; /* of all codes; of those of NaNs; of all recorded codes */
    char first[80];
} cast_result;

/* Of codes in runs CODE*COUNT; *at is where the next one stands. */
static unsigned next_code(const char **at, unsigned long *left, unsigned *code)
{
    while (*left == 0 && **at) {
        char *end;
        *code = (unsigned)strtoul(*at, &end, 16);
        *left = *end == '*' ? strtoul(end + 1, &end, 10) : 0;
        *at = *end == ' ' ? end + 1 : end + strlen(end);
    }
    *left -= *left > 0;
    return *code;
}

/* A NaN as the code of all ones, where there are several. */
static uint64_t digested(const mpsim_format *f, uint64_t code)
{
    return f->nan == MPSIM_NAN_TOP && code < (uint64_t)1 << f->bits && mpsim_classify(f, code) == MPSIM_CLASS_NAN
               ? ((uint64_t)1 << f->bits) - 1
               : code;
}

static cast_result cast_by(const mpsim_preset *p, const mpsim_format *from, const mpsim_format *to, size_t n,
                           const char *codes, int cuda)
{
    cast_result s = {0, 0, 0, 0, 0, 0, ""};
    mpsim_rounding r;
    unsigned long left = 0;
    unsigned code = 0x1000;
    uint64_t nans = 0;
    const int e8m0 = strcmp(to->name, "e8m0") == 0, given = *codes != 0;
    mpsim_rounding_preset(&r, p, to);
    if (e8m0)
        r.mode = MPSIM_ROUND_NEAREST_AWAY;
    for (size_t i = 0; i < n; i++) {
        const float x = nan_kept(from, i, cast_source(from, i), cuda);
        const uint64_t got = mpsim_encode_f32(to, &r, x, 0, NULL);
        s.digest += mpsim_mix(i, digested(to, got));
        if (isnan(x))
            s.nan_digest += mpsim_mix(nans++, got);
        if (!given)
            continue;
        s.theirs += mpsim_mix(i, digested(to, next_code(&codes, &left, &code)));
        if (code == got)
            continue;
        const int subnormal = e8m0 && fpclassify(x) == FP_SUBNORMAL;
        *(isnan(x) ? &s.nans : subnormal ? &s.subnormals : &s.wrong) += 1;
        if (!subnormal && !*s.first)
            snprintf(s.first, sizeof s.first, "%a is %#" PRIx64 " here, %#x there", (double)x, got, code);
    }
    return s;
}

static void cast_facts(const json_t *c, const cast_result *s, const char *preset, device_fits *f, char *answer)
{
    const int codes = *device_text(c, "codes") != 0;
    const int digest = device_same_digest(c, "digest", codes ? s->theirs : s->digest);
    const int nans = !*device_text(c, "nans") || device_same_digest(c, "nans", s->nan_digest);
    if (digest && nans && s->wrong + s->nans == 0) {
        if (s->subnormals)
            device_fit(f, "%s but for %zu subnormal numbers", preset, s->subnormals);
        else
            device_fit(f, "%s", preset);
    } else if (strcmp(preset, "pytorch") == 0) {
        device_say(answer, "pytorch: digest %s, NaNs %s, %zu numbers and %zu NaNs differ; %s",
                   digest ? "equal" : "different", nans ? "equal" : "different", s->wrong, s->nans, s->first);
    }
}

void device_casts(const json_t *head, const json_t *c, char *answer)
{
    char from[32], to[32];
    device_fits f = {.count = 0};
    const int cuda = strcmp(device_text(head, "kind"), "cuda") == 0;
    if (sscanf(device_text(c, "case"), "%31s to %31s", from, to) != 2 || !device_format(from) || !device_format(to)) {
        device_say(answer, "not understood");
        return;
    }
    const size_t n = strcmp(from, "float32") == 0 ? LOWS << 16 : 1 << 16;
    if (device_integer(c, "n") != n) {
        device_say(answer, "other inputs");
        return;
    }
    device_say(answer, "none fits");
    for (size_t i = 0; i < mpsim_preset_count(); i++) {
        const mpsim_preset *p = mpsim_preset_at(i);
        const int ours = strcmp(p->name, "pytorch") == 0 || strcmp(p->name, "cuda") == 0 ||
                         strcmp(p->name, "pytorch-2.12") == 0;
        if (!ours)
            continue;
        const cast_result s = cast_by(p, device_format(from), device_format(to), n, device_text(c, "codes"), cuda);
        cast_facts(c, &s, p->name, &f, answer);
    }
    if (f.count)
        device_say_fits(answer, &f);
}

/* ---- functions ---- */

static float gelu_by(mpsim_activation kind, float x)
{
    float y = 0;
    mpsim_activate(kind, NULL, NULL, &y, &x, 1, 1);
    return y;
}

static float gelu(float x)
{
    return gelu_by(MPSIM_GELU, x);
}

static float gelu_tanh(float x)
{
    return gelu_by(MPSIM_GELU_TANH, x);
}

/* Ours in binary32; correctly rounded, where the library can. */
static const struct function {
    const char *name;
    float (*ours)(float x);
    int exact;
} functions[] = {
    {"exp", mpsim_exp, MPSIM_FUNCTION_EXP},
    {"log", mpsim_log, MPSIM_FUNCTION_LOG},
    {"tanh", mpsim_tanh, MPSIM_FUNCTION_TANH},
    {"erf", mpsim_erf, -1},
    {"sigmoid", mpsim_sigmoid, -1},
    {"rsqrt", mpsim_rsqrt, -1},
    {"gelu", gelu, -1},
    {"gelu_tanh", gelu_tanh, -1},
};
enum { FUNCTIONS = sizeof functions / sizeof functions[0] };

static uint64_t function_digest(const struct function *g, const mpsim_format *f, size_t n, int exact)
{
    uint64_t sum = 0;
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    for (uint64_t i = 0; i < n; i++) {
        const uint64_t code = f->bits == 32 ? i << 12 | (device_word(1, i) & 0xfff) : i;
        const uint64_t y = exact ? mpsim_function_apply((mpsim_function)g->exact, f, f, &r, code, 0, NULL)
                                 : device_encode(f, g->ours((float)mpsim_decode(f, code)));
        sum += mpsim_mix(i, digested(f, y));
    }
    return sum;
}

/* The same, computed once for each of the three formats. */
static uint64_t known_digest(size_t i, const mpsim_format *f, size_t n, int exact)
{
    static uint64_t digests[FUNCTIONS][3][2];
    const int row = f->bits == 32 ? 0 : strcmp(f->name, "bf16") == 0 ? 1 : 2;
    uint64_t *known = &digests[i][row][exact];
    if (*known == 0)
        *known = function_digest(&functions[i], f, n, exact);
    return *known;
}

void device_functions(const json_t *head, const json_t *c, char *answer)
{
    char name[32], type[32];
    size_t i = 0;
    (void)head;
    if (sscanf(device_text(c, "case"), "%31s %31s", name, type) != 2 || !device_format(type)) {
        device_say(answer, "not understood");
        return;
    }
    while (i < FUNCTIONS && strcmp(functions[i].name, name) != 0)
        i++;
    const mpsim_format *f = device_format(type);
    const json_t *ulps = json_object_get(c, "ulps");
    device_fits fits = {.count = 0};
    const size_t n = f->bits == 32 ? 1 << 20 : 1 << 16;
    if (i == FUNCTIONS || device_integer(c, "n") != n) {
        device_say(answer, "not understood");
        return;
    }
    /* Exact binary32 functions of 2^20 arguments take minutes. */
    if (functions[i].exact >= 0 && f->bits == 16 && device_same_digest(c, "digest", known_digest(i, f, n, 1)))
        device_fit(&fits, "correct rounding");
    if (device_same_digest(c, "digest", known_digest(i, f, n, 0)))
        device_fit(&fits, "mpsim's %s", name);
    const json_t *worst = json_array_get(json_object_get(c, "worst"), 0);
    if (fits.count)
        device_say_fits(answer, &fits);
    else if ((size_t)device_integer(ulps, "0.5") == n)
        device_say(answer, "fits correct rounding, as the device's own table says");
    else if (json_is_number(json_array_get(worst, 2)))
        device_say(answer, "none fits; %zu of %zu correctly rounded, at most %.3g ulp off",
                   (size_t)device_integer(ulps, "0.5"), n, json_number_value(json_array_get(worst, 2)));
    else
        device_say(answer, "none fits; %zu of %zu correctly rounded", (size_t)device_integer(ulps, "0.5"), n);
}

/* ---- quotients in Triton ---- */

static void divide(const json_t *c, char *answer)
{
    uint64_t sum = 0;
    const size_t n = (size_t)device_integer(c, "n");
    for (uint64_t i = 0; i < n; i++) {
        const float x = device_number("float32", -20, 21, 70, i);
        const float y = device_number("float32", -10, 11, 71, i);
        sum += mpsim_mix(i, bits_of_f32(x / y));
    }
    if (device_same_digest(c, "digest", sum))
        device_say(answer, "fits IEEE's division");
    else
        device_say(answer, "none fits; %zu of %zu not the nearest", (size_t)device_integer(c, "not nearest"), n);
}

/* s = max |x| / 448, or times the reciprocal of 448, rounded; codes of x / s. 1: these are the case's. */
static int is_act_quant(const json_t *c, const char *type, int reciprocal)
{
    const mpsim_format *e4m3 = mpsim_format_find("e4m3");
    uint64_t codes = 0, scales = 0;
    const size_t n = (size_t)device_integer(c, "n");
    for (uint64_t block = 0; block < n / 128; block++) {
        float x[128], amax = 0;
        for (uint64_t i = 0; i < 128; i++) {
            x[i] = device_number(type, -8, 4, 72, block * 128 + i);
            amax = fmaxf(amax, fabsf(x[i]));
        }
        const float s = reciprocal ? amax * (1.0f / 448) : amax / 448;
        scales += mpsim_mix(block, bits_of_f32(s));
        for (uint64_t i = 0; i < 128; i++)
            codes += mpsim_mix(block * 128 + i, device_encode(e4m3, x[i] / s));
    }
    return device_same_digest(c, "scales", scales) && device_same_digest(c, "codes", codes);
}

static void act_quant(const json_t *c, const char *type, char *answer)
{
    if (is_act_quant(c, type, 0))
        device_say(answer, "fits IEEE's division: codes and scales");
    else if (is_act_quant(c, type, 1))
        device_say(answer, "fits IEEE's division of x / s, where s is a product with 1 / 448: codes and scales");
    else
        device_say(answer, "none fits");
}

void device_division(const json_t *head, const json_t *c, char *answer)
{
    char type[32];
    (void)head;
    if (sscanf(device_text(c, "case"), "act_quant %31s", type) == 1 && device_format(type))
        act_quant(c, type, answer);
    else
        divide(c, answer);
}
