/* source.c -- see source.h. */
#include "impl.h"

#include <ctype.h>
#include <string.h>

static const char name_letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-/";

static int begins_with_one(const char *p, const char *const *words)
{
    for (; *words; words++)
        if (strncmp(p, *words, strlen(*words)) == 0)
            return 1;
    return 0;
}

static int has_one(const char *p, const char *const *words)
{
    for (; *words; words++)
        if (strstr(p, *words))
            return 1;
    return 0;
}

static size_t trimmed(const char *p)
{
    size_t n = strlen(p);
    while (n && strchr(" ,", p[n - 1]))
        n--;
    return n;
}

/* ---- code ---- */

/* "name = ...", "a.b[0] += ...", and no second '=' as in "loss = 2, lr = 1". */
static int is_assignment(const char *p)
{
    size_t n;
    if (isdigit((unsigned char)*p) || !(n = strspn(p, name_letters)))
        return 0;
    for (p += n; strncmp(p, ", ", 2) == 0 && isalpha((unsigned char)p[2]);) /* a, b = */
        p += 2 + strspn(p + 2, name_letters);
    p += *p == '[' ? strcspn(p, "]") + 1 : 0;
    p += strspn(p, " ");
    p += strspn(p, "+-*/");
    return *p == '=' && p[1] != '=' && !strchr(p + 1, '=');
}

/* Python's blocks end in a colon, statements of C in one of these, calls go on behind a parenthesis. */
static int ends_as_code(const char *p)
{
    static const char *const blocks[] = {"if ",   "elif ", "for ",   "while ",   "with ",
                                         "else:", "try:",  "except", "finally:", NULL};
    const size_t n = trimmed(p);
    const char last = n ? p[n - 1] : 0;
    return (last == ':' && begins_with_one(p, blocks)) || (last == ';' && strpbrk(p, "(=")) ||
           ((last == '(' || last == '{') && strpbrk(p, ".=(") && !strchr(p, ':'));
}

/* "(norm1): LayerNorm(", as PyTorch prints a model. */
static int is_of_model(const char *p)
{
    const char *end = *p == '(' ? strchr(p, ')') : NULL;
    return end && end[1] == ':' && end[2] == ' ' && isalpha((unsigned char)end[3]) && strchr(end + 1, '(');
}

/* A name that a format string leaves to be filled in: {loss:.4f}, {}, %.3f. */
static int has_format(const char *p)
{
    static const char *const marks[] = {"(f\"", "(f'", " f\"", " f'", "%s", "%d", "%.", "%f", ".format(", "{}", NULL};
    for (const char *at = p; (at = strchr(at, '{')) != NULL; at++) {
        const size_t n = strspn(at + 1, name_letters);
        if (n && (at[n + 1] == '}' || (at[n + 1] == ':' && at[n + 2] == '.')))
            return strpbrk(p, "\"'(") != NULL;
    }
    return strncmp(p, "f\"", 2) == 0 || strncmp(p, "f'", 2) == 0 || (has_one(p, marks) && strpbrk(p, "\"'"));
}

/* "loss.backward()" */
static int is_call(const char *p)
{
    const size_t n = strspn(p, name_letters), end = trimmed(p);
    return n && memchr(p, '.', n) && p[n] == '(' && p[end - 1] == ')';
}

static int is_code(const char *p)
{
    static const char *const words[] = {"def ",     "class ",  "import ",   "return ", "raise ",   "assert ",
                                        "print(",   "print0(", "self.",     "@",       "#include", "#define",
                                        "#if",      "//",      "\"\"\"",    "async ",  "global ",  "logger.",
                                        "logging.", "printf(", "yield ",    "static ", "const ",   "return;",
                                        "lambda ",  "/* ",     "continue;", "} else",  NULL};
    static const char *const marks[] = {" = self.", "(self.",  " self.", " = torch.", "=torch.",
                                        ".item()",  "lambda ", " = np.", NULL};
    const int from = strncmp(p, "from ", 5) == 0 && strstr(p, " import ");
    return from || begins_with_one(p, words) || ends_as_code(p) || is_call(p) || is_of_model(p) || has_one(p, marks) ||
           has_format(p);
}

/* ---- settings ---- */

/* Behind "[2024-01-05 10:00:00,124] [INFO] [config.py:1000:print] ". */
static const char *skip_logger(const char *p)
{
    p += strspn(p, " ");
    p += strchr("+-", *p) && p[1] == ' ' ? 1 : 0; /* of a diff, of a list */
    for (p += strspn(p, " "); *p == '[' && strchr(p, ']'); p += strspn(p, " "))
        p = strchr(p, ']') + 1;
    return p;
}

/* "name: 1", "\"name\": 1,", "name ....... 1", "name = 1"; "name:" begins a group. */
static int is_setting(const char *p)
{
    p = skip_logger(p);
    p += strspn(p, "\"'");
    const size_t n = strspn(p, name_letters);
    if (n == 0 || isdigit((unsigned char)*p))
        return 0;
    p += n;
    p += strspn(p, "\"'");
    const size_t marks = strspn(p, " .:=");
    p += marks;
    return marks &&
           (!*p || strcspn(p, " ") >= trimmed(p) || *p == '{' || (*p == '[' && strcspn(p, "]") + 1 >= trimmed(p)));
}

/* "Namespace(", "TrainingArguments(", "config: {". */
static int is_settings(const char *p)
{
    static const char *const words[] = {"Namespace(", "Arguments(", "Args(",   "Config(",    "config: {",
                                        "config={",   "config = {", "args: {", "options: {", NULL};
    return has_one(p, words);
}

source_kind traininglog_source_kind_of(const char *line)
{
    const char *p = line + strspn(line, " ");
    if (is_settings(p))
        return SOURCE_SETTINGS;
    if (is_code(p))
        return SOURCE_CODE;
    if (is_setting(p) && !is_assignment(p))
        return SOURCE_SETTING;
    return is_assignment(p) || (p > line + 1 && *p != '|') || *p == '#' || strchr(")}", *p) ? SOURCE_MAYBE
                                                                                            : SOURCE_NONE;
}
