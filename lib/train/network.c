/* network.c -- settings, layers, and how products run; see train.h. */
#include "trainer.h"

/* ---- settings ---- */

void train_settings_init(train_settings *s, const char *net)
{
    const int cnn = strcmp(net, "cnn") == 0;
    memset(s, 0, sizeof *s);
    snprintf(s->net, sizeof s->net, "%.15s", net);
    s->decoder.accumulate = s->decoder.ranks = 1;
    s->depth = 2;
    s->width = cnn ? 16 : 128;
    s->batchnorm = cnn ? 1 : 0;
    s->batch = 64;
    s->steps = cnn ? 200 : 500;
    s->gain = s->loss_factor = 1;
    strcpy(s->math, "binary32");
    strcpy(s->arch, "hopper");
    if (train_is_text(s))
        train_decoder_init(s);
}

static int check_settings(const train_settings *s, char *error)
{
    const int cnn = strcmp(s->net, "cnn") == 0, text = train_is_text(s);
    const unsigned deepest = cnn ? 3 : text ? TRAIN_DEEPEST : 20, widest = cnn ? 256 : TRAIN_MOST_WIDTH;
    mpsim_format math;
    if (!cnn && !text && strcmp(s->net, "mlp") != 0)
        return train_fail(error, "network must be mlp, cnn, gpt or llama, not '%.15s'", s->net);
    if (s->depth < 1 || s->depth > deepest)
        return train_fail(error, "%s: depth must be 1 to %u, not %u", s->net, deepest, (unsigned)s->depth);
    if (s->width < 1 || s->width > widest)
        return train_fail(error, "%s: width must be 1 to %u, not %u", s->net, widest, (unsigned)s->width);
    if (s->batch < 1 || s->batch > TRAIN_IMAGES)
        return train_fail(error, "batch must be 1 to %d, not %u", TRAIN_IMAGES, (unsigned)s->batch);
    if (s->steps < 1)
        return train_fail(error, "steps must be at least 1, not 0");
    if (!(s->gain >= 0 && s->gain <= 1e30))
        return train_fail(error, "gain must be 0 to 1e30, not %g", s->gain);
    if (!(s->loss_factor > 0 && s->loss_factor <= 1e300))
        return train_fail(error, "loss factor must be above 0 and at most 1e300, not %g", s->loss_factor);
    if (s->batchnorm > 1 || s->tf32 > 1)
        return train_fail(error, "batchnorm and tf32 must be 0 or 1");
    if (mpsim_format_parse(&math, s->math) || !train_fits_binary32(&math))
        return train_fail(error, "math '%.15s': " TRAIN_NO_FIT, s->math);
    return text ? train_decoder_check(s, error) : 0;
}

/* ---- layers ---- */

typedef struct stack {
    train_layer *layers;
    size_t n;
    uint32_t columns, side;
} stack;

static void push(stack *s, train_type type, const char *name, uint32_t k, uint32_t outputs)
{
    train_layer *l = &s->layers[s->n++];
    memset(l, 0, sizeof *l);
    if (k)
        snprintf(l->name, sizeof l->name, "%s%u", name, (unsigned)k);
    else
        snprintf(l->name, sizeof l->name, "%s", name);
    l->type = (uint8_t)type;
    l->inputs = s->columns;
    l->outputs = outputs ? outputs : s->columns;
    l->side = s->side;
    s->columns = l->outputs;
    if (type == TRAIN_MAXPOOL)
        s->side /= 2;
    if (type == TRAIN_FLATTEN)
        s->side = 0;
}

size_t train_network(const train_settings *s, train_layer layers[TRAIN_LAYERS], char *error)
{
    stack b = {.layers = layers, .columns = TRAIN_PIXELS};
    const int cnn = strcmp(s->net, "cnn") == 0;
    if (check_settings(s, error))
        return 0;
    if (train_is_text(s)) {
        const size_t n = train_decoder_layers(s, layers);
        return train_decoder_sizes(s, layers, n, error) ? 0 : n;
    }
    if (cnn) {
        b.columns = 1;
        b.side = TRAIN_SIDE;
    }
    for (uint32_t k = 1; k <= s->depth; k++) {
        push(&b, cnn ? TRAIN_CONV : TRAIN_LINEAR, cnn ? "conv" : "fc", k, cnn ? s->width << (k - 1) : s->width);
        if (s->batchnorm)
            push(&b, TRAIN_BATCHNORM, "bn", k, 0);
        push(&b, TRAIN_RELU, "relu", k, 0);
        if (cnn)
            push(&b, TRAIN_MAXPOOL, "pool", k, 0);
    }
    if (cnn)
        push(&b, TRAIN_FLATTEN, "flatten", 0, b.side * b.side * b.columns);
    push(&b, TRAIN_LINEAR, "head", 0, TRAIN_CLASSES);
    push(&b, TRAIN_LOSS, "loss", 0, 0);
    return b.n;
}

/* ---- products ---- */

/* The architectures of the table that have a default row for a and b (NULL: all), "ada, hopper". */
static const char *architectures(const mpsim_format *a, const mpsim_format *b, char *out, size_t size)
{
    const mpsim_format *fp32 = mpsim_format_find("binary32");
    const char *last = NULL;
    mpsim_model m, found;
    size_t n = 0;
    out[0] = 0;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++) {
        if (!m.architecture || (last && strcmp(last, m.architecture) == 0))
            continue;
        last = m.architecture;
        if (a && mpsim_model_for(&found, last, a, b, fp32))
            continue;
        const size_t before = n, k = (size_t)snprintf(out + n, size - n, "%s%s", n ? ", " : "", last);
        if ((n += k) >= size) { /* no part of a name */
            out[before] = 0;
            break;
        }
    }
    return out[0] ? out : "none";
}

static int is_architecture(const char *name)
{
    mpsim_model m;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++)
        if (m.architecture && strcmp(m.architecture, name) == 0)
            return 1;
    return 0;
}

static int has_scales(const char *architecture)
{
    mpsim_model m;
    for (size_t i = 0; mpsim_model_at(&m, i) == MPSIM_OK; i++)
        if (m.block && strcmp(m.architecture, architecture) == 0)
            return 1;
    return 0;
}

/* A model by name, its result widened to binary32. */
static int software_model(const char *name, mpsim_model *m, char *error)
{
    const mpsim_format *fp32 = mpsim_format_find("binary32");
    char text[96], known[128];
    if (strcmp(name, "fp32-sequential") == 0)
        name = "sequential";
    if (mpsim_model_parse(m, name))
        return train_fail(error,
                          "arch '%.63s': neither an architecture (%s) nor a model (exact, "
                          "fma, sequential, pairwise, chunked, ...)",
                          name, architectures(NULL, NULL, known, sizeof known));
    if (mpsim_format_same(&m->result.format, fp32))
        return 0;
    snprintf(text, sizeof text, "%.63s:result=binary32", name);
    if (m->result.format.mbits > 23 || mpsim_model_parse(m, text))
        return train_fail(error, "arch '%.63s' gives results in %s, not in binary32", name, m->result.format.name);
    return 0;
}

int train_model(const train_settings *s, const mpsim_format *a, const mpsim_format *b, mpsim_model *m, char *error)
{
    const mpsim_format *fp32 = mpsim_format_find("binary32");
    char known[128], arch[64];
    const int scaled = train_is_scaled(s, arch);
    if (scaled && !has_scales(arch))
        return train_fail(error, "arch '%.63s' takes no block scales: use blackwell-scaled or rtx-blackwell-scaled",
                          s->arch);
    if (!is_architecture(arch))
        return software_model(s->arch, m, error);
    if (mpsim_format_same(a, fp32) && mpsim_format_same(b, fp32))
        return mpsim_model_parse(m, "fma") ? train_fail(error, "no model fma") : 0;
    if (mpsim_model_for(m, arch, a, b, fp32))
        return train_fail(error, "arch %s has no products of %s and %s; with them: %s; or a model: exact, fma, ...",
                          s->arch, a->name, b->name, architectures(a, b, known, sizeof known));
    return 0;
}
