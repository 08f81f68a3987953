/* dotcases.c -- see dotcases.h. */
#include "dotcases.h"

#include "support.h"

#include <stdio.h>
#include <string.h>

void dot_pack(const mpsim_format *f, void *out, size_t first, const uint64_t *codes, size_t n)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    unsigned char *p = out;
    p += first * bytes;
    for (size_t i = 0; i < n; i++, p += bytes) {
        const uint8_t u8 = (uint8_t)codes[i];
        const uint16_t u16 = (uint16_t)codes[i];
        const uint32_t u32 = (uint32_t)codes[i];
        memcpy(p,
               bytes == 1   ? (const void *)&u8
               : bytes == 2 ? (const void *)&u16
               : bytes == 4 ? (const void *)&u32
                            : (const void *)&codes[i],
               bytes);
    }
}

uint64_t dot_unpack(const mpsim_format *f, const void *in, size_t i)
{
    const size_t bytes = mpsim_format_code_bytes(f);
    const unsigned char *p = in;
    p += i * bytes;
    uint8_t u8;
    uint16_t u16;
    uint32_t u32;
    uint64_t u64;
    switch (bytes) {
    case 1:
        memcpy(&u8, p, 1);
        return u8;
    case 2:
        memcpy(&u16, p, 2);
        return u16;
    case 4:
        memcpy(&u32, p, 4);
        return u32;
    default:
        memcpy(&u64, p, 8);
        return u64;
    }
}

size_t dot_formats(const mpsim_model *m, mpsim_format *list, size_t room)
{
    char names[400];
    size_t n = 0;
    snprintf(names, sizeof names, "%s",
             m->operands ? m->operands : "fp16 bf16 tf32 binary32 e4m3 e5m2 e2m1 e8m0 e4m3fnuz binary8p3ue");
    for (char *save = NULL, *s = strtok_r(names, " ", &save); s && n < room; s = strtok_r(NULL, " ", &save))
        if (mpsim_format_parse(&list[n], s) == MPSIM_OK)
            n++;
    return n;
}

static const char *const names[DOT_FORMATS] = {
    "binary32",  "fp16", "bf16",          "tf32",        "e4m3",        "e5m2",    "e4m3fnuz", "e5m2fnuz",
    "e4m3ieee",  "e3m4", "e3m2",          "e2m3",        "e2m1",        "e8m0",    "binary64", "e8m13",
    "e6m9",      "e5m7", "e4m4:unsigned", "binary8p4sf", "binary8p3ue", "e3m0:fn", "e9m30",    "e4m3:finite:inf",
    "e11m1:fnuz"};

mpsim_format dot_format(size_t i)
{
    mpsim_format f = {.bits = 0};
    ck_assert_msg(mpsim_format_parse(&f, names[i]) == MPSIM_OK, "%s", names[i]);
    return f;
}

int dot_can(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    const mpsim_rng rng = {.seed = 0};
    uint64_t d;
    return mpsim_dot(m, fa, NULL, fb, NULL, 0, 0, &rng, &d) != MPSIM_ERANGE;
}

static void any_place(mpsim_rounded *p, uint64_t *seed)
{
    const uint64_t u = test_random(seed);
    p->format = dot_format(u % DOT_FORMATS);
    mpsim_rounding *r = &p->rounding;
    mpsim_rounding_init(r, (mpsim_round_mode)(test_random(seed) % MPSIM_ROUND_MODES));
    r->sr_bits = (uint8_t)(1 + test_random(seed) % 32);
    if (u >> 60 < 8) /* the default choices */
        return;
    r->overflow = u >> 8 & 1 ? MPSIM_OVERFLOW_MAX : MPSIM_OVERFLOW_INF;
    r->infinity = u >> 9 & 1 ? MPSIM_INFINITY_MAX : MPSIM_INFINITY_KEEP;
    r->no_inf = u >> 10 & 1 ? MPSIM_NO_INF_MAX : MPSIM_NO_INF_NAN;
    r->nan = (uint8_t)(test_random(seed) % (MPSIM_NANS_MINUS_ONES + 1));
    r->no_nan = (uint8_t)(test_random(seed) % (MPSIM_NO_NAN_ANTIZERO + 1));
    r->negative = (uint8_t)(test_random(seed) % (MPSIM_NEGATIVE_ABS + 1));
    r->no_zero = (uint8_t)(test_random(seed) % (MPSIM_NO_ZERO_NAN_MIN + 1));
    r->flush_output = u >> 11 & 1;
}

static void print_place(const char *what, const mpsim_rounded *p)
{
    const mpsim_rounding *r = &p->rounding;
    printf("# %s: %s mode %d:%d overflow %d infinity %d no_inf %d nan %d no_nan %d negative %d "
           "no_zero %d flush %d\n",
           what, p->format.name, r->mode, r->sr_bits, r->overflow, r->infinity, r->no_inf, r->nan, r->no_nan,
           r->negative, r->no_zero, r->flush_output);
}

void dot_print_model(const mpsim_model *m)
{
    printf(
        "# addition %d order %d align %d normalised %d L %d F %d floor %d emin %d chunk %u traits %d ways %d kept %d "
        "drop %d group %d\n",
        m->addition, m->order, m->alignment, m->normalised, m->length, m->fraction, m->floor, m->operand_emin, m->chunk,
        m->traits, m->ways, m->kept, m->drop, m->group);
    print_place("product", &m->product);
    print_place("accumulator", &m->accumulator);
    print_place("outer", &m->outer);
    print_place("result", &m->result);
    fflush(stdout);
}

/* Orders and traits of instructions of CPUs. */
static void any_instruction(mpsim_model *m, uint64_t u)
{
    const int is_chain = m->addition == MPSIM_ADDITION_FMA || m->addition == MPSIM_ADDITION_MULADD;
    m->traits = (uint8_t)(u & MPSIM_TRAITS & ~(unsigned)MPSIM_TRAIT_FILLED);
    if (is_chain && u >> 8 & 1)
        m->order = MPSIM_ORDER_ODD_FIRST;
    if (is_chain && m->chunk && u >> 9 & 1) {
        m->order = MPSIM_ORDER_LANES;
        m->length = (uint8_t)(1 + (u >> 16) % 20);
    }
    if (m->chunk && !m->length && (m->order == MPSIM_ORDER_PAIRWISE || m->addition == MPSIM_ADDITION_EXACT))
        m->traits |= u >> 10 & 1 ? MPSIM_TRAIT_FILLED : 0;
}

void dot_any_model(mpsim_model *m, uint64_t *seed)
{
    static const uint8_t lengths[] = {1, 2, 3, 4, 5, 8, 16, 17, 32, 64, 128};
    const uint64_t u = test_random(seed);
    mpsim_model_at(m, 0);
    const uint64_t more = test_random(seed);
    m->addition = (uint8_t)(more % 3 ? u % 4 : u % 6);
    m->traits = 0;
    if (m->addition < MPSIM_ADDITION_FUSED && (more >> 8 & 3) == 0)
        m->traits = (uint8_t)(more >> 48 & (MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_PLUS_ZERO));
    m->order = MPSIM_ORDER_SEQUENTIAL;
    m->chunk = u >> 4 & 1 ? (uint32_t)(1 + (u >> 8) % 20) : 0;
    if (m->addition == MPSIM_ADDITION_MULADD && (u >> 5 & 1))
        m->order = MPSIM_ORDER_PAIRWISE;
    if (m->addition == MPSIM_ADDITION_FUSED) {
        m->alignment = (uint8_t)((u >> 16) % 3);
        m->normalised = u >> 20 & 1;
        m->length = lengths[(u >> 24) % (sizeof lengths / sizeof lengths[0])];
        m->fraction = (uint8_t)(1 + (u >> 32) % 50);
        m->floor = u >> 40 & 1 ? MPSIM_MODEL_NO_FLOOR : (int16_t)((int)((u >> 41) % 400) - 300);
        if (u >> 50 & 1)
            m->operand_emin = (int16_t)(-(int)((u >> 51) % 40));
        if (m->chunk && (u >> 5 & 1)) {
            m->chunk *= 4;
            m->order = MPSIM_ORDER_QUADS;
        }
    }
    if (m->addition == MPSIM_ADDITION_EXACT || m->order == MPSIM_ORDER_PAIRWISE)
        m->length = more >> 10 & 1 ? lengths[(more >> 16) % (sizeof lengths / sizeof lengths[0])] : 0;
    if (m->addition == MPSIM_ADDITION_STAGED) {
        m->length = lengths[(more >> 16) % (sizeof lengths / sizeof lengths[0])];
        m->ways = (uint8_t)(1 + (more >> 24) % 2);
        m->kept = (uint8_t)(1 + (more >> 26) % 40);
        m->drop = more >> 33 & 1;
        m->fraction = (uint8_t)(1 + (more >> 34) % 40);
    }
    if (m->addition == MPSIM_ADDITION_GROUPED) {
        m->group = lengths[(more >> 16) % 7];
        m->length = (uint8_t)(m->group * (1 + (more >> 24) % 4));
        m->chunk *= m->group;
        m->alignment = (uint8_t)((more >> 27) % 3);
        m->fraction = (uint8_t)(1 + (more >> 34) % 50);
        m->floor = more >> 41 & 1 ? MPSIM_MODEL_NO_FLOOR : (int16_t)((int)((more >> 42) % 400) - 300);
    }
    if (m->addition < MPSIM_ADDITION_FUSED && more >> 60 < 6)
        any_instruction(m, test_random(seed));
    any_place(&m->product, seed);
    any_place(&m->accumulator, seed);
    any_place(&m->outer, seed);
    any_place(&m->result, seed);
    strcpy(m->name, "random");
}
