/* activation.c -- GELU, SwiGLU and other functions of arrays, one number at a time: what activation.h computes in vectors. */
#include "../rows.h"
#include "kernel.h"

typedef mpsim_activate_job job;

static inline void round_to(const job *j, const mpsim_math *m, float *x, size_t n)
{
    if (m->kind != MPSIM_MATH_BINARY32)
        j->kernels->round(m, x, n);
}

/* Elements at a time: their functions are computed in between. */
enum { SOME = 128 };

/* t of GELUs. */
static inline void t_of(const job *j, const mpsim_math *m, float *t, const float *x, size_t n)
{
    const int erf = j->kind == MPSIM_GELU;
    for (size_t i = 0; i < n; i++) {
        const float v = mpsim_math_round(m, x[i]);
        t[i] = erf ? mpsim_gelu_erf_u(m, &j->g, v) : mpsim_gelu_tanh_u(m, &j->g, v);
    }
    (erf ? j->kernels->erf : j->kernels->tanh)(t, t, n);
    round_to(j, m, t, n);
}

/* s of gates. */
static inline void s_of(const job *j, const mpsim_math *m, float *s, const float *x, size_t n)
{
    size_t i = 0;
    do /* n > 0, which compilers want to see */
        s[i] = mpsim_math_round(m, x[i]);
    while (++i < n);
    j->kernels->sigmoid(s, s, n);
    round_to(j, m, s, n);
}

/* The function of n <= SOME numbers, rounded. */
static inline void function_of(const job *j, const mpsim_math *m, mpsim_layer_function *function, float *t,
                               const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        t[i] = mpsim_math_round(m, x[i]);
    function(t, t, n);
    round_to(j, m, t, n);
}

/* ---- ReLU: n <= SOME numbers at once, by their bits: loops of which compilers make vectors ---- */

/* x <= 0 becomes +0; NaN stays. */
static void relu_some(float *y, const float *x, size_t n)
{
    uint32_t u[SOME] = {0};
    memcpy(u, x, n * sizeof *u);
    for (size_t i = 0; i < SOME; i++) {
        const uint32_t is_number = ((u[i] & 0x7fffffff) - 0x7f800001) >> 31;
        u[i] &= (u[i] >> 31 & is_number) - 1;
    }
    memcpy(y, u, n * sizeof *u);
}

/* x where open > 0, else +0. */
static void pass_some(float *y, const float *x, const float *open, size_t n)
{
    uint32_t u[SOME] = {0}, o[SOME] = {0};
    memcpy(u, x, n * sizeof *u);
    memcpy(o, open, n * sizeof *o);
    for (size_t i = 0; i < SOME; i++) {
        const uint32_t is_open = ((o[i] - 0x7f800001) & (0 - o[i]) & ~o[i]) >> 31;
        u[i] &= 0 - is_open;
    }
    memcpy(y, u, n * sizeof *u);
}

static inline void relu(const mpsim_math *m, float *y, const float *x, size_t n)
{
    float t[SOME];
    if (m->kind == MPSIM_MATH_BINARY32) {
        relu_some(y, x, n);
        return;
    }
    for (size_t i = 0; i < n; i++)
        t[i] = mpsim_math_round(m, x[i]);
    relu_some(y, t, n);
}

/* ---- forward ---- */

static inline void gelu_some(const job *j, const mpsim_math *m, float *y, const float *x, size_t n)
{
    float t[SOME];
    t_of(j, m, t, x, n);
    for (size_t i = 0; i < n; i++)
        y[i] = mpsim_gelu_y(m, mpsim_math_round(m, x[i]), t[i]);
}

/* v: the values of gates; NULL: SiLU. */
static inline void silu_some(const job *j, const mpsim_math *m, float *y, const float *x, const float *v, size_t n)
{
    float t[SOME];
    s_of(j, m, t, x, n);
    for (size_t i = 0; i < n; i++)
        y[i] = v ? mpsim_swiglu_y(m, mpsim_math_round(m, x[i]), mpsim_math_round(m, v[i]), t[i])
                 : mpsim_silu_y(m, mpsim_math_round(m, x[i]), t[i]);
}

static inline void function_some(const job *j, const mpsim_math *m, float *y, const float *x, size_t n)
{
    float t[SOME];
    const mpsim_layer_kernels *k = j->kernels;
    function_of(j, m, j->kind == MPSIM_SIGMOID ? k->sigmoid : j->kind == MPSIM_TANH ? k->tanh : k->exp, t, x, n);
    memcpy(y, t, n * sizeof *y);
}

static inline void forward_some(const job *j, const mpsim_math *m, float *y, const float *x, const float *v, size_t n)
{
    if (j->kind <= MPSIM_GELU)
        gelu_some(j, m, y, x, n);
    else if (j->kind == MPSIM_RELU)
        relu(m, y, x, n);
    else if (j->kind <= MPSIM_SILU)
        silu_some(j, m, y, x, v, n);
    else
        function_some(j, m, y, x, n);
    round_to(j, &j->out, y, n);
}

/* v: the values of gates, or NULL. */
static inline void forward(const job *j, const mpsim_math *m, float *y, const float *x, const float *v, size_t n)
{
    for (size_t i = 0; i < n; i += SOME)
        forward_some(j, m, y + i, x + i, v ? v + i : NULL, n - i < SOME ? n - i : SOME);
}

void mpsim_activate_plain(const job *j, float *y, const float *x, const float *v, size_t n)
{
    MPSIM_ROWS_BY_MATH(&j->m, m, forward(j, m, y, x, v, n));
}

/* ---- backward ---- */

/* n gates, and their values. */
static inline void backward_gates(const job *j, const mpsim_math *m, float *dx, float *dv, const float *dy,
                                  const float *x, const float *v, size_t n)
{
    float s[SOME];
    s_of(j, m, s, x, n);
    for (size_t i = 0; i < n; i++) {
        const float gate = mpsim_math_round(m, x[i]), value = mpsim_math_round(m, v[i]);
        const float d = mpsim_math_round(m, dy[i]);
        dx[i] = mpsim_swiglu_dgate(m, d, gate, value, s[i]);
        dv[i] = mpsim_swiglu_dvalue(m, d, gate, s[i]);
    }
}

static inline void backward_gelu(const job *j, const mpsim_math *m, float *dx, const float *dy, const float *x,
                                 size_t n)
{
    float t[SOME], e[SOME];
    t_of(j, m, t, x, n);
    if (j->kind == MPSIM_GELU) {
        for (size_t i = 0; i < n; i++)
            e[i] = mpsim_gelu_power(m, mpsim_math_round(m, x[i]));
        j->kernels->exp(e, e, n);
        round_to(j, m, e, n);
    }
    for (size_t i = 0; i < n; i++) {
        const float v = mpsim_math_round(m, x[i]), d = mpsim_math_round(m, dy[i]);
        dx[i] = j->kind == MPSIM_GELU ? mpsim_gelu_erf_slope(m, &j->g, d, v, t[i], e[i])
                                      : mpsim_gelu_tanh_dx(m, &j->g, d, v, t[i]);
    }
}

/* y: what forward gave. */
static inline void backward_relu(const mpsim_math *m, float *dx, const float *dy, const float *y, size_t n)
{
    float d[SOME], o[SOME];
    if (m->kind == MPSIM_MATH_BINARY32) {
        pass_some(dx, dy, y, n);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        d[i] = mpsim_math_round(m, dy[i]);
        o[i] = mpsim_math_round(m, y[i]);
    }
    pass_some(dx, d, o, n);
}

static inline void backward_silu(const job *j, const mpsim_math *m, float *dx, const float *dy, const float *x,
                                 size_t n)
{
    float s[SOME];
    s_of(j, m, s, x, n);
    for (size_t i = 0; i < n; i++)
        dx[i] = mpsim_silu_dx(m, mpsim_math_round(m, dy[i]), mpsim_math_round(m, x[i]), s[i]);
}

static inline void backward_function(const job *j, const mpsim_math *m, float *dx, const float *dy, const float *y,
                                     size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const float d = mpsim_math_round(m, dy[i]), v = mpsim_math_round(m, y[i]);
        dx[i] = j->kind == MPSIM_SIGMOID ? mpsim_sigmoid_dx(m, d, v)
                : j->kind == MPSIM_TANH  ? mpsim_tanh_dx(m, d, v)
                                         : mpsim_exp_dx(m, d, v);
    }
}

static inline void backward_some(const job *j, const mpsim_math *m, float *dx, const float *dy, const float *x,
                                 size_t n)
{
    if (j->kind <= MPSIM_GELU)
        backward_gelu(j, m, dx, dy, x, n);
    else if (j->kind == MPSIM_RELU)
        backward_relu(m, dx, dy, x, n);
    else if (j->kind == MPSIM_SILU)
        backward_silu(j, m, dx, dy, x, n);
    else
        backward_function(j, m, dx, dy, x, n);
}

/* dv and v: the gradients and the values of gates, or NULL. */
static inline void backward(const job *j, const mpsim_math *m, float *dx, float *dv, const float *dy, const float *x,
                            const float *v, size_t n)
{
    for (size_t i = 0; i < n; i += SOME) {
        const size_t some = n - i < SOME ? n - i : SOME;
        if (v)
            backward_gates(j, m, dx + i, dv + i, dy + i, x + i, v + i, some);
        else
            backward_some(j, m, dx + i, dy + i, x + i, some);
        round_to(j, &j->out, dx + i, some);
        if (v)
            round_to(j, &j->out, dv + i, some);
    }
}

void mpsim_activate_back_plain(const job *j, float *dx, float *dv, const float *dy, const float *x, const float *v,
                               size_t n)
{
    MPSIM_ROWS_BY_MATH(&j->m, m, backward(j, m, dx, dv, dy, x, v, n));
}
