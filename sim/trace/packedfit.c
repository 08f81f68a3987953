/* packedfit.c -- see packed.h. What a weight of two dimensions becomes, out x in:
 *
 *   GPTQ          X.qweight (in bits / 32, out), X.qzeros (groups, out bits / 32), X.scales (groups, out), X.g_idx (in)
 *                 Codes of `bits` follow each other along in, zeros along out, from the lowest bit of words of 32. A
 *                 stored zero is one less than what it stands for, but in checkpoints of format gptq_v2.
 *   AWQ           X.qweight (in, out / 8), X.qzeros (groups, out / 8), X.scales (groups, out)
 *   bitsandbytes  X.weight (n / 2, 1) with .absmax, .quant_map, .quant_state.bitsandbytes__nf4 or fp4 (JSON), and if the
 *                 absmax are codes themselves .nested_absmax, .nested_quant_map; or X.weight of int8 with X.SCB (out)
 *   compressed-tensors  pack-quantized: X.weight_packed (out, in bits / 32, rounded up), X.weight_shape, X.weight_scale
 *                 (out, groups), X.weight_zero_point (out bits / 32, groups), X.weight_g_idx; codes and zeros are numbers
 *                 with a sign plus half of their range. int-quantized: X.weight of int8, X.weight_scale, X.weight_zero_point
 *
 * Sources: AutoGPTQ 0.7 (nn_modules/qlinear/qlinear_cuda_old.py: pack, forward), GPTQModel (utils/model.py: the two formats
 * of checkpoints), AutoAWQ 0.2 (utils/packing_utils.py), bitsandbytes 0.45 (functional.py: QuantState, dequantize_4bit,
 * int8_vectorwise_dequant), compressed-tensors 0.20 (compressors/pack_quantized, naive_quantized), transformers
 * (quantizers), whose config.json says which format a checkpoint has. */
#include "packed.h"

#include "../text/json.h"
#include "../text/words.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CONFIG_MAX = 1 << 20, STATE_MAX = 4096 };

static const struct {
    const char *word, *type;
} kinds[] = {{"gptq", "v1"},
             {"gptq-v2", "v2"},
             {"awq", "GEMM"},
             {"compressed-tensors", "pack-quantized"},
             {"compressed-tensors", "int-quantized"},
             {"bitsandbytes", "4-bit"},
             {"bitsandbytes", "int8"}};

int trace_packed_word(const char *word)
{
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (strcmp(kinds[i].word, word) == 0)
            return 1;
    return 0;
}

const char *trace_packed_words(void)
{
    return " gptq gptq-v2 awq bitsandbytes";
}

static int asked(const quantised_finder *f, packed_kind kind)
{
    return !f->layout[0] || strcmp(f->layout, kinds[kind].word) == 0;
}

static int is_of(const trace_entry *e, const char *dtype, const char *torch)
{
    return !e->tensor.format && (strcmp(e->tensor.dtype, dtype) == 0 || strcmp(e->tensor.dtype, torch) == 0);
}

static int is_words(const trace_entry *e)
{
    return is_of(e, "I32", "int32");
}

static int misfit(quantised_finder *f, uint32_t codes, const char *why)
{
    snprintf(f->misfit, sizeof f->misfit, "'%.250s': %s", f->t->entries[codes].tensor.name, why);
    return 0;
}

/* ---- names ---- */

/* The part of that name beside the codes, whose own last component is `own`. */
static uint32_t beside(const quantised_finder *f, uint32_t codes, const char *own, const char *part)
{
    const char *name = f->t->entries[codes].tensor.name;
    const size_t n = strlen(name) - strlen(own);
    const int m = snprintf(f->other, f->room, "%.*s%s", (int)n, name, part);
    return m < 0 || (size_t)m >= f->room ? QUANTISED_ABSENT : trace_quantised_find(f, f->other);
}

/* ---- the tensor ---- */

/* What is said of it, but the bytes. */
static int say(quantised_finder *f, uint32_t codes, quantised *q, const struct packed *p, const uint64_t *shape,
               size_t rank, const char *type, const char *scales)
{
    trace *t = f->t;
    struct packed *own = trace_alloc(t, sizeof *own);
    uint64_t *sides = trace_alloc(t, rank * sizeof *sides);
    char text[32];
    snprintf(text, sizeof text, "%s%u",
             p->kind == PACKED_EIGHT || p->kind == PACKED_INT8 || p->kind == PACKED_ROWS ? "int" : "uint", p->bits);
    q->said.codes = p->kind == PACKED_FOUR ? "a table of 16" : trace_string(t, text, strlen(text));
    if (!own || !sides || !q->said.codes)
        return trace_no_memory(t, f->error);
    *own = *p;
    if (rank)
        memcpy(sides, shape, rank * sizeof *sides);
    q->packed = own;
    q->shape = sides;
    q->rank = rank;
    q->said.layout = kinds[p->kind].word;
    q->said.type = type;
    q->said.scales = scales;
    q->said.order = "plain";
    q->said.block_rows = 1;
    q->said.block_cols = p->kind >= PACKED_FOUR ? p->block : p->group;
    snprintf(f->name, f->room, "%s", t->entries[codes].tensor.name);
    return 1;
}

/* ---- GPTQ, AWQ ---- */

const char *const trace_beside[] = {"config.json", "quantize_config.json", NULL};

/* What config.json, or quantize_config.json, beside the file says the format of the checkpoint is; 1: version 2. */
static int config_says_v2(const trace *t, int *no_memory)
{
    const char *slash = strrchr(t->path, '/');
    int v2 = 0;
    for (size_t i = 0; trace_beside[i] && !v2; i++) {
        char path[4096], *text = malloc(CONFIG_MAX);
        snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash + 1 - t->path) : 0, t->path, trace_beside[i]);
        errno = 0;
        FILE *from = text ? fopen(path, "re") : NULL;
        *no_memory |= !text || (!from && errno == ENOMEM);
        const size_t n = from ? fread(text, 1, CONFIG_MAX, from) : 0;
        json_t *v = n && n < CONFIG_MAX ? json_text(text, n, 0, NULL, no_memory) : NULL;
        const json_t *own = json_object_get(v, "quantization_config");
        const char *format = json_string_value(json_object_get(own ? own : v, "checkpoint_format"));
        v2 = format && strcmp(format, "gptq_v2") == 0;
        json_decref(v);
        if (from)
            fclose(from);
        free(text);
    }
    return v2;
}

/* Version 1 stores a zero less one. Symmetric weights have half of the range as their zero: where that is stored, version 2 fits,
 * or the writer forgot. */
static void note_zeros(trace *t, const trace_entry *zeros, unsigned bits)
{
    enum { MOST = 256 };
    const uint32_t half = bits == 2 ? 0xaaaaaaaau : bits == 4 ? 0x88888888u : bits == 8 ? 0x80808080u : 0;
    uint32_t words[MOST];
    trace_error unused;
    const size_t n = zeros->tensor.count < MOST ? (size_t)zeros->tensor.count : MOST;
    size_t same = 0;
    if (t->zeros[0] || !half || !n || trace_stored(t, zeros, 0, words, n, &unused))
        return;
    while (same < n && words[same] == half)
        same++;
    if (same == n)
        snprintf(
            t->zeros, sizeof t->zeros,
            "'%.250s' holds %u, which GPTQ's version 1 reads as the zero %u; version 2 fits symmetric weights: --stored "
            "gptq-v2",
            zeros->tensor.name, 1u << (bits - 1), (1u << (bits - 1)) + 1);
}

static int is_matrix(const trace_entry *e)
{
    return e->tensor.rank == 2 && e->tensor.count > 0;
}

/* Groups of columns: as many as there are rows of scales. */
static int set_groups(struct packed *p, uint64_t groups)
{
    p->groups = groups;
    p->group = groups && p->ins ? quant_up(p->ins, groups) : 0;
    return p->group && groups <= p->ins && groups <= INT32_MAX;
}

/* The sizes from the shapes of codes, zeros and scales, which fit each other; 0: they do not. */
static int sizes(struct packed *p, const trace_entry *codes, const trace_entry *zeros, const trace_entry *scales)
{
    const uint64_t *c = codes->tensor.shape, *z = zeros->tensor.shape, *s = scales->tensor.shape;
    p->outs = s[1];
    if (z[0] != s[0] || z[1] > UINT64_MAX / 32 || c[0] > UINT64_MAX / 32 || c[1] > UINT64_MAX / 32)
        return 0;
    p->bits = (unsigned)(z[1] <= s[1] && s[1] && z[1] * 32 / s[1] <= 8 ? z[1] * 32 / s[1] : 0);
    if (p->bits < 2 || p->bits * s[1] != z[1] * 32)
        return 0;
    p->ins = p->kind == PACKED_AWQ ? c[0] : c[0] * 32 / p->bits;
    const int fits = p->kind == PACKED_AWQ ? p->bits == 4 && c[1] == z[1]
                                           : c[1] == s[1] && p->ins * p->bits == c[0] * 32;
    return fits && set_groups(p, s[0]);
}

static int find_words(quantised_finder *f, uint32_t codes, quantised *q)
{
    static const char *const own = "qweight";
    const trace_entry *e = f->t->entries;
    const uint32_t zeros = beside(f, codes, own, "qzeros"), scales = beside(f, codes, own, "scales");
    const uint32_t groups = beside(f, codes, own, "g_idx");
    if (zeros == QUANTISED_ABSENT || scales == QUANTISED_ABSENT) {
        snprintf(f->missing, sizeof f->missing, "'%.250s' is there without its %s", e[codes].tensor.name,
                 scales == QUANTISED_ABSENT ? "scales" : "qzeros");
        return 0;
    }
    if (!is_words(&e[zeros]) || !e[scales].tensor.format || !is_matrix(&e[codes]) || !is_matrix(&e[zeros]) ||
        !is_matrix(&e[scales]))
        return misfit(f, codes, "its qzeros or scales are not matrices of int32 and of numbers");
    struct packed p = {.kind = PACKED_AWQ};
    if (groups != QUANTISED_ABSENT || !sizes(&p, &e[codes], &e[zeros], &e[scales])) {
        p.kind = strcmp(f->layout, "gptq-v2") == 0 || (!f->layout[0] && config_says_v2(f->t, &f->no_memory))
                     ? PACKED_GPTQ_V2
                     : PACKED_GPTQ;
        if (!sizes(&p, &e[codes], &e[zeros], &e[scales]))
            return misfit(f, codes, "shapes of codes, qzeros and scales fit neither GPTQ nor AWQ");
    }
    if (groups != QUANTISED_ABSENT && (!is_words(&e[groups]) || e[groups].tensor.count != p.ins))
        return misfit(f, codes, "its g_idx is not an int32 for each input");
    if (!asked(f, p.kind))
        return 0;
    q->parts[PACKED_ZEROS] = zeros;
    q->parts[PACKED_SCALES] = scales;
    q->parts[PACKED_GROUPS] = groups;
    if (say(f, codes, q, &p, (const uint64_t[]){p.outs, p.ins}, 2, kinds[p.kind].type, e[scales].tensor.format->name) <
        0)
        return -1;
    strcpy(f->name + strlen(f->name) - strlen(own), "weight"); /* which is shorter */
    if (p.kind == PACKED_GPTQ && !f->layout[0])
        note_zeros(f->t, &e[zeros], p.bits);
    return 1;
}

/* ---- compressed-tensors ---- */

/* Scales of a row: a column of them, or the one of all rows. Zeros, if there are any, are packed along rows, or bytes. */
static int row_scales(const quantised_finder *f, const quantised *q, struct packed *p)
{
    const uint32_t at = q->parts[PACKED_ROW_SCALES], zeros = q->parts[PACKED_ROW_ZEROS],
                   groups = q->parts[PACKED_ROW_GROUPS];
    const trace_entry *s = at == QUANTISED_ABSENT ? NULL : &f->t->entries[at];
    if (!s || !s->tensor.format || !s->tensor.count || s->tensor.count % p->outs ||
        !set_groups(p, s->tensor.count / p->outs) || (s->tensor.rank > 1 && s->tensor.shape[0] != p->outs))
        return 0;
    const trace_entry *z = zeros == QUANTISED_ABSENT ? NULL : &f->t->entries[zeros];
    const uint64_t lines = p->kind == PACKED_ROWS ? quant_up(p->outs * p->bits, 32) : p->outs;
    if (z &&
        ((p->kind == PACKED_ROWS ? !is_words(z) : !is_of(z, "I8", "int8")) || z->tensor.count != lines * p->groups))
        return 0;
    return groups == QUANTISED_ABSENT ||
           (is_words(&f->t->entries[groups]) && f->t->entries[groups].tensor.count == p->ins);
}

/* The bits of codes of which so many words are a row; 0: they do not follow. */
static unsigned row_bits(uint64_t ins, uint64_t words)
{
    unsigned found = 0;
    for (unsigned bits = 1; bits <= 8 && ins <= UINT64_MAX / 8; bits++)
        if (quant_up(ins * bits, 32) == words)
            found = found ? 9 : bits;
    return found < 9 ? found : 0;
}

static int find_rows(quantised_finder *f, uint32_t codes, const char *own, quantised *q)
{
    static const char *const names[] = {"weight_scale", "weight_zero_point", "weight_g_idx", "weight_shape"};
    const trace_entry *e = &f->t->entries[codes];
    struct packed p = {
        .kind = strcmp(own, "weight") == 0 ? PACKED_INT8 : PACKED_ROWS, .bits = 8, .outs = e->tensor.shape[0]};
    int64_t shape[2] = {0};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        q->parts[PACKED_ROW_SCALES + i] = beside(f, codes, own, names[i]);
    if (q->parts[PACKED_ROW_SCALES] == QUANTISED_ABSENT) {
        if (p.kind == PACKED_ROWS)
            snprintf(f->missing, sizeof f->missing, "'%.250s' is there without its weight_scale", e->tensor.name);
        return 0;
    }
    p.ins = e->tensor.shape[1];
    if (p.kind == PACKED_ROWS) {
        const uint32_t at = q->parts[PACKED_ROW_SHAPE];
        const trace_entry *s = at == QUANTISED_ABSENT ? NULL : &f->t->entries[at];
        if (!s || !is_of(s, "I64", "int64") || s->tensor.count != 2 || trace_stored(f->t, s, 0, shape, 2, f->error) ||
            shape[0] < 1 || (uint64_t)shape[0] != p.outs || shape[1] < 1)
            return misfit(f, codes, "its weight_shape is not two numbers, of which the first is its rows");
        p.ins = (uint64_t)shape[1];
        p.bits = row_bits(p.ins, e->tensor.shape[1]);
    }
    if (!p.bits || !row_scales(f, q, &p))
        return misfit(f, codes, "its weight_shape, weight_scale or weight_zero_point do not fit its words");
    return say(f, codes, q, &p, (const uint64_t[]){p.outs, p.ins}, 2, kinds[p.kind].type,
               f->t->entries[q->parts[PACKED_ROW_SCALES]].tensor.format->name);
}

static int find_weight_packed(quantised_finder *f, uint32_t codes, quantised *q)
{
    static const char *const own = "weight_packed";
    if (!is_matrix(&f->t->entries[codes])) {
        snprintf(f->missing, sizeof f->missing, "'%.250s' is no matrix, and read as its words",
                 f->t->entries[codes].tensor.name);
        return 0;
    }
    const int found = find_rows(f, codes, own, q);
    if (found > 0)
        f->name[strlen(f->name) - strlen("_packed")] = '\0';
    return found;
}

/* ---- bitsandbytes ---- */

/* The JSON that a tensor of bytes holds, to be freed. */
static json_t *state_of(quantised_finder *f, uint32_t state)
{
    char text[STATE_MAX];
    const trace_entry *e = &f->t->entries[state];
    if (e->bytes == 0 || e->bytes > sizeof text || trace_width(e) != 1 ||
        trace_stored(f->t, e, 0, text, (size_t)e->bytes, f->error))
        return NULL;
    return json_text(text, (size_t)e->bytes, 0, NULL, &f->no_memory);
}

static uint64_t whole(const json_t *v, const char *key)
{
    const json_int_t i = json_integer_value(json_object_get(v, key));
    return i > 0 ? (uint64_t)i : 0;
}

static int shape_of(const json_t *v, uint64_t *shape, size_t *rank, uint64_t *count)
{
    const json_t *sides = json_object_get(v, "shape");
    uint64_t bytes;
    *rank = json_array_size(sides);
    if (*rank == 0 || *rank > TRACE_RANK_MAX)
        return -1;
    for (size_t i = 0; i < *rank; i++) {
        const json_int_t side = json_integer_value(json_array_get(sides, i));
        if (side < 1)
            return -1;
        shape[i] = (uint64_t)side;
    }
    return trace_shape_bytes(shape, *rank, 32, count, &bytes);
}

/* Whether a part has so many numbers. */
static int has_numbers(const quantised_finder *f, uint32_t part, uint64_t n)
{
    return part != QUANTISED_ABSENT && f->t->entries[part].tensor.format && f->t->entries[part].tensor.count == n;
}

/* Whether its parts are there, of the sizes that the description asks for. */
static int four_fits(const quantised_finder *f, const quantised *q, struct packed *p, const json_t *v, uint64_t count)
{
    const trace_entry *e = f->t->entries;
    const uint32_t absmax = q->parts[PACKED_ABSMAX];
    p->block = whole(v, "blocksize");
    p->nested_block = whole(v, "nested_blocksize");
    p->offset = (float)json_number_value(json_object_get(v, "nested_offset"));
    if (!p->block || absmax == QUANTISED_ABSENT || !has_numbers(f, q->parts[PACKED_TABLE], 16) ||
        e[q->parts[PACKED_CODES]].tensor.count != quant_up(count, 2) ||
        e[absmax].tensor.count != quant_up(count, p->block))
        return 0;
    if (!p->nested_block)
        return e[absmax].tensor.format != NULL;
    return is_of(&e[absmax], "U8", "uint8") && has_numbers(f, q->parts[PACKED_NESTED_TABLE], 256) &&
           has_numbers(f, q->parts[PACKED_NESTED], quant_up(e[absmax].tensor.count, p->nested_block));
}

static int find_four(quantised_finder *f, uint32_t codes, uint32_t state, const char *type, quantised *q)
{
    static const char *const parts[] = {".absmax", ".quant_map", ".nested_absmax", ".nested_quant_map"};
    struct packed p = {.kind = PACKED_FOUR, .bits = 4};
    if (!is_of(&f->t->entries[codes], "U8", "uint8"))
        return misfit(f, codes,
                      "codes of bitsandbytes in another dtype than uint8 (bnb_4bit_quant_storage) are not read");
    uint64_t shape[TRACE_RANK_MAX], count = 0;
    size_t rank = 0;
    for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++)
        q->parts[PACKED_ABSMAX + i] = beside(f, codes, "", parts[i]);
    q->parts[PACKED_STATE] = state;
    json_t *v = state_of(f, state);
    const int fits = v && shape_of(v, shape, &rank, &count) == 0 && four_fits(f, q, &p, v, count);
    json_decref(v);
    if (!fits)
        return misfit(f, codes, "its quant_state, absmax and tables are not those of bitsandbytes, or not of one size");
    return say(f, codes, q, &p, shape, rank, type,
               p.nested_block ? "nested binary32" : f->t->entries[q->parts[PACKED_ABSMAX]].tensor.format->name);
}

static int find_eight(quantised_finder *f, uint32_t codes, quantised *q)
{
    const trace_entry *e = &f->t->entries[codes];
    const uint32_t scb = beside(f, codes, "weight", "SCB");
    struct packed p = {.kind = PACKED_EIGHT, .bits = 8};
    if (scb == QUANTISED_ABSENT)
        return 0;
    if (!has_numbers(f, scb, e->tensor.shape[0]))
        return misfit(f, codes, "its SCB is not a number for each row");
    const uint32_t format = beside(f, codes, "weight", "weight_format");
    unsigned char tiles = 0;
    if (format != QUANTISED_ABSENT && (f->t->entries[format].bytes != 1 ||
                                       trace_stored(f->t, &f->t->entries[format], 0, &tiles, 1, f->error) || tiles))
        return misfit(f, codes, "its weight_format is not 0: rows of codes are read, not the tiles of a device");
    p.block = e->tensor.shape[1];
    q->parts[PACKED_SCB] = scb;
    q->parts[PACKED_FORMAT] = format;
    return say(f, codes, q, &p, e->tensor.shape, 2, kinds[PACKED_EIGHT].type, f->t->entries[scb].tensor.format->name);
}

int trace_packed_find(quantised_finder *f, uint32_t codes, quantised *q)
{
    const trace_entry *e = &f->t->entries[codes];
    const char *name = e->tensor.name;
    *q = (quantised){.parts = {codes}};
    for (size_t i = 1; i < QUANTISED_PARTS; i++)
        q->parts[i] = QUANTISED_ABSENT;
    if (is_words(e) && text_ends_with(name, "qweight"))
        return find_words(f, codes, q);
    if (is_words(e) && text_ends_with(name, "weight_packed") && asked(f, PACKED_ROWS))
        return find_weight_packed(f, codes, q);
    if (asked(f, PACKED_FOUR))
        for (int i = 0; i < 2; i++) {
            const uint32_t state = beside(f, codes, "",
                                          i ? ".quant_state.bitsandbytes__fp4" : ".quant_state.bitsandbytes__nf4");
            if (state != QUANTISED_ABSENT)
                return find_four(f, codes, state, i ? "FP4" : "NF4", q);
        }
    if (!is_of(e, "I8", "int8") || !text_ends_with(name, "weight") || !is_matrix(e))
        return 0;
    const int found = asked(f, PACKED_EIGHT) ? find_eight(f, codes, q) : 0;
    return found || !asked(f, PACKED_INT8) ? found : find_rows(f, codes, "weight", q);
}
