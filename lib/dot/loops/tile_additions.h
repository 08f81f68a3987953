/* tile_additions.h -- one addition of tile.h for one type of values: included by tile_loops.h, which
 * defines REAL, BITS (an unsigned integer of its size), BIAS and MANTISSA of that type, and
 * ADD_TILE, the name. */

/* One addition of n products; see mpsim_tile_function. Returns the columns to be done again. */
static unsigned ADD_TILE(const mpsim_tile *t, const REAL *a, const int16_t *ea, const REAL *b, const int16_t *eb,
                         double *c, int n)
{
    enum { N = MPSIM_TILE };
    int16_t e[N];
    REAL scale[N];
    double total[N];

    for (int j = 0; j < N; j++) {
        const int field = (int)(mpsim_bits_f64(c[j]) >> 52 & 0x7ff);
        int ec = field - 1023;
        ec = ec > t->emin ? ec : t->emin;
        ec = field ? ec : t->floor; /* zero */
        e[j] = (int16_t)(ec > t->floor ? ec : t->floor);
    }
    for (int k = 0; k < n; k++)
        for (int j = 0; j < N; j++) {
            const int16_t es = (int16_t)(ea[k] + eb[k * N + j]);
            e[j] = es > e[j] ? es : e[j];
        }

    for (int j = 0; j < N; j++) {
        const int E = e[j] > t->lowest ? e[j] : t->lowest;
        const BITS u = (BITS)(BIAS + t->fraction - E) << MANTISSA;
        memcpy(&scale[j], &u, sizeof u);
        total[j] = 0;
    }
    for (int first = 0; first < n; first += t->group) {
        const int end = n - first < t->group ? n : first + t->group;
        int32_t sum[N] = {0};
        for (int k = first; k < end; k++)
            for (int j = 0; j < N; j++)
                sum[j] += (int32_t)(a[k] * b[k * N + j] * scale[j]);
        for (int j = 0; j < N; j++)
            total[j] += sum[j];
    }
    return finish(t, e, total, c);
}
