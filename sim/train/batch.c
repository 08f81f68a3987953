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

static uint64_t hash(uint64_t h, const unsigned char *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ bytes[i]) * 0x100000001b3u;
    return h;
}

uint64_t train_stream(const char *purpose)
{
    return hash(0xcbf29ce484222325u, (const unsigned char *)purpose, strlen(purpose));
}

uint64_t train_stream_of_step(uint64_t step, const char *name)
{
    unsigned char bytes[8];
    for (int i = 0; i < 8; i++)
        bytes[i] = (unsigned char)((step + 1) >> (8 * i));
    return hash(hash(0xcbf29ce484222325u, bytes, sizeof bytes), (const unsigned char *)name,
                strlen(name));
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
