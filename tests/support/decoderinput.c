/* decoderinput.c -- see decoderinput.h. */
#include "decoderinput.h"

#include <string.h>

enum { TRAINED = 2000, HELD = 200 };

/* MurmurHash3's finaliser of start + i * 0x9E3779B9. */
static uint32_t hashed(uint32_t start, size_t i)
{
    uint32_t x = start + (uint32_t)i * 0x9E3779B9u;
    x = (x ^ (x >> 16)) * 0x85EBCA6Bu;
    x = (x ^ (x >> 13)) * 0xC2B2AE35u;
    return x ^ (x >> 16);
}

/* FNV-1a, 32 bits. */
static uint32_t name_hash(const char *name)
{
    uint32_t h = 0x811C9DC5u;
    for (; *name; name++)
        h = (h ^ (uint8_t)*name) * 0x01000193u;
    return h;
}

static int ends_with(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

float decoder_weight(const char *name, size_t i)
{
    const float v = (float)((int)(hashed(name_hash(name), i) >> 20) - 2048);
    if (ends_with(name, ".bias"))
        return v * 0x1p-14f;
    return ends_with(name, "ln1.weight") || ends_with(name, "ln2.weight") || ends_with(name, "lnf.weight")
               ? 1 + v * 0x1p-13f
               : v * 0x1p-13f;
}

const train_text *decoder_text(uint32_t vocabulary)
{
    static uint8_t tokens[TRAINED + HELD];
    static uint8_t bytes[4 * sizeof tokens];
    static train_text text = {.name = "walk", .bytes = 1, .trained = TRAINED, .held = HELD};
    uint32_t at = 0;
    for (size_t i = 0; i < sizeof tokens; i++) {
        at += 1 + (hashed(name_hash("text"), i) >> 30);
        tokens[i] = bytes[4 * i] = (uint8_t)(at % vocabulary);
    }
    text.tokens = tokens;
    text.vocabulary = vocabulary;
    text.digest = mpsim_digest_bytes(bytes, sizeof bytes, 0);
    return &text;
}
