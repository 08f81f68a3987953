/* words.c -- see words.h. */
#include "words.h"

#include "support.h"

#include <stdlib.h>
#include <string.h>

FILE *words_open(const char *file)
{
    char path[128];
    snprintf(path, sizeof path, "data/vectors/scalers/%s", file);
    FILE *f = fopen(test_source_path(path), "r");
    ck_assert_msg(f != NULL, "%s is missing", path);
    return f;
}

int words_next(FILE *f, words *w)
{
    if (!fgets(w->text, sizeof w->text, f))
        return 0;
    ck_assert_msg(strchr(w->text, '\n') != NULL, "a line is too long");
    w->count = 0;
    for (char *p = strtok(w->text, " \n"); p; p = strtok(NULL, " \n")) {
        ck_assert(w->count < WORDS_MAX);
        w->word[w->count++] = p;
    }
    return 1;
}

int words_skip(const words *w)
{
    return w->count == 0 || w->word[0][0] == '#';
}

double words_real(const char *word)
{
    char *end;
    const double x = strtod(word, &end);
    ck_assert_msg(*word && *end == 0, "\"%s\" is no number", word);
    return x;
}

int64_t traininglog_words_integer(const char *word)
{
    char *end;
    const int64_t x = strtoll(word, &end, 10);
    ck_assert_msg(*word && *end == 0, "\"%s\" is no integer", word);
    return x;
}

uint64_t words_bits(const char *word)
{
    char *end;
    const uint64_t x = strtoull(word, &end, 16);
    ck_assert_msg(*word && *end == 0, "\"%s\" is no bit pattern", word);
    return x;
}
