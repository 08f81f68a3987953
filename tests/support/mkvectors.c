/* mkvectors.c -- writes an npz of dot products as if a GPU had recorded them, for tests of
 * mpsim verify: mkvectors FILE MODEL TYPE ROWS K [LIE]
 *
 * Operands are pseudo-random numbers of TYPE, c of binary32, d is what the model gives. Lies:
 *
 *   zero       d is computed without c        flip=ROW   the last bit of d[ROW] is wrong
 *   without=X  array X is left out            short=X    array X lacks its last row
 *   flat=X     array X has one dimension      third=X    X[1] (of a, b: X[0][1]) is 1/3
 *   whole=X    array X holds integers         name=X     array c is called X
 *   special    the first products have NaN, infinities, only zeros */
#include <math.h>
#include <mpsim/dot.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zip.h>

enum { ROWS_MAX = 5000, DEPTH_MAX = 256 };

static const char *lie = "", *about = "";

static int lies(const char *what, const char *array)
{
    return strcmp(lie, what) == 0 && strcmp(about, array) == 0;
}

static void quit(const char *why)
{
    fprintf(stderr, "mkvectors: %s\n", why);
    exit(2);
}

/* Row by row: NaN, inf 0, inf, -inf, inf - inf, -2^127 2^127, zeros, zeros, -2^-126 2^-30. */
static void set_special(float *a, float *b, float *c, size_t row, size_t depth)
{
    static const float pairs[][4] = {{NAN, 1, 1, 1},       {INFINITY, 0, 1, 1},         {INFINITY, 2, 1, 1},
                                     {-INFINITY, 2, 1, 1}, {INFINITY, 1, -1, INFINITY}, {-0x1p127f, 0x1p127f, 0, 1},
                                     {-0.0f, 1, 1, 0},     {-0.0f, 1, -0.0f, 1},        {-0x1p-126f, 0x1p-30f, 0, 0}};
    if (row >= sizeof pairs / sizeof pairs[0])
        return;
    for (size_t k = 0; k < depth; k++) {
        a[k] = pairs[row][k % 2 * 2];
        b[k] = pairs[row][k % 2 * 2 + 1];
    }
    if (row > 5)
        *c = row == 6 ? 0 : -0.0f;
}

/* In (-2, 2), with 24 random bits. */
static float number(uint64_t *state)
{
    *state = *state * 6364136223846793005 + 1442695040888963407;
    return (float)((int32_t)(*state >> 32) / 256) * 0x1p-22f;
}

static void add_array(zip_t *z, const char *type, const char *name, const float *x, size_t rows, size_t columns)
{
    char member[80], header[192], shape[64];
    const size_t n = rows - (lies("short", name) ? 1 : 0), size = n * columns * 4;
    if (lies("without", name))
        return;
    if (columns == 1 || lies("flat", name))
        snprintf(shape, sizeof shape, "(%zu,)", n * columns);
    else
        snprintf(shape, sizeof shape, "(%zu, %zu)", n, columns);
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
             lies("whole", name) ? "<i4" : "<f4", shape);
    unsigned char *npy = calloc(1, 128 + size);
    if (!npy)
        quit("out of memory");
    memset(npy, ' ', 128);
    memcpy(npy, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(npy + 10, header, strlen(header));
    npy[127] = '\n';
    memcpy(npy + 128, x, size);
    snprintf(member, sizeof member, "%s.%s.npy", type,
             strcmp(lie, "name") == 0 && strcmp(name, "c") == 0 ? about : name);
    zip_source_t *source = zip_source_buffer(z, npy, 128 + size, 1);
    if (!source || zip_file_add(z, member, source, 0) < 0)
        quit(zip_strerror(z));
}

/* The number as it is in the format, and its code. */
static uint64_t narrow(const mpsim_format *f, float *x)
{
    mpsim_rounding r;
    mpsim_rounding_init(&r, MPSIM_ROUND_NEAREST_EVEN);
    const uint64_t code = mpsim_encode_f32(f, &r, *x, 0, NULL);
    *x = (float)mpsim_decode(f, code);
    return code;
}

static void put(const mpsim_format *f, unsigned char *codes, size_t i, uint64_t code)
{
    const uint8_t u8 = (uint8_t)code;
    const uint16_t u16 = (uint16_t)code;
    const uint32_t u32 = (uint32_t)code;
    const size_t n = mpsim_format_code_bytes(f);
    memcpy(codes + i * n, n == 1 ? (const void *)&u8 : n == 2 ? (const void *)&u16 : &u32, n);
}

int main(int argc, char **argv)
{
    static float a[ROWS_MAX * DEPTH_MAX], b[ROWS_MAX * DEPTH_MAX], c[ROWS_MAX], d[ROWS_MAX];
    static unsigned char pa[4 * DEPTH_MAX], pb[4 * DEPTH_MAX];
    mpsim_model m;
    mpsim_format f;
    uint64_t state = 7;
    int error = 0;
    if (argc < 6 || mpsim_model_parse(&m, argv[2]) || mpsim_format_parse(&f, argv[3]))
        quit("FILE MODEL TYPE ROWS K [LIE]");
    const size_t rows = strtoul(argv[4], NULL, 10), depth = strtoul(argv[5], NULL, 10);
    if (rows < 1 || rows > ROWS_MAX || depth < 1 || depth > DEPTH_MAX)
        quit("too many rows or products");
    if (argc > 6) {
        char *value = strchr(argv[6], '=');
        lie = argv[6];
        if (value)
            *value = '\0', about = value + 1;
    }
    for (size_t i = 0; i < rows; i++) {
        for (size_t k = 0; k < depth; k++) {
            a[i * depth + k] = number(&state);
            b[i * depth + k] = number(&state);
        }
        c[i] = number(&state);
        if (strcmp(lie, "special") == 0)
            set_special(a + i * depth, b + i * depth, &c[i], i, depth);
        for (size_t k = 0; k < depth; k++) {
            put(&f, pa, k, narrow(&f, &a[i * depth + k]));
            put(&f, pb, k, narrow(&f, &b[i * depth + k]));
        }
        float addend = strcmp(lie, "zero") == 0 ? 0 : c[i];
        uint64_t code = 0;
        if (mpsim_dot(&m, &f, pa, &f, pb, depth, narrow(&m.result.format, &addend), NULL, &code))
            quit("the model cannot take this type");
        if (strcmp(lie, "flip") == 0 && strtoul(about, NULL, 10) == i)
            code ^= 1;
        d[i] = (float)mpsim_decode(&m.result.format, code);
    }
    const char *result = m.result.format.bits == 16 ? "d_fp16" : "d_fp32";
    if (strcmp(lie, "third") == 0)
        (strcmp(about, "a") == 0 ? a : strcmp(about, "b") == 0 ? b : d)[1] = 1.0f / 3;
    zip_t *z = zip_open(argv[1], ZIP_CREATE | ZIP_TRUNCATE, &error);
    if (!z)
        quit("cannot create the file");
    add_array(z, argv[3], "a", a, rows, depth);
    add_array(z, argv[3], "b", b, rows, depth);
    add_array(z, argv[3], "c", c, rows, 1);
    add_array(z, argv[3], result, d, rows, 1);
    if (zip_close(z))
        quit(zip_strerror(z));
    return 0;
}
