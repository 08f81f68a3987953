/* scaler.h -- loss scalers: what an overflow, or a clean step, does to the loss scale.
 *
 * One state machine with the differences between frameworks as fields; a row of the table is what a
 * framework ships. Nothing here looks at gradients: the caller says whether a step overflowed.
 *
 * Needs the default floating-point environment. */
#ifndef MPSIM_SCALER_H
#define MPSIM_SCALER_H

#include <mpsim/status.h>
#include <stddef.h>
#include <stdint.h>

MPSIM_BEGIN

/* When the scale grows. `clean` counts clean steps since the last overflow or growth. */
typedef enum mpsim_growth_rule {
    MPSIM_GROWTH_COUNTER,  /* this clean step is the window-th: then the counter is 0 again, also
                              where the growth was refused                                       */
    MPSIM_GROWTH_INTERVAL, /* DeepSpeed: k = step - last overflow - 1, steps counted from 0, last = -1
                              at first; grows if k > 0 and k is a multiple of the window, so on the
                              (window + 1)-th clean step, and every window steps after it         */
    MPSIM_GROWTH_MULTIPLE  /* fairseq: grows if step - last overflow is a multiple of the window,
                              counted alike                                                      */
} mpsim_growth_rule;

/* When the number of tolerated overflows is refilled: a set of these. */
enum {
    MPSIM_REFILL_CLEAN = 1,  /* on every clean step           */
    MPSIM_REFILL_GROWTH = 2, /* on growth                     */
    MPSIM_REFILL_BACKOFF = 4 /* when the scale has backed off */
};

/* The numbers in which the scale is kept. */
typedef enum mpsim_scale_arithmetic {
    MPSIM_SCALE_F32_F64, /* binary32; times a factor in binary64, rounded once to binary32 (torch) */
    MPSIM_SCALE_F32,     /* binary32; the factor is rounded to binary32 first                      */
    MPSIM_SCALE_F64      /* binary64 (a Python float)                                              */
} mpsim_scale_arithmetic;

/* Behaviour at the floor. */
typedef enum mpsim_floor_rule {
    MPSIM_FLOOR_CLAMP, /* the scale stays at the floor                                             */
    MPSIM_FLOOR_RAISE, /* as CLAMP; backing off from the floor itself is an error (DeepSpeed)      */
    MPSIM_FLOOR_STOP   /* backing off to the floor or below is an error; the scale keeps its old
                          value (fairseq)                                                          */
} mpsim_floor_rule;

/* Where in a step the scale is updated. */
typedef enum mpsim_update_order {
    MPSIM_UPDATE_AFTER_STEP,    /* torch, Keras, fairseq                                           */
    MPSIM_UPDATE_BEFORE_STEP,   /* after unscaling (Apex, Megatron): same numbers                  */
    MPSIM_UPDATE_BEFORE_UNSCALE /* DeepSpeed: gradients are unscaled with the new scale             */
} mpsim_update_order;

/* How gradients are unscaled; see mpsim_unscale_array in mpsim/gradient.h. */
typedef enum mpsim_unscale_rule {
    MPSIM_UNSCALE_RECIPROCAL, /* times f32(1 / S), the quotient in binary64                         */
    MPSIM_UNSCALE_DIVIDE,     /* divided by f32(S)                                                  */
    MPSIM_UNSCALE_ROUNDED     /* as RECIPROCAL, the factor rounded to the gradient's format first    */
} mpsim_unscale_rule;

/* Object of the overflow test. */
typedef enum mpsim_overflow_check {
    MPSIM_CHECK_ELEMENTS, /* every gradient element as it comes, scaled                             */
    MPSIM_CHECK_NORM      /* the norm of all scaled gradients, in binary32 (fairseq)                */
} mpsim_overflow_check;

typedef struct mpsim_scaler_config {
    char name[24];       /* "torch": the row it comes from                                          */
    uint8_t dynamic;     /* 0: the scale never changes                                              */
    uint8_t skip;        /* 1: a step that overflows is skipped; 0: it is taken, with Inf and NaN   */
    uint8_t growth_rule; /* mpsim_growth_rule                                                       */
    uint8_t refill;      /* set of MPSIM_REFILL_*                                                   */
    uint8_t arithmetic;  /* mpsim_scale_arithmetic                                                  */
    uint8_t guard;       /* 1: growth to infinity is refused, tested in binary32                    */
    uint8_t floor_rule;  /* mpsim_floor_rule                                                        */
    uint8_t order;       /* mpsim_update_order                                                      */
    uint8_t unscale;     /* mpsim_unscale_rule                                                      */
    uint8_t check;       /* mpsim_overflow_check                                                    */
    uint32_t hysteresis; /* >= 1: the overflow that backs off; those before it are tolerated        */
    uint64_t window;     /* >= 1: clean steps until growth                                          */
    double init;         /* >= 0, finite                                                            */
    double growth;       /* > 0, finite: the factor of growth                                       */
    double backoff;      /* > 0, finite: the factor of backing off. Frameworks with one factor
                            divide by it: give growth and 1 / growth; for powers of two the
                            numbers are the same                                                */
    double floor;        /* the smallest scale; 0: none                                             */
    double ceiling;      /* the largest scale; infinity: none                                       */
    double tolerance;    /* fairseq: backs off if overflows / steps since the last change of the
                            scale by an overflow or growth is at least this; 0: always              */
    double threshold;    /* fairseq: backing off stops at this value; 0: no such value              */
} mpsim_scaler_config;

/* A row: what a framework ships, with its source. */
typedef struct mpsim_scaler_type {
    mpsim_scaler_config config;
    const char *framework; /* "torch.amp.GradScaler, CUDA"                */
    const char *source;    /* file and snapshot                           */
    const char *note;      /* what a user should know, or NULL            */
} mpsim_scaler_type;

/* The table: none static megatron-static torch torch-cpu apex apex-hysteresis megatron deepspeed
 * deepspeed-fused deepspeed-unfused deepspeed-static keras tf-keras fairseq tutorial. Letter case and '_' for
 * '-' do not matter in mpsim_scaler_find; NULL for an unknown name and past the end. */
MPSIM_API size_t mpsim_scaler_count(void);
MPSIM_API const mpsim_scaler_type *mpsim_scaler_at(size_t i);
MPSIM_API const mpsim_scaler_type *mpsim_scaler_find(const char *name);

/* mpsim_scaler_parse -- a row, with changes: "torch", "torch:init=2^10,window=500".
 *
 * Keys: init growth backoff window hysteresis floor ceiling tolerance threshold (numbers; 2^N or 2**N,
 * decimal or C99 hexadecimal; ceiling may be "inf"), skip dynamic guard (0 or 1), refill
 * (clean, growth, backoff, joined by '+', or never), growth-rule (counter interval multiple),
 * floor-rule (clamp raise stop), order (after-step before-step before-unscale), unscale (reciprocal
 * divide rounded), arithmetic (f32-f64 f32 f64), check (elements norm). Each key at most once.
 * Changes may also be separated by ':' as the first one is. "static:1024" is short for "static:init=1024", as for every row. A user's own scaler is any row
 * with its changes.
 *
 * MPSIM_ENOTFOUND: no such row, key or word; MPSIM_EINVAL: a malformed number, a repeated key or an
 * argument that is NULL; MPSIM_ERANGE: a value outside its domain. *c is untouched then. */
MPSIM_API mpsim_status mpsim_scaler_parse(mpsim_scaler_config *c, const char *text);

/* mpsim_scaler_set -- one change: KEY and VALUE of mpsim_scaler_parse, of n and m characters. `given` is the set of keys that changes
 * have given so far, and gets this one; at first it is 0. mpsim_scaler_config_check says whether the fields together are a scaler.
 * MPSIM_ENOTFOUND, MPSIM_EINVAL, MPSIM_ERANGE: as mpsim_scaler_parse; *c and *given are untouched then. */
MPSIM_API mpsim_status mpsim_scaler_set(mpsim_scaler_config *c, unsigned *given, const char *key, size_t n,
                                        const char *value, size_t m);

/* mpsim_scaler_config_check -- MPSIM_OK if every field is in its domain, else MPSIM_EINVAL. */
MPSIM_API mpsim_status mpsim_scaler_config_check(const mpsim_scaler_config *c);

typedef struct mpsim_scaler {
    mpsim_scaler_config config;
    double scale;          /* the loss scale of the next step                                       */
    uint64_t step;         /* steps seen                                                            */
    uint64_t clean;        /* clean steps since the last overflow or growth: torch's growth tracker */
    int64_t last_overflow; /* index of the last step that overflowed; -1                            */
    int64_t last_rescale;  /* index of the last step that changed the scale; -1 (fairseq's)         */
    uint64_t overflows;    /* since last_rescale (fairseq's tolerance)                              */
    int64_t hysteresis;    /* overflows left until one backs off, that one included                 */
    uint8_t stopped;       /* 1: the framework has raised its error; further updates do nothing     */
} mpsim_scaler;

/* mpsim_scaler_init -- a scaler at its start. MPSIM_EINVAL if the configuration is invalid. */
MPSIM_API mpsim_status mpsim_scaler_init(mpsim_scaler *s, const mpsim_scaler_config *c);

/* Outcome of a step. */
enum {
    MPSIM_SCALER_OVERFLOW = 1,
    MPSIM_SCALER_SKIP = 2,       /* the optimizer's step is skipped                                   */
    MPSIM_SCALER_BACKOFF = 4,    /* the scale was multiplied by backoff, and cut if FLOORED            */
    MPSIM_SCALER_GROWTH = 8,     /* the scale was multiplied by growth, and cut if CEILING             */
    MPSIM_SCALER_TOLERATED = 16, /* an overflow that changed nothing (hysteresis, tolerance)          */
    MPSIM_SCALER_FLOORED = 32,   /* the floor (or threshold) cut the new scale                        */
    MPSIM_SCALER_CEILING = 64,   /* the ceiling cut the new scale                                     */
    MPSIM_SCALER_REFUSED = 128,  /* growth to infinity was refused                                    */
    MPSIM_SCALER_RAISED = 256    /* the framework raises an error here and training ends              */
};

typedef struct mpsim_scaler_result {
    unsigned events; /* set of MPSIM_SCALER_*                                                       */
    double scale;    /* that this step's loss was multiplied by                                     */
    double unscale;  /* that its gradients are unscaled with: the new scale under BEFORE_UNSCALE    */
    double next;     /* the scale of the next step                                                  */
} mpsim_scaler_result;

/* mpsim_scaler_update -- account for one step. A stopped scaler gives RAISED again and stays as it is.
 * A scale may become 0 or infinity, as it does in the frameworks. */
MPSIM_API mpsim_scaler_result mpsim_scaler_update(mpsim_scaler *s, int overflow);

/* mpsim_scaler_save -- the state, without the configuration, as one line of text: "scale=0x1p+16
 * step=12 clean=12 ...". Returns the length without the terminating zero; at most size - 1
 * characters are written, and a zero. mpsim_scaler_load reads it into a scaler with an equal
 * configuration: MPSIM_EINVAL, and an unchanged scaler, if the text is not one. */
MPSIM_API size_t mpsim_scaler_save(const mpsim_scaler *s, char *text, size_t size);
MPSIM_API mpsim_status mpsim_scaler_load(mpsim_scaler *s, const char *text);

/* ---- adaptive loss scaling, layer by layer (Zhao et al., 2020) ----
 *
 * The authors' rule "approx_range": the scale by which the gradient of a layer is multiplied, so that
 * at most a share n_uf of the products g * w underflow, from the statistics of the layer's output
 * gradient g and weight w. Computed in binary64, cut to a power of two. */
typedef struct mpsim_adaptive_config {
    double n_uf;          /* 1e-3: share that may underflow                                           */
    double u_min;         /* 6e-8: smallest magnitude of fp16                                         */
    double u_max;         /* 65504                                                                    */
    double upper;         /* 16: largest scale of one layer                                           */
    double accumulated;   /* 1024: largest product of all layers' scales                              */
    uint8_t power_of_two; /* 1                                                                      */
} mpsim_adaptive_config;

/* Mean, population standard deviation and largest magnitude of the elements. */
typedef struct mpsim_moments {
    double mean, deviation, amax;
} mpsim_moments;

MPSIM_API void mpsim_adaptive_init(mpsim_adaptive_config *c);

/* mpsim_adaptive_scale -- the scale of one layer; `previous` is the product of the scales of the layers
 * before it in the backward pass, and the new product is previous * result.
 *
 *   g, w    statistics of output gradient and weight; w NULL: the layer has no weight, and g are the
 *           statistics of ln |g| over its non-zero elements, amax of |g| itself
 *   fan_in  number of products in a sum: output channels times kernel, or rows of the weight
 *
 * Domain: 0 < n_uf < 1, fan_in > 0, previous > 0 and finite. 1 outside it, and if a deviation is 0 or
 * something is not finite. The last digits depend on the C library's erf, exp and log; with
 * power_of_two they decide only where a result is next to a power of two. */
MPSIM_API double mpsim_adaptive_scale(const mpsim_adaptive_config *c, const mpsim_moments *g, const mpsim_moments *w,
                                      double fan_in, double previous);

MPSIM_END

#endif
