/* t-run-text.c -- training runs as text: what is written is read again, what is broken is
 * refused; settings, layers, models, the order of images. */
#include "support/support.h"

#include <train/train.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- random runs ---- */

static const char *const format_names[] = {"binary32", "fp16", "bf16", "tf32",          "e5m10:bias=20",
                                           "e4m3",     "e5m2", "e6m9", "e4m3:fn:bias=5"};

static mpsim_format any_format(uint64_t *s)
{
    mpsim_format f;
    const size_t n = sizeof format_names / sizeof *format_names;
    ck_assert_int_eq(mpsim_format_parse(&f, format_names[test_random(s) % n]), MPSIM_OK);
    return f;
}

static double any_number(uint64_t *s)
{
    return ldexp((double)(1 + test_random(s) % 0xfffffffffffffu), (int)(test_random(s) % 40) - 60);
}

static void any_scaler(mpsim_scaler_config *c, uint64_t *s)
{
    do {
        *c = mpsim_scaler_at(test_random(s) % mpsim_scaler_count())->config;
        c->init = any_number(s);
        c->window = 1 + test_random(s) % 5000;
        c->hysteresis = (uint32_t)(1 + test_random(s) % 5);
        c->refill = (uint8_t)(test_random(s) % 8);
        c->order = (uint8_t)(test_random(s) % 3);
        c->unscale = (uint8_t)(test_random(s) % 3);
        c->check = (uint8_t)(test_random(s) % 2);
        c->arithmetic = (uint8_t)(test_random(s) % 3);
        c->ceiling = test_random(s) % 2 ? (double)INFINITY : 0x1p40;
    } while (mpsim_scaler_config_check(c));
}

static void any_optimizer(mpsim_optim *o, uint64_t *s)
{
    const mpsim_optim_variant *v;
    unsigned a;
    do {
        v = mpsim_optim_variant_at(test_random(s) % mpsim_optim_variant_count());
        a = (unsigned)(test_random(s) % MPSIM_OPTIM_ALGORITHMS);
    } while (!(v->algorithms >> a & 1));
    mpsim_optim_init(o, (mpsim_optim_algorithm)a, v);
    o->lr = any_number(s);
    o->weight_decay = test_random(s) % 2 ? any_number(s) : 0;
    o->eps = any_number(s);
    o->beta1 = 1 - 0x1p-10 * (double)(1 + test_random(s) % 1000);
    if (a == MPSIM_OPTIM_SGD)
        o->momentum = test_random(s) % 2 ? 0.9 : 0;
    do
        o->store = (uint8_t)(test_random(s) % 3);
    while (!(v->stores >> o->store & 1));
}

static void any_place(train_placement *p, uint64_t *s)
{
    static const train_role roles[] = {TRAIN_ACT, TRAIN_WEIGHT, TRAIN_AGRAD};
    for (int i = 0; i < TRAIN_ROLES; i++)
        p->format[i] = any_format(s);
    p->storage = any_format(s);
    p->kept = any_format(s);
    p->state = any_format(s);
    for (int i = 0; i < 3; i++)
        if (test_random(s) % 3 == 0)
            p->recipe[roles[i]] = mpsim_block_at(test_random(s) % mpsim_block_count());
    p->hadamard = test_random(s) % 3 ? 0 : 16;
    p->promote = test_random(s) % 3 ? 0 : (uint32_t)test_random(s);
}

static void any_plan(train_plan *p, size_t layers, uint64_t *s)
{
    memset(p, 0, sizeof *p);
    snprintf(p->precision, sizeof p->precision, "word%u", (unsigned)(test_random(s) % 100));
    for (size_t i = 0; i < layers; i++)
        any_place(&p->layers[i], s);
    p->master = (train_master)(test_random(s) % 3);
    any_scaler(&p->scaler, s);
    any_optimizer(&p->optimizer, s);
    p->clip = (mpsim_clip_rule)(test_random(s) % MPSIM_CLIP_RULES);
    p->max_norm = any_number(s);
    p->clip_scaled = p->clip != MPSIM_CLIP_NONE && !mpsim_clip_unscales(p->clip) && test_random(s) % 2;
    p->delayed = (int)(test_random(s) % 2);
    mpsim_delayed_config_init(&p->history, mpsim_format_find("e4m3"));
    p->history.history = (uint32_t)(1 + test_random(s) % 2000);
    p->history.algorithm = (uint8_t)(test_random(s) % 2);
    p->history.variant = (uint8_t)(test_random(s) % 3);
    p->history.margin = (int16_t)((int)(test_random(s) % 253) - 126);
}

static uint32_t below(uint64_t *s, uint32_t n)
{
    return (uint32_t)(test_random(s) % n);
}

static void any_decoder(train_settings *t, uint64_t *s)
{
    static const char *const math[] = {"", "bf16", "fp16", "binary32"};
    train_decoder *d = &t->decoder;
    t->batchnorm = 0;
    memset(d, 0, sizeof *d);
    d->kv_heads = 1 + below(s, 3);
    d->heads = d->kv_heads * (1 + below(s, 3));
    t->width = d->heads * 2 * (1 + below(s, 10));
    d->hidden = 1 + below(s, 300);
    d->context = 1 + below(s, 200);
    d->vocabulary = 256 + below(s, 1000);
    d->norm = (uint8_t)below(s, 2);
    d->activation = (uint8_t)below(s, 3);
    d->rotary = (uint8_t)below(s, 2);
    d->biases = (uint8_t)below(s, 2);
    d->tied = (uint8_t)below(s, 2);
    d->tile = below(s, 2) ? 0 : 1 + below(s, 100);
    strcpy(d->math_norm, math[below(s, 4)]);
    strcpy(d->math_softmax, math[below(s, 4)]);
    d->accumulate = 1 + below(s, 5);
    d->ranks = 1 + below(s, 5);
    strcpy(d->accumulate_format, math[1 + below(s, 3)]);
    strcpy(d->wire, math[1 + below(s, 3)]);
    strcpy(d->sum, math[1 + below(s, 3)]);
    d->reduce = (uint8_t)below(s, 3);
    d->decay = (uint8_t)below(s, 3);
    d->decay_all = (uint8_t)below(s, 2);
    d->warmup = below(s, 1000);
    d->cooldown = below(s, 1000);
    d->min_lr = 0x1p-10 * (double)below(s, 1025);
    d->validation = 1 + below(s, 100);
    snprintf(d->text, sizeof d->text, "text-%u", (unsigned)below(s, 1000));
    d->text_digest = test_random(s);
}

static void any_run(train_run *r, const char *net, uint64_t *s)
{
    char error[TRAIN_ERROR];
    memset(r, 0, sizeof *r);
    train_settings_init(&r->settings, net);
    r->settings.depth = (uint32_t)(1 + test_random(s) % 3);
    r->settings.width = (uint32_t)(1 + test_random(s) % 200);
    r->settings.batchnorm = (uint32_t)(test_random(s) % 2);
    r->settings.batch = (uint32_t)(1 + test_random(s) % 1437);
    r->settings.seed = test_random(s);
    r->settings.steps = test_random(s);
    r->settings.gain = any_number(s);
    r->settings.loss_factor = any_number(s);
    r->settings.tf32 = (uint32_t)(test_random(s) % 2);
    if (strcmp(net, "gpt") == 0 || strcmp(net, "llama") == 0)
        any_decoder(&r->settings, s);
    r->n_layers = train_network(&r->settings, r->layers, error);
    ck_assert_msg(r->n_layers > 0, "%s", error);
    r->n_plans = 1 + test_random(s) % 4;
    r->plans = calloc(r->n_plans, sizeof *r->plans);
    ck_assert_ptr_nonnull(r->plans);
    for (size_t i = 0; i < r->n_plans; i++) {
        any_plan(&r->plans[i], r->n_layers, s);
        r->plans[i].from = i ? r->plans[i - 1].from + 1 + test_random(s) % 100 : 0;
    }
}

/* ---- text ---- */

static char *text_of(const train_run *r, size_t *size)
{
    char *text = NULL;
    FILE *f = open_memstream(&text, size);
    ck_assert_ptr_nonnull(f);
    ck_assert_int_eq(train_run_write(r, f), 0);
    fclose(f);
    return text;
}

static int read_text(train_run *r, const char *text, size_t size, char *error)
{
    FILE *f = fmemopen((void *)(uintptr_t)text, size ? size : 1, "r");
    ck_assert_ptr_nonnull(f);
    if (!size)
        fgetc(f); /* the end is reached */
    error[0] = 0;
    const int code = train_run_read(r, f, error);
    fclose(f);
    return code;
}

static int same_format(const mpsim_format *a, const mpsim_format *b)
{
    return strcmp(a->name, b->name) == 0 && a->bits == b->bits && a->ebits == b->ebits && a->mbits == b->mbits &&
           a->inf == b->inf && a->nan == b->nan && a->zero == b->zero && a->bias == b->bias &&
           a->max_finite == b->max_finite && a->nan_code == b->nan_code;
}

static void same_place(const train_placement *a, const train_placement *b)
{
    for (int i = 0; i < TRAIN_ROLES; i++) {
        ck_assert(same_format(&a->format[i], &b->format[i]));
        ck_assert_ptr_eq(a->recipe[i], b->recipe[i]);
    }
    ck_assert(same_format(&a->storage, &b->storage));
    ck_assert(same_format(&a->kept, &b->kept));
    ck_assert(same_format(&a->state, &b->state));
    ck_assert_uint_eq(a->hadamard, b->hadamard);
    ck_assert_uint_eq(a->promote, b->promote);
}

static void same_plan(const train_plan *a, const train_plan *b, size_t layers)
{
    const mpsim_optim *o = &a->optimizer, *p = &b->optimizer;
    mpsim_scaler_config s = a->scaler, t = b->scaler;
    for (size_t i = 0; i < layers; i++)
        same_place(&a->layers[i], &b->layers[i]);
    ck_assert_uint_eq(a->from, b->from);
    ck_assert_str_eq(a->precision, b->precision);
    ck_assert_int_eq(a->master, b->master);
    ck_assert_str_eq(s.name, t.name);
    memset(s.name, 0, sizeof s.name);
    memset(t.name, 0, sizeof t.name);
    ck_assert_mem_eq(&s, &t, sizeof s);
    ck_assert_ptr_eq(o->variant, p->variant);
    ck_assert(o->algorithm == p->algorithm && o->store == p->store && o->nesterov == p->nesterov &&
              o->amsgrad == p->amsgrad && o->maximize == p->maximize && o->lr == p->lr && o->momentum == p->momentum &&
              o->dampening == p->dampening && o->weight_decay == p->weight_decay && o->beta1 == p->beta1 &&
              o->beta2 == p->beta2 && o->eps == p->eps);
    ck_assert(a->clip == b->clip && a->max_norm == b->max_norm && a->clip_scaled == b->clip_scaled &&
              a->delayed == b->delayed);
    ck_assert(a->history.history == b->history.history && a->history.margin == b->history.margin &&
              a->history.algorithm == b->history.algorithm && a->history.variant == b->history.variant);
}

static const char *const nets[] = {"mlp", "cnn", "gpt", "llama"};

CASE("text", 10);

TEST(round_trip)
{
    uint64_t s = test_seed();
    const size_t runs = test_scaled(60);
    for (size_t i = 0; i < runs; i++) {
        train_run r, again;
        char error[TRAIN_ERROR];
        size_t n, m;
        any_run(&r, nets[i % 4], &s);
        char *text = text_of(&r, &n);
        ck_assert_msg(read_text(&again, text, n, error) == 0, "%s\n%s", error, text);
        ck_assert_mem_eq(&r.settings, &again.settings, sizeof r.settings);
        ck_assert_mem_eq(r.layers, again.layers, sizeof r.layers);
        ck_assert_uint_eq(r.n_plans, again.n_plans);
        for (size_t k = 0; k < r.n_plans; k++)
            same_plan(&r.plans[k], &again.plans[k], r.n_layers);
        char *second = text_of(&again, &m);
        ck_assert_str_eq(text, second);
        free(text);
        free(second);
        train_run_clear(&r);
        train_run_clear(&again);
    }
}

/* The text of a small run with one plan. */
static char *small_text(const char *net, size_t *n)
{
    uint64_t s = 1;
    train_run r;
    do {
        any_run(&r, net, &s);
        if (r.n_plans == 2 && r.settings.depth == 1)
            break;
        train_run_clear(&r);
    } while (1);
    char *text = text_of(&r, n);
    train_run_clear(&r);
    return text;
}

TESTS(truncations_are_refused, 4)
{
    size_t n;
    char *text = small_text(nets[_i], &n), error[TRAIN_ERROR];
    for (size_t i = 0; i < n; i++) {
        train_run r;
        if (i > 100 && i + 100 < n && !test_in_part(i, 4))
            continue;
        const int code = read_text(&r, text, i, error);
        ck_assert_msg(code == -1 && error[0], "%zu of %zu characters are read", i, n);
        ck_assert_msg(strncmp(error, "run", 3) == 0, "%s", error);
        ck_assert_ptr_null(strchr(error, '\n'));
        ck_assert_ptr_null(r.plans);
    }
    free(text);
}

/* No byte that is changed may crash the reader or give a run that is not what the text says. */
TESTS(changed_bytes, 4)
{
    uint64_t s = test_seed() + 1;
    size_t n, m, refused = 0;
    char *text = small_text(nets[_i], &n), error[TRAIN_ERROR];
    const size_t tries = test_scaled(4000);
    for (size_t i = 0; i < tries; i++) {
        const size_t at = test_random(&s) % n;
        const char old = text[at];
        train_run r;
        text[at] = (char)(test_random(&s) % (i % 2 ? 256 : 128));
        if (read_text(&r, text, n, error) == 0) {
            char *again = text_of(&r, &m);
            train_run second;
            ck_assert_int_eq(read_text(&second, again, m, error), 0);
            train_run_clear(&second);
            train_run_clear(&r);
            free(again);
        } else {
            refused++;
            ck_assert(error[0] != 0);
            for (const char *c = error; *c; c++)
                ck_assert_msg(*c >= ' ' && *c < 127, "%s", error);
        }
        text[at] = old;
    }
    ck_assert_uint_gt(refused, tries / 2);
    free(text);
}

/* `from` replaced by `to` once; the error must contain `expected`. */
static const struct change {
    const char *from, *to, *expected;
} changes[] = {
    {"mpsim-run/1", "mpsim-run/2", "line 1: expected 'mpsim-run/1', not 'mpsim-run/2'"},
    {"\ndepth ", "\nwidth ", "line 3: 'depth' is due here"},
    {"\nbatch ", "\nbatch 0", "not a value here"},
    {"\nbatch ", "\nbatch 999999999999999999999", "not a value here"},
    {"\nbatch ", "\nbatch -", "not a value here"},
    {"\ntf32 ", "\ntf32 1 ", "expected the end of the line, found"},
    {"\ngain 0x", "\ngain nan0x", "not a value here"},
    {"\nmath binary32", "\nmath e8m0", "no signed format within binary32 with a NaN"},
    {"\nmath binary32", "\nmath binary64", "no signed format within binary32 with a NaN"},
    {"\nplan 0\n", "\nplan 1\n", "the first plan is of step 0"},
    {"\nplan 0\n", "\nplan 0\nplan 0\n", "'precision' is due here"},
    {"\nmaster ", "\nmaster x", "not a kind of master"},
    {"\nscaler ", "\nscaler x", "not a scaler"},
    {"init=", "init=1,init=", "not a scaler"},
    {"\noptimizer ", "\noptimizer x", "not an optimizer"},
    {" variant=", " variant=x", "not a variant"},
    {" lr=0x", " lr=-0x", "no optimizer has such settings"},
    {" lr=", " lr=0x1p+0 lr=", "a second time: 'lr'"},
    {" eps=", " esp=", "unknown key 'esp'"},
    {" eps=", " eps", "no '=' in"},
    {"\nclip ", "\nclip x", "not a rule"},
    {"\nfp8 delayed=", "\nfp8 delayed=2", "delayed= is 0 or 1"},
    {" history=", " history=0", "not a value here"},
    {" margin=", " margin=x", "not a value here"},
    {" margin=", " margin=3276", "not a value here"},
    {"\nlayer ", "\nlayer x", "not the layer that is due"},
    {" act=", " act=x", "not a value here"},
    {" act=", "  act=", "no '=' in"},
    {" out=", " outs=", "unknown key 'outs'"},
    {" state=", " hadamard=x state=", "not a value here: 'x'"},
    {" state=", " promote=-1 state=", "not a value here: '-1'"},
    {" state=", " promote=4294967296 state=", "not a value here"},
    {" state=", " promote=0 promote=0 state=", "a second time: 'promote'"},
    {"\nend\n", "\nend\nend\n", "text after the end"},
    {"\nend\n", "\n\n", "expected 'plan STEP' or 'end'"},
};

static const struct change decoder_changes[] = {
    {"\nheads ", "\nhead ", "'heads' is due here"},
    {"\nheads ", "\nheads 4294967295", "not a value here"},
    {"\nkv_heads ", "\nkv_heads 9", "kv_heads"},
    {"\nnorm ", "\nnorm x", "not a value here"},
    {"\nactivation ", "\nactivation x", "not a value here"},
    {"\nrotary ", "\nrotary 2", "not a value here"},
    {"\ntied ", "\ntied -", "not a value here"},
    {"\nmath_norm ", "\nmath_norm x", "no signed format within binary32 with a NaN"},
    {"\nmath_softmax ", "\nmath_softmax - ", "expected the end of the line, found"},
    {"\nwire ", "\nwire -", "no signed format within binary32 with a NaN"},
    {"\nreduce ", "\nreduce x", "not a value here"},
    {"\ndecay ", "\ndecay x", "not a value here"},
    {"\nmin_lr 0x", "\nmin_lr -0x", "min_lr"},
    {"\ntext ", "\ntext 0123456789012345678901234567890123456789012345678901234567890123", "not a value here"},
    {"\ntext_digest ", "\ntext_digest x", "not a value here"},
    {"\ntext_digest ", "\nplan ", "'text_digest' is due here"},
};

static void refused(const char *text, size_t n, const struct change *c)
{
    char error[TRAIN_ERROR];
    const char *at = strstr(text, c->from);
    char *bad = malloc(n + strlen(c->to) + 1);
    train_run r;
    ck_assert_ptr_nonnull(at);
    ck_assert_ptr_nonnull(bad);
    sprintf(bad, "%.*s%s%s", (int)(at - text), text, c->to, at + strlen(c->from));
    ck_assert_msg(read_text(&r, bad, strlen(bad), error) == -1, "%s is read", c->to);
    ck_assert_msg(strstr(error, c->expected) != NULL, "'%s': %s", c->to, error);
    free(bad);
}

/* Every size is in range, but not what they make together. */
TEST(too_large_together)
{
    uint64_t s = 1;
    size_t n;
    char error[TRAIN_ERROR];
    train_run r;
    any_run(&r, "gpt", &s);
    r.settings.batch = TRAIN_IMAGES;
    r.settings.decoder.context = 8192;
    r.settings.decoder.vocabulary = 1u << 20;
    char *text = text_of(&r, &n);
    train_run_clear(&r);
    ck_assert_int_eq(read_text(&r, text, n, error), -1);
    ck_assert_msg(strstr(error, "run: ") == error && strstr(error, ": a tensor of ") &&
                      strstr(error, " numbers: at most 2147483648 in all"),
                  "%s", error);
    free(text);
}

TEST(bad_text)
{
    size_t n;
    char *text = small_text("mlp", &n);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++)
        refused(text, n, &changes[i]);
    free(text);
    text = small_text("gpt", &n);
    for (size_t i = 0; i < sizeof decoder_changes / sizeof *decoder_changes; i++)
        refused(text, n, &decoder_changes[i]);
    free(text);
}

/* ---- networks ---- */

static void expect_layers(const char *net, uint32_t depth, uint32_t batchnorm, const char *expected)
{
    train_settings s;
    train_layer layers[TRAIN_LAYERS];
    char error[TRAIN_ERROR], text[2048] = "";
    size_t at = 0;
    train_settings_init(&s, net);
    s.depth = depth;
    s.batchnorm = batchnorm;
    const size_t n = train_network(&s, layers, error);
    for (size_t i = 0; i < n; i++) {
        const train_layer *l = &layers[i];
        at += (size_t)snprintf(text + at, sizeof text - at, "%s%s:%u>%u@%u", i ? " " : "", l->name, (unsigned)l->inputs,
                               (unsigned)l->outputs, (unsigned)l->side);
        ck_assert_uint_lt(at, sizeof text);
    }
    ck_assert_str_eq(text, expected);
}

CASE("networks", 5);

TEST(networks)
{
    expect_layers("mlp", 2, 0,
                  "fc1:64>128@0 relu1:128>128@0 fc2:128>128@0 relu2:128>128@0 "
                  "head:128>10@0 loss:10>10@0");
    expect_layers("mlp", 1, 1,
                  "fc1:64>128@0 bn1:128>128@0 relu1:128>128@0 head:128>10@0 "
                  "loss:10>10@0");
    expect_layers("cnn", 2, 1,
                  "conv1:1>16@8 bn1:16>16@8 relu1:16>16@8 pool1:16>16@8 "
                  "conv2:16>32@4 bn2:32>32@4 relu2:32>32@4 pool2:32>32@4 "
                  "flatten:32>128@2 head:128>10@0 loss:10>10@0");
    expect_layers("cnn", 3, 0,
                  "conv1:1>16@8 relu1:16>16@8 pool1:16>16@8 conv2:16>32@4 "
                  "relu2:32>32@4 pool2:32>32@4 conv3:32>64@2 relu3:64>64@2 "
                  "pool3:64>64@2 flatten:64>64@1 head:64>10@0 loss:10>10@0");
}

TEST(deepest_network_fits)
{
    train_settings s;
    train_layer layers[TRAIN_LAYERS];
    char error[TRAIN_ERROR];
    train_settings_init(&s, "mlp");
    s.depth = 20;
    s.batchnorm = 1;
    ck_assert_uint_eq(train_network(&s, layers, error), 62);
    s.depth = 21;
    ck_assert_uint_eq(train_network(&s, layers, error), 0);
    ck_assert_str_eq(error, "mlp: depth must be 1 to 20, not 21");
    train_settings_init(&s, "rnn");
    ck_assert_uint_eq(train_network(&s, layers, error), 0);
    ck_assert_str_eq(error, "network must be mlp, cnn, gpt or llama, not 'rnn'");
}

static void expect_model(const char *arch, const char *a, const char *b, const char *expected)
{
    train_settings s;
    mpsim_format fa, fb;
    mpsim_model m;
    char error[TRAIN_ERROR] = "";
    train_settings_init(&s, "mlp");
    snprintf(s.arch, sizeof s.arch, "%s", arch);
    ck_assert_int_eq(mpsim_format_parse(&fa, a), MPSIM_OK);
    ck_assert_int_eq(mpsim_format_parse(&fb, b), MPSIM_OK);
    const int code = train_model(&s, &fa, &fb, &m, error);
    const char *got = code ? error : m.name;
    ck_assert_msg(strncmp(got, expected, strlen(expected)) == 0, "%s %s %s: %s", arch, a, b, got);
    if (!code)
        ck_assert_str_eq(m.result.format.name, "binary32");
}

TEST(models)
{
    expect_model("hopper", "fp16", "fp16", "hopper-fp16-fp32");
    expect_model("hopper", "bf16", "bf16", "hopper-bf16-fp32");
    expect_model("hopper", "e4m3", "e5m2", "hopper-wgmma-fp8-fp32");
    expect_model("hopper", "binary32", "binary32", "fma");
    expect_model("hopper", "tf32", "tf32", "hopper-tf32-fp32");
    expect_model("volta", "bf16", "bf16",
                 "arch volta has no products of bf16 and bf16; with them: "
                 "ampere, ada, hopper, blackwell, rtx-blackwell, cdna1, cdna2, cdna3, avx512, amx, arm;");
    expect_model("rtx-blackwell-scaled", "bf16", "bf16", "rtx-blackwell-bf16-fp32");
    expect_model("hopper-scaled", "bf16", "bf16", "arch 'hopper-scaled' takes no block scales");
    expect_model("cdna3", "fp16", "fp16", "cdna3-fp16-fp32");
    expect_model("hopper", "e6m9", "e6m9",
                 "arch hopper has no products of e6m9 and e6m9; with "
                 "them: none; or a model: exact");
    expect_model("exact", "e6m9", "binary32", "exact");
    expect_model("fp32-sequential", "bf16", "bf16", "sequential");
    expect_model("fma:bf16", "bf16", "bf16", "fma:bf16:result=binary32");
    expect_model("hopper-wgmma-fp8-promoted", "e4m3", "e4m3", "hopper-wgmma-fp8-promoted");
    expect_model(
        "kepler", "fp16", "fp16",
        "arch 'kepler': neither an architecture (volta, turing, ampere, ada, hopper, blackwell, rtx-blackwell, "
        "cdna1, cdna2, cdna3, avx512, amx, arm) nor a model (exact, fma, ");
}

/* ---- data ---- */

/* The digits of the data set, as its authors count them (1797 images, first and last labels). */
TEST(digits)
{
    uint32_t counts[TRAIN_CLASSES] = {0};
    static const uint32_t expected[TRAIN_CLASSES] = {178, 182, 177, 183, 181, 182, 181, 179, 174, 180};
    double sum = 0;
    for (size_t i = 0; i < TRAIN_IMAGES + TRAIN_TESTS; i++) {
        float pixels[TRAIN_PIXELS];
        const uint32_t label = train_digit(i, pixels);
        ck_assert_uint_lt(label, TRAIN_CLASSES);
        counts[label]++;
        for (int k = 0; k < TRAIN_PIXELS; k++) {
            ck_assert(pixels[k] >= 0 && pixels[k] <= 1 && pixels[k] * 16 == floorf(pixels[k] * 16));
            sum += (double)pixels[k] * 16;
        }
    }
    for (int i = 0; i < TRAIN_CLASSES; i++)
        ck_assert_uint_eq(counts[i], expected[i]);
    ck_assert(sum == 561718); /* digits.data.sum() */
}

/* Every pass takes every image at most once; passes and seeds differ; a step is a function of its
 * number. */
TEST(order_of_images)
{
    uint32_t images[TRAIN_IMAGES], again[TRAIN_IMAGES];
    for (size_t batch = 1; batch <= TRAIN_IMAGES; batch = batch * 5 + 1) {
        uint8_t seen[TRAIN_IMAGES] = {0};
        const uint64_t steps = TRAIN_IMAGES / batch;
        for (uint64_t k = 0; k < steps && k < 30; k++) {
            train_batch(7, 3 * steps + k, batch, images);
            for (size_t i = 0; i < batch; i++) {
                ck_assert_uint_lt(images[i], TRAIN_IMAGES);
                ck_assert_uint_eq(seen[images[i]]++, 0);
            }
        }
    }
    train_batch(0, 0, TRAIN_IMAGES, images);
    train_batch(0, 0, TRAIN_IMAGES, again);
    ck_assert_mem_eq(images, again, sizeof images);
    train_batch(0, 1, TRAIN_IMAGES, again);
    ck_assert_mem_ne(images, again, sizeof images);
    train_batch(1, 0, TRAIN_IMAGES, again);
    ck_assert_mem_ne(images, again, sizeof images);
    train_batch(0, 1, 64, again);
    ck_assert_mem_eq(images + 64, again, 64 * sizeof *images);
}

/* The order by the words of the generator, written out again. */
TEST(order_by_hand)
{
    uint32_t order[TRAIN_IMAGES], images[TRAIN_IMAGES];
    uint64_t stream = 0xcbf29ce484222325u;
    for (const char *c = "order of pass 2"; *c; c++)
        stream = (stream ^ (unsigned char)*c) * 0x100000001b3u;
    ck_assert_uint_eq(stream, train_stream("order of pass 2"));
    for (uint32_t k = 0; k < TRAIN_IMAGES; k++)
        order[k] = k;
    for (uint32_t k = TRAIN_IMAGES; k-- > 1;) {
        const double share = (double)mpsim_rng_word(5, stream, k) / 0x1p32;
        const uint32_t j = (uint32_t)floor(share * (k + 1.0)), x = order[k];
        order[k] = order[j];
        order[j] = x;
    }
    train_batch(5, 2 * (TRAIN_IMAGES / 100) + 3, 100, images);
    ck_assert_mem_eq(images, order + 300, 100 * sizeof *order);
}

TEST_MAIN("train-plan");
