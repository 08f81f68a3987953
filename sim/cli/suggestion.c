/* suggestion.c -- see suggestion.h. */
#include "suggestion.h"

#include "../text/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

void fold_word(char *out, size_t size, const char *text)
{
    size_t n = 0;
    for (; text[n] && n + 1 < size; n++)
        out[n] = (char)(text[n] == '-' ? '_' : tolower((unsigned char)text[n]));
    out[n] = '\0';
}

/* Letters to insert, delete, replace or swap with their neighbour between two words of fewer
 * than 64 letters. */
static size_t distance(const char *a, const char *b)
{
    size_t rows[3][64];
    const size_t n = strlen(b);
    for (size_t j = 0; j <= n; j++)
        rows[0][j] = j;
    size_t i = 1;
    for (; a[i - 1]; i++) {
        const size_t *before = rows[(i + 1) % 3], *above = rows[(i - 1) % 3];
        size_t *row = rows[i % 3];
        row[0] = i;
        for (size_t j = 1; j <= n; j++) {
            size_t best = above[j - 1] + (a[i - 1] != b[j - 1]);
            best = above[j] + 1 < best ? above[j] + 1 : best;
            best = row[j - 1] + 1 < best ? row[j - 1] + 1 : best;
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] && before[j - 2] + 1 < best)
                best = before[j - 2] + 1;
            row[j] = best;
        }
    }
    return rows[(i - 1) % 3][n];
}

void suggestion_init(suggestion *s, const char *word)
{
    memset(s, 0, sizeof *s);
    fold_word(s->word, sizeof s->word, word);
    const size_t half = strlen(s->word) / 2; /* in short words two letters are too many */
    s->distance = half < 2 ? half : 2;
}

/* 2: the word begins the candidate, which is longer; 1: it is a part of the candidate; 0: neither. */
static int kinship(const char *word, const char *folded)
{
    const size_t n = strlen(word);
    if (n >= 2 && strncmp(folded, word, n) == 0)
        return folded[n] == '_' || (n >= 3 && folded[n]) ? 2 : 0;
    if (n < 3)
        return 0;
    for (const char *at = strchr(folded, '_'); at; at = strchr(at + 1, '_'))
        if (strncmp(at + 1, word, n) == 0 && (!at[1 + n] || at[1 + n] == '_'))
            return 1;
    return 0;
}

/* Whether candidate a is told before b, both kin of the word. */
static int is_before(const suggestion *s, const char *a, const char *b)
{
    char first[sizeof s->word], second[sizeof s->word];
    fold_word(first, sizeof first, a);
    fold_word(second, sizeof second, b);
    const int closer = kinship(s->word, first) - kinship(s->word, second);
    return closer ? closer > 0 : strcmp(first, second) < 0;
}

static void keep_kin(suggestion *s, const char *candidate)
{
    const int kept = s->kin_count < SUGGESTION_KIN ? s->kin_count : SUGGESTION_KIN;
    int at = 0;
    while (at < kept && !is_before(s, candidate, s->kin[at]))
        at++;
    for (int i = kept < SUGGESTION_KIN ? kept : kept - 1; i > at; i--)
        memcpy(s->kin[i], s->kin[i - 1], sizeof s->kin[i]);
    if (at < SUGGESTION_KIN)
        snprintf(s->kin[at], sizeof s->kin[at], "%s", candidate);
    s->kin_count++;
}

void suggestion_consider(suggestion *s, const char *candidate)
{
    enum { AT_MOST = 3 };
    char folded[sizeof s->word];
    fold_word(folded, sizeof folded, candidate);
    if (kinship(s->word, folded))
        keep_kin(s, candidate);
    const size_t own = strlen(s->word), other = strlen(folded);
    if ((own > other ? own - other : other - own) > s->distance)
        return; /* as many letters are to be inserted or deleted */
    const size_t d = distance(s->word, folded);
    if (d > s->distance || (d == s->distance && s->count == AT_MOST))
        return;
    if (d < s->distance) {
        s->count = 0;
        s->text[0] = '\0';
    }
    s->distance = d;
    text_add(s->text, sizeof s->text, "%s%s", s->count++ ? " or " : "", candidate);
}

static void name_kin(suggestion *s)
{
    const int more = s->kin_count - SUGGESTION_KIN;
    const int named = more > 0 ? SUGGESTION_KIN : s->kin_count;
    s->text[0] = '\0';
    for (int i = 0; i < named; i++)
        text_add(s->text, sizeof s->text, "%s%s", i == 0 ? "" : i == named - 1 && more <= 0 ? " or " : ", ", s->kin[i]);
    if (more > 0)
        text_add(s->text, sizeof s->text, " or %d other%s", more, text_plural((uint64_t)more));
}

const char *suggestion_end(suggestion *s, const char *otherwise)
{
    char found[sizeof s->text];
    if (s->kin_count && !(s->count && s->distance <= 1))
        name_kin(s);
    else if (!s->count)
        return otherwise;
    memcpy(found, s->text, sizeof found);
    const int n = snprintf(s->text, sizeof s->text, ": did you mean %.*s?", (int)sizeof s->text - 20, found);
    return n > 0 ? s->text : otherwise;
}
