/* pack.c -- codes of less than a byte, packed and unpacked: see quant.h.
 *
 * Two in a byte, the first in the low half: torchao 0.18 (prototype/mx_formats/kernels.py, pack_uint4), TransformerEngine,
 * compressed-tensors 0.20 (compressors/nvfp4/helpers.py), ModelOpt 0.47, gpt-oss (gpt_oss/torch/weights.py): none has the
 * other order. Six bits: compressed-tensors 0.20 (compressors/mxfp6/helpers.py) packs four codes into three bytes,
 * little-endian; torchao 0.13 (prototype/mx_formats/kernels.py, pack_uint6_pytorch) in an order of its own; 0.18 leaves
 * them a byte each. */
#include "quant.h"

/* A row of codes is groups of `codes` in `bytes`, `bits` each. */
static const struct {
    const char *name;
    uint8_t codes, bytes, bits;
} packings[] = {
    [QUANT_BYTES] = {"bytes", 1, 1, 8},
    [QUANT_NIBBLES] = {"nibbles", 2, 1, 4},
    [QUANT_SIXES] = {"sixes", 4, 3, 6},
    [QUANT_SIXES_TORCHAO] = {"sixes-torchao", 4, 3, 6},
};

/* Of a code of torchao's groups: the byte that its upper four bits are in, their shift, and that of the lower two. */
static const uint8_t torchao_places[4][3] = {{0, 4, 6}, {0, 0, 4}, {1, 0, 0}, {1, 4, 2}};

const char *quant_packing_name(quant_packing p)
{
    return packings[p].name;
}

uint64_t quant_packed(quant_packing p, uint64_t n)
{
    const uint64_t whole = n / packings[p].codes, left = n % packings[p].codes;
    const uint64_t end = p == QUANT_SIXES_TORCHAO ? 3 * (left != 0) : (left * packings[p].bits + 7) / 8;
    return whole * packings[p].bytes + end;
}

/* n codes, at most those of a group. */
static void pack_group(unsigned bits, unsigned char *to, const unsigned char *codes, size_t n)
{
    uint32_t word = 0;
    for (size_t i = 0; i < n; i++)
        word |= (codes[i] & ((1u << bits) - 1)) << bits * i;
    for (size_t i = 0; 8 * i < bits * n; i++)
        to[i] = (unsigned char)(word >> 8 * i);
}

static void pack_torchao(unsigned char *to, const unsigned char *codes, size_t n)
{
    to[0] = to[1] = to[2] = 0;
    for (size_t i = 0; i < n; i++) {
        const uint8_t *place = torchao_places[i];
        to[place[0]] |= (unsigned char)((codes[i] >> 2 & 15) << place[1]);
        to[2] |= (unsigned char)((codes[i] & 3) << place[2]);
    }
}

static void unpack_torchao(unsigned char *codes, const unsigned char *from, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const uint8_t *place = torchao_places[i];
        codes[i] = (unsigned char)((from[place[0]] >> place[1] & 15) << 2 | (from[2] >> place[2] & 3));
    }
}

static void unpack_group(unsigned bits, unsigned char *codes, const unsigned char *from, size_t n)
{
    uint32_t word = 0;
    for (size_t i = 0; 8 * i < bits * n; i++)
        word |= (uint32_t)from[i] << 8 * i;
    for (size_t i = 0; i < n; i++)
        codes[i] = (unsigned char)(word >> bits * i & ((1u << bits) - 1));
}

void quant_pack(quant_packing p, unsigned char *to, const unsigned char *codes, size_t n)
{
    const size_t each = packings[p].codes, bytes = packings[p].bytes;
    size_t i = 0;
    if (p == QUANT_NIBBLES)
        for (; i + 2 <= n; i += 2)
            *to++ = (unsigned char)((codes[i] & 15) | codes[i + 1] << 4);
    for (; i < n; i += each, to += bytes)
        if (p == QUANT_SIXES_TORCHAO)
            pack_torchao(to, codes + i, n - i < each ? n - i : each);
        else
            pack_group(packings[p].bits, to, codes + i, n - i < each ? n - i : each);
}

void quant_unpack(quant_packing p, unsigned char *codes, const unsigned char *from, size_t n)
{
    const size_t each = packings[p].codes, bytes = packings[p].bytes;
    size_t i = 0;
    if (p == QUANT_NIBBLES)
        for (; i + 2 <= n; i += 2, from++) {
            codes[i] = *from & 15;
            codes[i + 1] = *from >> 4;
        }
    for (; i < n; i += each, from += bytes)
        if (p == QUANT_SIXES_TORCHAO)
            unpack_torchao(codes + i, from, n - i < each ? n - i : each);
        else
            unpack_group(packings[p].bits, codes + i, from, n - i < each ? n - i : each);
}
