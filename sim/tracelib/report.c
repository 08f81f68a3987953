/* report.c -- see mpsim/report.h: what sim/stat/cmd.c does, for a caller. */
#include "../array/memory.h"
#include "../cli/options.h"
#include "../stat/tally.h"
#include "../stat/walk.h"
#include "../text/words.h"
#include "call.h"

#include <mpsim/report.h>

#include <stdlib.h>
#include <string.h>
#ifdef __GLIBC__
#include <stdio_ext.h>
#endif

enum { JSON, TEXT, FORMS, THREADS_MOST = 1024 };

/* A report that is written into memory. */
typedef struct written {
    char *bytes;
    size_t n;
} written;

struct mpsim_report {
    written forms[FORMS];
    call call; /* its lines */
    int code;
};

/* What is asked for. */
typedef struct question {
    stat_settings settings;
    option_list fail_if;
    uint64_t tensors, threads, quiet;
    /* of which: */
    const char *const *paths;
    const mpsim_array *arrays;
    size_t n;
    mpsim_count *count; /* of the arrays, whose elements are elsewhere; or NULL */
    void *count_context;
    mpsim_status counted; /* what it said that was not MPSIM_OK */
} question;

/* ---- errors ---- */

static mpsim_status say(mpsim_status status, char *error, size_t size, const char *line)
{
    if (error && size) {
        size_t n = strlen(line);
        if (n >= size)
            for (n = size - 1; n && ((unsigned char)line[n] & 0xc0) == 0x80;)
                n--;
        memcpy(error, line, n);
        error[n] = '\0';
    }
    return status;
}

static mpsim_status no_memory(char *error, size_t size)
{
    return say(MPSIM_ENOMEM, error, size, "out of memory");
}

/* What an exit code and its line are as a status. */
static mpsim_status status_of(const call *c, int code, char *error, size_t size)
{
    const char *line = c->failed < c->n_lines ? c->lines[c->failed] : NULL;
    if (atomic_load(&c->no_memory) || (line && text_ends_with(line, "out of memory"))) /* text_error words it so */
        return no_memory(error, size);
    if (c->stopped || !line)
        return say(MPSIM_ESTOPPED, error, size, "stat: stopped by its caller");
    return say(code == CALL_USAGE ? MPSIM_EINVAL : code == CALL_IO ? MPSIM_EIO : MPSIM_EDATA, error, size, line);
}

/* ---- options ---- */

static int put_number(uint64_t *to, const mpsim_option *o)
{
    return parse_count(to, o->value) ? WORD_BAD : 0;
}

static int put_option(question *q, const mpsim_option *o)
{
    if (strcmp(o->name, "fail-if") == 0)
        return option_list_add(&q->fail_if, o->value) ? WORD_NO_MEMORY : 0;
    if (strcmp(o->name, "tensors") == 0)
        return put_number(&q->tensors, o);
    if (strcmp(o->name, "threads") == 0)
        return put_number(&q->threads, o);
    if (strcmp(o->name, "quiet") == 0)
        return put_number(&q->quiet, o);
    if (strcmp(o->name, "names") == 0) /* no option of the program, but a word of parts */
        return WORD_UNKNOWN;
    return record_put_word(&stat_settings_record, &q->settings, o->name, o->value);
}

static mpsim_status bad_option(const mpsim_option *o, int why, char *error, size_t size)
{
    char name[256], value[256], line[1024];
    escape_text(name, sizeof name, o->name);
    escape_text(value, sizeof value, o->value);
    if (why == WORD_NO_MEMORY)
        return no_memory(error, size);
    if (why == WORD_UNKNOWN)
        snprintf(line, sizeof line, "stat: --%s is not an option here; try 'mpsim stat --help'", name);
    else
        snprintf(line, sizeof line, "stat: --%s: '%s' is not a non-negative integer", name, value);
    return say(why == WORD_UNKNOWN ? MPSIM_ENOTFOUND : MPSIM_EINVAL, error, size, line);
}

static mpsim_status put_options(question *q, const mpsim_option *options, size_t n, char *error, size_t size)
{
    for (size_t i = 0; i < n; i++) {
        const int why = put_option(q, &options[i]);
        if (why)
            return bad_option(&options[i], why, error, size);
    }
    if (q->threads > THREADS_MOST)
        return say(MPSIM_EINVAL, error, size, "stat: --threads: at most 1024");
    return MPSIM_OK;
}

/* ---- the work ---- */

static int tell_file(void *context, const trace *t, uint64_t i)
{
    (void)i;
    stat_tally_file(context, trace_path(t), trace_count(t));
    return 0;
}

static int tell_tensor(void *context, const stat_place *place, const walk_piece *piece, const group *of)
{
    (void)piece;
    return stat_tally_tensor(context, place, of);
}

static int tell_failed(void *context, uint64_t i, const trace_error *error)
{
    (void)i;
    (void)error;
    stat_tally_failed(context);
    return 0;
}

/* Of what cannot be counted as much as can be. */
static uint64_t bytes_of_arrays(const question *q)
{
    const uint64_t most = UINT64_MAX / 2;
    uint64_t sum = 0;
    for (size_t i = 0; i < q->n; i++) {
        const mpsim_array *a = &q->arrays[i];
        uint64_t n = a->format ? mpsim_format_code_bytes(a->format) : 0;
        for (size_t k = 0; k < a->dimensions; k++)
            n = a->shape[k] && n > most / a->shape[k] ? most : n * a->shape[k];
        sum = n < most - sum ? sum + n : most;
    }
    return sum;
}

/* Its status is kept. */
static mpsim_status count_array(void *context, size_t array, const mpsim_cast *casts, size_t n, unsigned want,
                                mpsim_stats *stats, mpsim_histogram *histogram, mpsim_cast_stats *results)
{
    question *q = context;
    if (q->counted == MPSIM_OK)
        q->counted = q->count(q->count_context, array, casts, n, want, stats, histogram, results);
    return q->counted;
}

static int open_input(input *in, question *q)
{
    if (q->arrays)
        host_expect(bytes_of_arrays(q));
    const int code = q->arrays ? input_open_arrays(in, "stat", &q->settings.from, q->arrays, q->n)
                               : input_open(in, "stat", &q->settings.from, (char **)(uintptr_t)q->paths, (int)q->n);
    in->count = q->count ? count_array : NULL;
    in->count_context = q;
    return code;
}

/* Both forms, each into memory. 0, or EXIT_IO. */
static int open_forms(written *to, tally_form *forms, const question *q)
{
    for (int i = 0; i < FORMS; i++) {
        forms[i] = (tally_form){.style = i == JSON ? REPORT_JSON : REPORT_TEXT, .tensors = q->tensors != 0};
        forms[i].to = memory_open(&to[i].bytes, &to[i].n);
        if (!forms[i].to)
            return host_no_memory();
#ifdef __GLIBC__
        (void)__fsetlocking(forms[i].to, FSETLOCKING_BYCALLER); /* nobody else has it */
#endif
    }
    return 0;
}

static void close_forms(const tally_form *forms)
{
    for (int i = 0; i < FORMS; i++) {
        const int bad = forms[i].to && ferror(forms[i].to);
        if (forms[i].to && (fclose(forms[i].to) || bad))
            (void)host_no_memory();
    }
}

/* The report of an input: an exit code. */
static int write_report(mpsim_report *r, tally *t, input *in, const stat_settings *settings, const question *q)
{
    static const walk_sink sink = {tell_file, tell_tensor, tell_failed, NULL};
    tally_form forms[FORMS] = {{0}};
    char names[600];
    int code = open_forms(r->forms, forms, q);
    t->failed = in->failed;
    t->in = in;
    if (!code)
        code = stat_tally_begin(t, forms, FORMS, in->tree.count, mpsim_version());
    if (!code) {
        code = stat_walk(in, settings, t->targets, NULL, &sink, t);
        code = stat_tally_end(t, code, input_names(in, names, sizeof names));
    }
    close_forms(forms);
    return code;
}

/* Recipes need elements. */
static int has_elements(question *q, const target_list *targets)
{
    if (!q->count || !targets->blocks.count)
        return 0;
    q->counted = MPSIM_EUNAVAILABLE;
    return fail(CALL_USAGE, "stat: recipes need the elements of arrays, which are counted elsewhere");
}

static int run(mpsim_report *r, question *q)
{
    target_list targets = {0};
    input in = {0};
    tally t = {0};
    stat_settings known = q->settings;
    char *rules = NULL;
    int code = stat_settings_targets(&q->settings, &targets, "stat");
    if (!code && !(code = has_elements(q, &targets)) &&
        !(code = stat_tally_init(&t, "stat", &known, &q->fail_if, &targets)) && !(code = open_input(&in, q)) &&
        !(code = stat_settings_names(&known, &q->settings, &in, &rules)) &&
        !(code = write_report(r, &t, &in, &known, q)))
        r->code = stat_tally_tell(&t);
    stat_tally_clear(&t);
    free(rules);
    input_close(&in);
    target_list_clear(&targets);
    return code;
}

/* ---- the interface ---- */

/* What is small is done by one thread before others have woken. */
static unsigned threads_for(const question *q)
{
    enum { SMALL = 4 << 20 };
    if (q->count)
        return 1;
    return q->threads ? (unsigned)q->threads : q->arrays && bytes_of_arrays(q) <= SMALL ? 1 : 0;
}

static mpsim_status answer(mpsim_report **to, question *q, mpsim_progress *progress, void *context, char *error,
                           size_t size)
{
    mpsim_report *r = calloc(1, sizeof *r);
    if (!r)
        return no_memory(error, size);
    r->call = (call){.quiet = q->quiet != 0, .progress = progress, .context = context};
    if (tracelib_call_begin(&r->call, threads_for(q))) {
        free(r);
        return no_memory(error, size);
    }
    const int code = run(r, q);
    tracelib_call_end(&r->call);
    if (code || r->call.stopped || atomic_load(&r->call.no_memory)) {
        mpsim_status status = status_of(&r->call, code, error, size);
        if (q->counted != MPSIM_OK && status != MPSIM_ENOMEM)
            status = q->counted;
        mpsim_report_free(r);
        return status;
    }
    *to = r;
    return MPSIM_OK;
}

static int are_given(const mpsim_option *options, size_t n)
{
    int all = (options || !n) && n <= PTRDIFF_MAX / sizeof *options;
    for (size_t i = 0; i < n && all; i++)
        all = options[i].name && options[i].value;
    return all;
}

static mpsim_status ask(mpsim_report **r, question *q, const mpsim_option *options, size_t n, mpsim_progress *progress,
                        void *context, char *error, size_t size)
{
    q->settings.from.may_keep_going = 1;
    q->settings.from.names_files = 1;
    mpsim_status status = put_options(q, options, n, error, size);
    if (status == MPSIM_OK)
        status = answer(r, q, progress, context, error, size);
    stat_settings_clear(&q->settings);
    option_list_clear(&q->fail_if);
    return status;
}

mpsim_status mpsim_stat_files(mpsim_report **r, const char *const *paths, size_t n, const mpsim_option *options,
                              size_t n_options, mpsim_progress *progress, void *context, char *error, size_t size)
{
    question q = {.paths = paths, .n = n};
    if (!r)
        return MPSIM_EINVAL;
    *r = NULL;
    int all = paths && n && n <= INT32_MAX && are_given(options, n_options);
    for (size_t i = 0; i < n && all; i++)
        all = paths[i] != NULL;
    return all ? ask(r, &q, options, n_options, progress, context, error, size)
               : say(MPSIM_EINVAL, error, size, "stat: no path given, or a text that is NULL");
}

static mpsim_status stat_arrays(mpsim_report **r, question *q, const mpsim_option *options, size_t n_options,
                                mpsim_progress *progress, void *context, char *error, size_t size)
{
    static const mpsim_array none;
    if (!r)
        return MPSIM_EINVAL;
    *r = NULL;
    q->arrays = q->n ? q->arrays : &none;
    int all = q->arrays && q->n <= PTRDIFF_MAX / sizeof *q->arrays && are_given(options, n_options);
    for (size_t i = 0; i < q->n && all; i++)
        all = !q->arrays[i].dimensions || q->arrays[i].shape;
    return all ? ask(r, q, options, n_options, progress, context, error, size)
               : say(MPSIM_EINVAL, error, size, "stat: an array, a shape or a text is NULL");
}

mpsim_status mpsim_stat_arrays(mpsim_report **r, const mpsim_array *arrays, size_t n, const mpsim_option *options,
                               size_t n_options, mpsim_progress *progress, void *context, char *error, size_t size)
{
    return stat_arrays(r, &(question){.arrays = arrays, .n = n}, options, n_options, progress, context, error, size);
}

mpsim_status mpsim_stat_counted(mpsim_report **r, const mpsim_array *arrays, size_t n, const mpsim_option *options,
                                size_t n_options, mpsim_count *count, void *context, char *error, size_t size)
{
    return stat_arrays(r, &(question){.arrays = arrays, .n = n, .count = count, .count_context = context}, options,
                       n_options, NULL, NULL, error, size);
}

void mpsim_report_free(mpsim_report *r)
{
    if (!r)
        return;
    for (int i = 0; i < FORMS; i++)
        free(r->forms[i].bytes);
    tracelib_call_clear(&r->call);
    free(r);
}

static const char *bytes_of(const written *w, size_t *n)
{
    if (n)
        *n = w->n;
    return w->bytes;
}

const char *mpsim_report_json(const mpsim_report *r, size_t *n)
{
    return bytes_of(&r->forms[JSON], n);
}

const char *mpsim_report_text(const mpsim_report *r, size_t *n)
{
    return bytes_of(&r->forms[TEXT], n);
}

const char *mpsim_report_note(const mpsim_report *r, size_t i)
{
    return i < r->call.n_lines ? r->call.lines[i] : NULL;
}

int mpsim_report_code(const mpsim_report *r)
{
    return r->code;
}
