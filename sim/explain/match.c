/* match.c -- see match.h. A text is folded to its letters and digits, so that nothing that a terminal, a logger or a
 * traceback does to it matters; the fixed parts of a message follow each other in it. */
#include "match.h"

#include "../array/need.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { FORM_MOST = 512, GAP_MOST = 240, PIECE_LEAST = 12, WORD_LEAST = 4 };

/* ---- folding ---- */

/* What loggers put before a line: "[rank0]:", "[2024-01-01 12:00:00,123]", "3: ", "> ", "E   ", "| ". */
static const char *skip_prefix(const char *line)
{
    for (;;) {
        const char *p = line + strspn(line, " \t>|#");
        const size_t digits = strspn(p, "0123456789");
        if (*p == '[' && p[strcspn(p, "]\n")] == ']')
            p += strcspn(p, "]") + 1;
        else if (*p == 'E' && p[1] == ' ' && p[2] == ' ')
            p++;
        else if (digits && p[digits] == ':')
            p += digits;
        p += *p == ':';
        if (p == line)
            return p;
        line = p;
    }
}

/* Letters and digits of a text, in lower case, at `out`, which has room for all of it. */
static size_t fold(char *out, const char *text)
{
    size_t n = 0;
    for (const char *p = skip_prefix(text); *p; p = *p == '\n' ? skip_prefix(p + 1) : p + 1)
        if (isalnum((unsigned char)*p))
            out[n++] = (char)tolower((unsigned char)*p);
    out[n] = 0;
    return n;
}

/* ---- a form in a text ---- */

/* The next part of a form, folded; NULL after the last one. */
static const char *next_part(const char *form, char part[FORM_MOST])
{
    char piece[FORM_MOST];
    const char *end = strstr(form, "...");
    const size_t n = end ? (size_t)(end - form) : strlen(form);
    if (n >= sizeof piece)
        return NULL;
    memcpy(piece, form, n);
    piece[n] = 0;
    fold(part, piece);
    return end ? end + 3 : NULL;
}

/* Letters of a form whose first part stands at `text` and whose others follow, each at most GAP_MOST behind the one before; 0: they
 * do not. No further is looked: the first part may stand there a million times. */
static size_t follow(const char *form, const char *text)
{
    char part[FORM_MOST];
    size_t score = 0;
    while (form) {
        form = next_part(form, part);
        const size_t n = strlen(part);
        const char *at = memmem(text, strnlen(text, score ? GAP_MOST + n : n), part, n);
        if (!at)
            return 0;
        score += n;
        text = at + n;
    }
    return score;
}

/* The same from any place where its first part stands. */
static size_t holds(const char *form, const char *text)
{
    char first[FORM_MOST];
    next_part(form, first);
    for (const char *at = strstr(text, first); at; at = strstr(at + 1, first)) {
        const size_t score = follow(form, at);
        if (score)
            return score;
    }
    return 0;
}

/* Letters of a text that is a piece of one part; 0: it is not, or too short to tell. */
static size_t is_piece(const char *form, const char *text, size_t n)
{
    char part[FORM_MOST];
    while (form && n >= PIECE_LEAST) {
        form = next_part(form, part);
        if (strstr(part, text))
            return n;
    }
    return 0;
}

static size_t score_of(const message *m, const char *text, size_t n)
{
    char name[FORM_MOST];
    size_t best = 0;
    fold(name, m->name);
    if (strcmp(name, text) == 0)
        return n;
    for (size_t i = 0; i < MESSAGE_FORMS && m->forms[i]; i++) {
        const size_t whole = holds(m->forms[i], text), score = whole ? whole : is_piece(m->forms[i], text, n);
        if (score > best)
            best = score;
    }
    return best;
}

size_t match_find(match found[MATCHES_MAX], const char *text)
{
    char *folded = need_memory(strlen(text) + 1, 1);
    size_t n = 0;
    const size_t length = fold(folded, text);
    for (const message *m = messages; m->name && n < MATCHES_MAX; m++) {
        const match new = {m, score_of(m, folded, length)};
        size_t at = n;
        if (!new.score)
            continue;
        for (; at && found[at - 1].score < new.score; at--)
            found[at] = found[at - 1];
        found[at] = new;
        n++;
    }
    free(folded);
    return n;
}

/* ---- the nearest ---- */

/* The next word of a form, in lower case, a blank before and behind it; NULL after the last one. */
static const char *next_word(const char *p, char word[FORM_MOST])
{
    size_t n = 0;
    while (*p && !isalnum((unsigned char)*p))
        p++;
    word[n++] = ' ';
    for (; isalnum((unsigned char)*p) && n < FORM_MOST - 2; p++)
        word[n++] = (char)tolower((unsigned char)*p);
    word[n++] = ' ';
    word[n] = 0;
    return n > 2 ? p : NULL;
}

/* The words of a text in lower case, blanks between and around them. */
static char *words_of(const char *text)
{
    char *words = need_memory(strlen(text) + 3, 1), *out = words;
    *out++ = ' ';
    for (; *text; text++)
        *out++ = isalnum((unsigned char)*text) ? (char)tolower((unsigned char)*text) : ' ';
    *out++ = ' ';
    *out = 0;
    return words;
}

/* Share of the longer words of a form that are among `words`, in percent. */
static size_t share_of(const char *form, const char *words)
{
    char word[FORM_MOST];
    size_t all = 0, there = 0;
    while ((form = next_word(form, word)))
        if (strlen(word) >= WORD_LEAST + 2) {
            all++;
            there += strstr(words, word) != NULL;
        }
    return all ? 100 * there / all : 0;
}

const message *match_nearest(const char *text)
{
    const message *nearest = NULL;
    size_t best = 50;
    char *words = words_of(text);
    for (const message *m = messages; m->name; m++)
        for (size_t i = 0; i < MESSAGE_FORMS && m->forms[i]; i++) {
            const size_t share = share_of(m->forms[i], words);
            if (share > best) {
                best = share;
                nearest = m;
            }
        }
    free(words);
    return nearest;
}
