/* doubles.c -- matrix products in binary64 of devices: which order of fused multiply-adds gives the same bits. */
#include "device.h"

#include "support/support.h"

#include <mpsim/dot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LOW = -6, HIGH = 4, MOST = 4096 };

/* Number i of a stream, as doubles.py draws it. */
static uint64_t number(uint64_t stream, uint64_t i)
{
    const uint64_t w = device_word(stream, i), bits = device_word(stream + 100, i);
    const uint64_t exponent = (uint64_t)(1023 + LOW) + ((w >> 32 & 0xffff) * (uint64_t)(HIGH - LOW) >> 16);
    return (w >> 63) << 63 | exponent << 52 | (bits & (((uint64_t)1 << 52) - 1));
}

/* Whether a model gives every place that is kept. */
static int gives(const json_t *c, const mpsim_model *m)
{
    static uint64_t a[MOST], b[MOST];
    const size_t k = device_integer(c, "k"), n = device_integer(c, "n");
    const json_t *streams = json_object_get(c, "streams");
    const uint64_t sa = (uint64_t)json_integer_value(json_array_get(streams, 0));
    const uint64_t sb = (uint64_t)json_integer_value(json_array_get(streams, 1));
    const char *words = device_text(c, "d");
    const size_t count = device_codes(words);
    const mpsim_format *f = mpsim_format_find("binary64");
    for (size_t i = 0; i < count; i++) {
        const size_t at = device_place(c, i), row = at / n, column = at % n;
        for (size_t t = 0; t < k; t++) {
            a[t] = number(sa, row * k + t);
            b[t] = number(sb, t * n + column);
        }
        uint64_t d = 0;
        device_need(mpsim_dot(m, f, a, f, b, k, 0, NULL, &d) == MPSIM_OK);
        if (d != device_code(words, i))
            return 0;
    }
    return count > 0;
}

void device_doubles(const json_t *head, const json_t *c, char *answer)
{
    static const char *const names[] = {"hopper-fp64",          "hopper-fp64:chunk=4", "hopper-fp64:chunk=8",
                                        "hopper-fp64:chunk=16", "sequential:binary64", "pairwise:binary64"};
    device_fits fits = {0};
    (void)head;
    if (device_integer(c, "k") > MOST) {
        device_say(answer, "deeper than this reader goes");
        return;
    }
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        mpsim_model m;
        device_need(mpsim_model_parse(&m, names[i]) == MPSIM_OK);
        if (gives(c, &m))
            device_fit(&fits, "%s", names[i]);
    }
    device_say_fits(answer, &fits);
}
