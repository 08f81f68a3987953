/* record.c -- what the metadata of a step's files say; see state.h. */
#include "state.h"

#include <math.h>
#include <stdarg.h>
#include <string.h>
#include <strings.h>

int replay_bad_file(const trace *t, const char *message, ...)
{
    trace_error error;
    char text[800];
    va_list args;
    va_start(args, message);
    vsnprintf(text, sizeof text, message, args);
    va_end(args);
    trace_error_set(&error, EXIT_DATA, trace_path(t), UINT64_MAX, "%s", text);
    return fail(error.exit, "%s", error.text);
}

static double number_of(const trace *t, const char *key)
{
    const char *text = trace_metadata(t, key);
    double x;
    return text && parse_number(&x, text) == 0 ? x : (double)NAN;
}

static int flag_of(const trace *t, const char *key)
{
    const char *text = trace_metadata(t, key);
    if (!text)
        return -1;
    return strcasecmp(text, "true") == 0 || strcmp(text, "1") == 0;
}

static void read_betas(const trace *t, step_record *m)
{
    const char *text = trace_metadata(t, "mpsim.betas");
    const char *comma = text ? strchr(text, ',') : NULL;
    char first[64];
    m->beta1 = number_of(t, "mpsim.beta1");
    m->beta2 = number_of(t, "mpsim.beta2");
    if (!comma || (size_t)(comma - text) >= sizeof first)
        return;
    memcpy(first, text, (size_t)(comma - text));
    first[comma - text] = '\0';
    if (parse_number(&m->beta1, first) || parse_number(&m->beta2, comma + 1))
        m->beta1 = m->beta2 = (double)NAN;
}

int replay_read_record(const trace *t, step_record *m)
{
    const char *optimizer = trace_metadata(t, "mpsim.optimizer");
    const char *reduced = trace_metadata(t, "mpsim.reduced");
    const char *world = trace_metadata(t, "mpsim.world"), *rank = trace_metadata(t, "mpsim.rank");
    uint64_t which;
    const char *taken = trace_metadata(t, "mpsim.optimizer_steps");
    mpsim_optim_algorithm a;
    memset(m, 0, sizeof *m);
    m->loss_scale = number_of(t, "mpsim.loss_scale");
    m->scale_known = m->loss_scale > 0;
    m->grads_scaled = flag_of(t, "mpsim.grads_scaled") == 1;
    if (m->grads_scaled && !m->scale_known)
        return replay_bad_file(t, "gradients are scaled (mpsim.grads_scaled), but mpsim.loss_scale "
                                  "is missing or not above 0");
    m->reduced = !reduced || strcmp(reduced, "pre") != 0;
    m->optimizer = optimizer && mpsim_optim_parse(&a, optimizer) == MPSIM_OK ? (int)a : -1;
    m->lr = number_of(t, "mpsim.lr");
    m->momentum = number_of(t, "mpsim.momentum");
    m->dampening = number_of(t, "mpsim.dampening");
    m->weight_decay = number_of(t, "mpsim.weight_decay");
    m->eps = number_of(t, "mpsim.eps");
    read_betas(t, m);
    m->nesterov = flag_of(t, "mpsim.nesterov");
    m->amsgrad = flag_of(t, "mpsim.amsgrad");
    m->maximize = flag_of(t, "mpsim.maximize");
    m->grad_norm = number_of(t, "mpsim.grad_norm");
    if (world && (parse_count(&m->world, world) || m->world == 0))
        return replay_bad_file(t, "mpsim.world is not a number of ranks");
    if (world && rank && (parse_count(&which, rank) || which >= m->world))
        return replay_bad_file(t, "mpsim.rank is not below mpsim.world");
    snprintf(m->optimizer_name, sizeof m->optimizer_name, "%.30s", optimizer ? optimizer : "");
    m->steps_known = taken != NULL;
    if (taken && parse_count(&m->optimizer_steps, taken))
        return replay_bad_file(t, "mpsim.optimizer_steps is not an integer");
    return 0;
}
