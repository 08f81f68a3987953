/* t-gradients.c -- gradients of a step: against differences of a network in binary64; those by copies in narrower formats
 * are close to them. */
#include "support/trainruns.h"

/* The network in binary64, written from its definition; weights in one array, in train_visit's
 * order of "weight:". */
typedef struct network {
    const train_run *r;
    const double *weights[2 * TRAIN_LAYERS]; /* weight and bias of layers, or NULL */
} network;

enum { LARGEST = 20 * 64 * 64 };

static void go_linear(const train_layer *l, const double *w, const double *b, const double *x, double *y, size_t rows)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t o = 0; o < l->outputs; o++) {
            double s = b[o];
            for (size_t k = 0; k < l->inputs; k++)
                s += x[i * l->inputs + k] * w[o * l->inputs + k];
            y[i * l->outputs + o] = s;
        }
}

static void go_conv(const train_layer *l, const double *w, const double *x, double *y, size_t images)
{
    const int side = (int)l->side, in = (int)l->inputs, out = (int)l->outputs;
    for (int n = 0; n < (int)images; n++)
        for (int i = 0; i < side; i++)
            for (int j = 0; j < side; j++)
                for (int o = 0; o < out; o++) {
                    double s = 0;
                    for (int u = -1; u <= 1; u++)
                        for (int v = -1; v <= 1; v++)
                            for (int c = 0; c < in; c++)
                                if (i + u >= 0 && i + u < side && j + v >= 0 && j + v < side)
                                    s += x[((n * side + i + u) * side + j + v) * in + c] *
                                         w[((o * 3 + u + 1) * 3 + v + 1) * in + c];
                    y[((n * side + i) * side + j) * out + o] = s;
                }
}

static void go_norm(const train_layer *l, const double *w, const double *b, const double *x, double *y, size_t rows)
{
    for (size_t c = 0; c < l->inputs; c++) {
        double mean = 0, var = 0;
        for (size_t i = 0; i < rows; i++)
            mean += x[i * l->inputs + c] / (double)rows;
        for (size_t i = 0; i < rows; i++)
            var += pow(x[i * l->inputs + c] - mean, 2) / (double)rows;
        for (size_t i = 0; i < rows; i++)
            y[i * l->inputs + c] = (x[i * l->inputs + c] - mean) / sqrt(var + 1e-5) * w[c] + b[c];
    }
}

static void go_pool(const train_layer *l, const double *x, double *y, size_t images)
{
    const size_t side = l->side, half = side / 2, channels = l->inputs;
    for (size_t n = 0; n < images; n++)
        for (size_t i = 0; i < half; i++)
            for (size_t j = 0; j < half; j++)
                for (size_t c = 0; c < channels; c++) {
                    const double *at = x + ((n * side + 2 * i) * side + 2 * j) * channels + c;
                    const double up = fmax(at[0], at[channels]);
                    at += side * channels;
                    y[((n * half + i) * half + j) * channels + c] = fmax(up, fmax(at[0], at[channels]));
                }
}

static double go_loss(const double *x, const uint32_t *labels, size_t rows)
{
    double loss = 0;
    for (size_t i = 0; i < rows; i++) {
        double s = 0;
        for (int j = 0; j < TRAIN_CLASSES; j++)
            s += exp(x[i * TRAIN_CLASSES + (size_t)j]);
        loss += log(s) - x[i * TRAIN_CLASSES + labels[i]];
    }
    return loss / (double)rows;
}

static double forward(const network *w, const double *pixels, const uint32_t *labels)
{
    static double a[LARGEST], b[LARGEST];
    const size_t images = w->r->settings.batch;
    double *x = a, *y = b;
    memcpy(x, pixels, images * TRAIN_PIXELS * sizeof *x);
    for (size_t i = 0; i < w->r->n_layers; i++) {
        const train_layer *l = &w->r->layers[i];
        const size_t rows = l->side ? images * l->side * l->side : images;
        const double *weight = w->weights[2 * i], *bias = w->weights[2 * i + 1];
        switch ((train_type)l->type) {
        case TRAIN_LINEAR:
            go_linear(l, weight, bias, x, y, rows);
            break;
        case TRAIN_CONV:
            go_conv(l, weight, x, y, images);
            break;
        case TRAIN_BATCHNORM:
            go_norm(l, weight, bias, x, y, rows);
            break;
        case TRAIN_MAXPOOL:
            go_pool(l, x, y, images);
            break;
        case TRAIN_RELU:
            for (size_t k = 0; k < rows * l->inputs; k++)
                y[k] = x[k] > 0 ? x[k] : 0;
            break;
        case TRAIN_LOSS:
            return go_loss(x, labels, images);
        default:
            continue; /* flatten: the same numbers in the same order */
        }
        double *old = x;
        x = y;
        y = old;
    }
    return 0;
}

typedef struct parameters {
    size_t n, size[2 * TRAIN_LAYERS];
    double *values[2 * TRAIN_LAYERS];
    char names[2 * TRAIN_LAYERS][2 * TRAIN_NAME];
    train_engine *e;
} parameters;

static int take_weight(const train_item *x, void *context)
{
    parameters *p = context;
    const size_t n = x->tensor->rows * x->tensor->cols;
    if (strncmp(x->name, "weight:", 7) != 0)
        return 0;
    float *narrow = malloc(n * sizeof *narrow);
    double *wide = malloc(n * sizeof *wide);
    ck_assert(narrow && wide && p->e->ops->get(p->e, x->tensor, narrow) == 0);
    for (size_t i = 0; i < n; i++)
        wide[i] = (double)narrow[i];
    free(narrow);
    strcpy(p->names[p->n], x->name);
    p->size[p->n] = n;
    p->values[p->n++] = wide;
    return 0;
}

static void wire(network *w, const parameters *p)
{
    size_t k = 0;
    for (size_t i = 0; i < w->r->n_layers; i++) {
        const train_layer *l = &w->r->layers[i];
        if (l->type > TRAIN_BATCHNORM)
            continue;
        w->weights[2 * i] = p->values[k++];
        if (l->type != TRAIN_CONV)
            w->weights[2 * i + 1] = p->values[k++];
    }
    ck_assert_uint_eq(k, p->n);
}

static void check_gradient(train *t, const network *w, parameters *p, size_t k, const double *pixels,
                           const uint32_t *labels)
{
    char name[2 * TRAIN_NAME + 8];
    size_t n;
    double error = 0, size = 0;
    snprintf(name, sizeof name, "wgrad:%s", strchr(p->names[k], ':') + 1);
    float *g = values_of(t, name, &n);
    ck_assert_uint_eq(n, p->size[k]);
    for (size_t i = 0; i < n; i += 1 + n / 40) {
        const double x = p->values[k][i], h = 1e-6;
        p->values[k][i] = x + h;
        const double up = forward(w, pixels, labels);
        p->values[k][i] = x - h;
        const double down = forward(w, pixels, labels);
        p->values[k][i] = x;
        const double expected = (up - down) / (2 * h);
        error = fmax(error, fabs((double)g[i] - expected));
        size = fmax(size, fabs(expected));
    }
    free(g);
    /* a bias before a batch normalisation has gradient 0 */
    ck_assert_msg(error < 2e-5 * size + 1e-7, "%s: off by %g of %g", name, error, size);
}

static void check_gradients(const char *net, int batchnorm, uint32_t depth)
{
    const recipe_of_run c = {.net = net, .low = "binary32", .optimizer = "sgd", .batchnorm = batchnorm};
    static double pixels[20 * TRAIN_PIXELS];
    uint32_t images[20], labels[20];
    train_engine e;
    train_run r;
    parameters p = {.e = &e};
    char error[TRAIN_ERROR] = "";
    make_run(&r, &c);
    r.settings.depth = depth;
    r.settings.width = 5;
    strcpy(r.settings.arch, "exact");
    r.n_layers = train_network(&r.settings, r.layers, error);
    fill_plan(r.plans, &r, &c, c.low);
    network w = {.r = &r};
    ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
    train *t = begin(&r, &e);
    train_visit(t, take_weight, &p);
    wire(&w, &p);
    train_batch(r.settings.seed, 0, 20, images);
    for (size_t i = 0; i < 20; i++) {
        float digit[TRAIN_PIXELS];
        labels[i] = train_digit(images[i], digit);
        for (size_t k = 0; k < TRAIN_PIXELS; k++)
            pixels[i * TRAIN_PIXELS + k] = (double)digit[k];
    }
    const double loss = forward(&w, pixels, labels);
    const train_step s = next(t);
    ck_assert_msg(fabs((double)s.loss - loss) < 1e-6, "%.9g and %.9g", (double)s.loss, loss);
    for (size_t k = 0; k < p.n; k++)
        check_gradient(t, &w, &p, k, pixels, labels);
    for (size_t k = 0; k < p.n; k++)
        free(p.values[k]);
    train_close(t);
    train_engine_close(&e);
    train_run_clear(&r);
}

CASE("gradients", 20);

TEST(gradients)
{
    check_gradients("mlp", 0, 2);
    check_gradients("mlp", 1, 2);
    check_gradients("cnn", 0, 1);
    check_gradients("cnn", 1, 2);
    check_gradients("cnn", 0, 3);
}

/* Copies for products change gradients by their rounding only, and by the units that it turns on or
 * off, whatever transposition they are made in: distances from binary32, relative to its norm. */
TEST(copies_are_close)
{
    static const struct {
        const char *low, *recipe;
        int tf32;
        double bound;
    } cases[] = {{"binary32", NULL, 1, 0.1},
                 {"bf16", NULL, 0, 0.1},
                 {"fp16", NULL, 0, 0.1},
                 {"bf16", "te-current", 0, 0.4},
                 {"bf16", "mxfp8", 0, 0.4},
                 {"bf16", "te-block-1x128", 0, 0.4},
                 {"bf16", "torchao-rowwise", 0, 0.4},
                 {"bf16", "te-block-128x128", 0, 0.4}};
    static const char *const nets[] = {"mlp", "cnn"};
    for (size_t i = 0; i < 2 * sizeof cases / sizeof *cases; i++) {
        const char *const net = nets[i % 2];
        const recipe_of_run exact = {.net = net, .low = "binary32", .optimizer = "sgd"};
        const recipe_of_run c = {
            .net = net, .low = cases[i / 2].low, .kept = "binary32", .optimizer = "sgd", .recipe = cases[i / 2].recipe};
        train_engine e;
        train_run r[2];
        make_run(&r[0], &exact);
        make_run(&r[1], &c);
        r[1].settings.tf32 = (uint32_t)cases[i / 2].tf32;
        ck_assert_int_eq(train_engine_cpu(&e, NULL), 0);
        train *t[2] = {begin(&r[0], &e), begin(&r[1], &e)};
        next(t[0]);
        next(t[1]);
        for (size_t k = 0; k < 3; k++) {
            static const char *const names[2][3] = {{"wgrad:fc1.weight", "wgrad:fc2.weight", "dgrad:fc2"},
                                                    {"wgrad:conv1.weight", "wgrad:conv2.weight", "dgrad:conv2"}};
            size_t n;
            double distance = 0, size = 0;
            float *x = values_of(t[0], names[i % 2][k], &n);
            float *y = values_of(t[1], names[i % 2][k], &n);
            for (size_t j = 0; j < n; j++) {
                distance += pow((double)x[j] - (double)y[j], 2);
                size += pow((double)x[j], 2);
            }
            ck_assert_msg(distance > 0 && sqrt(distance / size) < cases[i / 2].bound, "%s %s: %g", names[i % 2][k],
                          c.recipe ? c.recipe : c.low, sqrt(distance / size));
            free(x);
            free(y);
        }
        train_close(t[0]);
        train_close(t[1]);
        train_run_clear(&r[0]);
        train_run_clear(&r[1]);
        train_engine_close(&e);
    }
}

TEST_MAIN("train-gradients");
