/* text.c -- see text.h.
 *
 * Source of the layout: github.com/karpathy/llm.c, write_datafile of dev/data/data_common.py (16635d4): 256 int32,
 * of which the first three are magic, version and the number of tokens, then these, uint16 of GPT-2's tokenizer
 * (magic 20240520, version 1) or uint32 of Llama 3's (20240801, version 7). llmc/dataloader.h (077f9bd) reads the former
 * and insists, as we do, that the file has just so many bytes. Little-endian, as the processors that write them are. The
 * sizes of the vocabularies, which the file does not say: 50257 of train_gpt2.py (fe04df9), 128256 of train_llama3.py
 * (01bc4c6). */
#include "text.h"

#include "../cli/options.h"
#include "../process/textfile.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 30, HEADER = 1024, OF_BYTES = 256 };

static const struct layout {
    uint32_t magic, version, vocabulary;
    uint8_t bytes;
} layouts[] = {{20240520, 1, 50257, 2}, {20240801, 7, 128256, 4}};

static int refused(const char *path, trace_error *error, const char *what)
{
    return trace_error_set(error, EXIT_DATA, path, UINT64_MAX, "%s", what);
}

static uint32_t word_at(const unsigned char *p, size_t i)
{
    return (uint32_t)p[4 * i + 3] << 24 | (uint32_t)p[4 * i + 2] << 16 | (uint32_t)p[4 * i + 1] << 8 | p[4 * i];
}

/* The name of the file, as the settings of a run can hold it. */
static void set_name(text_file *x, const char *path)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    size_t n = 0;
    for (; name[n] && n < sizeof x->name - 1; n++)
        x->name[n] = name[n];
    x->name[n] = '\0';
    if (n == 0 || strcmp(path, "-") == 0)
        strcpy(x->name, "stdin");
    for (char *c = x->name; *c; c++)
        if (*c <= ' ' || *c > '~')
            *c = '_';
    x->text.name = x->name;
}

/* The tokens of a file of llm.c, n bytes long. */
static int find_tokens(text_file *x, size_t n, const char *path, trace_error *error)
{
    const struct layout *l = NULL;
    unsigned char *bytes = x->bytes;
    if (n < HEADER)
        return refused(path, error, "too short for tokens of llm.c: a header has 1024 bytes");
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
        if (layouts[i].magic == word_at(bytes, 0))
            l = &layouts[i];
    if (!l)
        return refused(path, error, "not a file of tokens of llm.c: it begins with neither 20240520 nor 20240801");
    if (word_at(bytes, 1) != l->version)
        return trace_error_set(error, EXIT_DATA, path, UINT64_MAX,
                               "tokens of llm.c in version %" PRIu32 ", not %" PRIu32, word_at(bytes, 1), l->version);
    const uint64_t said = word_at(bytes, 2), there = n - HEADER;
    if (said * l->bytes != there)
        return trace_error_set(error, EXIT_DATA, path, UINT64_MAX,
                               "the header says %" PRIu64 " tokens of %d bytes, and %" PRIu64 " bytes are there", said,
                               (int)l->bytes, there);
    x->text.tokens = bytes + HEADER;
    x->text.bytes = l->bytes;
    x->text.trained = (size_t)said;
    if (!x->text.vocabulary)
        x->text.vocabulary = l->vocabulary;
    trace_to_little_endian(bytes + HEADER, l->bytes, (size_t)said);
    return 0;
}

/* Their digest; and that each is below the vocabulary. */
static int digest(text_file *x, const char *path, trace_error *error)
{
    enum { BLOCK = 4096 };
    unsigned char words[4 * BLOCK];
    const size_t all = x->text.trained + x->text.held;
    for (size_t i = 0, n; i < all; i += n) {
        n = all - i < BLOCK ? all - i : BLOCK;
        for (size_t k = 0; k < n; k++) {
            const uint32_t token = train_token(&x->text, i + k);
            if (token >= x->text.vocabulary)
                return trace_error_set(error, EXIT_DATA, path, UINT64_MAX,
                                       "token %zu is %" PRIu32 ", not below the vocabulary of %" PRIu32, i + k, token,
                                       x->text.vocabulary);
            for (int b = 0; b < 4; b++)
                words[4 * k + (size_t)b] = (unsigned char)(token >> 8 * b);
        }
        x->text.digest += mpsim_digest_bytes(words, 4 * n, 4 * i);
    }
    return 0;
}

int train_text_file_tokens(text_file *x, const char *path, int tokens, uint32_t vocabulary, trace_error *error)
{
    size_t n = 0;
    train_text_file_clear(x);
    x->bytes = text_file_read(path, MOST, &n, error);
    if (!x->bytes)
        return -1;
    set_name(x, path);
    x->text.vocabulary = vocabulary ? vocabulary : tokens ? 0 : OF_BYTES;
    x->text.tokens = x->bytes;
    x->text.bytes = 1;
    x->text.trained = n;
    if (tokens && find_tokens(x, n, path, error))
        return -1;
    x->text.held = x->text.trained / 10;
    x->text.trained -= x->text.held;
    return digest(x, path, error);
}

void train_text_file_clear(text_file *x)
{
    free(x->bytes);
    memset(x, 0, sizeof *x);
}
