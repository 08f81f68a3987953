/* device.c -- see device.h. */
#include "device.h"

#include "lib/digest/scalar.h"
#include "support/support.h"

#include <inttypes.h>
#include <math.h>
#include <mpsim/round.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

double device_most_products = INFINITY;

void device_need(int given)
{
    if (given)
        return;
    puts("Bail out! out of memory, or a call was refused");
    exit(EXIT_FAILURE);
}

uint64_t device_integer(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

const char *device_text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

/* Words are of one width. */
static size_t width_of(const char *words)
{
    return strcspn(words, " ") + 1;
}

uint64_t device_code(const char *words, size_t i)
{
    return strtoull(words + i * width_of(words), NULL, 16);
}

size_t device_codes(const char *words)
{
    return *words ? (strlen(words) + 1) / width_of(words) : 0;
}

int device_same_digest(const json_t *o, const char *key, uint64_t digest)
{
    char hex[17];
    snprintf(hex, sizeof hex, "%016" PRIx64, digest);
    return strcmp(device_text(o, key), hex) == 0;
}

void device_fit(device_fits *f, const char *format, ...)
{
    va_list ap;
    const size_t used = strlen(f->names);
    if (f->count >= DEVICE_FITS && !f->all) {
        f->count++;
        return;
    }
    if (f->count++ > 0)
        snprintf(f->names + used, sizeof f->names - used, ", ");
    const size_t at = strlen(f->names);
    va_start(ap, format);
    vsnprintf(f->names + at, sizeof f->names - at, format, ap);
    va_end(ap);
}

void device_say(char *answer, const char *format, ...)
{
    va_list ap;
    va_start(ap, format);
    vsnprintf(answer, DEVICE_ANSWER, format, ap);
    va_end(ap);
}

void device_say_fits(char *answer, const device_fits *f)
{
    const char *what = f->sample ? "sample fits" : "fits";
    if (f->count > DEVICE_FITS && !f->all)
        device_say(answer, "%s %s and %zu more", what, f->names, f->count - DEVICE_FITS);
    else if (f->count)
        device_say(answer, "%s %s", what, f->names);
    else
        device_say(answer, "none fits");
}

/* ---- numbers ---- */

/* Names of torch; explicit significand bits that are drawn, where they stand, bias, width. */
static const struct drawn {
    const char *torch, *format;
    int bits, place, explicit_bits, bias, width;
} drawn[] = {
    {"float32", "binary32", 23, 0, 23, 127, 32},    {"tf32", "binary32", 10, 13, 23, 127, 32},
    {"float16", "fp16", 10, 0, 10, 15, 16},         {"bfloat16", "bf16", 7, 0, 7, 127, 16},
    {"float8_e4m3fn", "e4m3", 3, 0, 3, 7, 8},       {"float8_e5m2", "e5m2", 2, 0, 2, 15, 8},
    {"float8_e4m3fnuz", "e4m3fnuz", 0, 0, 0, 0, 0}, {"float8_e5m2fnuz", "e5m2fnuz", 0, 0, 0, 0, 0},
    {"float8_e8m0fnu", "e8m0", 0, 0, 0, 0, 0},
};

static const struct drawn *find(const char *torch)
{
    size_t i = 0;
    while (i < sizeof drawn / sizeof drawn[0] && strcmp(drawn[i].torch, torch) != 0)
        i++;
    return i < sizeof drawn / sizeof drawn[0] ? &drawn[i] : NULL;
}

const mpsim_format *device_format(const char *torch)
{
    const struct drawn *d = find(torch);
    return d ? mpsim_format_find(d->format) : NULL;
}

uint64_t device_word(uint64_t stream, uint64_t i)
{
    return mpsim_mix(i, stream);
}

static uint64_t draw(const struct drawn *d, int low, int high, uint64_t w)
{
    const uint64_t exponent = (uint64_t)(d->bias + low) + ((w >> 32 & 0xffff) * (uint64_t)(high - low) >> 16);
    return (w >> 63) << (d->width - 1) | exponent << d->explicit_bits |
           (w & (((uint64_t)1 << d->bits) - 1)) << d->place;
}

static float number(const struct drawn *d, const mpsim_format *f, uint64_t code)
{
    return d->width == 32 ? f32_of_bits((uint32_t)code) : (float)mpsim_decode(f, code);
}

float device_number(const char *torch, int low, int high, uint64_t stream, uint64_t i)
{
    static const struct drawn *d;
    static const mpsim_format *f; /* of d, which is often that of the last call */
    if (!d || strcmp(d->torch, torch) != 0) {
        d = find(torch);
        f = mpsim_format_find(d->format);
    }
    return number(d, f, draw(d, low, high, device_word(stream, i)));
}

void device_numbers(const char *torch, const int range[2], uint64_t stream, size_t first, size_t step, size_t n,
                    float *x)
{
    static float values[1 << 16]; /* of codes of 16 bits or fewer, of the format of the last call */
    static const struct drawn *of;
    const struct drawn *d = find(torch);
    const mpsim_format *f = mpsim_format_find(d->format);
    for (size_t i = 0; d->width < 32 && d != of && i < (size_t)1 << d->width; i++)
        values[i] = number(d, f, i);
    of = d->width < 32 ? d : of;
    for (size_t i = 0; i < n; i++) {
        const uint64_t code = draw(d, range[0], range[1], device_word(stream, first + i * step));
        x[i] = d->width < 32 ? values[code] : number(d, f, code);
    }
}

size_t device_place(const json_t *c, size_t i)
{
    const json_t *p = json_object_get(c, "places");
    const char *at = device_text(c, "at");
    const size_t named = device_codes(at);
    if (i < named)
        return (size_t)device_code(at, i);
    i -= named;
    const uint64_t count = (uint64_t)json_integer_value(json_array_get(p, 0));
    const uint64_t stream = (uint64_t)json_integer_value(json_array_get(p, 1));
    const uint64_t below = (uint64_t)json_integer_value(json_array_get(p, 2));
    if (i >= count || below == 0 || i == 0)
        return 0;
    return (size_t)(i == 1 ? below - 1 : (device_word(stream, i) >> 1) % below);
}

uint64_t device_encode(const mpsim_format *f, float x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    return mpsim_encode_f32(f, &r, x, 0, NULL);
}

float device_round(const mpsim_format *f, float x)
{
    return (float)mpsim_decode(f, device_encode(f, x));
}
