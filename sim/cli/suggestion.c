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

void suggestion_consider(suggestion *s, const char *candidate)
{
    enum { AT_MOST = 3 };
    char folded[sizeof s->word];
    fold_word(folded, sizeof folded, candidate);
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

const char *suggestion_end(suggestion *s, const char *otherwise)
{
    char found[sizeof s->text];
    if (!s->count)
        return otherwise;
    memcpy(found, s->text, sizeof found);
    const int n = snprintf(s->text, sizeof s->text, ": did you mean %.*s?", (int)sizeof s->text - 20, found);
    return n > 0 ? s->text : otherwise;
}
