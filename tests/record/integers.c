/* integers.c -- products of int8 by torch._int_mm: exact sums, and what becomes of those beyond int32. */
#include "device.h"

#include "lib/digest/scalar.h"

#include <stdlib.h>

typedef struct integers {
    size_t n, k;
    int least;
    uint64_t streams[2];
} integers;

static int64_t number(const integers *x, size_t operand, uint64_t i)
{
    return x->least ? -128 : (int8_t)(device_word(x->streams[operand], i) >> 56);
}

static int64_t sum_at(const integers *x, size_t at)
{
    int64_t sum = 0;
    for (size_t k = 0; k < x->k; k++)
        sum += number(x, 0, at / x->n * x->k + k) * number(x, 1, k * x->n + at % x->n);
    return sum;
}

static uint32_t wrapped(int64_t sum)
{
    return (uint32_t)sum;
}

static uint32_t saturated(int64_t sum)
{
    return (uint32_t)(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}

static const struct kind {
    const char *name;
    uint32_t (*of)(int64_t sum);
} kinds[] = {{"exact sums modulo 2^32", wrapped}, {"exact sums (saturated)", saturated}};

static int8_t *drawn(const integers *x, size_t operand, size_t n)
{
    int8_t *p = malloc(n);
    device_need(p != NULL);
    for (size_t i = 0; i < n; i++)
        p[i] = (int8_t)number(x, operand, i);
    return p;
}

/* A row of sums, a product of the depth after the other. */
static void add_row(const integers *x, const int8_t *a, const int8_t *b, int64_t *sums)
{
    for (size_t j = 0; j < x->n; j++)
        sums[j] = 0;
    for (size_t first = 0; first < x->k; first += 256) {
        for (size_t j = 0; j < x->n; j++) {
            int32_t sum = 0; /* 256 products fit */
            for (size_t k = first; k < x->k && k < first + 256; k++)
                sum += a[k] * b[j * x->k + k];
            sums[j] += sum;
        }
    }
}

/* The digest of the first elements, whole rows. */
static uint64_t digest_of(const integers *x, size_t elements, uint32_t (*of)(int64_t sum))
{
    int8_t *a = drawn(x, 0, elements / x->n * x->k), *rows = drawn(x, 1, x->n * x->k), *b = malloc(x->n * x->k);
    int64_t *sums = malloc(x->n * sizeof *sums);
    uint64_t digest = 0;
    device_need(b && sums);
    for (size_t k = 0; k < x->k; k++)
        for (size_t j = 0; j < x->n; j++)
            b[j * x->k + k] = rows[k * x->n + j];
    for (size_t i = 0; i < elements / x->n; i++) {
        add_row(x, a + i * x->k, b, sums);
        for (size_t j = 0; j < x->n; j++)
            digest += mpsim_mix(i * x->n + j, of(sums[j]));
    }
    free(a);
    free(b);
    free(rows);
    free(sums);
    return digest;
}

static int places_fit(const integers *x, const json_t *c, uint32_t (*of)(int64_t sum))
{
    const char *words = device_text(c, "d");
    int fits = 1;
    for (size_t i = 0; fits && i < device_codes(words); i++)
        fits = of(sum_at(x, device_place(c, i))) == device_code(words, i);
    return fits;
}

void device_integers(const json_t *head, const json_t *c, char *answer)
{
    device_fits fits = {.all = 1};
    integers x = {
        (size_t)device_integer(c, "n"), (size_t)device_integer(c, "k"), json_is_true(json_object_get(c, "least")), {0}};
    const size_t elements = (size_t)device_integer(c, "elements");
    (void)head;
    for (size_t i = 0; i < 2; i++)
        x.streams[i] = (uint64_t)json_integer_value(json_array_get(json_object_get(c, "streams"), i));
    if (x.n == 0 || x.k == 0 || elements % x.n || !*device_text(c, "d")) {
        device_say(answer, "not understood");
        return;
    }
    fits.sample = (double)elements * (double)x.k > device_most_products / 8;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (places_fit(&x, c, kinds[i].of) &&
            (fits.sample || device_same_digest(c, "digest", digest_of(&x, elements, kinds[i].of))))
            device_fit(&fits, "%s", kinds[i].name);
    device_say_fits(answer, &fits);
}
