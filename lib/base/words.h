/* words.h -- names as people type them: letter case is ignored, and '-' equals '_'. */
#pragma once

#include <stddef.h>
#include <string.h>

static inline char mpsim_fold(char c)
{
    if (c >= 'A' && c <= 'Z')
        return (char)(c - 'A' + 'a');
    return c == '-' ? '_' : c;
}

/* Whether the n characters at a are the word b. */
static inline int mpsim_same_word(const char *a, size_t n, const char *b)
{
    if (strlen(b) != n)
        return 0;
    for (size_t i = 0; i < n; i++)
        if (mpsim_fold(a[i]) != mpsim_fold(b[i]))
            return 0;
    return 1;
}
