/* wanted.c -- see wanted.h. */
#include "wanted.h"

#include "../text/words.h"
#include "impl.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

static int parse_format(mpsim_format *f, const char *option, const char *name, trace_error *error)
{
    return mpsim_format_parse(f, name) == MPSIM_OK
               ? 0
               : trace_error_say(error, TRACE_EXIT_USAGE, "--%s: '%s' is not a format", option, name);
}

static int no_shape(const char *text, trace_error *error)
{
    return trace_error_say(error, TRACE_EXIT_USAGE, "--shape: '%s' is not a shape", text);
}

/* "2,3" as a shape; a * for what the file has. */
static int parse_shape(wanted_form *f, const char *text, trace_error *error)
{
    size_t n = 0;
    f->shape = calloc(strlen(text) / 2 + 1, sizeof *f->shape);
    if (!f->shape)
        return trace_error_memory(error, NULL);
    for (const char *p = text; *p;) {
        char word[32];
        const size_t length = strcspn(p, ",");
        if (length >= sizeof word)
            return no_shape(text, error);
        memcpy(word, p, length);
        word[length] = '\0';
        uint64_t *const side = &f->shape[n++];
        if (strcmp(word, "*") == 0)
            *side = TRACE_RAW_REST;
        else if (parse_count(side, word) != 0 || *side == TRACE_RAW_REST)
            return no_shape(text, error);
        p += length;
        p += *p == ',' && p[1];
    }
    f->options.raw_shape = f->shape;
    f->options.raw_rank = n;
    return 0;
}

/* "V1=e4m3,V2=bf16" */
static int parse_assume(wanted_form *form, const char *text, trace_error *error)
{
    for (const char *p = text; *p;) {
        char word[64];
        const size_t n = strcspn(p, ",");
        const int v = n > 3 && (p[0] == 'V' || p[0] == 'v') && p[2] == '=' ? p[1] - '0' : 0;
        if (n >= sizeof word || (v != 1 && v != 2))
            return trace_error_say(error, TRACE_EXIT_USAGE, "--assume takes V1=FORMAT,V2=FORMAT, not '%s'", text);
        memcpy(word, p + 3, n - 3);
        word[n - 3] = '\0';
        mpsim_format *f = v == 1 ? &form->v1 : &form->v2;
        if (parse_format(f, "assume", word, error))
            return -1;
        if (mpsim_format_code_bytes(f) != (size_t)v)
            return trace_error_say(error, TRACE_EXIT_USAGE, "--assume: %s does not take %d byte%s", f->name, v,
                                   text_plural((uint64_t)v));
        *(v == 1 ? &form->options.assume_v1 : &form->options.assume_v2) = f;
        p += n + (p[n] == ',');
    }
    return 0;
}

static int parse_as(wanted_form *f, const char *name, trace_error *error)
{
    if (parse_format(&f->as, "as", name, error))
        return -1;
    const size_t bytes = mpsim_format_code_bytes(&f->as);
    if (bytes > 2)
        return trace_error_say(error, TRACE_EXIT_USAGE, "--as takes a format of 8 or 16 bits");
    *(bytes == 1 ? &f->options.as_int8 : &f->options.as_int16) = &f->as;
    return 0;
}

static int parse_raw(wanted_form *f, const wanted_words *w, trace_error *error)
{
    if (!w->dtype)
        return w->shape || w->offset || w->big_endian
                   ? trace_error_say(error, TRACE_EXIT_USAGE, "--shape, --offset and --big-endian go with --dtype")
                   : 0;
    f->options.raw_format = &f->dtype;
    f->options.raw_offset = w->offset;
    f->options.raw_big_endian = w->big_endian;
    return parse_format(&f->dtype, "dtype", w->dtype, error) || (w->shape && parse_shape(f, w->shape, error)) ? -1 : 0;
}

int trace_wanted_check_kinds(const char *option, const option_list *kinds, const char *other, trace_error *error)
{
    for (size_t i = 0; i < kinds->count; i++)
        for (const char *p = kinds->items[i]; *p; p += *p == ',') {
            const size_t n = strcspn(p, ",");
            char key[64];
            snprintf(key, sizeof key, "%.*s:", (int)n, p);
            if (!trace_kind(key) && !(other && strlen(other) == n && memcmp(other, p, n) == 0))
                return trace_error_say(error, TRACE_EXIT_USAGE,
                                       "--%s: '%.*s' is not one of weight act out agrad dgrad "
                                       "wgrad opt.m opt.v opt.vmax master%s%s",
                                       option, (int)n, p, other ? " " : "", other ? other : "");
            p += n;
        }
    return 0;
}

int trace_wanted_resolve(wanted_form *f, const wanted_words *w, trace_error *error)
{
    char why[256];
    f->options.max_header = w->max_header;
    f->options.max_ratio = w->max_ratio;
    f->options.quantised = w->stored;
    if (parse_raw(f, w, error) || (w->assume && parse_assume(f, w->assume, error)) ||
        (w->as && parse_as(f, w->as, error)))
        return -1;
    double scale;
    f->options.loss_scale = w->loss_scale;
    if (w->loss_scale && (parse_number(&scale, w->loss_scale) || !(scale > 0 && scale < 0x1p128)))
        return trace_error_say(error, TRACE_EXIT_USAGE, "--loss-scale: '%s' is not a scale, as 65536 or 2^16",
                               w->loss_scale);
    if (w->stored && trace_quantised_word(w->stored, why, sizeof why))
        return trace_error_say(error, TRACE_EXIT_USAGE, "--stored: %s", why);
    return trace_wanted_check_kinds("kind", &w->kinds, NULL, error);
}

void trace_wanted_form_clear(wanted_form *f)
{
    free(f->shape);
    f->shape = NULL;
}

void trace_wanted_clear(wanted_words *w)
{
    option_list_clear(&w->match);
    option_list_clear(&w->kinds);
    option_list_clear(&w->map);
}

int trace_wanted_matches(const wanted_words *w, const trace_tensor *t)
{
    int ok = w->match.count == 0;
    for (size_t i = 0; i < w->match.count && !ok; i++)
        ok = fnmatch(w->match.items[i], t->name, 0) == 0;
    return ok;
}

int trace_wanted_selects(const wanted_words *w, const trace_tensor *t)
{
    return trace_wanted_matches(w, t) && (w->kinds.count == 0 || (t->kind && option_list_has(&w->kinds, t->kind)));
}

int trace_wanted_clash(const trace *t, trace_error *error)
{
    return trace_clash(t) ? trace_error_set(error, TRACE_EXIT_DATA, trace_path(t), TRACE_NO_OFFSET,
                                            "%s (%s); --map says which it is", trace_clash(t), trace_convention(t))
                          : 0;
}

/* ---- a word at a time ---- */

typedef enum row_type { ROW_LIST, ROW_STRING, ROW_COUNT, ROW_FLAG } row_type;

#define NAME_AND_PLACE(of, letter, name, type, field, value, help) \
    {                                                              \
        name, ROW_##type, offsetof(of, field)                      \
    }
static const struct {
    const char *name;
    row_type type;
    size_t at;
} rows[] = {WANTED_OPTIONS(NAME_AND_PLACE, wanted_words)};

static int put_number(void *at, int is_flag, const char *name, const char *value, trace_error *error)
{
    uint64_t n;
    if (parse_count(&n, value))
        return trace_error_say(error, TRACE_EXIT_USAGE, "--%s: '%s' is not a non-negative integer", name, value);
    if (is_flag)
        *(int *)at = n != 0;
    else
        *(uint64_t *)at = n;
    return 0;
}

int trace_wanted_put(wanted_words *w, const char *name, const char *value, trace_error *error)
{
    enum { ROWS = sizeof rows / sizeof rows[0] };
    size_t i = 0;
    while (i < ROWS && strcmp(rows[i].name, name) != 0)
        i++;
    if (i == ROWS)
        return trace_error_say(error, 0, "'%s' is not an option of reading files", name);
    void *at = (char *)w + rows[i].at;
    if (rows[i].type == ROW_LIST)
        return option_list_add(at, value) ? trace_error_memory(error, NULL) : 0;
    if (rows[i].type != ROW_STRING)
        return put_number(at, rows[i].type == ROW_FLAG, name, value, error);
    *(const char **)at = value;
    return 0;
}
