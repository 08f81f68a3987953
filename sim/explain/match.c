/* match.c -- see match.h. A text is folded to its letters and digits, so that nothing that a terminal, a logger or a
 * traceback does to it matters; the fixed parts of a message follow each other in it. */
#include "match.h"

#include "../array/need.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

enum { GAP_MOST = 240, PIECE_LEAST = 12, WORD_LEAST = 4 };

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

/* ---- the messages, folded once ---- */

typedef struct piece {
    char *text;
    size_t n;
} piece;

typedef struct pieces {
    piece *items;
    size_t count;
} pieces;

typedef struct known {
    piece name;
    pieces parts[MESSAGE_FORMS], /* the fixed parts of each form */
        words[MESSAGE_FORMS];    /* its longer words in lower case, each with a blank before and behind it */
} known;

static void add(pieces *p, piece new)
{
    need_room(&p->items, p->count, sizeof *p->items);
    p->items[p->count++] = new;
}

static piece folded(const char *text, size_t n)
{
    piece p = {need_part(text, n), 0};
    p.n = fold(p.text, p.text);
    return p;
}

static void add_parts(pieces *parts, const char *form)
{
    for (const char *end; form; form = end ? end + 3 : NULL) {
        end = strstr(form, "...");
        add(parts, folded(form, end ? (size_t)(end - form) : strlen(form)));
    }
}

/* The words of a text in lower case, blanks between and around them. */
static piece words_of(const char *text)
{
    piece words = {need_memory(strlen(text) + 3, 1), 0};
    words.text[words.n++] = ' ';
    for (; *text; text++)
        words.text[words.n++] = isalnum((unsigned char)*text) ? (char)tolower((unsigned char)*text) : ' ';
    words.text[words.n++] = ' ';
    return words;
}

static void add_words(pieces *words, const char *form)
{
    const piece all = words_of(form);
    size_t n;
    for (const char *p = all.text; *(p += strspn(p, " ")); p += n) {
        n = strcspn(p, " ");
        if (n >= WORD_LEAST)
            add(words, (piece){need_part(p - 1, n + 2), n + 2});
    }
    free(all.text);
}

/* Of each message, in their order. */
static const known *known_messages(void)
{
    static known *all;
    size_t n = 0;
    if (all)
        return all;
    while (explain_messages[n].name)
        n++;
    all = need_memory(n, sizeof *all);
    for (size_t i = 0; i < n; i++) {
        all[i].name = folded(explain_messages[i].name, strlen(explain_messages[i].name));
        for (size_t k = 0; k < MESSAGE_FORMS && explain_messages[i].forms[k]; k++) {
            add_parts(&all[i].parts[k], explain_messages[i].forms[k]);
            add_words(&all[i].words[k], explain_messages[i].forms[k]);
        }
    }
    return all;
}

/* ---- a form in a text ---- */

static const char *find(const char *text, size_t n, const piece *p)
{
    return n < p->n ? NULL : memmem(text, n, p->text, p->n);
}

/* Letters of a form whose first part stands at `text` and whose others follow, each at most GAP_MOST behind the one before; 0: they
 * do not. No further is looked: the first part may stand there a million times. */
static size_t follow(const pieces *form, const char *text, size_t n)
{
    size_t score = 0;
    for (size_t i = 0; i < form->count; i++) {
        const piece *part = &form->items[i];
        const size_t room = score ? GAP_MOST + part->n : part->n;
        const char *at = find(text, n < room ? n : room, part);
        if (!at)
            return 0;
        score += part->n;
        n -= (size_t)(at - text) + part->n;
        text = at + part->n;
    }
    return score;
}

/* The same from any place where its first part stands. */
static size_t holds(const pieces *form, const char *text, size_t n)
{
    const char *at = text, *end = text + n;
    for (; at < end && (at = find(at, (size_t)(end - at), &form->items[0])); at++) {
        const size_t score = follow(form, at, (size_t)(end - at));
        if (score)
            return score;
    }
    return 0;
}

/* Letters of a text that is a piece of one part; 0: it is not, or too short to tell. */
static size_t is_piece(const pieces *form, const piece *text)
{
    for (size_t i = 0; i < form->count && text->n >= PIECE_LEAST; i++)
        if (find(form->items[i].text, form->items[i].n, text))
            return text->n;
    return 0;
}

static size_t score_of(const known *m, const piece *text)
{
    size_t best = 0;
    if (strcmp(m->name.text, text->text) == 0)
        return text->n;
    for (size_t i = 0; i < MESSAGE_FORMS && m->parts[i].count; i++) {
        const size_t whole = holds(&m->parts[i], text->text, text->n),
                     score = whole ? whole : is_piece(&m->parts[i], text);
        if (score > best)
            best = score;
    }
    return best;
}

size_t explain_match_find(match found[MATCHES_MAX], const char *text)
{
    const known *all = known_messages();
    const piece letters = folded(text, strlen(text));
    size_t n = 0;
    for (const message *m = explain_messages; m->name && n < MATCHES_MAX; m++) {
        const match new = {m, score_of(&all[m - explain_messages], &letters)};
        size_t at = n;
        if (!new.score)
            continue;
        for (; at && found[at - 1].score < new.score; at--)
            found[at] = found[at - 1];
        found[at] = new;
        n++;
    }
    free(letters.text);
    return n;
}

/* ---- the nearest ---- */

/* Share of the longer words of a form that are among those of a text, in percent. */
static size_t share_of(const pieces *form, const piece *words)
{
    size_t there = 0;
    for (size_t i = 0; i < form->count; i++)
        there += find(words->text, words->n, &form->items[i]) != NULL;
    return form->count ? 100 * there / form->count : 0;
}

const message *explain_match_nearest(const char *text)
{
    const known *all = known_messages();
    const message *nearest = NULL;
    size_t best = 60;
    const piece words = words_of(text);
    for (const message *m = explain_messages; m->name; m++)
        for (size_t i = 0; i < MESSAGE_FORMS; i++) {
            const size_t share = share_of(&all[m - explain_messages].words[i], &words);
            if (share > best) {
                best = share;
                nearest = m;
            }
        }
    free(words.text);
    return nearest;
}
