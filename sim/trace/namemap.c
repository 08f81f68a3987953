/* namemap.c -- see namemap.h. */
#include "namemap.h"

#include "../text/words.h"
#include "impl.h"

#include "../array/array.h"

#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { GROUPS = 10, NAME_LONGEST = 2000 };

typedef struct rule {
    char *text;
    regex_t regex;
    const char *kind; /* NULL: none       */
    const char *fqn;  /* points into text */
    int rest;         /* a kind alone: of names that have none otherwise; it has no regex */
} rule;

struct namemap {
    char *label;
    rule *rules;
    size_t count;
};

namemap *trace_namemap_new(const char *label)
{
    namemap *m = calloc(1, sizeof *m);
    if (m && !(m->label = strdup(label))) {
        free(m);
        m = NULL;
    }
    return m;
}

void trace_namemap_free(namemap *m)
{
    if (!m)
        return;
    for (size_t i = 0; i < m->count; i++) {
        if (!m->rules[i].rest)
            regfree(&m->rules[i].regex);
        free(m->rules[i].text);
    }
    free(m->rules);
    free(m->label);
    free(m);
}

const char *trace_namemap_label(const namemap *m)
{
    return m->label;
}

size_t trace_namemap_count(const namemap *m)
{
    return m->count;
}

const char *trace_namemap_rule(const namemap *m, size_t i)
{
    return m->rules[i].text;
}

/* ---- a rule ---- */

static int wrong(char error[200], size_t at, const char *what)
{
    snprintf(error, 200, "at %zu: %s", at + 1, what);
    return -1;
}

/* What regcomp does not say the place of, or would accept: see namemap.h. *groups: how many there are. */
static int check_regex(const char *s, size_t n, size_t *groups, char error[200])
{
    enum { DEPTH = 32 };
    struct {
        size_t at;
        int varies; /* it repeats or chooses */
    } open[DEPTH + 1] = {{0, 0}};
    size_t depth = 0;
    *groups = 0;
    for (size_t i = 0; i < n; i++) {
        if (s[i] == '\\') {
            if (i + 1 == n)
                return wrong(error, i, "a backslash at the end");
            if (s[++i] >= '1' && s[i] <= '9')
                return wrong(error, i - 1, "no back references in the pattern");
        } else if (s[i] == '[') {
            const size_t end = i + text_bracket(s + i, n - i);
            if (s[end - 1] != ']' || end == i + 1)
                return wrong(error, i, "a bracket that is not closed");
            i = end - 1;
        } else if (s[i] == '{') {
            return wrong(error, i, "no braces: write what is repeated, or \\{");
        } else if (s[i] == '(') {
            if (depth == DEPTH)
                return wrong(error, i, "parentheses nested too deep");
            open[++depth].at = i;
            open[depth].varies = 0;
            ++*groups;
        } else if (s[i] == ')') {
            if (!depth)
                return wrong(error, i, "a parenthesis that is not opened");
            const int varies = open[depth--].varies, repeats = i + 1 < n && strchr("*+?", s[i + 1]);
            if (varies && repeats && s[i + 1] != '?')
                return wrong(error, i + 1, "a group that repeats or chooses cannot be repeated");
            open[depth].varies |= varies || repeats;
        } else if (strchr("*+?|", s[i])) {
            if (s[i] != '|' && i + 1 < n && strchr("*+?", s[i + 1])) /* regcomp takes 2^n for n of them */
                return wrong(error, i + 1, "repeated twice");
            open[depth].varies |= s[i] != '?';
        }
    }
    return depth ? wrong(error, open[depth].at, "a parenthesis that is not closed") : 0;
}

static int check_fqn(const rule *r, size_t groups, char error[200])
{
    const size_t at = (size_t)(r->fqn - r->text);
    if (!*r->fqn)
        return wrong(error, at, "an empty name after the kind");
    for (const char *p = r->fqn; *p; p++) {
        if (*p != '\\')
            continue;
        p++;
        if (*p < '1' || *p > '9')
            return wrong(error, (size_t)(p - 1 - r->text), "after a backslash stands 1 to 9");
        if ((size_t)(*p - '0') > groups)
            return wrong(error, (size_t)(p - 1 - r->text), "so many parentheses are not in the pattern");
    }
    return 0;
}

/* "KIND:FQN" or "none" after the last '='. */
static int parse_meaning(rule *r, char *meaning, char error[200])
{
    char *colon = strchr(meaning, ':');
    const size_t at = (size_t)(meaning - r->text), n = colon ? (size_t)(colon - meaning) : strlen(meaning);
    r->fqn = colon ? colon + 1 : "";
    if (!colon && strcmp(meaning, "none") == 0)
        return 0;
    r->kind = trace_kind_named(meaning, n);
    if (!r->kind)
        return wrong(error, at, "not one of weight act out agrad dgrad wgrad opt.m opt.v opt.vmax master, or none");
    return colon ? 0 : wrong(error, at + n, "':' and a name are missing, as in wgrad:\\1");
}

/* regcomp's pattern: the whole name, whatever alternatives there are. */
static int compile(rule *r, size_t n, char error[200])
{
    char pattern[NAMEMAP_LONGEST + 8], why[100];
    snprintf(pattern, sizeof pattern, "^(%.*s)$", (int)n, r->text);
    const int code = regcomp(&r->regex, pattern, REG_EXTENDED);
    *error = '\0';
    if (code == 0 || code == REG_ESPACE)
        return -code;
    regerror(code, &r->regex, why, sizeof why);
    return wrong(error, 0, why);
}

static int parse(rule *r, char error[200])
{
    size_t groups;
    char *equal = strrchr(r->text, '=');
    r->kind = equal ? NULL : trace_kind_named(r->text, strlen(r->text));
    r->rest = r->kind != NULL;
    if (r->rest)
        return 0;
    if (!equal || equal == r->text)
        return wrong(error, equal ? 0 : strlen(r->text),
                     "expected REGEX=KIND:NAME, as 'grad/(.*)=wgrad:\\1', or a kind, as wgrad");
    const size_t n = (size_t)(equal - r->text);
    return check_regex(r->text, n, &groups, error) || parse_meaning(r, equal + 1, error) ||
                   (r->kind && check_fqn(r, groups, error)) || compile(r, n, error)
               ? -1
               : 0;
}

int trace_namemap_add(namemap *m, const char *text, size_t n, char error[200])
{
    if (m->count == NAMEMAP_RULES || n > NAMEMAP_LONGEST) {
        snprintf(error, 200, m->count == NAMEMAP_RULES ? "more than %d rules" : "longer than %d bytes",
                 m->count == NAMEMAP_RULES ? NAMEMAP_RULES : NAMEMAP_LONGEST);
        return -1;
    }
    rule *r = array_room(&m->rules, m->count, sizeof *m->rules) ? NULL : &m->rules[m->count];
    if (r)
        *r = (rule){.text = strndup(text, n)};
    *error = '\0';
    if (!r || !r->text)
        return -1;
    if (parse(r, error)) {
        free(r->text);
        return -1;
    }
    m->count++;
    return 0;
}

int trace_namemap_join(namemap *m, const namemap *other)
{
    char error[200];
    for (size_t i = 0; i < other->count; i++)
        if (trace_namemap_add(m, other->rules[i].text, strlen(other->rules[i].text), error))
            return -1;
    return 0;
}

/* ---- names ---- */

/* The fqn of a match, in `to` if that is not NULL; its length. Group 0 and 1 of the compiled pattern are the whole. */
static size_t write_fqn(const rule *r, const char *name, const regmatch_t *taken, char *to)
{
    size_t n = 0;
    for (const char *p = r->fqn; *p; p++) {
        const regmatch_t *g = *p == '\\' ? &taken[*++p - '0' + 1] : NULL;
        const char *from = g ? name + (g->rm_so < 0 ? 0 : g->rm_so) : p;
        const size_t length = g ? (size_t)(g->rm_eo - g->rm_so) : 1;
        if (to)
            memcpy(to + n, from, length);
        n += length;
    }
    return n;
}

const char *trace_namemap_rest(const namemap *m)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->rules[i].rest)
            return m->rules[i].kind;
    return NULL;
}

int trace_namemap_find(const namemap *m, trace *t, const char *name, const char **kind, const char **fqn)
{
    regmatch_t taken[GROUPS + 1];
    if (strlen(name) > NAME_LONGEST)
        return 0;
    for (size_t i = 0; i < m->count; i++) {
        const rule *r = &m->rules[i];
        if (r->rest)
            continue;
        const int code = regexec(&r->regex, name, GROUPS + 1, taken, 0);
        if (code == REG_ESPACE)
            return -1;
        if (code)
            continue;
        *kind = r->kind;
        *fqn = name;
        if (!r->kind)
            return 1;
        const size_t n = write_fqn(r, name, taken, NULL);
        char *text = t->arena_bytes + n < TRACE_MEMORY + t->max_header ? trace_alloc(t, n + 1) : NULL;
        if (!text)
            return -1;
        write_fqn(r, name, taken, text);
        text[n] = '\0';
        *fqn = text;
        return 1;
    }
    return 0;
}
