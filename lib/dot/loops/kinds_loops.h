/* kinds_loops.h -- kinds of codes (kinds.h) in vectors: included by one unit per instruction set, after decode_loops.h. */

/* V_LANES codes as bits from number `at` on. */
static ALWAYS_INLINE void kinds_of_lanes(const mpsim_kinds_reader *r, vu32 code, unsigned at, mpsim_kinds *to)
{
    const vu32 m = code & v_u32((uint32_t)r->magnitude);
    const uint64_t above = m32_bits(v_gt_u32(m, v_u32((uint32_t)r->most)));
    const uint64_t infinite = r->infinity > r->magnitude ? 0 : m32_bits(v_eq_u32(m, v_u32((uint32_t)r->infinity)));
    const uint64_t zero = m32_bits(v_gt_u32(v_u32((uint32_t)r->zeros), m));
    const uint64_t minus = m32_bits(v_test_u32(code, v_u32((uint32_t)r->sign)));
    const uint64_t nan = (above & ~infinite) | (r->negzero ? zero & minus : 0);
    to->infinite |= infinite << at;
    to->nan |= nan << at;
    to->zero |= (zero & ~nan) << at;
    to->minus |= minus << at;
}

static ALWAYS_INLINE void kinds_of_words(const size_t bytes, const mpsim_kinds_reader *r, const unsigned char *codes,
                                         mpsim_kinds *to, size_t words)
{
    for (size_t w = 0; w < words; w++) {
        mpsim_kinds all = {0, 0, 0, 0};
        for (unsigned i = 0; i < 64; i += V_LANES)
            kinds_of_lanes(r, load_codes(bytes, 0, codes, w * (64 / MPSIM_PANEL), i), i, &all);
        to[w] = all;
    }
}

static void kinds(const mpsim_kinds_reader *r, const void *codes, mpsim_kinds *to, size_t words)
{
    const unsigned char *p = (const unsigned char *)codes;
    if (r->bytes == 1)
        kinds_of_words(1, r, p, to, words);
    else if (r->bytes == 2)
        kinds_of_words(2, r, p, to, words);
    else
        kinds_of_words(4, r, p, to, words);
}
