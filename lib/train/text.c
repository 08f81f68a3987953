/* text.c -- the bundled text, tokens of a text; see train.h. */
#include "trainer.h"

/* One string, since tokens lie one after the other; without its final zero. */
static const char pages[] =
#include "text.inc"
    ;

enum { PAGES = sizeof pages - 1, HELD = PAGES / 10 };

static const train_text bundled = {.name = "mpsim",
                                   .tokens = pages,
                                   .bytes = 1,
                                   .trained = PAGES - HELD,
                                   .held = HELD,
                                   .vocabulary = 256,
                                   .digest = 0x49b5d80523a0927a};

const train_text *train_text_bundled(void)
{
    return &bundled;
}

uint32_t train_token(const train_text *t, size_t i)
{
    uint16_t half;
    uint32_t word;
    switch (t->bytes) {
    case 1:
        return ((const unsigned char *)t->tokens)[i];
    case 2:
        memcpy(&half, (const char *)t->tokens + 2 * i, 2);
        return half;
    default:
        memcpy(&word, (const char *)t->tokens + 4 * i, 4);
        return word;
    }
}

void train_text_fill(const train_text *x, size_t start, size_t n, uint32_t *tokens, uint32_t *labels)
{
    for (size_t i = 0; i < n; i++) {
        tokens[i] = train_token(x, start + i);
        labels[i] = train_token(x, start + i + 1);
    }
}
