/* t-llmc.c -- files of llm.c made here: old versions, what the files do not say, bad headers. What its writers gave is
 * the matter of t-recorded.c. */
#include "support/badfile.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { GPT2 = 20240326, DEBUG = 20240327, TOKENS = 20240520, EXAMPLES = 20240522, STATE = 20240527, LLAMA = 20240803 };

/* A header: numbers up to -1, and zeros. */
static blob header(const int32_t *h)
{
    blob b = {0};
    for (; *h != -1; h++)
        blob_int(&b, (uint32_t)*h, 4);
    blob_fill(&b, 0, 1024 - b.n);
    return b;
}
#define HEADER(...) header((const int32_t[]){__VA_ARGS__, -1})

static size_t parameters(size_t c, size_t layers, size_t vocabulary, size_t context)
{
    return c * (vocabulary + context + 2) + layers * (12 * c * c + 13 * c);
}

/* 0, 1, 2, ... */
static void numbers(blob *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        blob_int(b, bits_of_f32((float)i), 4);
}

CASE("llmc", 120);

TEST(versions_before_the_vocabulary_was_padded)
{
    for (int32_t version = 1; version <= 3; version++) {
        blob b = HEADER(GPT2, version, 8, 10, 2, 1, 4, version == 3 ? 16 : 0);
        numbers(&b, parameters(4, 2, version == 3 ? 16 : 10, 8));
        trace_error e;
        trace *t = trace_open(bad_write("gpt2.bin", &b), NULL, &e);
        ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
        ck_assert_uint_eq(trace_count(t), 28);
        ck_assert_uint_eq(trace_at(t, 0)->shape[0], version == 3 ? 16 : 10);
        ck_assert_str_eq(trace_at(t, 3)->name, "weight:transformer.h.1.ln_1.weight");
        ck_assert_str_eq(trace_kind(trace_at(t, 27)->name), "weight");
        ck_assert_str_eq(trace_metadata(t, "num_layers"), "2");
        trace_close(t);
    }
}

TEST(sizes_follow_from_the_size_of_the_file)
{
    trace_error e;
    blob b = HEADER(DEBUG, 1, 1, 2); /* a vocabulary that is not padded */
    blob_fill(&b, 0, 4 * (2 + 2 + 2 * 50257 + 1 + parameters(16, 3, 50257, 1024)));
    trace *t = trace_open(bad_write("debug.bin", &b), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_uint_eq(trace_count(t), 4 + 4 + 12 * 3);
    ck_assert_str_eq(trace_kind(trace_at(t, 4)->name), "wgrad");
    trace_close(t);
    b = HEADER(DEBUG, 2, 1, 2); /* 48 channels and 6 layers are as many as 32 and 78 */
    blob_fill(&b, 0, 4 * (2 + 2 + 2 * 50257 + 1 + parameters(48, 6, 50304, 1024)));
    bad_expect(0, "two solutions", bad_write("debug.bin", &b), NULL, 3, "of gradients are not those of a GPT-2 with");
    b = HEADER(STATE, 1, 1, 0, 0);
    blob_fill(&b, 0, 8 * parameters(48, 6, 50304, 1024));
    t = trace_open(bad_write("state.bin", &b), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert_uint_eq(trace_count(t), 2);
    ck_assert_str_eq(trace_at(t, 1)->name, "opt.v:parameters");
    trace_close(t);
    b = HEADER(EXAMPLES, 1, 3, 5);
    blob_fill(&b, 1, 30);
    const outcome o = bad_read(bad_write("examples.bin", &b), NULL);
    ck_assert(!o.failed && o.tensors == 1);
}

static void refused(blob b, const char *fragment)
{
    bad_expect(0, fragment, bad_write("bad.bin", &b), NULL, 3, fragment);
}

TEST(bad_headers)
{
    blob b = HEADER(GPT2, 3);
    b.n = 1000;
    refused(b, "1000 bytes are too few for the header of a file of llm.c");
    refused(HEADER(GPT2, 3, 8, 10, 2, 1, 4, 0), "version 3 of a checkpoint of llm.c is not known");
    refused(HEADER(GPT2, 4, 8, 10, 2, 1, 4, 16), "version 4 of a checkpoint");
    refused(HEADER(GPT2, -2, 8, 10, 2, 1, 4, 16), "version -2 of a checkpoint");
    refused(HEADER(GPT2, 3, 8, 10, 2, 1, -4, 16), "offset 24: channels is -4");
    refused(HEADER(GPT2, 3, 8, 10, 0, 1, 4, 16), "offset 16: num_layers is 0");
    refused(HEADER(GPT2, 3, 8, 10, 2, 1, 4, 16), "offset 1024: tensor 'weight:transformer.wte.weight' has 256 bytes, "
                                                 "but the file has 0 more");
    refused(HEADER(GPT2, 3, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX, INT32_MAX), "are too large");
    b = HEADER(GPT2, 3, 8, 10, INT32_MAX, 1, 4, 16);
    numbers(&b, parameters(4, 2, 16, 8));
    refused(b, "but the file has 0 more");
    b = HEADER(GPT2, 3, 8, 10, 2, 1, 4, 16);
    numbers(&b, parameters(4, 2, 16, 8) + 1);
    refused(b, "4 bytes after the last tensor");
    refused(HEADER(DEBUG, 3, 1, 1), "version 3 of a debug state");
    refused(HEADER(DEBUG, 2, 0, 1), "batch_size is 0");
    refused(HEADER(DEBUG, 2, INT32_MAX, INT32_MAX), "are too large");
    b = HEADER(DEBUG, 2, 1, 1);
    blob_fill(&b, 0, 4 * (1 + 1 + 50257 + 1) + 7);
    refused(b, "7 bytes of gradients are not those of a GPT-2");
    refused(HEADER(STATE, 2), "version 2 of an optimizer state");
    b = HEADER(STATE, 1, 1, 0, 1);
    blob_fill(&b, 0, 16);
    refused(b, "16 bytes are not 3 arrays of binary32 numbers of one size");
    b = HEADER(STATE, 1, 1, 0, 0, 1);
    blob_fill(&b, 0, 10000);
    refused(b, "followed by the state of a data loader");
    refused(HEADER(TOKENS, 2, 0), "version 2 of a file of tokens");
    refused(HEADER(TOKENS, 1, INT32_MAX), "but the file has 0 more");
    b = HEADER(TOKENS, 1, 1);
    blob_fill(&b, 0, 3);
    refused(b, "1 bytes after the last tensor");
    refused(HEADER(20240328, 2, 3), "a tokenizer of llm.c, which holds no tensors");
}

TEST(bad_llamas)
{
    refused(HEADER(LLAMA, 4, 64), "a debug state of train_llama3.py, which does not say the sizes");
    refused(HEADER(LLAMA, 4, 8, 10, 2, 4, 2, 8, 4), "version 4 of a checkpoint of LLaMA 3");
    blob b = HEADER(LLAMA, 3, 8, 10, 2, 4, 2, 8, 0);
    blob_fill(&b, 0, 1024);
    refused(b, "multiple_of is 0");
    static const int32_t bad[][7] = {/* max_seq_len, vocab_size, layers, heads, kv heads, channels, multiple_of */
                                     {8, 10, 2, 3, 2, 8, 4},
                                     {8, 1000, 2, 4, 2, 8, 4},
                                     {8, 10, 2, 4, 2, 16, 4},
                                     {8, INT32_MAX, INT32_MAX, 1, INT32_MAX, INT32_MAX, 4}};
    for (size_t i = 0; i < 4; i++) {
        b = HEADER(LLAMA, 3, bad[i][0], bad[i][1], bad[i][2], bad[i][3], bad[i][4], bad[i][5], bad[i][6]);
        blob_fill(&b, 0, 1024 + 4 * (8 * 21 + 2 * 8 * (2 + 16 + 8) + 2 * 3 * 8 * 20));
        refused(b, "the sizes in the header are not those of a file of");
    }
    b = HEADER(LLAMA, 3, 8, 10, 2, 4, 2, 8, 16);
    blob_fill(&b, 0, 1024 + 4 * (8 * 21 + 2 * 8 * (2 + 16 + 8) + 2 * 3 * 8 * 20));
    refused(b, "feed-forward layers of 20, no multiple of 16");
    b = HEADER(LLAMA, 3, 8, 10, 2, 4, 2, 8, 10);
    blob_fill(&b, 0, 1024 + 4 * (8 * 21 + 2 * 8 * (2 + 16 + 8) + 2 * 3 * 8 * 20));
    const outcome o = bad_read(bad_write("llama.bin", &b), NULL);
    ck_assert_msg(!o.failed && o.tensors == 17, "%s", o.error.text);
}

TEST(many_layers_are_bounded)
{
    blob b = HEADER(GPT2, 5, 1, 1, 100000, 1, 1, 1);
    blob_fill(&b, 0, 2 * parameters(1, 100000, 1, 1));
    bad_within_limits("1,200,000 tensors", bad_read_fails, bad_write("many.bin", &b), 16);
    const int32_t h[] = {STATE, 1, 1, 0, 0, 1, -1}; /* the search for sizes of a large sparse file */
    b = header(h);
    const char *path = bad_write("state.bin", &b);
    ck_assert(truncate(path, (off_t)10 << 30) == 0);
    bad_within_limits("state of 10 GiB", bad_read_fails, path, 16);
}

TEST(any_damage_is_read_or_refused)
{
    blob b = HEADER(GPT2, 5, 1, 2, 1, 1, 1, 2);
    blob_fill(&b, 0, 2 * parameters(1, 1, 2, 1));
    bad_damage_all("damage.bin", &b, NULL);
    blob_clear(&b);
}

TEST_MAIN_BY(bad_main, "llmc");
