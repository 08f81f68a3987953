/* model.c -- the table of accumulation models, and models by name; see mpsim/dot.h.
 *
 * Sources: KM: Khattak, Mikaitis, Accurate models of NVIDIA tensor cores, arXiv 2512.07004, with
 * recorded outputs. H200: that device's own answers, data/gpu. MMA: Xie, Wang, Yang, Yang, MMA-Sim, arXiv 2511.10909. DS: DeepSeek-V3 technical
 * report, arXiv 2412.19437, 3.3. W: Wang et al., Training deep neural networks with 8-bit floating
 * point numbers, NeurIPS 2018. Floors are those of KM's models; Turing's are by their formula,
 * emin - (F - 18), where no number is given; Volta's in binary32 and those of fp8 in fp16 are MMA's: their
 * products are multiples of the last bit that is kept, so that they bind nowhere.
 *
 * A tensor core is a row of numbers, not code. Two kinds of hardware need an addition of their own, each with a
 * reference: AMD's two-stage sums (staged.h) and NVIDIA's scaled groups (grouped.h). A model without `block`
 * ignores scales; a model with `block` says how the scales of blocks enter the sum. How a library computes a whole
 * product (K in parts, an epilogue) is not a model but a function over models: scaledmm.c, torchmm.c. */
#include "staged.h"

#include "../base/words.h"
#include "binary32.h"

#include <stddef.h>

/* ---- the table ---- */

enum { NONE = MPSIM_MODEL_NO_FLOOR, OWN = MPSIM_MODEL_OWN_EMIN, FP16 = -14 };
enum { RN = MPSIM_ROUND_NEAREST_EVEN, RZ = MPSIM_ROUND_TOWARD_ZERO };

typedef struct place {
    const char *format;
    int mode;
} place;

typedef struct row {
    const char *name;
    uint8_t addition, order, length, fraction, traits;
    int16_t floor, operand_emin;
    uint32_t chunk;
    place product, accumulator, outer;
    const char *result; /* to nearest even */
    const char *architecture, *instruction, *operands;
    mpsim_evidence evidence;
    const char *unconfirmed, *source;
    uint8_t nan; /* mpsim_nan_rule of all places */
    uint8_t ways, kept, drop, group, block;
    const char *scales;
} row;

#define SOFTWARE(row_name, kind, how, n, to_product, to_accumulator, to_outer, to_result, from)            \
    {                                                                                                      \
        .name = row_name, .addition = MPSIM_ADDITION_##kind, .order = MPSIM_ORDER_##how, .floor = NONE,    \
        .operand_emin = OWN, .chunk = n, .product = {to_product, RN}, .accumulator = {to_accumulator, RN}, \
        .outer = {to_outer, RN}, .result = to_result, .evidence = MPSIM_EVIDENCE_DEFINED, .source = from,  \
        .nan = MPSIM_NANS_SIGNED                                                                           \
    }

/* A tensor core in chunks of n: L products, F bits, floor; smallest exponent of operands; the
 * accumulator's format and mode; n, order, and the result, in whose format chunks are added. */
#define CHUNKED(arch, row_name, instructions, formats, L, F, lowest, emin, acc, mode, n, how, to_result, known, open, \
                from)                                                                                                 \
    {                                                                                                                 \
        .name = arch "-" row_name, .addition = MPSIM_ADDITION_FUSED, .order = MPSIM_ORDER_##how, .length = L,         \
        .fraction = F, .floor = lowest, .operand_emin = emin, .chunk = n, .product = {to_result, RN},                 \
        .accumulator = {acc, mode}, .outer = {to_result, RN}, .result = to_result, .architecture = arch,              \
        .instruction = instructions, .operands = formats, .evidence = MPSIM_EVIDENCE_##known, .unconfirmed = open,    \
        .source = from, .nan = MPSIM_NANS_ONES                                                                        \
    }

/* The same without chunks, with operands as they are. */
#define CORE(arch, name, instruction, operands, L, F, floor, acc, mode, result, evidence, open, source)            \
    CHUNKED(arch, name, instruction, operands, L, F, floor, OWN, acc, mode, 0, SEQUENTIAL, result, evidence, open, \
            source)

#define F8 "e4m3 e5m2"
#define F86 "e4m3 e5m2 e3m2 e2m3 e2m1"

/* What no recorded output decides, as it is printed. Most recordings
 * are of a single one (K <= L) of moderate numbers. The floor of the alignment exponent can only
 * bind where all terms are below 2^-126, or in a result in fp16. */
#define SIGN "the sign of a zero sum (+0 here, as in MMA and wherever one was recorded)"
#define RANGE "; NaN, infinities, overflow, subnormal results"
#define CORNERS SIGN RANGE "; zero times a huge number"
#define LOW "; the floor of the alignment exponent; subnormal operands"
#define FLOOR "; the floor of the alignment exponent"
#define ONE "; more than one addition; whether an addition is longer"
#define HALF "; F, which fp16 results hardly show"
#define TCGEN05 "tcgen05.mma, of which no outputs are public; "
#define NOT_HERE "its public outputs (an RTX 1000 Ada's) are not compared here; "
#define NO_BITS "no public outputs of this hardware; " CORNERS

#include "rows.h"

static const row rows[] = {
    SOFTWARE("exact", EXACT, SEQUENTIAL, 0, "binary32", "binary32", "binary32", "binary32",
             "one exact sum, rounded once"),
    SOFTWARE("fma", FMA, SEQUENTIAL, 0, "binary32", "binary32", "binary32", "binary32",
             "chain of fused multiply-adds, k ascending"),
    SOFTWARE("sequential", MULADD, SEQUENTIAL, 0, "binary32", "binary32", "binary32", "binary32",
             "products and sums rounded, k ascending"),
    SOFTWARE("pairwise", MULADD, PAIRWISE, 0, "binary32", "binary32", "binary32", "binary32",
             "products and sums rounded, binary tree of neighbours"),
    SOFTWARE("chunked", MULADD, SEQUENTIAL, 64, "e6m9", "e6m9", "e6m9", "e6m9",
             "W: chunks of 64 in (1, 6, 9), chunk sums added in the same format"),

    CORE("volta", "fp16-fp32", "mma.m8n8k4", "fp16", 4, 23, -131, "binary32", RZ, "binary32", VECTORS, CORNERS ONE,
         "KM (V100), MMA"),
    CORE("volta", "fp16-fp16", "mma.m8n8k4", "fp16", 4, 23, -19, "fp16", RN, "fp16", VECTORS, CORNERS FLOOR ONE HALF,
         "KM (V100), MMA"),

    CORE("turing", "fp16-fp32", "mma.m16n8k8", "fp16", 8, 24, -132, "binary32", RZ, "binary32", REPORTED, NO_BITS,
         "MMA"),
    CORE("turing", "fp16-fp16", "mma.m16n8k8", "fp16", 8, 24, -20, "fp16", RN, "fp16", REPORTED, NO_BITS FLOOR, "MMA"),

    CORE("ampere", "fp16-fp32", "mma.m16n8k16", "fp16", 8, 24, -132, "binary32", RZ, "binary32", VECTORS, CORNERS ONE,
         "KM (A100), MMA"),
    CORE("ampere", "fp16-fp16", "mma.m16n8k16", "fp16", 8, 24, -20, "fp16", RN, "fp16", VECTORS, CORNERS FLOOR ONE HALF,
         "KM (A100), MMA"),
    CORE("ampere", "bf16-fp32", "mma.m16n8k16", "bf16", 8, 24, -132, "binary32", RZ, "binary32", VECTORS,
         CORNERS LOW ONE, "KM (A100), MMA"),
    CORE("ampere", "tf32-fp32", "mma.m16n8k8", "tf32", 4, 24, -132, "binary32", RZ, "binary32", VECTORS,
         CORNERS LOW ONE, "KM (A100), MMA"),
    DOUBLE("ampere", "mma.m8n8k4", REPORTED, NO_DOUBLES, "MMA"),

    CORE("ada", "fp16-fp32", "mma.m16n8k16", "fp16", 8, 24, -132, "binary32", RZ, "binary32", VECTORS, CORNERS ONE,
         "KM (L40S), MMA"),
    CORE("ada", "fp16-fp16", "mma.m16n8k16", "fp16", 8, 24, -20, "fp16", RN, "fp16", VECTORS, CORNERS FLOOR ONE HALF,
         "KM (L40S), MMA"),
    CORE("ada", "bf16-fp32", "mma.m16n8k16", "bf16", 8, 24, -132, "binary32", RZ, "binary32", VECTORS, CORNERS LOW ONE,
         "KM (L40S), MMA"),
    CORE("ada", "tf32-fp32", "mma.m16n8k8", "tf32", 4, 24, -132, "binary32", RZ, "binary32", VECTORS, CORNERS LOW ONE,
         "KM (L40S), MMA"),
    CORE("ada", "fp8-fp32", "mma.m16n8k32", F8, 16, 13, NONE, "e8m13", RZ, "binary32", VECTORS, CORNERS,
         "KM (L40S), MMA"),
    CORE("ada", "fp8-fp16", "mma.m16n8k32", F8, 16, 13, -20, "fp16", RN, "fp16", REPORTED, NOT_HERE CORNERS FLOOR,
         "KM (RTX 1000 Ada), MMA"),

    /* Beside the instructions on an H200: random bits, six kinds of numbers, every probe (data/gpu). */
    CORE("hopper", "fp16-fp32", "mma.m16n8k16, wgmma.k16", "fp16", 16, 25, -133, "binary32", RZ, "binary32", VECTORS,
         NULL, "KM (H100), MMA, H200"),
    CORE("hopper", "fp16-fp16", "mma.m16n8k16, wgmma.k16", "fp16", 16, 25, -21, "fp16", RN, "fp16", VECTORS, NULL,
         "KM (H100), MMA, H200"),
    CORE("hopper", "bf16-fp32", "mma.m16n8k16, wgmma.k16", "bf16", 16, 25, -133, "binary32", RZ, "binary32", VECTORS,
         NULL, "KM (H100), MMA, H200"),
    CORE("hopper", "tf32-fp32", "mma.m16n8k8, wgmma.k8", "tf32", 8, 25, -133, "binary32", RZ, "binary32", VECTORS, NULL,
         "KM (H100), MMA, H200"),
    CORE("hopper", "k4-tf32-fp32", "mma.m16n8k4", "tf32", 4, 25, -133, "binary32", RZ, "binary32", VECTORS, NULL,
         "KM (H100), MMA, H200"),
    CORE("hopper", "wgmma-fp8-fp32", "wgmma.k32", F8, 32, 13, NONE, "e8m13", RZ, "binary32", VECTORS, NULL,
         "KM (H100, c = 0), MMA, H200"),
    CORE("hopper", "wgmma-fp8-fp16", "wgmma.k32", F8, 32, 13, -21, "fp16", RN, "fp16", VECTORS, NULL, "MMA, H200"),
    CHUNKED("hopper", "wgmma-fp8-promoted", "wgmma.k32, sums moved to fp32 registers every 128", F8, 32, 13, NONE, OWN,
            "e8m13", RZ, 128, SEQUENTIAL, "binary32", VECTORS, NULL,
            "DS; CUTLASS: mma_promotion_interval 4; a kernel of mpsim's on an H200"),
    CHUNKED("hopper", "mma-fp8-fp32", "mma.m16n8k32, in software: 2 HMMA of fp16, 1 addition", F8, 16, 25, -133, FP16,
            "binary32", RZ, 32, QUADS, "binary32", VECTORS, NULL,
            "KM (B200 in fp32, H100 in fp16), compiled code, H200"),
    CHUNKED("hopper", "mma-fp8-fp16", "mma.m16n8k32, in software: 2 HMMA of fp16, 1 addition", F8, 16, 25, -21, FP16,
            "fp16", RN, 32, QUADS, "fp16", VECTORS, NULL, "KM (H100), compiled code, H200"),
    DOUBLE("hopper", "mma.m16n8k4, m16n8k8, m16n8k16", VECTORS, "the bits of a NaN", "MMA, H200 (cuBLAS)"),

    /* A B200 is known by mma.sync; no output of tcgen05.mma is public. */
    CORE("blackwell", "fp16-fp32", "mma.m16n8k16, tcgen05.mma k16", "fp16", 16, 25, -133, "binary32", RZ, "binary32",
         VECTORS, TCGEN05 CORNERS ONE, "KM (B200), MMA"),
    CORE("blackwell", "fp16-fp16", "mma.m16n8k16, tcgen05.mma k16", "fp16", 16, 25, -21, "fp16", RN, "fp16", VECTORS,
         TCGEN05 CORNERS FLOOR ONE HALF, "KM (B200), MMA"),
    CORE("blackwell", "bf16-fp32", "mma.m16n8k16, tcgen05.mma k16", "bf16", 16, 25, -133, "binary32", RZ, "binary32",
         VECTORS, TCGEN05 CORNERS LOW ONE, "KM (B200), MMA"),
    CORE("blackwell", "tf32-fp32", "mma.m16n8k8, tcgen05.mma k8", "tf32", 8, 25, -133, "binary32", RZ, "binary32",
         VECTORS, TCGEN05 CORNERS LOW "; L: 4 products of 8 were recorded, which L = 4 gives, too", "KM (B200), MMA"),
    CORE("blackwell", "tcgen05-fp8-fp32", "tcgen05.mma k32", F86, 32, 25, NONE, "binary32", RZ, "binary32", REPORTED,
         NO_BITS, "MMA"),
    CORE("blackwell", "tcgen05-fp8-fp16", "tcgen05.mma k32", F86, 32, 25, -21, "fp16", RN, "fp16", REPORTED,
         NO_BITS FLOOR, "MMA"),
    CHUNKED("blackwell", "mma-fp8-fp32", "mma.m16n8k32, in software: 2 HMMA of fp16, 1 addition", F8, 16, 25, -133,
            FP16, "binary32", RZ, 32, QUADS, "binary32", VECTORS,
            CORNERS "; F, L and the order of K, which results in fp32 do not show", "KM (B200), compiled code"),
    CHUNKED("blackwell", "mma-fp8-fp16", "mma.m16n8k32, in software: 2 HMMA of fp16, 1 addition", F8, 16, 25, -21, FP16,
            "fp16", RN, 32, QUADS, "fp16", VECTORS, CORNERS FLOOR HALF, "KM (B200), compiled code"),
    MX8("blackwell", "tcgen05-mxf8f6f4", "tcgen05.mma kind::mxf8f6f4 k32"),
    MX4("blackwell", "tcgen05-mxf4", "tcgen05.mma kind::mxf4, mxf4nvf4.block32 k64", 32, "e8m0"),
    MX4("blackwell", "tcgen05-mxf4nvf4", "tcgen05.mma kind::mxf4nvf4.block16 k64", 16, "e4m3 e8m0"),
    DOUBLE("blackwell", "mma.m8n8k4", REPORTED, NO_DOUBLES, "MMA"),

    CORE("rtx-blackwell", "fp16-fp32", "mma.m16n8k16", "fp16", 16, 25, -133, "binary32", RZ, "binary32", REPORTED,
         NO_BITS, "MMA"),
    CORE("rtx-blackwell", "fp16-fp16", "mma.m16n8k16", "fp16", 16, 25, -21, "fp16", RN, "fp16", REPORTED, NO_BITS FLOOR,
         "MMA"),
    CORE("rtx-blackwell", "bf16-fp32", "mma.m16n8k16", "bf16", 16, 25, -133, "binary32", RZ, "binary32", REPORTED,
         NO_BITS FLOOR, "MMA"),
    CORE("rtx-blackwell", "tf32-fp32", "mma.m16n8k8", "tf32", 8, 25, -133, "binary32", RZ, "binary32", REPORTED,
         NO_BITS FLOOR, "MMA"),
    CORE("rtx-blackwell", "fp8-fp32", "mma.m16n8k32", F86, 32, 25, NONE, "binary32", RZ, "binary32", REPORTED, NO_BITS,
         "MMA"),
    CORE("rtx-blackwell", "fp8-fp16", "mma.m16n8k32", F86, 32, 25, -21, "fp16", RN, "fp16", REPORTED, NO_BITS FLOOR,
         "MMA"),
    MX8("rtx-blackwell", "mxf8f6f4", "mma.m16n8k32 kind::mxf8f6f4"),
    MX4("rtx-blackwell", "mxf4", "mma.m16n8k64 kind::mxf4, mxf4nvf4.block32", 32, "e8m0"),
    MX4("rtx-blackwell", "mxf4nvf4", "mma.m16n8k64 kind::mxf4nvf4.block16", 16, "e4m3 e8m0"),

#include "rows_amd.h"

#include "cpurows.h"
};
enum { ROWS = sizeof rows / sizeof rows[0] };

/* A named format is a row of the table of formats, or an eXmY. */
static mpsim_status place_set(mpsim_rounded *to, const char *format, int mode, uint8_t nan)
{
    mpsim_rounding_init(&to->rounding, (mpsim_round_mode)mode);
    to->rounding.nan = nan;
    return mpsim_format_parse(&to->format, format);
}

static mpsim_status model_of_row(mpsim_model *m, const row *r)
{
    memset(m, 0, sizeof *m);
    memcpy(m->name, r->name, strlen(r->name) + 1);
    m->addition = r->addition;
    m->order = r->order;
    m->alignment = MPSIM_ALIGN_TRUNCATE;
    m->length = r->length;
    m->fraction = r->fraction;
    m->traits = r->traits;
    m->floor = r->floor;
    m->operand_emin = r->operand_emin;
    m->chunk = r->chunk;
    m->ways = r->ways;
    m->kept = r->kept;
    m->drop = r->drop;
    m->group = r->group;
    m->block = r->block;
    m->scales = r->scales;
    m->architecture = r->architecture;
    m->instruction = r->instruction;
    m->operands = r->operands;
    m->evidence = r->evidence;
    m->unconfirmed = r->unconfirmed;
    m->source = r->source;
    const mpsim_status status[] = {place_set(&m->product, r->product.format, r->product.mode, r->nan),
                                   place_set(&m->accumulator, r->accumulator.format, r->accumulator.mode, r->nan),
                                   place_set(&m->outer, r->outer.format, r->outer.mode, r->nan),
                                   place_set(&m->result, r->result, RN, r->nan)};
    for (size_t i = 0; i < sizeof status / sizeof status[0]; i++)
        if (status[i] != MPSIM_OK)
            return status[i];
    return MPSIM_OK;
}

size_t mpsim_model_count(void)
{
    return ROWS;
}

mpsim_status mpsim_model_at(mpsim_model *m, size_t i)
{
    if (!m)
        return MPSIM_EINVAL;
    return i < ROWS ? model_of_row(m, &rows[i]) : MPSIM_ENOTFOUND;
}

/* ---- checks ---- */

static int place_is_valid(const mpsim_rounded *p)
{
    return mpsim_format_check(&p->format) == MPSIM_OK && mpsim_rounding_check(&p->rounding) == MPSIM_OK &&
           p->rounding.nan != MPSIM_NANS_ONES_OR_CUT && p->rounding.scale == 1 && !p->rounding.flush_input;
}

static int is_fused(const mpsim_model *m)
{
    return m->addition >= MPSIM_ADDITION_FUSED;
}

/* Whether an addition may take other than all products of a chunk, or one. */
static int has_length(const mpsim_model *m)
{
    return is_fused(m) || m->addition == MPSIM_ADDITION_EXACT || m->order == MPSIM_ORDER_PAIRWISE ||
           m->order == MPSIM_ORDER_LANES;
}

static int order_is_valid(const mpsim_model *m)
{
    const int is_chain = m->addition == MPSIM_ADDITION_FMA || m->addition == MPSIM_ADDITION_MULADD;
    switch (m->order) {
    case MPSIM_ORDER_SEQUENTIAL:
        return 1;
    case MPSIM_ORDER_PAIRWISE:
        return m->addition == MPSIM_ADDITION_MULADD;
    case MPSIM_ORDER_QUADS:
        return m->addition == MPSIM_ADDITION_FUSED && m->chunk != 0 && m->chunk % 4 == 0 &&
               m->chunk <= MPSIM_FUSED_QUADS && m->block == 0;
    case MPSIM_ORDER_ODD_FIRST:
        return is_chain;
    case MPSIM_ORDER_LANES:
        return is_chain && m->chunk != 0 && m->length >= 1;
    default:
        return 0;
    }
}

static int traits_are_valid(const mpsim_model *m)
{
    if (m->traits > MPSIM_TRAITS || (m->traits && is_fused(m)))
        return 0;
    return !(m->traits & MPSIM_TRAIT_FILLED) ||
           (m->chunk != 0 && m->chunk <= MPSIM_FUSED_QUADS && m->length == 0 &&
            (m->order == MPSIM_ORDER_PAIRWISE || m->addition == MPSIM_ADDITION_EXACT));
}

static int addition_is_valid(const mpsim_model *m)
{
    if (has_length(m) && (m->length > MPSIM_FUSED_LENGTH || (is_fused(m) && m->length < 1)))
        return 0;
    if (is_fused(m) && (m->fraction < 1 || m->fraction > MPSIM_FUSED_FRACTION))
        return 0;
    if (m->addition == MPSIM_ADDITION_STAGED)
        return m->ways >= 1 && m->ways <= 2 && m->fraction <= MPSIM_STAGED_FRACTION && m->kept >= 1 &&
               m->kept <= MPSIM_STAGED_KEPT && m->drop <= 1;
    if (m->addition == MPSIM_ADDITION_GROUPED)
        return m->group >= 1 && m->length % m->group == 0 && m->block % m->group == 0 && m->chunk % m->group == 0;
    return 1;
}

mpsim_status mpsim_model_check(const mpsim_model *m)
{
    if (!m || m->addition > MPSIM_ADDITION_GROUPED || m->alignment > MPSIM_ALIGN_NEAREST || m->normalised > 1 ||
        !memchr(m->name, 0, sizeof m->name))
        return MPSIM_EINVAL;
    if (!place_is_valid(&m->product) || !place_is_valid(&m->accumulator) || !place_is_valid(&m->outer) ||
        !place_is_valid(&m->result))
        return MPSIM_EINVAL;
    if (m->block != 0 &&
        ((m->addition != MPSIM_ADDITION_FUSED && m->addition != MPSIM_ADDITION_GROUPED) || m->chunk % m->block != 0))
        return MPSIM_EINVAL;
    return order_is_valid(m) && traits_are_valid(m) && addition_is_valid(m) ? MPSIM_OK : MPSIM_EINVAL;
}

/* Whether a list of words has this one. */
static int has_word(const char *list, const char *word)
{
    while (*list) {
        const size_t n = strcspn(list, " ");
        if (mpsim_same_word(list, n, word))
            return 1;
        list += n + (list[n] == ' ');
    }
    return 0;
}

int mpsim_model_accepts(const mpsim_model *m, const mpsim_format *fa, const mpsim_format *fb)
{
    if (!m || !fa || !fb)
        return 0;
    return !m->operands || (has_word(m->operands, fa->name) && has_word(m->operands, fb->name));
}

mpsim_status mpsim_model_for(mpsim_model *m, const char *architecture, const mpsim_format *fa, const mpsim_format *fb,
                             const mpsim_format *result)
{
    if (!m || !architecture || !fa || !fb || !result)
        return MPSIM_EINVAL;
    for (size_t i = 0; i < ROWS; i++) {
        mpsim_model found;
        if (!rows[i].architecture || !mpsim_same_word(architecture, strlen(architecture), rows[i].architecture))
            continue;
        if (model_of_row(&found, &rows[i]) == MPSIM_OK && mpsim_model_accepts(&found, fa, fb) &&
            strcmp(found.result.format.name, result->name) == 0) {
            *m = found;
            return MPSIM_OK;
        }
    }
    return MPSIM_ENOTFOUND;
}

mpsim_status mpsim_model_for_blocks(mpsim_model *m, const char *architecture, const mpsim_format *fa,
                                    const mpsim_format *fb, size_t block, const mpsim_format *scales)
{
    if (!m || !architecture || !fa || !fb || !scales)
        return MPSIM_EINVAL;
    for (size_t i = 0; i < ROWS; i++) {
        mpsim_model found;
        if (rows[i].block == 0 || rows[i].block != block || !has_word(rows[i].scales, scales->name) ||
            !mpsim_same_word(architecture, strlen(architecture), rows[i].architecture))
            continue;
        if (model_of_row(&found, &rows[i]) == MPSIM_OK && mpsim_model_accepts(&found, fa, fb)) {
            *m = found;
            return MPSIM_OK;
        }
    }
    return MPSIM_ENOTFOUND;
}

/* ---- models by name ---- */

typedef enum change_kind { FORMAT, MODE, NUMBER, WORD, EVERY_FORMAT } change_kind;

typedef struct change {
    const char *key; /* up to '='; "" for a format alone                       */
    change_kind kind;
    size_t field;      /* of the model                                           */
    int least, most;   /* NUMBER                                                 */
    const char *words; /* WORD: for the values 0, 1, ...; NUMBER: for NONE or OWN */
    int needs;         /* what a model must have for the change to mean anything */
} change;

enum { ANY, FUSED, FRACTION, FLOOR_OF, LENGTHS, STAGED, GROUPED, ORDERED, PRODUCTS, ACCUMULATOR, CHUNKS, TRAITS };

#define FIELD(name) offsetof(mpsim_model, name)

static const change changes[] = {
    {"acc", FORMAT, FIELD(accumulator), 0, 0, NULL, ACCUMULATOR},
    {"product", FORMAT, FIELD(product), 0, 0, NULL, PRODUCTS},
    {"outer", FORMAT, FIELD(outer), 0, 0, NULL, CHUNKS},
    {"result", FORMAT, FIELD(result), 0, 0, NULL, ANY},
    {"round", MODE, FIELD(accumulator), 0, 0, NULL, ACCUMULATOR},
    {"product-round", MODE, FIELD(product), 0, 0, NULL, PRODUCTS},
    {"outer-round", MODE, FIELD(outer), 0, 0, NULL, CHUNKS},
    {"result-round", MODE, FIELD(result), 0, 0, NULL, ANY},
    {"F", NUMBER, FIELD(fraction), 1, MPSIM_FUSED_FRACTION, NULL, FRACTION},
    {"L", NUMBER, FIELD(length), 0, MPSIM_FUSED_LENGTH, NULL, LENGTHS},
    {"ways", NUMBER, FIELD(ways), 1, 2, NULL, STAGED},
    {"kept", NUMBER, FIELD(kept), 1, MPSIM_STAGED_KEPT, NULL, STAGED},
    {"drop", NUMBER, FIELD(drop), 0, 1, NULL, STAGED},
    {"group", NUMBER, FIELD(group), 1, MPSIM_FUSED_LENGTH, NULL, GROUPED},
    {"chunk", NUMBER, FIELD(chunk), 0, 1000000000, NULL, ANY},
    {"floor", NUMBER, FIELD(floor), -4000, 4000, "none", FLOOR_OF},
    {"operand-emin", NUMBER, FIELD(operand_emin), -4000, 4000, "own", FUSED},
    {"normalised", NUMBER, FIELD(normalised), 0, 1, NULL, FUSED},
    {"align", WORD, FIELD(alignment), 0, 0, "truncate floor nearest", FLOOR_OF},
    {"order", WORD, FIELD(order), 0, 0, "sequential pairwise quads odd-first lanes", ORDERED},
    {"flush", WORD, FIELD(traits), 0, 0, "none operands sums all", TRAITS},
    {"", EVERY_FORMAT, 0, 0, 0, NULL, ANY},
};
enum { FLUSHES = MPSIM_TRAIT_FLUSH_OPERANDS | MPSIM_TRAIT_FLUSH_SUMS };
enum { CHANGES = sizeof changes / sizeof changes[0], TEXT = sizeof(((mpsim_model *)0)->name) };

static int has_what_it_needs(const mpsim_model *m, int needs)
{
    switch (needs) {
    case FUSED:
        return m->addition == MPSIM_ADDITION_FUSED;
    case FRACTION:
        return is_fused(m);
    case FLOOR_OF:
        return m->addition == MPSIM_ADDITION_FUSED || m->addition == MPSIM_ADDITION_GROUPED;
    case LENGTHS:
        return has_length(m);
    case STAGED:
        return m->addition == MPSIM_ADDITION_STAGED;
    case GROUPED:
        return m->addition == MPSIM_ADDITION_GROUPED;
    case TRAITS:
        return !is_fused(m);
    case ORDERED:
        return m->addition != MPSIM_ADDITION_EXACT && m->addition < MPSIM_ADDITION_STAGED;
    case PRODUCTS:
        return m->addition == MPSIM_ADDITION_MULADD;
    case ACCUMULATOR:
        return m->addition != MPSIM_ADDITION_EXACT || m->chunk != 0 || m->length != 0;
    case CHUNKS:
        return m->chunk != 0;
    default:
        return 1;
    }
}

/* A decimal integer that is all of the text. */
static int parse_integer(int64_t *value, const char *text, size_t n)
{
    const int negative = n > 0 && text[0] == '-';
    size_t i = (size_t)negative;
    int64_t v = 0;
    if (i == n || n - i > 10)
        return 0;
    for (; i < n; i++) {
        if (text[i] < '0' || text[i] > '9')
            return 0;
        v = 10 * v + (text[i] - '0');
    }
    *value = negative ? -v : v;
    return 1;
}

static mpsim_status set_number(mpsim_model *m, const change *c, const char *text, size_t n)
{
    const int is_floor = c->field == FIELD(floor), is_emin = c->field == FIELD(operand_emin);
    int64_t v;
    if (c->words && mpsim_same_word(text, n, c->words))
        v = is_floor ? NONE : OWN;
    else if (!parse_integer(&v, text, n) || v < c->least || v > c->most)
        return MPSIM_EINVAL;
    if (c->field == FIELD(chunk))
        m->chunk = (uint32_t)v;
    else if (is_floor)
        m->floor = (int16_t)v;
    else if (is_emin)
        m->operand_emin = (int16_t)v;
    else
        *((uint8_t *)m + c->field) = (uint8_t)v;
    return MPSIM_OK;
}

static mpsim_status set_word(mpsim_model *m, const change *c, const char *text, size_t n)
{
    const char *word = c->words;
    for (uint8_t i = 0; *word; i++) {
        const size_t length = strcspn(word, " ");
        char copy[16] = {0};
        memcpy(copy, word, length);
        if (mpsim_same_word(text, n, copy)) {
            uint8_t *at = (uint8_t *)m + c->field;
            *at = c->needs == TRAITS ? (uint8_t)((*at & ~FLUSHES) | i) : i;
            return MPSIM_OK;
        }
        word += length + (word[length] == ' ');
    }
    return MPSIM_EINVAL;
}

/* A change to format or mode with the n letters of text. */
static mpsim_status set_place(mpsim_model *m, const change *c, const char *text, size_t n)
{
    char name[TEXT];
    mpsim_format f;
    mpsim_round_mode mode;
    mpsim_status s;
    memcpy(name, text, n);
    name[n] = 0;
    mpsim_rounded *at = (mpsim_rounded *)(void *)((unsigned char *)m + c->field);
    if (c->kind == MODE) {
        uint8_t bits = 32;
        s = mpsim_round_mode_parse(&mode, &bits, name);
        if (s == MPSIM_OK) {
            at->rounding.mode = (uint8_t)mode;
            at->rounding.sr_bits = bits;
        }
        return s;
    }
    s = mpsim_format_parse(&f, name);
    if (s != MPSIM_OK)
        return s;
    if (c->kind == EVERY_FORMAT)
        m->product.format = m->accumulator.format = m->outer.format = m->result.format = f;
    else
        at->format = f;
    return MPSIM_OK;
}

/* Apply the change that starts at `text`; *used becomes its length. The value of a format or mode
 * reaches over as many ':' as still give one. */
static mpsim_status apply(mpsim_model *m, const char *text, size_t *used, unsigned *seen)
{
    const size_t word = strcspn(text, ":");
    const char *equals = (const char *)memchr(text, '=', word);
    const size_t key = equals ? (size_t)(equals - text) : 0;
    const change *c = NULL;
    for (int i = 0; i < CHANGES; i++)
        if (mpsim_same_word(text, key, changes[i].key) && (key > 0 || !equals)) {
            c = &changes[i];
            break;
        }
    if (!c || *seen >> (c - changes) & 1)
        return MPSIM_EINVAL;
    *seen |= 1u << (c - changes);
    const char *value = text + key + (equals != NULL);
    *used = word;
    if (c->kind == NUMBER)
        return set_number(m, c, value, word - (size_t)(value - text));
    if (c->kind == WORD)
        return set_word(m, c, value, word - (size_t)(value - text));
    mpsim_status s = MPSIM_ENOTFOUND;
    int outside = 0; /* a longer attempt was a format, but outside binary64 */
    for (size_t end = strlen(value); s != MPSIM_OK && end > 0; end--) {
        if (value[end] != ':' && value[end] != 0)
            continue;
        s = set_place(m, c, value, end);
        outside |= s == MPSIM_ERANGE;
        *used = (size_t)(value - text) + end;
    }
    return outside ? MPSIM_ERANGE : s;
}

mpsim_status mpsim_model_parse(mpsim_model *m, const char *name)
{
    mpsim_model parsed;
    unsigned seen = 0;
    if (!m || !name)
        return MPSIM_EINVAL;
    const size_t n = strcspn(name, ":");
    const row *r = NULL;
    for (size_t i = 0; i < ROWS && !r; i++)
        if (mpsim_same_word(name, n, rows[i].name))
            r = &rows[i];
    if (!r)
        return MPSIM_ENOTFOUND;
    if (strlen(r->name) + strlen(name + n) >= TEXT)
        return MPSIM_ERANGE;
    mpsim_status s = model_of_row(&parsed, r);
    if (s != MPSIM_OK)
        return s;
    memcpy(parsed.name + strlen(r->name), name + n, strlen(name + n) + 1);
    for (const char *p = name + n; *p;) {
        size_t used;
        s = apply(&parsed, p + 1, &used, &seen); /* after the ':' */
        if (s != MPSIM_OK)
            return s;
        p += 1 + used;
    }
    for (int i = 0; i < CHANGES; i++)
        if (seen >> i & 1 && !has_what_it_needs(&parsed, changes[i].needs))
            return MPSIM_EINVAL;
    s = mpsim_model_check(&parsed);
    if (s != MPSIM_OK)
        return s;
    if (seen) { /* what is known of the row says nothing about it */
        parsed.evidence = MPSIM_EVIDENCE_NONE;
        parsed.instruction = parsed.unconfirmed = NULL;
        parsed.source = "a row with changes";
    }
    *m = parsed;
    return MPSIM_OK;
}
