/* names.c -- what names say: the kind of a tensor, the step of a file. */
#include "impl.h"

#include <string.h>

/* The vocabulary of mpsim-trace/1, in the order of reports. */
const char *const trace_kinds[] = {"weight", "act",   "out",      "agrad",  "dgrad", "wgrad",
                                   "opt.m",  "opt.v", "opt.vmax", "master", NULL};
enum { KINDS = sizeof trace_kinds / sizeof trace_kinds[0] - 1 };

const char *trace_kind_named(const char *word, size_t n)
{
    for (size_t i = 0; i < KINDS; i++)
        if (strlen(trace_kinds[i]) == n && memcmp(trace_kinds[i], word, n) == 0)
            return trace_kinds[i];
    return NULL;
}

const char *trace_kind(const char *name)
{
    const char *colon = strchr(name, ':');
    return colon ? trace_kind_named(name, (size_t)(colon - name)) : NULL;
}

const char *trace_kind_at(int i)
{
    return i >= 0 && i < KINDS ? trace_kinds[i] : NULL;
}

int trace_kind_rank(const char *kind)
{
    int i = 0;
    while (i < KINDS && kind != trace_kinds[i])
        i++;
    return i;
}

/* Digits at s, -1 if there are none or too many; *end is what follows them. */
static int64_t digits(const char *s, const char **end)
{
    int64_t u = 0;
    *end = s;
    for (; **end >= '0' && **end <= '9'; ++*end) {
        const int d = **end - '0';
        if (u > (INT64_MAX - d) / 10)
            return -1;
        u = u * 10 + d;
    }
    return *end == s ? -1 : u;
}

static int same_letters(const char *s, const char *word, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = s[i];
        if ((c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c) != word[i])
            return 0;
    }
    return 1;
}

/* "step_000120", "rank0-step120.safetensors", "iter_7", "checkpoint-500": the number; else -1. */
static int64_t step_of_component(const char *s, size_t n, const char **first, const char **last)
{
    static const char *const words[] = {"step", "iter", "checkpoint"};
    int64_t step = -1;
    for (size_t i = 0; i < n; i++)
        for (size_t w = 0; w < sizeof words / sizeof words[0]; w++) {
            const size_t length = strlen(words[w]);
            if (i + length >= n || !same_letters(s + i, words[w], length))
                continue;
            const char *p = s + i + length, *end;
            if (*p == '_' || *p == '-')
                p++;
            const int64_t u = digits(p, &end);
            if (u >= 0 && (end == s + n || *end == '.'))
                step = u, *first = p, *last = end;
        }
    return step;
}

static int64_t step_of_metadata(const trace *t, const char *const *keys)
{
    for (; *keys; keys++) {
        const char *s = trace_metadata(t, *keys), *end;
        const int64_t u = s ? digits(s, &end) : -1;
        if (u >= 0 && !*end)
            return u;
    }
    return -1;
}

int64_t trace_find_step(const trace *t)
{
    /* then those of Lightning, DeepSpeed, Megatron-LM and nanoGPT, where the path does not say it */
    static const char *const keys[] = {"mpsim.step", "step", NULL};
    static const char *const others[] = {"global_step", "global_steps", "iteration", "iter_num", NULL};
    const int64_t said = step_of_metadata(t, keys), named = said < 0 ? trace_step_of_path(t) : -1;
    return said >= 0 ? said : named >= 0 ? named : step_of_metadata(t, others);
}

int64_t trace_step_of_path(const trace *t)
{
    const char *first, *last;
    return trace_step_in_path(t->path, &first, &last);
}

int64_t trace_step_in_path(const char *path, const char **first, const char **last)
{
    size_t n = strlen(path);
    while (n) {
        size_t begin = n;
        while (begin && path[begin - 1] != '/')
            begin--;
        const int64_t step = step_of_component(path + begin, n - begin, first, last);
        if (step >= 0)
            return step;
        n = begin ? begin - 1 : 0;
    }
    return -1;
}
