/* t-train-decoder.c -- transformers under policies, typed from what frameworks' guides say; texts and files of
 * tokens; what a step multiplies. */
#include "sim/train/decoder.h"
#include "sim/train/job.h"
#include "sim/train/operations.h"
#include "sim/train/policy.h"
#include "support/support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COUNT(x) (sizeof(x) / sizeof(x)[0])
#define F32 "binary32"

static char folder[] = "/tmp/mpsim-train-decoder-XXXXXX";
static char path[64];
static policy loaded;
static train_run run;
static train_settings settings;
static text_file text;

static void setup(void)
{
    memset(&loaded, 0, sizeof loaded);
    memset(&run, 0, sizeof run);
    memset(&text, 0, sizeof text);
    train_settings_init(&settings, "gpt");
}

static void teardown(void)
{
    train_run_clear(&run);
    policy_clear(&loaded);
    train_text_file_clear(&text);
}

static void write_file(const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(bytes, 1, n, f), n);
    ck_assert_int_eq(fclose(f), 0);
}

/* The run of a policy: a bundled one's name, or its text. */
static void make(const char *which)
{
    char error[TRAIN_ERROR];
    trace_error e = {0};
    const int is_text = strchr(which, ':') != NULL;
    train_run_clear(&run);
    policy_clear(&loaded);
    if (is_text)
        write_file(which, strlen(which));
    ck_assert_msg(policy_load(&loaded, is_text ? path : which, 10, &e) == 0, "%s", e.text);
    ck_assert_msg(train_run_of_policy(&run, &loaded, &settings, NULL, error) == 0, "%s: %s", which, error);
}

static const train_placement *layer(const char *name)
{
    for (size_t i = 0; i < run.n_layers; i++)
        if (strcmp(run.layers[i].name, name) == 0)
            return &run.plans[0].layers[i];
    ck_abort_msg("no layer %s", name);
    return NULL;
}

/* ---- formats ---- */

/* clang-format off */
#define LOW(f) {f, f, f, f, f, f}
/* clang-format on */
#define PASSES(f)            \
    {                        \
        f, f, F32, f, f, F32 \
    } /* activations only          */
#define TAKES(f)                   \
    {                              \
        f, F32, F32, F32, F32, F32 \
    } /* a residual of two formats */
#define FP32_GRADS(f)      \
    {                      \
        f, f, f, f, f, F32 \
    }

static const char with_low_tables[] = "precision: fp16\nlayer_kinds: {wte: other, wpe: other}\n";
static const char with_kept_branch[] =
    "precision: fp16\nlayer_kinds: {wte: other, wpe: other}\nkeep_fp32: ['*.attn.proj', 'h1.add1']\n";

static const struct placed {
    const char *policy, *layer;
    const char *format[TRAIN_ROLES];
    const char *storage, *kept;
} placed[] = {
    {"fp32", "wte", LOW(F32), F32, F32},
    {"fp32", "h0.attn.scores", LOW(F32), F32, F32},
    {"fp32", "h1.add2", LOW(F32), F32, F32},
    /* torch.autocast: products in fp16; norms, softmax and loss in fp32; embeddings as their tables are; a
     * residual has the wider of both, so that the stream is fp32 */
    {"pytorch-amp-fp16", "wte", LOW(F32), F32, F32},
    {"pytorch-amp-fp16", "wpe", LOW(F32), F32, F32},
    {"pytorch-amp-fp16", "h0.ln1", LOW(F32), F32, F32},
    {"pytorch-amp-fp16", "h0.attn.qkv", LOW("fp16"), F32, F32},
    {"pytorch-amp-fp16", "h0.attn.heads", PASSES("fp16"), F32, F32},
    {"pytorch-amp-fp16", "h0.attn.scores", LOW("fp16"), F32, F32},
    {"pytorch-amp-fp16", "h0.attn.softmax", LOW(F32), F32, F32},
    {"pytorch-amp-fp16", "h0.attn.context", LOW("fp16"), F32, F32},
    {"pytorch-amp-fp16", "h0.attn.proj", LOW("fp16"), F32, F32},
    {"pytorch-amp-fp16", "h0.add1", TAKES("fp16"), F32, F32},
    {"pytorch-amp-fp16", "h0.ln2", LOW(F32), F32, F32},
    {"pytorch-amp-fp16", "h0.mlp.fc", LOW("fp16"), F32, F32},
    {"pytorch-amp-fp16", "h0.mlp.act", PASSES("fp16"), F32, F32},
    {"pytorch-amp-fp16", "h1.mlp.proj", LOW("fp16"), F32, F32},
    {"pytorch-amp-fp16", "h1.add2", TAKES("fp16"), F32, F32},
    {"pytorch-amp-fp16", "lnf", LOW(F32), F32, F32},
    {"pytorch-amp-fp16", "head", LOW("fp16"), F32, F32},
    {"pytorch-amp-fp16", "loss", LOW(F32), F32, F32},
    {"pytorch-amp-bf16", "h0.attn.context", LOW("bf16"), F32, F32},
    /* a stream in fp16, if the tables pass it on; a branch that is kept makes it fp32 from there on */
    {with_low_tables, "h0.add1", PASSES("fp16"), F32, F32},
    {with_low_tables, "h1.add2", PASSES("fp16"), F32, F32},
    {with_kept_branch, "h0.add1", TAKES("fp16"), F32, F32},
    {with_kept_branch, "h0.add2", TAKES("fp16"), F32, F32},
    {with_kept_branch, "h1.add1", LOW(F32), F32, F32},
    /* Apex O2 casts the model, and keeps masters; layer norm is no batch norm; O3 all */
    {"apex-O2", "wte", LOW("fp16"), "fp16", F32},
    {"apex-O2", "h0.ln1", LOW("fp16"), "fp16", F32},
    {"apex-O2", "h0.attn.softmax", LOW("fp16"), "fp16", F32},
    {"apex-O2", "h0.add1", LOW("fp16"), "fp16", F32},
    {"apex-O2", "loss", LOW(F32), F32, F32},
    {"apex-O3", "wte", LOW("fp16"), "fp16", "fp16"},
    {"apex-O3", "lnf", LOW("fp16"), "fp16", "fp16"},
    {"apex-O3", "h1.add2", LOW("fp16"), "fp16", "fp16"},
    /* Keras: variables in fp32, norms compute with them */
    {"keras-mixed-float16", "h0.ln1", PASSES("fp16"), F32, F32},
    {"keras-mixed-float16", "h0.add1", LOW("fp16"), F32, F32},
    /* Megatron: everything in bf16 but softmax and loss, gradients added in fp32 */
    {"megatron-bf16", "wte", FP32_GRADS("bf16"), "bf16", F32},
    {"megatron-bf16", "h0.ln1", FP32_GRADS("bf16"), "bf16", F32},
    {"megatron-bf16", "h0.attn.scores", FP32_GRADS("bf16"), "bf16", F32},
    {"megatron-bf16", "h0.attn.softmax", LOW(F32), F32, F32},
    {"megatron-bf16", "h0.add1", FP32_GRADS("bf16"), "bf16", F32},
    {"megatron-fp16", "h1.mlp.fc", LOW("fp16"), "fp16", F32},
    {"megatron-fp16", "h1.add2", LOW("fp16"), "fp16", F32},
    {"bf16-pure", "wte", LOW("bf16"), "bf16", "bf16"},
};

START_TEST(layers_are_placed)
{
    const struct placed *w = &placed[_i];
    make(w->policy);
    const train_placement *l = layer(w->layer);
    for (int role = 0; role < TRAIN_ROLES; role++)
        ck_assert_msg(strcmp(l->format[role].name, w->format[role]) == 0, "%s: %s: role %d in %s, expected %s",
                      w->policy, w->layer, role, l->format[role].name, w->format[role]);
    ck_assert_msg(strcmp(l->storage.name, w->storage) == 0 && strcmp(l->kept.name, w->kept) == 0,
                  "%s: %s: stored in %s, kept in %s", w->policy, w->layer, l->storage.name, l->kept.name);
}

/* ---- recipes ---- */

static void check_recipe(const char *name, const char *act, const char *agrad)
{
    const train_placement *l = layer(name);
    const char *is[] = {l->recipe[TRAIN_ACT] ? l->recipe[TRAIN_ACT]->name : "",
                        l->recipe[TRAIN_AGRAD] ? l->recipe[TRAIN_AGRAD]->name : ""};
    ck_assert_msg(strcmp(is[0], act) == 0 && strcmp(is[1], agrad) == 0, "%s: %s and %s", name, is[0], is[1]);
}

START_TEST(recipes_are_for_linear_layers)
{
    static const struct {
        const char *policy, *act, *agrad;
    } rows[] = {{"nemo-fp8-hybrid-max", "te-current", "te-current-e5m2"},
                {"te-mxfp8", "mxfp8", "mxfp8"},
                {"te-nvfp4", "nvfp4", "nvfp4-sr"},
                {"deepseek-v3-fp8", "te-block-1x128", "te-block-1x128"}};
    static const char *const
        with[] = {"h0.attn.qkv", "h0.attn.proj", "h1.mlp.fc", "h1.mlp.proj"},
        *const without[] = {
            "wte",        "wpe",     "h0.ln1", "h0.attn.heads", "h0.attn.scores", "h0.attn.softmax", "h0.attn.context",
            "h0.mlp.act", "h0.add1", "lnf"};
    for (size_t i = 0; i < COUNT(rows); i++) {
        make(rows[i].policy);
        for (size_t k = 0; k < COUNT(with); k++)
            check_recipe(with[k], rows[i].act, rows[i].agrad);
        for (size_t k = 0; k < COUNT(without); k++)
            check_recipe(without[k], "", "");
    }
}

START_TEST(attention_in_fp8)
{
    char notes[512];
    make("precision: fp8\nfp8_attention: true\n");
    check_recipe("h0.attn.scores", "te-current", "te-current-e5m2");
    check_recipe("h1.attn.context", "te-current", "te-current-e5m2");
    check_recipe("h0.attn.softmax", "", "");
    ck_assert_str_eq(train_policy_notes(&loaded, &run, notes, sizeof notes), "");
    make("precision: fp8\nfp8_attention: true\nfp8_exclude: ['h0.attn.*']\n");
    check_recipe("h0.attn.scores", "", "");
    check_recipe("h1.attn.scores", "te-current", "te-current-e5m2");
    make("precision: mxfp8\nfp8_attention: true\n");
    check_recipe("h0.attn.scores", "", "");
    check_recipe("h0.attn.qkv", "mxfp8", "mxfp8");
    ck_assert_ptr_nonnull(strstr(train_policy_notes(&loaded, &run, notes, sizeof notes), "fp8_attention: the recipe"));
    train_settings_init(&settings, "mlp");
    make("precision: fp8\nfp8_attention: true\n");
    ck_assert_ptr_nonnull(strstr(train_policy_notes(&loaded, &run, notes, sizeof notes), "there is no attention"));
}

START_TEST(attention_in_fp8_needs_a_recipe)
{
    static const char said[] = "precision: bf16\nfp8_attention: true\n";
    trace_error e = {0};
    write_file(said, sizeof said - 1);
    ck_assert_int_ne(policy_load(&loaded, path, 10, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "fp8_attention: works on an FP8 recipe, and the policy has none"));
}

START_TEST(blocks_at_the_ends_are_kept)
{
    settings.depth = 4;
    make("nvfp4-pretraining"); /* 3.2 % and 12.9 % of four: one each */
    check_recipe("h0.attn.qkv", "", "");
    check_recipe("h0.mlp.proj", "", "");
    check_recipe("h1.attn.qkv", "nvfp4", "nvfp4-sr");
    check_recipe("h2.mlp.fc", "nvfp4", "nvfp4-sr");
    check_recipe("h3.mlp.fc", "", "");
    check_recipe("head", "", "");
}

/* ---- what policies leave open ---- */

START_TEST(defaults_of_transformers)
{
    const mpsim_optim *o;
    make("fp32");
    o = &run.plans[0].optimizer;
    ck_assert_int_eq(o->algorithm, MPSIM_OPTIM_ADAMW);
    ck_assert(o->lr == 1e-3 && o->beta1 == 0.9 && o->beta2 == 0.95 && o->weight_decay == 0.1);
    ck_assert(run.plans[0].clip == MPSIM_CLIP_TORCH && run.plans[0].max_norm == 1);
    make("precision: fp32\nclip: none\noptimizer: {name: adamw, betas: [0.8, 0.9], lr: 0.01}\n");
    o = &run.plans[0].optimizer;
    ck_assert(o->lr == 0.01 && o->beta1 == 0.8 && o->beta2 == 0.9 && o->weight_decay == 0.1);
    ck_assert_int_eq(run.plans[0].clip, MPSIM_CLIP_NONE);
    make("precision: fp32\noptimizer: sgd\n");
    o = &run.plans[0].optimizer;
    ck_assert(o->lr == 0.1 && o->momentum == 0.9 && o->weight_decay == 0);
    settings.batch = 4;
    ck_assert_uint_eq(train_steps_per_pass(&settings, 1000), 3); /* of 4 x 64 tokens */
    settings.decoder.ranks = 8;
    ck_assert_uint_eq(train_steps_per_pass(&settings, 1000), 1);
}

/* ---- sizes ---- */

START_TEST(sizes_of_known_models)
{
    train_settings *s = &settings;
    s->depth = 12;
    s->width = 768;
    s->decoder.heads = s->decoder.kv_heads = 12;
    s->decoder.hidden = 3072;
    s->decoder.context = 1024;
    s->decoder.vocabulary = 50257;
    make("fp32");
    ck_assert_uint_eq(train_count_parameters(&run), 124439808); /* GPT-2 small */
    train_settings_init(s, "llama");
    make("fp32");
    /* tables and head 256 x 64, a block 4 of 64 x 64 and 3 of 64 x 176, norms without biases */
    ck_assert_uint_eq(train_count_parameters(&run), 2 * 256 * 64 + 2 * (4 * 64 * 64 + 3 * 64 * 176 + 2 * 64) + 64);
}

START_TEST(operations_of_a_step)
{
    train_operations o;
    const uint64_t linear = 512 * (2 * (3 * 64 * 64 + 64 * 64 + 2 * 64 * 256) + 64 * 256);
    const uint64_t attention = 2 * 2 * 8 * 64 * 64 * 64;
    make("fp32");
    train_operations_count(&o, &run, 0);
    ck_assert_uint_eq(o.count, 1);
    ck_assert_str_eq(o.rows[0].name, "binary32 x binary32");
    ck_assert_uint_eq(o.rows[0].n, 3 * (linear + attention));
    settings.decoder.accumulate = 2;
    settings.decoder.ranks = 3;
    make("nemo-fp8-hybrid-max");
    train_operations_count(&o, &run, 0);
    ck_assert_uint_eq(o.count, 3);
    ck_assert_str_eq(o.rows[0].name, "e4m3 x e4m3");
    ck_assert_uint_eq(o.rows[0].n, 6 * linear);
    ck_assert_str_eq(o.rows[1].name, "e5m2 x e4m3");
    ck_assert_uint_eq(o.rows[1].n, 12 * linear);
    ck_assert_str_eq(o.rows[2].name, "bf16 x bf16");
    ck_assert_uint_eq(o.rows[2].n, 18 * attention);
}

/* ---- texts ---- */

START_TEST(bytes_are_tokens)
{
    trace_error e = {0};
    write_file("0123456789abcdefghi\377", 20);
    ck_assert_msg(train_text_file_tokens(&text, path, 0, 0, &e) == 0, "%s", e.text);
    ck_assert_uint_eq(text.text.trained, 18);
    ck_assert_uint_eq(text.text.held, 2);
    ck_assert_uint_eq(text.text.vocabulary, 256);
    ck_assert_uint_eq(train_token(&text.text, 0), '0');
    ck_assert_uint_eq(train_token(&text.text, 19), 255);
    ck_assert_int_ne(train_text_file_tokens(&text, path, 0, 200, &e), 0);
    ck_assert_ptr_nonnull(strstr(e.text, "token 19 is 255, not below the vocabulary of 200"));
}

/* A file of llm.c with tokens of the given size, `there` of them. */
static void write_tokens(uint32_t magic, uint32_t version, uint32_t said, int size, size_t there)
{
    static unsigned char bytes[1024 + 4 * 64];
    const uint32_t head[] = {magic, version, said};
    memset(bytes, 0, sizeof bytes);
    for (size_t i = 0; i < 3; i++)
        for (int b = 0; b < 4; b++)
            bytes[4 * i + (size_t)b] = (unsigned char)(head[i] >> 8 * b);
    for (size_t i = 0; i < there; i++) {
        bytes[1024 + (size_t)size * i] = (unsigned char)i;
        bytes[1024 + (size_t)size * i + 1] = (unsigned char)(i % 2);
    }
    write_file(bytes, 1024 + (size_t)size * there);
}

START_TEST(tokens_of_llmc)
{
    static const struct {
        uint32_t magic, version, vocabulary;
        int size;
    } rows[] = {{20240520, 1, 50257, 2}, {20240801, 7, 128256, 4}};
    uint64_t digests[2];
    trace_error e = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        write_tokens(rows[i].magic, rows[i].version, 30, rows[i].size, 30);
        ck_assert_msg(train_text_file_tokens(&text, path, 1, 0, &e) == 0, "%s", e.text);
        ck_assert_uint_eq(text.text.trained, 27);
        ck_assert_uint_eq(text.text.held, 3);
        ck_assert_uint_eq(text.text.vocabulary, rows[i].vocabulary);
        ck_assert_uint_eq(train_token(&text.text, 29), 256 + 29);
        digests[i] = text.text.digest;
    }
    ck_assert_uint_eq(digests[0], digests[1]); /* of the numbers, not of the file */
}

START_TEST(bad_tokens)
{
    static const struct {
        uint32_t magic, version, said;
        size_t there;
        uint32_t vocabulary;
        const char *what;
    } rows[] = {{20240520, 1, 31, 30, 0, "the header says 31 tokens of 2 bytes, and 60 bytes are there"},
                {20240520, 1, UINT32_MAX, 30, 0, "the header says 4294967295 tokens"},
                {20240520, 1, 0, 1, 0, "the header says 0 tokens"},
                {20240520, 3, 30, 30, 0, "in version 3, not 1"},
                {20240326, 1, 30, 30, 0, "not a file of tokens of llm.c"},
                {20240520, 1, 30, 30, 257, "token 1 is 257, not below the vocabulary of 257"}};
    trace_error e = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        write_tokens(rows[i].magic, rows[i].version, rows[i].said, 2, rows[i].there);
        ck_assert_int_ne(train_text_file_tokens(&text, path, 1, rows[i].vocabulary, &e), 0);
        ck_assert_msg(strstr(e.text, rows[i].what) != NULL, "%s", e.text);
        ck_assert_int_eq(e.exit, 3);
    }
    for (size_t n = 0; n < 1024; n += 341) { /* a header that ends early */
        write_tokens(20240520, 1, 0, 2, 0);
        ck_assert_int_eq(truncate(path, (off_t)n), 0);
        ck_assert_int_ne(train_text_file_tokens(&text, path, 1, 0, &e), 0);
        ck_assert_msg(strstr(e.text, "too short") != NULL, "%s", e.text);
    }
}

START_TEST(names_of_texts)
{
    static const struct {
        const char *file, *name;
    } rows[] = {{"a text.txt", "a_text.txt"}, {"\xc3\xa4", "__"}};
    trace_error e = {0};
    for (size_t i = 0; i < COUNT(rows); i++) {
        char full[128];
        snprintf(full, sizeof full, "%s/%s", folder, rows[i].file);
        write_file("text", 4);
        ck_assert_int_eq(rename(path, full), 0);
        ck_assert_int_eq(train_text_file_tokens(&text, full, 0, 0, &e), 0);
        ck_assert_str_eq(text.text.name, rows[i].name);
        ck_assert_int_eq(unlink(full), 0);
    }
}

static void cases(TCase *t)
{
    tcase_add_checked_fixture(t, setup, teardown);
    tcase_add_loop_test(t, layers_are_placed, 0, (int)COUNT(placed));
    tcase_add_test(t, recipes_are_for_linear_layers);
    tcase_add_test(t, attention_in_fp8);
    tcase_add_test(t, attention_in_fp8_needs_a_recipe);
    tcase_add_test(t, blocks_at_the_ends_are_kept);
    tcase_add_test(t, defaults_of_transformers);
    tcase_add_test(t, sizes_of_known_models);
    tcase_add_test(t, operations_of_a_step);
    tcase_add_test(t, bytes_are_tokens);
    tcase_add_test(t, tokens_of_llmc);
    tcase_add_test(t, bad_tokens);
    tcase_add_test(t, names_of_texts);
}

int main(void)
{
    setenv("MPSIM_POLICIES", test_source_path("data/policies"), 1);
    if (!mkdtemp(folder))
        return EXIT_FAILURE;
    snprintf(path, sizeof path, "%s/file.yaml", folder);
    TCase *t = test_case("transformers", 60);
    cases(t);
    TCase *const all[] = {t, NULL};
    const int code = test_main("train-decoder", all);
    unlink(path);
    rmdir(folder);
    return code;
}
