/* field.c -- see field.h. */
#include "field.h"

#include <ctype.h>
#include <string.h>
#include <strings.h>

static const char digits[] = "0123456789";

/* FNV-1a. */
static const uint64_t seed = 0xcbf29ce484222325u;

static uint64_t mix(uint64_t hash, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        hash = (hash ^ (unsigned char)p[i]) * 0x100000001b3u;
    return hash;
}

/* ---- numbers ---- */

static int is_word(char c)
{
    return isalnum((unsigned char)c) || c == '_';
}

/* Length of NaN or Inf as a word. */
static size_t lost_at(const char *p)
{
    static const char *const words[] = {"nan", "infinity", "inf"};
    if (!strchr("nNiI", *p) || !*p)
        return 0;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        const size_t n = strlen(words[i]);
        if (strncasecmp(p, words[i], n) == 0 && !is_word(p[n]))
            return n;
    }
    return 0;
}

/* Length of a date or a time, 2024-01-31, 12:00:01,123, 1:02, or of a version, 1.2.3, that begins at p; 0. */
static size_t time_at(const char *p)
{
    size_t n = strspn(p, digits), parts = 1;
    const char mark = p[n];
    if (!mark || !strchr(":-.", mark))
        return 0;
    for (; p[n] == mark && isdigit((unsigned char)p[n + 1]); parts++)
        n += 1 + strspn(p + n + 1, digits);
    if (parts < (mark == ':' ? 2 : 3))
        return 0;
    return n + (p[n] == '.' || p[n] == ',' ? strspn(p + n, ".,0123456789") : 0);
}

/* Length of the number at p, with its groups of digits, decimals and exponent. */
static size_t number_at(const char *p)
{
    size_t n = strspn(p, digits);
    while (n && p[n] == ',' && strspn(p + n + 1, digits) == 3 && n <= 15)
        n += 4;
    if (p[n] == '.')
        n += 1 + strspn(p + n + 1, digits);
    const size_t sign = (p[n] == 'e' || p[n] == 'E') && strchr("+-", p[n + 1]) && p[n + 1];
    if ((p[n] == 'e' || p[n] == 'E') && isdigit((unsigned char)p[n + 1 + sign]))
        n += 1 + sign + strspn(p + n + 1 + sign, digits);
    return n;
}

static int begins_number(const char *line, const char *p)
{
    const char before = p == line ? ' ' : p[-1];
    if (is_word(before) || before == '.')
        return 0;
    return isdigit((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1])) || lost_at(p);
}

/* ---- the text before a number ---- */

/* Whether the text ends in one of these words, and what may stand between a name and its value. */
static int ends_in(const char *p, size_t n, const char *const *words)
{
    while (n && !isalpha((unsigned char)p[n - 1]))
        n--;
    for (; *words; words++) {
        const size_t length = strlen(*words);
        if (n >= length && tolower((unsigned char)p[n - length]) == **words &&
            strncasecmp(p + n - length, *words, length) == 0)
            return 1;
    }
    return 0;
}

static unsigned traits_of(const char *line, const char *from, const char *p, const char *end)
{
    static const char *const ranks[] = {"rank", "pid", "cuda", "gpu", "device", "worker", "node", "process", NULL};
    static const char *const places[] = {"step",  "steps", "iter",   "iteration", "it",
                                         "epoch", "batch", "update", "updates",   NULL};
    const size_t n = (size_t)(p - from);
    const int prefix = p == line && *end == ':'; /* srun's "3: " */
    const char *behind = end + strspn(end, " "), *before = p;
    while (before > from && before[-1] == ' ')
        before--;
    const int fraction = *behind == '/' || (before > from && before[-1] == '/');
    return (prefix || ends_in(from, n, ranks) ? FIELD_RANK : 0) | (fraction ? FIELD_FRACTION : 0) |
           (ends_in(from, n, places) ? FIELD_PLACE : 0) | (lost_at(p) ? FIELD_LOST : 0);
}

/* Whether a character is a blank, a sign, or may be of a bar. */
static int is_blank(char c)
{
    return c == ' ' || c == '#' || c == '-' || c == '>' || c == '.' || c == '+' || c == '|';
}

/* A text without its case, blanks and bars. */
static uint64_t hash_of(uint64_t hash, const char *p, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const char c = (char)tolower((unsigned char)p[i]);
        if (!is_blank(c))
            hash = mix(hash, &c, 1);
    }
    return hash;
}

/* Where the name begins that ends the text, with the marks between it and its value. */
static size_t name_at(const char *p, size_t n)
{
    n -= n > 1 && strchr("+-", p[n - 1]) && strchr(" :=\"'([|", p[n - 2]); /* the sign of the value */
    while (n && strchr(" :=\"'([|", p[n - 1]))
        n--;
    while (n && !strchr(",;|{}()[]\"'", p[n - 1]) && (p[n - 1] != ' ' || n < 2 || p[n - 2] != ' '))
        n--;
    return n;
}

void traininglog_fields_find(fields *f, const char *line)
{
    const char *from = line, *p = line;
    *f = (fields){.count = 0, .shape = seed, .values = seed};
    while (*p) {
        if (!begins_number(line, p)) {
            p++;
            continue;
        }
        const size_t lost = lost_at(p), time = lost ? 0 : time_at(p), n = lost ? lost : time ? time : number_at(p);
        const size_t before = (size_t)(p - from), name = name_at(from, before);
        f->shape = mix(hash_of(f->shape, from, before), "0", 1);
        if (!time && f->count < FIELDS_MAX) {
            field *new = &f->at[f->count++];
            *new = (field){.begin = (size_t)(p - line),
                           .end = (size_t)(p - line) + n,
                           .name = (size_t)(from - line) + name,
                           .key = hash_of(seed, from + name, before - name),
                           .traits = traits_of(line, from, p, p + n)};
            if (!(new->traits &FIELD_RANK))
                f->values = mix(mix(f->values, p, n), " ", 1);
        }
        from = p += n;
    }
    f->shape = hash_of(f->shape, from, strlen(from));
}
