/* architecture.c -- see architecture.h. */
#include "impl.h"

#include "../text/words.h"

#include <ctype.h>
#include <mpsim/dot.h>
#include <stdio.h>
#include <string.h>

/* Names in lower case without separators; '#' is any digit. The longest that fits counts. */
static const struct gpu_name {
    const char *pattern, *architecture;
} names[] = {
    {"v100", "volta"},
    {"titanv", "volta"},
    {"gv100", "volta"},
    {"sm70", "volta"},
    {"t4", "turing"},
    {"t4g", "turing"},
    {"rtx20##", "turing"},
    {"quadrortx####", "turing"},
    {"titanrtx", "turing"},
    {"sm75", "turing"},
    {"a100", "ampere"},
    {"a800", "ampere"},
    {"a30", "ampere"},
    {"a2", "ampere"},
    {"a10", "ampere"},
    {"a10g", "ampere"},
    {"a16", "ampere"},
    {"a40", "ampere"},
    {"rtxa####", "ampere"},
    {"rtx30##", "ampere"},
    {"sm80", "ampere"},
    {"sm86", "ampere"},
    {"sm87", "ampere"},
    {"l4", "ada"},
    {"l20", "ada"},
    {"l40", "ada"},
    {"l40s", "ada"},
    {"rtx40##", "ada"},
    {"rtx1000", "ada"},
    {"rtx####ada", "ada"},
    {"adartx####", "ada"},
    {"lovelace", "ada"},
    {"adalovelace", "ada"},
    {"sm89", "ada"},
    {"h100", "hopper"},
    {"h200", "hopper"},
    {"gh200", "hopper"},
    {"h800", "hopper"},
    {"h20", "hopper"},
    {"sm90", "hopper"},
    {"b100", "blackwell"},
    {"b200", "blackwell"},
    {"gb200", "blackwell"},
    {"b300", "blackwell"},
    {"gb300", "blackwell"},
    {"sm100", "blackwell"},
    {"sm103", "blackwell"},
    {"rtxpro####", "rtx-blackwell"},
    {"rtx50##", "rtx-blackwell"},
    {"sm120", "rtx-blackwell"},
};
enum { NAMES = sizeof names / sizeof names[0], LETTERS = 256 };

/* Architecture number i of the table of models, or NULL. */
static const char *architecture_at(size_t i)
{
    mpsim_model m;
    const char *last = NULL;
    for (size_t k = 0; mpsim_model_at(&m, k) == MPSIM_OK; k++)
        if (m.architecture && (!last || strcmp(last, m.architecture) != 0)) {
            last = m.architecture;
            if (i-- == 0)
                return last;
        }
    return NULL;
}

const char *verify_architecture_list(void)
{
    static char text[200];
    const char *name;
    text[0] = '\0';
    for (size_t i = 0; (name = architecture_at(i)); i++)
        text_add(text, sizeof text, "%s%s", i ? ", " : "", name);
    return text;
}

/* Letters and digits of a name in lower case, and where its words begin. */
typedef struct word_list {
    char text[LETTERS];
    char begins[LETTERS];
    size_t n;
} word_list;

static word_list split(const char *name, size_t length)
{
    word_list w = {.n = 0};
    int begins = 1;
    for (size_t i = 0; i < length && w.n + 1 < LETTERS; i++) {
        const unsigned char c = (unsigned char)name[i];
        if (!isalnum(c) || c >= 128) {
            begins = 1;
            continue;
        }
        w.begins[w.n] = (char)begins;
        w.text[w.n++] = (char)tolower(c);
        begins = 0;
    }
    w.begins[w.n] = 1;
    return w;
}

/* Whether the pattern is there: from the beginning of a word to the end of one, or to where
 * letters follow digits, as in "h100sxm5". */
static int fits(const word_list *w, size_t at, const char *pattern)
{
    size_t i = 0;
    if (!w->begins[at])
        return 0;
    for (; pattern[i]; i++)
        if (at + i >= w->n ||
            (pattern[i] == '#' ? !isdigit((unsigned char)w->text[at + i]) : w->text[at + i] != pattern[i]))
            return 0;
    const int digit = isdigit((unsigned char)w->text[at + i - 1]) != 0;
    return w->begins[at + i] || (digit && !isdigit((unsigned char)w->text[at + i]));
}

/* A longer pattern wins; two of one length and of different architectures leave none. */
static void consider(const word_list *w, const char *pattern, const char *architecture, size_t *longest,
                     const char **found)
{
    const size_t n = strlen(pattern);
    for (size_t at = 0; at < w->n && n >= *longest; at++)
        if (fits(w, at, pattern)) {
            const int torn = n == *longest && (!*found || strcmp(*found, architecture) != 0);
            *longest = n;
            *found = torn ? NULL : architecture;
        }
}

const char *verify_architecture_of(const char *file)
{
    const char *dot = strrchr(file, '.'), *found = NULL, *name;
    const word_list w = split(file, dot ? (size_t)(dot - file) : strlen(file));
    size_t longest = 0;
    for (size_t i = 0; i < NAMES; i++)
        consider(&w, names[i].pattern, names[i].architecture, &longest, &found);
    for (size_t i = 0; (name = architecture_at(i)); i++) {
        const word_list pattern = split(name, strlen(name));
        consider(&w, pattern.text, name, &longest, &found);
    }
    return found;
}

const char *verify_architecture_find(const char *name)
{
    const char *known;
    const word_list a = split(name, strlen(name));
    for (size_t i = 0; (known = architecture_at(i)); i++) {
        const word_list b = split(known, strlen(known));
        if (strcmp(a.text, b.text) == 0)
            return known;
    }
    return NULL;
}
