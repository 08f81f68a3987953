/* batch.c -- the digits, the order in which steps take them, streams of random bits; see train.h.
 */
#include "trainer.h"

static const char *const digits[TRAIN_IMAGES + TRAIN_TESTS] = {
#include "digits.inc"
};

uint32_t train_digit(size_t i, float *pixels)
{
    const char *text = digits[i];
    for (int k = 0; k < TRAIN_PIXELS; k++)
        pixels[k] = (float)(text[1 + k] - 'a') / 16.0f;
    return (uint32_t)(text[0] - '0');
}

static uint64_t hash_byte(uint64_t h, unsigned byte)
{
    return (h ^ byte) * 0x100000001b3u;
}

static uint64_t hash_text(uint64_t h, const char *text)
{
    for (; *text; text++)
        h = hash_byte(h, (unsigned char)*text);
    return h;
}

uint64_t train_hash(uint64_t h, uint64_t x)
{
    for (int i = 0; i < 8; i++)
        h = hash_byte(h, (unsigned)(x >> (8 * i) & 0xff));
    return h;
}

uint64_t train_stream(const char *purpose)
{
    return hash_text(TRAIN_HASH, purpose);
}

uint64_t train_stream_of_step(uint64_t step, const char *name)
{
    return hash_text(train_hash(TRAIN_HASH, step + 1), name);
}

void train_batch(uint64_t seed, uint64_t step, size_t batch, uint32_t *images)
{
    const uint64_t steps = TRAIN_IMAGES / batch;
    const size_t from = (size_t)(step % steps) * batch;
    uint32_t order[TRAIN_IMAGES];
    char purpose[64];
    snprintf(purpose, sizeof purpose, "order of pass %llu", (unsigned long long)(step / steps));
    const uint64_t stream = train_stream(purpose);
    for (uint32_t k = 0; k < TRAIN_IMAGES; k++)
        order[k] = k;
    for (uint32_t k = TRAIN_IMAGES - 1; k > 0; k--) {
        const uint64_t w = mpsim_rng_word(seed, stream, k);
        const uint32_t j = (uint32_t)(w * (k + 1) >> 32), kept = order[k];
        order[k] = order[j];
        order[j] = kept;
    }
    memcpy(images, order + from, batch * sizeof *images);
}
