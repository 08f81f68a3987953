/* traits.c -- the table of algorithms: what each keeps, is told, begins with, and whether engines have it.
 *
 * Steps, engines, replays, trainings, policies and their messages look an optimizer up in this table; no code says
 * "not SGD". A row with `factors` steps whole tensors (`.tensor` of table.c) and keeps the moments of rows and
 * columns in the first elements of m and v. Two things are not in rows: Muon, a block beside an optimizer
 * (mpsim/muon.h), and moments in few bits (mpsim/optimstate.h). An engine without them has NULL for `muon` and
 * `keep`, and a training that needs them does not open. */
#include "../base/extent.h"
#include "steps.h"

#include "../base/words.h"

#include <stddef.h>
#include <string.h>

#define HAS(setting) (1u << MPSIM_OPTIM_##setting)

enum {
    ALL = HAS(LR) | HAS(WEIGHT_DECAY) | HAS(MAXIMIZE),
    OF_SGD = ALL | HAS(MOMENTUM) | HAS(DAMPENING) | HAS(NESTEROV),
    OF_LION = ALL | HAS(BETA1) | HAS(BETA2),
    OF_ADAFACTOR = ALL | HAS(EPS) | HAS(BETA2_DECAY) | HAS(EPS2) | HAS(D),
    OF_ADAM = ALL | HAS(BETA1) | HAS(BETA2) | HAS(EPS) | HAS(AMSGRAD)
};

#define TORCH "torch.optim."

/* clang-format off */
static const mpsim_optim_traits rows[MPSIM_OPTIM_ALGORITHMS] = {
    [MPSIM_OPTIM_SGD] = {.name = "sgd", .title = "SGD", .package = TORCH, .family = MPSIM_OPTIM_SGD, .settings = OF_SGD,
                         .copies = 1, .cuda = 1, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
    [MPSIM_OPTIM_ADAM] = {.name = "adam", .title = "Adam", .package = TORCH, .family = MPSIM_OPTIM_ADAM,
                          .settings = OF_ADAM, .arrays = MPSIM_OPTIM_M | MPSIM_OPTIM_V, .corrects = 1, .roots = 1,
                          .cuda = 1, .lr = 1e-3, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
    [MPSIM_OPTIM_ADAMW] = {.name = "adamw", .title = "AdamW", .package = TORCH, .family = MPSIM_OPTIM_ADAM,
                           .settings = OF_ADAM, .arrays = MPSIM_OPTIM_M | MPSIM_OPTIM_V, .decoupled = 1, .corrects = 1,
                           .roots = 1, .cuda = 1, .lr = 1e-3, .weight_decay = 1e-2, .beta1 = 0.9, .beta2 = 0.999, .eps = 1e-8},
    [MPSIM_OPTIM_LION] = {.name = "lion", .title = "Lion", .source = "arXiv 2302.06675", .package = "lion_pytorch.",
                          .family = MPSIM_OPTIM_LION,
                          .settings = OF_LION, .arrays = MPSIM_OPTIM_M, .decoupled = 1, .lr = 1e-4, .beta1 = 0.9,
                          .beta2 = 0.99, .eps = 1e-8},
    [MPSIM_OPTIM_ADAFACTOR] = {.name = "adafactor", .title = "Adafactor", .package = TORCH,
                               .source = "torch optim/_adafactor.py @051d6a09; arXiv 1804.04235",
                               .family = MPSIM_OPTIM_ADAFACTOR, .settings = OF_ADAFACTOR,
                               .arrays = MPSIM_OPTIM_M | MPSIM_OPTIM_V, .decoupled = 1, .corrects = 1, .factors = 1,
                               .lr = 1e-2, .eps = 0x1p-23, .beta2_decay = -0.8, .eps2 = 1e-3, .d = 1},
};
/* clang-format on */

static const mpsim_optim_traits none = {.name = NULL};

const mpsim_optim_traits *mpsim_optim_traits_of(int a)
{
    return a >= 0 && a < MPSIM_OPTIM_ALGORITHMS ? &rows[a] : &none;
}

const char *mpsim_optim_name(mpsim_optim_algorithm a)
{
    return mpsim_optim_traits_of((int)a)->name;
}

mpsim_status mpsim_optim_parse(mpsim_optim_algorithm *a, const char *name)
{
    if (!a || !name)
        return MPSIM_EINVAL;
    for (int i = 0; i < MPSIM_OPTIM_ALGORITHMS; i++)
        if (mpsim_same_word(name, strlen(name), rows[i].name)) {
            *a = (mpsim_optim_algorithm)i;
            return MPSIM_OK;
        }
    return MPSIM_ENOTFOUND;
}

unsigned mpsim_optim_arrays(const mpsim_optim *o)
{
    const mpsim_optim_traits *t = mpsim_optim_traits_of(o->algorithm);
    const unsigned largest = mpsim_optim_has(o->algorithm, MPSIM_OPTIM_AMSGRAD) && o->amsgrad ? MPSIM_OPTIM_VMAX : 0;
    return t->arrays | (o->momentum != 0 && mpsim_optim_has(o->algorithm, MPSIM_OPTIM_MOMENTUM) ? MPSIM_OPTIM_M : 0) |
           largest;
}

uint64_t mpsim_optim_elements(const mpsim_optim *o, unsigned array, uint64_t n)
{
    if (!(mpsim_optim_arrays(o) & array))
        return 0;
    if (!mpsim_optim_traits_of(o->algorithm)->factors)
        return n;
    const size_t of_one = array == MPSIM_OPTIM_M ? o->cols : o->rows;
    return !o->rows || !o->cols ? (array == MPSIM_OPTIM_V ? n : 0) : n / of_one;
}

int mpsim_optim_fits(const mpsim_optim *o, size_t n)
{
    if (!mpsim_fits(n, sizeof(double)))
        return 0;
    if (n == 0 || !mpsim_optim_traits_of(o->algorithm)->factors || (o->rows == 0 && o->cols == 0))
        return 1;
    return o->rows && o->cols && n % o->cols == 0 && n / o->cols % o->rows == 0;
}

/* ---- settings ---- */

static const char *const names[MPSIM_OPTIM_SETTINGS] = {[MPSIM_OPTIM_LR] = "lr",
                                                        [MPSIM_OPTIM_MOMENTUM] = "momentum",
                                                        [MPSIM_OPTIM_DAMPENING] = "dampening",
                                                        [MPSIM_OPTIM_WEIGHT_DECAY] = "weight_decay",
                                                        [MPSIM_OPTIM_BETA1] = "beta1",
                                                        [MPSIM_OPTIM_BETA2] = "beta2",
                                                        [MPSIM_OPTIM_EPS] = "eps",
                                                        [MPSIM_OPTIM_BETA2_DECAY] = "beta2_decay",
                                                        [MPSIM_OPTIM_EPS2] = "eps2",
                                                        [MPSIM_OPTIM_D] = "d",
                                                        [MPSIM_OPTIM_NESTEROV] = "nesterov",
                                                        [MPSIM_OPTIM_AMSGRAD] = "amsgrad",
                                                        [MPSIM_OPTIM_MAXIMIZE] = "maximize"};

const char *mpsim_optim_setting_name(mpsim_optim_setting s)
{
    return (unsigned)s < MPSIM_OPTIM_SETTINGS ? names[s] : NULL;
}

int mpsim_optim_has(int algorithm, mpsim_optim_setting s)
{
    return (unsigned)s < MPSIM_OPTIM_SETTINGS && mpsim_optim_traits_of(algorithm)->settings >> s & 1;
}

static const size_t numbers[MPSIM_OPTIM_NUMBERS] = {[MPSIM_OPTIM_LR] = offsetof(mpsim_optim, lr),
                                                    [MPSIM_OPTIM_MOMENTUM] = offsetof(mpsim_optim, momentum),
                                                    [MPSIM_OPTIM_DAMPENING] = offsetof(mpsim_optim, dampening),
                                                    [MPSIM_OPTIM_WEIGHT_DECAY] = offsetof(mpsim_optim, weight_decay),
                                                    [MPSIM_OPTIM_BETA1] = offsetof(mpsim_optim, beta1),
                                                    [MPSIM_OPTIM_BETA2] = offsetof(mpsim_optim, beta2),
                                                    [MPSIM_OPTIM_EPS] = offsetof(mpsim_optim, eps),
                                                    [MPSIM_OPTIM_BETA2_DECAY] = offsetof(mpsim_optim, beta2_decay),
                                                    [MPSIM_OPTIM_EPS2] = offsetof(mpsim_optim, eps2),
                                                    [MPSIM_OPTIM_D] = offsetof(mpsim_optim, d)};

static const size_t flags[MPSIM_OPTIM_SETTINGS - MPSIM_OPTIM_NUMBERS] = {
    [MPSIM_OPTIM_NESTEROV - MPSIM_OPTIM_NUMBERS] = offsetof(mpsim_optim, nesterov),
    [MPSIM_OPTIM_AMSGRAD - MPSIM_OPTIM_NUMBERS] = offsetof(mpsim_optim, amsgrad),
    [MPSIM_OPTIM_MAXIMIZE - MPSIM_OPTIM_NUMBERS] = offsetof(mpsim_optim, maximize)};

double mpsim_optim_value(const mpsim_optim *o, mpsim_optim_setting s)
{
    const char *const at = (const char *)o;
    double x = 0;
    if ((unsigned)s < MPSIM_OPTIM_NUMBERS)
        memcpy(&x, at + numbers[s], sizeof x);
    else if (s < MPSIM_OPTIM_SETTINGS)
        x = ((const uint8_t *)at)[flags[s - MPSIM_OPTIM_NUMBERS]];
    return x;
}

void mpsim_optim_set(mpsim_optim *o, mpsim_optim_setting s, double x)
{
    char *const at = (char *)o;
    if ((unsigned)s < MPSIM_OPTIM_NUMBERS)
        memcpy(at + numbers[s], &x, sizeof x);
    else if (s < MPSIM_OPTIM_SETTINGS)
        ((uint8_t *)at)[flags[s - MPSIM_OPTIM_NUMBERS]] = x != 0;
}
