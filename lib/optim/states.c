/* states.c -- the tables of mpsim/optimstate.h: arrays in few bits, and what optimizers keep in them. */
#include <mpsim/optimstate.h>

#include "../base/words.h"

#include <string.h>

/* ---- arrays ---- */

/* clang-format off */
#define MAP(n, b, size, which, once) \
    {.name = (n), .rule = MPSIM_STATE_MAP, .bits = (b), .numbers = 1, .block = (size), .map = (which), \
     .shared = (once), .least = 1e-12}
/* clang-format on */
#define CODES(n, r, b, count, size, f, add, l)                                                                    \
    {                                                                                                             \
        .name = (n), .rule = (r), .bits = (b), .numbers = (count), .block = (size), .format = (f), .adds = (add), \
        .least = (l)                                                                                              \
    }

enum {
    DYNAMIC,
    DYNAMIC_V,
    SHARED,
    SHARED_V,
    DYNAMIC_4,
    LINEAR_4,
    E4M3,
    GROUP,
    COAT,
    COAT_E5M2,
    SCALED,
    SCALED_FP16,
    STATES
};

static const mpsim_state states[STATES] = {
    [DYNAMIC] = MAP("dynamic8", 8, 256, MPSIM_MAP_SIGNED, 0),
    [DYNAMIC_V] = MAP("dynamic8-unsigned", 8, 256, MPSIM_MAP_UNSIGNED, 0),
    [SHARED] = MAP("dynamic8-shared", 8, 256, MPSIM_MAP_SIGNED, 1),
    [SHARED_V] = MAP("dynamic8-unsigned-shared", 8, 256, MPSIM_MAP_UNSIGNED, 1),
    [DYNAMIC_4] = MAP("dynamic4", 4, 128, MPSIM_MAP_SIGNED, 0),
    [LINEAR_4] = MAP("linear4", 4, 128, MPSIM_MAP_LINEAR, 0),
    [E4M3] = CODES("e4m3/256", MPSIM_STATE_SCALED, 8, 1, 256, "e4m3", 0, 1e-12),
    [GROUP] = CODES("group-e4m3", MPSIM_STATE_SCALED, 8, 1, 128, "e4m3", 1, 1e-20),
    [COAT] = CODES("coat-e4m3", MPSIM_STATE_EXPANDED, 8, 3, 128, "e4m3", 1, 1e-20),
    [COAT_E5M2] = CODES("coat-e5m2", MPSIM_STATE_EXPANDED, 8, 3, 128, "e5m2", 1, 1e-20),
    [SCALED] = CODES("scaled-e4m3", MPSIM_STATE_POWER, 8, 1, 0, "e4m3", 0, 0),
    [SCALED_FP16] = CODES("scaled-fp16", MPSIM_STATE_POWER, 16, 1, 0, "fp16", 0, 0),
};

size_t mpsim_state_count(void)
{
    return STATES;
}

const mpsim_state *mpsim_state_at(size_t i)
{
    return i < STATES ? &states[i] : NULL;
}

const mpsim_state *mpsim_state_find(const char *name)
{
    for (size_t i = 0; name && i < STATES; i++)
        if (mpsim_same_word(name, strlen(name), states[i].name))
            return &states[i];
    return NULL;
}

uint64_t mpsim_state_blocks(const mpsim_state *s, uint64_t n)
{
    return s->block == 0 ? n > 0 : n / s->block + (n % s->block != 0);
}

uint64_t mpsim_state_bytes(const mpsim_state *s, uint64_t n)
{
    const uint64_t map = s->rule == MPSIM_STATE_MAP && !s->shared ? (uint64_t)4 << s->bits : 0;
    const uint64_t whole = s->bits / 8u, blocks = mpsim_state_blocks(s, n), room = UINT64_MAX - map;
    if (whole && n > room / whole)
        return UINT64_MAX;
    const uint64_t codes = s->bits == 4 ? n / 2 + n % 2 : n * whole;
    return blocks > (room - codes) / (4u * s->numbers) ? UINT64_MAX : codes + 4u * s->numbers * blocks + map;
}

/* ---- what optimizers keep ---- */

#define PAPER "arXiv 2410.19313; NVlabs/VILA @36f6adcd "
#define KERNEL PAPER "fp8_adamw_expand_cuda_kernel.cu; groups of 128, k in 16ths by its settings"
#define DEVICE "powf and log2f of the device; the paper's k, log(448 / 2^-9) / log(range), is another"

/* clang-format off */
static const mpsim_states rows[] = {
    {.name = "torchao-8bit", .m = &states[DYNAMIC], .v = &states[DYNAMIC_V], .least = 4096, .whole = 1,
     .what = "8-bit moments in blocks of 256, torchao's Adam8bit and AdamW8bit",
     .source = "recorded, torchao 0.18.0: data/vectors/optim-states"},
    {.name = "torchao-4bit", .m = &states[DYNAMIC_4], .v = &states[LINEAR_4], .least = 4096, .whole = 1,
     .what = "4-bit moments in blocks of 128, torchao's Adam4bit and AdamW4bit",
     .source = "recorded, torchao 0.18.0: data/vectors/optim-states"},
    {.name = "torchao-fp8", .m = &states[E4M3], .v = &states[E4M3], .least = 4096, .whole = 1,
     .what = "E4M3 moments in blocks of 256, torchao's AdamFp8 and AdamWFp8",
     .source = "recorded, torchao 0.18.0: data/vectors/optim-states"},
    {.name = "bitsandbytes-8bit", .m = &states[SHARED], .v = &states[SHARED_V], .least = 4096, .binary32 = 1,
     .what = "8-bit moments in blocks of 256, bitsandbytes' map",
     .source = "bitsandbytes optim/optimizer.py @51294d90; arXiv 2110.02861",
     .open = "which neighbour its kernels take; torchao's rule stands here"},
    {.name = "coat", .m = &states[COAT], .v = &states[COAT],
     .what = "E4M3 moments in groups of 128, their range expanded: COAT", .source = KERNEL, .open = DEVICE},
    {.name = "coat-e5m2", .m = &states[COAT], .v = &states[COAT_E5M2],
     .what = "COAT with a second moment in E5M2", .source = KERNEL,
     .open = DEVICE "; the kernel has E4M3 alone"},
    {.name = "coat-plain", .m = &states[GROUP], .v = &states[GROUP],
     .what = "E4M3 moments in groups of 128, COAT without expansion",
     .source = PAPER "fp8_adamw_cuda_kernel.cu", .open = "no run compared"},
    {.name = "fp8-lm", .m = &states[SCALED], .v = &states[SCALED_FP16], .kept = &states[SCALED_FP16],
     .what = "E4M3 first moment, fp16 second moment and master, a power of two each: FP8-LM, MS-AMP",
     .source = "arXiv 2310.18313; Azure/MS-AMP msamp/optim/adamw.cu @4480ffa4, adamw.py @03d05edc, "
               "common/tensor/meta.py @0367bdc5",
     .open = "no run compared"},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof rows[0] };

size_t mpsim_states_count(void)
{
    return ROWS;
}

const mpsim_states *mpsim_states_at(size_t i)
{
    return i < ROWS ? &rows[i] : NULL;
}

const mpsim_states *mpsim_states_find(const char *name)
{
    for (size_t i = 0; name && i < ROWS; i++)
        if (mpsim_same_word(name, strlen(name), rows[i].name))
            return &rows[i];
    return NULL;
}

int mpsim_states_apply(const mpsim_states *s, const mpsim_state *array, uint64_t n)
{
    return array && n >= s->least && (!s->whole || n % array->block == 0);
}
