/* record.c -- what the metadata of a step's files say; see state.h. */
#include "impl.h"

#include <math.h>
#include <stdarg.h>
#include <stdlib.h>
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

static const char *text_of(const trace *t, const char *key)
{
    const char *text = trace_metadata(t, key);
    return text ? text : "";
}

/* ---- the optimizer ---- */

static void read_betas(const trace *t, record_settings *s)
{
    const char *text = trace_metadata(t, "mpsim.betas");
    const char *comma = text ? strchr(text, ',') : NULL;
    char first[64];
    s->beta1 = number_of(t, "mpsim.beta1");
    s->beta2 = number_of(t, "mpsim.beta2");
    if (!comma || (size_t)(comma - text) >= sizeof first)
        return;
    memcpy(first, text, (size_t)(comma - text));
    first[comma - text] = '\0';
    if (parse_number(&s->beta1, first) || parse_number(&s->beta2, comma + 1))
        s->beta1 = s->beta2 = (double)NAN;
}

void replay_no_settings(record_settings *s)
{
    memset(s, 0, sizeof *s);
    s->optimizer = s->nesterov = s->amsgrad = s->maximize = s->adjust_lr = -1;
    s->ns_steps = s->cubic[0] = s->cubic[1] = s->cubic[2] = (double)NAN;
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++)
        s->number[i] = (double)NAN;
}

/* "mpsim.weight_decay" */
static const char *key_of(char *key, size_t size, int setting)
{
    snprintf(key, size, "mpsim.%s", mpsim_optim_setting_name((mpsim_optim_setting)setting));
    return key;
}

static void read_settings(const trace *t, record_settings *s)
{
    mpsim_optim_algorithm a;
    char key[40];
    replay_no_settings(s);
    snprintf(s->optimizer_name, sizeof s->optimizer_name, "%.30s", text_of(t, "mpsim.optimizer"));
    snprintf(s->impl, sizeof s->impl, "%.15s", text_of(t, "mpsim.optimizer_impl"));
    if (mpsim_optim_parse(&a, text_of(t, "mpsim.optimizer")) == MPSIM_OK)
        s->optimizer = (int)a;
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS; i++)
        s->number[i] = number_of(t, key_of(key, sizeof key, i));
    read_betas(t, s);
    s->by_muon = strcmp(s->optimizer_name, "muon") == 0;
    s->ns_steps = number_of(t, "mpsim.ns_steps");
    s->nesterov = flag_of(t, "mpsim.nesterov");
    s->amsgrad = flag_of(t, "mpsim.amsgrad");
    s->maximize = flag_of(t, "mpsim.maximize");
}

/* ---- what it ran on, and in ---- */

static record_precision computed_in(const trace *t)
{
    static const struct {
        const char *word;
        record_precision is;
    } words[] = {{"float16", COMPUTED_FP16}, {"fp16", COMPUTED_FP16},     {"F16", COMPUTED_FP16},
                 {"half", COMPUTED_FP16},    {"bfloat16", COMPUTED_BF16}, {"bf16", COMPUTED_BF16},
                 {"F32", COMPUTED_FP32},     {"float32", COMPUTED_FP32}};
    const char *autocast = trace_metadata(t, "mpsim.autocast");
    const char *said = autocast ? autocast : text_of(t, "mpsim.dtype_computed");
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcasecmp(words[i].word, said) == 0)
            return words[i].is;
    /* who names groups names autocast, too, if there is any */
    return !autocast && trace_metadata(t, "mpsim.groups") && flag_of(t, "mpsim.grads_scaled") != 1 ? COMPUTED_FP32
                                                                                                   : COMPUTED_UNKNOWN;
}

/* A CUDA device has its name there; of a CPU the instructions are said. */
static record_device device_of(const trace *t)
{
    const char *device = text_of(t, "mpsim.device");
    if (strncasecmp(device, "cpu", 3) == 0)
        return DEVICE_CPU;
    if (strncasecmp(device, "cuda", 4) == 0 || *text_of(t, "mpsim.cuda"))
        return DEVICE_CUDA;
    return !*device && *text_of(t, "mpsim.cpu_capability") ? DEVICE_CPU : DEVICE_UNKNOWN;
}

static int contracts_of(const trace *t)
{
    const char *word = text_of(t, "mpsim.cpu_capability");
    if (strncasecmp(word, "avx2", 4) == 0 || strncasecmp(word, "avx512", 6) == 0)
        return word[3] == '5' ? 2 : 1;
    return strcasecmp(word, "default") == 0 || strncasecmp(word, "no avx", 6) == 0 ? 0 : -1;
}

/* "torch 2.15.0+cu132" */
static int minor_of(const trace *t)
{
    static const char two[] = "torch 2.";
    const char *text = text_of(t, "mpsim.framework");
    const char *minor = text + sizeof two - 1;
    if (strncmp(text, two, sizeof two - 1) != 0 || *minor < '0' || *minor > '9')
        return -1;
    return (int)strtol(minor, NULL, 10);
}

static int check_number(const trace *t, const char *key, int any, int at_least_0)
{
    const char *text = trace_metadata(t, key);
    double x = 0;
    const int special = text && any && (!strcmp(text, "nan") || !strcmp(text, "inf"));
    if (!text || special || (!parse_number(&x, text) && !(at_least_0 && x < 0)))
        return 0;
    return replay_bad_file(t, "%s is not a number%s", key, at_least_0 ? " of at least 0" : "");
}

/* What is said as a number is one; of the norm before clipping, and of what kind it is, no finite one, too. */
static int check_numbers(const trace *t)
{
    char key[40];
    static const struct {
        const char *key;
        int any, at_least_0;
    } keys[] = {{"mpsim.grad_clip", 0, 1},
                {"mpsim.grad_clip_value", 0, 1},
                {"mpsim.lr_factor", 0, 1},
                {"mpsim.grad_norm", 1, 0},
                {"mpsim.grad_norm_type", 1, 0}};
    int code = 0;
    for (int i = 0; i < MPSIM_OPTIM_NUMBERS && !code; i++)
        code = check_number(t, key_of(key, sizeof key, i), 0, 0);
    for (size_t i = 0; i < sizeof keys / sizeof *keys && !code; i++)
        code = check_number(t, keys[i].key, keys[i].any, keys[i].at_least_0);
    return code;
}

/* A format of gradients, within binary32; NULL: none is said. */
static const mpsim_format *format_of_sums(const char *name)
{
    const mpsim_format *f = mpsim_format_find(name);
    return f && f->mbits <= 23 && mpsim_format_is_signed(f) && f->nan != MPSIM_NAN_NONE &&
                   mpsim_format_max(f) <= 0x1.fffffep+127
               ? f
               : NULL;
}

static int read_counts(const trace *t, step_record *m)
{
    const char *world = trace_metadata(t, "mpsim.world"), *rank = trace_metadata(t, "mpsim.rank");
    const char *taken = trace_metadata(t, "mpsim.optimizer_steps");
    const char *sum = trace_metadata(t, "mpsim.accumulation");
    uint64_t which;
    if (world && (parse_count(&m->world, world) || m->world == 0))
        return replay_bad_file(t, "mpsim.world is not a number of ranks");
    if (world && rank && (parse_count(&which, rank) || which >= m->world))
        return replay_bad_file(t, "mpsim.rank is not below mpsim.world");
    m->steps_known = taken != NULL;
    if (taken && parse_count(&m->optimizer_steps, taken))
        return replay_bad_file(t, "mpsim.optimizer_steps is not an integer");
    m->summed_in = format_of_sums(text_of(t, "mpsim.accumulation_format"));
    m->accumulation = 1;
    if (sum && (parse_count(&m->accumulation, sum) || m->accumulation == 0))
        return replay_bad_file(t, "mpsim.accumulation is not a number of micro-batches");
    return 0;
}

int replay_read_record(const trace *t, step_record *m)
{
    const char *reduced = trace_metadata(t, "mpsim.reduced");
    const char *type = trace_metadata(t, "mpsim.grad_norm_type");
    memset(m, 0, sizeof *m);
    m->loss_scale = number_of(t, "mpsim.loss_scale");
    m->scale_known = (float)m->loss_scale > 0; /* frameworks keep it in binary32 */
    m->grads_scaled = flag_of(t, "mpsim.grads_scaled") == 1;
    if (m->grads_scaled && !m->scale_known)
        return replay_bad_file(t, "gradients are scaled (mpsim.grads_scaled), but mpsim.loss_scale "
                                  "is missing or not above 0");
    if (check_numbers(t))
        return EXIT_DATA;
    m->reduced = !reduced || strcmp(reduced, "pre") != 0;
    read_settings(t, &m->whole);
    snprintf(m->states, sizeof m->states, "%.31s", text_of(t, "mpsim.states"));
    m->grad_norm = number_of(t, "mpsim.grad_norm");
    m->lr_factor = number_of(t, "mpsim.lr_factor");
    m->grad_norm_type = !type ? 2 : strcmp(type, "inf") == 0 ? (double)INFINITY : number_of(t, "mpsim.grad_norm_type");
    m->grad_clip = number_of(t, "mpsim.grad_clip");
    m->grad_clip_value = number_of(t, "mpsim.grad_clip_value");
    m->computed = computed_in(t);
    m->device = device_of(t);
    m->contracts = contracts_of(t);
    m->ieee_roots = flag_of(t, "mpsim.ieee_roots") == 1;
    m->minor = minor_of(t);
    return read_counts(t, m);
}
