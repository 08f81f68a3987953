/* linematch.c -- which row, or column, of A each one of B is, by correlation.
 *
 * Some elements of each line are looked at, less their mean over all lines, as a vector of length 1. A line of B that does not
 * correlate with A's at its own place is looked for among A's lines that have none either. The signs of random projections
 * of a vector are a key: a rounding changes few signs, so that a line and its match share a key in one of TABLES tables. Lines
 * that share a key are compared; unrelated lines rarely do. The work grows as lines times the logarithm of their number. */
#include "impl.h"

#include "../array/need.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_SAMPLES = 256, FEWEST = 12, RUN = 16, TABLES = 8, IN_A_KEY = 32, FLOATS = 1 << 24, AT_ONCE = 1024 };
#define ALIKE 0.97 /* correlation of a match       */
#define APART 0.9  /* below: not at its own place */

/* The vectors of both sides. */
typedef struct vectors {
    uint64_t n, length; /* lines; elements of a row */
    size_t samples;
    float *x[2];
} vectors;

/* ---- reading ---- */

/* Of each row, runs of elements that are spread evenly. */
static int read_rows(vectors *v, source *s, float *x, trace_error *error)
{
    const size_t run = v->samples < RUN ? v->samples : RUN, runs = v->samples / run;
    double values[RUN];
    for (uint64_t i = 0; i < v->n; i++)
        for (size_t k = 0; k < runs; k++) {
            const uint64_t from = v->length / runs * k;
            if (pass_elements_values(&s->from, i * v->length + from, values, run, error))
                return -1;
            for (size_t j = 0; j < run; j++)
                x[i * v->samples + k * run + j] = (float)values[j];
        }
    return 0;
}

/* Some rows, spread evenly: an element of each column. */
static int read_columns(vectors *v, source *s, float *x, trace_error *error)
{
    const uint64_t rows = s->tensor->count / v->length;
    double values[AT_ONCE];
    for (size_t k = 0; k < v->samples; k++)
        for (uint64_t at = 0; at < v->length; at += AT_ONCE) {
            const size_t n = v->length - at < AT_ONCE ? (size_t)(v->length - at) : AT_ONCE;
            const uint64_t row = k * (rows / v->samples);
            if (pass_elements_values(&s->from, row * v->length + at, values, n, error))
                return -1;
            for (size_t j = 0; j < n; j++)
                x[(at + j) * v->samples + k] = (float)values[j];
        }
    return 0;
}

static int is_usable(const float *x, size_t n)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++)
        squares += (double)x[i] * (double)x[i];
    return isfinite(squares) && squares > 0;
}

static void take_mean(const vectors *v, float *x)
{
    for (size_t k = 0; k < v->samples; k++) {
        double sum = 0;
        uint64_t n = 0;
        for (uint64_t i = 0; i < v->n; i++)
            if (isfinite(x[i * v->samples + k])) {
                sum += (double)x[i * v->samples + k];
                n++;
            }
        for (uint64_t i = 0; i < v->n && n; i++)
            x[i * v->samples + k] -= (float)(sum / (double)n);
    }
}

/* To length 1; what has none is all zeros. */
static void normalise(const vectors *v, float *x)
{
    for (uint64_t i = 0; i < v->n; i++) {
        float *row = x + i * v->samples;
        double squares = 0;
        for (size_t k = 0; k < v->samples; k++)
            squares += (double)row[k] * (double)row[k];
        const float by = isfinite(squares) && squares > 0 ? (float)(1 / sqrt(squares)) : 0;
        for (size_t k = 0; k < v->samples; k++)
            row[k] = by > 0 ? row[k] * by : 0;
    }
}

/* Lines without a number but zero stay without a place: 1 in `none`. */
static void note_unusable(const vectors *v, const float *x, unsigned char *none)
{
    for (uint64_t i = 0; i < v->n; i++)
        none[i] |= !is_usable(x + i * v->samples, v->samples);
}

static float product(const float *a, const float *b, size_t n)
{
    float lane[8] = {0}, sum = 0;
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        for (size_t k = 0; k < 8; k++)
            lane[k] += a[i + k] * b[i + k];
    for (size_t k = 0; k < 8; k++)
        sum += lane[k];
    for (; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* ---- keys ---- */

/* The lines of A that are looked for, by key. */
typedef struct keys {
    const vectors *v;
    size_t bits;
    float *directions;      /* `bits` of them */
    uint32_t *first, *next; /* lines of A with a key, and those behind each, or LINE_NONE */
} keys;

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 33;
}

static size_t key_of(const keys *k, const float *x)
{
    size_t key = 0;
    for (size_t b = 0; b < k->bits; b++)
        key = key << 1 | (product(x, k->directions + b * k->v->samples, k->v->samples) > 0);
    return key;
}

static void keys_open(keys *k, const vectors *v, uint64_t lost)
{
    *k = (keys){.v = v, .bits = 3};
    while (k->bits < 22 && UINT64_C(1) << k->bits < lost)
        k->bits++;
    k->directions = need_memory(k->bits * v->samples, sizeof *k->directions);
    k->first = need_memory(UINT64_C(1) << k->bits, sizeof *k->first);
    k->next = need_memory(v->n, sizeof *k->next);
}

static void keys_close(keys *k)
{
    free(k->directions);
    free(k->first);
    free(k->next);
}

/* Other directions, and all lines of A that are not used. */
static void keys_fill(keys *k, uint64_t *state, const unsigned char *used)
{
    for (size_t i = 0; i < k->bits * k->v->samples; i++)
        k->directions[i] = next_random(state) & 1 ? 1 : -1;
    memset(k->first, 0xff, sizeof *k->first << k->bits);
    for (uint64_t i = k->v->n; i-- > 0;) {
        if (used[i])
            continue;
        const size_t key = key_of(k, k->v->x[0] + i * k->v->samples);
        k->next[i] = k->first[key];
        k->first[key] = (uint32_t)i;
    }
}

/* The line of A that is not used yet and correlates best, or LINE_NONE. */
static uint32_t look_up(const keys *k, const float *x, const unsigned char *used)
{
    uint32_t best = LINE_NONE, line = k->first[key_of(k, x)];
    float most = (float)ALIKE;
    for (int tried = 0; line != LINE_NONE && tried < IN_A_KEY; line = k->next[line]) {
        if (used[line])
            continue;
        const float r = product(x, k->v->x[0] + line * k->v->samples, k->v->samples);
        tried++;
        if (r > most) {
            most = r;
            best = line;
        }
    }
    return best;
}

/* ---- matching ---- */

static void look_up_all(line_match *m, const keys *k, unsigned char *used)
{
    for (uint64_t i = 0; i < m->n; i++) {
        if (m->from[i] != LINE_NONE)
            continue;
        m->from[i] = look_up(k, k->v->x[1] + i * k->v->samples, used);
        if (m->from[i] != LINE_NONE)
            used[m->from[i]] = 1;
        m->found += m->from[i] != LINE_NONE;
    }
}

/* Of related lines a table finds half or more: where the first one finds hardly any, no other will. */
static void look_for_lost(const vectors *v, line_match *m, unsigned char *used)
{
    uint64_t state = 49;
    keys k;
    keys_open(&k, v, m->moved);
    for (int t = 0; t < TABLES && m->found < m->moved && (t == 0 || m->found > m->moved / 20); t++) {
        keys_fill(&k, &state, used);
        look_up_all(m, &k, used);
    }
    keys_close(&k);
}

/* Lines at their own place, and those without numbers, stay. */
static void match(const vectors *v, line_match *m, const unsigned char *none)
{
    unsigned char *used = need_memory(v->n, 1);
    for (uint64_t i = 0; i < v->n; i++) {
        const float r = product(v->x[0] + i * v->samples, v->x[1] + i * v->samples, v->samples);
        const int stays = none[i] || (double)r >= APART;
        m->from[i] = stays ? (uint32_t)i : LINE_NONE;
        used[i] = (unsigned char)stays;
        m->moved += (uint64_t)!stays;
    }
    if (m->moved > 1)
        look_for_lost(v, m, used);
    free(used);
}

static size_t samples_of(uint64_t lines, uint64_t length)
{
    uint64_t n = FLOATS / (lines ? lines : 1);
    n = n < MOST_SAMPLES ? n : MOST_SAMPLES;
    n = n < length ? n : length;
    return (size_t)(n > RUN ? n / RUN * RUN : n);
}

int diff_line_match(line_match *m, walk *w, uint64_t length, int columns, trace_error *error)
{
    const uint64_t rows = w->of[0].tensor->count / length;
    vectors v = {.n = columns ? length : rows, .length = length};
    int bad = 0;
    *m = (line_match){.n = v.n, .length = length, .columns = columns};
    v.samples = samples_of(v.n, columns ? rows : length);
    if (v.n < 2 || v.samples < FEWEST)
        return 0;
    m->from = need_memory(v.n, sizeof *m->from);
    unsigned char *none = need_memory(v.n, 1);
    for (int k = 0; k < 2; k++)
        v.x[k] = need_memory(v.n * v.samples, sizeof *v.x[k]);
    for (int k = 0; k < 2 && !bad; k++) {
        bad = pass_elements_load(&w->of[k].from, error) < 0 ||
              (columns ? read_columns : read_rows)(&v, &w->of[k], v.x[k], error);
        note_unusable(&v, v.x[k], none);
        take_mean(&v, v.x[k]);
        normalise(&v, v.x[k]);
    }
    if (!bad)
        match(&v, m, none);
    free(none);
    free(v.x[0]);
    free(v.x[1]);
    return bad ? -1 : m->moved > 1 && m->found >= m->moved - m->moved / 20;
}

void diff_line_match_clear(line_match *m)
{
    free(m->from);
    m->from = NULL;
}
