/* integers.c -- products of int8 by torch._int_mm: exact sums, and what becomes of those beyond int32. */
#include "device.h"

#include "lib/digest/scalar.h"

#include <stdlib.h>
#include <string.h>

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
enum { KINDS = sizeof kinds / sizeof kinds[0] };

static int8_t *drawn(const integers *x, size_t operand, size_t n)
{
    int8_t *p = malloc(n);
    device_need(p != NULL);
    for (size_t i = 0; i < n; i++)
        p[i] = (int8_t)number(x, operand, i);
    return p;
}

/* Products first to first + n - 1 of a row, 256 at most, so that int32 holds their sum. */
static void add_products(const int8_t *restrict a, const int8_t *restrict b, size_t n, size_t columns,
                         int32_t *restrict part)
{
    memset(part, 0, columns * sizeof *part);
    for (size_t k = 0; k < n; k++)
        for (size_t j = 0; j < columns; j++)
            part[j] += (int32_t)a[k] * b[k * columns + j];
}

static void add_row(const integers *x, const int8_t *a, const int8_t *b, int32_t *part, int64_t *sums)
{
    memset(sums, 0, x->n * sizeof *sums);
    for (size_t first = 0; first < x->k; first += 256) {
        add_products(a + first, b + first * x->n, x->k - first < 256 ? x->k - first : 256, x->n, part);
        for (size_t j = 0; j < x->n; j++)
            sums[j] += part[j];
    }
}

/* The digests of the first elements, whole rows, by each kind. */
static void add_digests(const integers *x, size_t elements, uint64_t *digests)
{
    int8_t *a = drawn(x, 0, elements / x->n * x->k), *b = drawn(x, 1, x->n * x->k);
    int64_t *sums = malloc(x->n * sizeof *sums);
    int32_t *part = malloc(x->n * sizeof *part);
    device_need(sums && part);
    for (size_t i = 0; i < elements / x->n; i++) {
        add_row(x, a + i * x->k, b, part, sums);
        for (size_t j = 0; j < x->n; j++)
            for (size_t kind = 0; kind < KINDS; kind++)
                digests[kind] += mpsim_mix(i * x->n + j, kinds[kind].of(sums[j]));
    }
    free(a);
    free(b);
    free(sums);
    free(part);
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
    uint64_t digests[KINDS] = {0};
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
    if (!fits.sample)
        add_digests(&x, elements, digests);
    for (size_t i = 0; i < KINDS; i++)
        if (places_fit(&x, c, kinds[i].of) && (fits.sample || device_same_digest(c, "digest", digests[i])))
            device_fit(&fits, "%s", kinds[i].name);
    device_say_fits(answer, &fits);
}
