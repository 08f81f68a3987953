/* x-fit.c -- x-fit RECORD [WORD]: what the fitter finds in the tables of a record of mpsim-gpu-functions, of operations whose
 * names contain the word: coefficients of a piecewise quadratic that gives every result again, or that there are none of
 * the forms that are tried (unitfit.h). Coefficients go to standard output, a line a segment: k, c1, c2. */
#include "functionsrecord.h"
#include "unitfit.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int bits_of(int64_t v)
{
    int n = 1;
    for (v = v < 0 ? ~v : v; v; v >>= 1)
        n++;
    return n;
}

static void print(const fit *f)
{
    const fit_shape *s = &f->shape;
    int widest[3] = {0, 0, 0};
    for (int i = 0; i < 1 << s->index_bits; i++) {
        const int64_t c[3] = {f->segment[i].k, f->segment[i].c1, f->segment[i].c2};
        for (int k = 0; k < 3; k++)
            widest[k] = bits_of(c[k]) > widest[k] ? bits_of(c[k]) : widest[k];
        printf("%" PRId64 " %" PRId64 " %" PRId64 "\n", c[0], c[1], c[2]);
    }
    printf(
        "# %d segments of %d bits, sums of 2^-%d, squares without %d bits, less %d; k, c1, c2 have %d, %d, %d bits with "
        "signs; %d segments of small results are left out\n",
        1 << s->index_bits, s->low_bits, s->fraction, s->drop, s->less, widest[0], widest[1], widest[2], f->left_out);
}

/* Of magnitudes. 1: found. */
static int fit_of(const char *name, uint32_t first, uint32_t *results, int bits)
{
    static fit f;
    memset(&f, 0, sizeof f);
    for (size_t k = 0; k < (size_t)1 << bits; k++)
        results[k] &= 0x7fffffff;
    printf("# %s from %08" PRIx32 ": ", name, first);
    const int found = fit_table(&f, results, bits, 0);
    printf("%s\n", found ? "every bit" : "none of the forms that are tried");
    if (found)
        print(&f);
    fflush(stdout);
    return found;
}

int main(int argc, char **argv)
{
    static functions_record r;
    char tables[4200];
    if (argc < 2 || strlen(argv[1]) < 5) {
        fprintf(stderr, "usage: x-fit RECORD.json [WORD]\n");
        return 2;
    }
    snprintf(tables, sizeof tables, "%.*s.tables", (int)strlen(argv[1]) - 5, argv[1]);
    if (functions_read(&r, argv[1], tables, -1) || r.tables.extent.shift) {
        fprintf(stderr, "x-fit: %s: %s\n", argv[1], r.why[0] ? r.why : "not of all operands");
        return 3;
    }
    int missing = 0;
    for (size_t i = 0; i < gpu_tables(); i++) {
        const gpu_table t = gpu_table_at(i);
        const char *name = gpu_operation_at(t.operation)->name;
        if (t.operation >= GPU_FUNCTIONS || t.first >> 31 || !r.tables.results[i] ||
            (argc > 2 && !strstr(name, argv[2])))
            continue;
        if (t.operation == GPU_SIN && t.first == 0x40800000) /* by turns: a quarter of the wave */
            missing += !fit_of("a quarter of sin, by turns", 0x3f800000, r.tables.quarter, 21);
        else
            missing += !fit_of(name, t.first, r.tables.results[i], 23);
    }
    functions_free(&r);
    return missing != 0;
}
