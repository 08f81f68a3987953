/* words.c -- see words.h. */
#include "words.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char digits[] = "0123456789";

void traininglog_words_lower(char *out, size_t size, const char *text)
{
    size_t n = 0;
    for (; text[n] && n + 1 < size; n++)
        out[n] = (char)tolower((unsigned char)text[n]);
    out[n] = 0;
}

const char *traininglog_words_after(const char *line, const char *phrase)
{
    const char *p = strstr(line, phrase);
    return p ? p + strlen(phrase) : NULL;
}

const char *traininglog_words_skip_marks(const char *p)
{
    return p + strspn(p, " \t:=\"'([|");
}

const char *traininglog_words_find(const char *line, const char *word)
{
    const size_t n = strlen(word);
    for (const char *p = line; (p = strstr(p, word)) != NULL; p++) {
        const unsigned char before = p == line ? ' ' : (unsigned char)p[-1];
        const unsigned char behind = (unsigned char)p[n];
        if (!isalnum(before) && before != '_' && !isalpha(behind) && behind != '_')
            return p + n;
    }
    return NULL;
}

/* ---- numbers ---- */

int traininglog_words_is_power(double x)
{
    int exponent;
    return x > 0 && frexp(x, &exponent) == 0.5;
}

/* Digits in groups: one to three, the first no 0, then commas with three each. Their number is
 * returned, without the commas; 0: p is no such text; -1: nor anything else, as a comma stands
 * between its first three digits and others. */
static int grouped(const char *p)
{
    const size_t first = strspn(p, digits);
    size_t n = first;
    if (first < 1 || first > 3 || p[first] != ',' || !isdigit((unsigned char)p[first + 1]))
        return 0;
    for (p += first; *p == ',' && strspn(p + 1, digits) == 3; p += 4)
        n += 3;
    return *p == ',' && isdigit((unsigned char)p[1]) ? -1 : (int)n;
}

/* p with the commas of grouped digits gone; what follows the number is cut somewhere. */
static const char *ungrouped(char out[64], const char *p)
{
    int left = grouped(p);
    size_t n = 0;
    if (left <= 0 || *p == '0')
        return left < 0 || (left && *p == '0') ? "" : p;
    for (; *p && n < 63; p++) {
        if (*p == ',' && left > 0)
            continue;
        left -= left > 0;
        out[n++] = *p;
    }
    out[n] = 0;
    return out;
}

/* The number at p; its text, which is in `plain` or in p, goes from *text to what is returned. */
static const char *number_at(char plain[64], const char *p, const char **text, double *x)
{
    char *end;
    *text = p = ungrouped(plain, traininglog_words_skip_marks(p));
    if (!(isdigit((unsigned char)*p) || (*p == '.' && isdigit((unsigned char)p[1]))))
        return NULL;
    *x = strtod(p, &end);
    return isfinite(*x) && !isalpha((unsigned char)*end) ? end : NULL;
}

int traininglog_words_number(const char *p, double *x)
{
    char plain[64];
    const char *text;
    return number_at(plain, p, &text, x) != NULL;
}

/* What the last digit of a number stands for: 0.001 of "0.062", 10 of "6.55e2". */
static double last_digit(const char *text, const char *end)
{
    int decimals = 0, exponent = 0, behind = 0;
    for (const char *p = text; p < end; p++) {
        if (*p == 'e') {
            exponent = atoi(p + 1);
            break;
        }
        behind |= *p == '.';
        decimals += behind && isdigit((unsigned char)*p);
    }
    return pow(10, exponent - decimals);
}

double traininglog_words_unit(const char *p)
{
    char plain[64];
    const char *text, *end;
    double x;
    end = number_at(plain, p, &text, &x);
    return end ? last_digit(text, end) : 0;
}

/* How far a power of two may be from what is printed: 0.004 is 2^-8; 0.0001 may be either of two. */
static const double close_enough = 0.03;

/* What stands behind the sign of a power, "**" or "^"; NULL: there is none. */
static const char *exponent_at(const char *p)
{
    return *p == '^' ? p + 1 : *p == '*' && p[1] == '*' ? p + 2 : NULL;
}

int traininglog_words_scale(const char *p, double *x)
{
    char plain[64];
    const char *text, *end = number_at(plain, p, &text, x);
    double factor;
    if (!end)
        return 0;
    if (exponent_at(end)) { /* 2**16 */
        p = exponent_at(end);
        p += *p == '-';
        if (traininglog_words_value(exponent_at(end), &factor) != VALUE_FINITE || !isdigit((unsigned char)*p))
            return 0;
        *x = pow(*x, factor);
        return isfinite(*x);
    }
    const double unit = last_digit(text, end);
    const double power = *x > 0 ? exp2(round(log2(*x))) : 0;
    const double off = fabs(power - *x);
    if (off < 0x1p-21 * power || (off <= 0.5000001 * unit && off <= close_enough * power))
        *x = power;
    if (*end == '*' && traininglog_words_number(end + 1, &factor))
        *x *= factor;
    return isfinite(*x);
}

int64_t traininglog_words_integer(const char *p)
{
    char plain[64];
    int64_t v = 0;
    double x;
    p = ungrouped(plain, traininglog_words_skip_marks(p));
    if (!isdigit((unsigned char)*p))
        return -1;
    const char *end = p + strspn(p, "0123456789.");
    if (*end == '%') /* a share */
        return -1;
    if (*end == 'e' && traininglog_words_number(p, &x)) /* 1.53e+05 */
        return x < 9e18 ? (int64_t)x : -1;
    for (; isdigit((unsigned char)*p); p++) {
        if (v > INT64_MAX / 10 - 1)
            return -1;
        v = 10 * v + (*p - '0');
    }
    return v;
}

int64_t traininglog_words_integer_of(const char *line, const char *const *words)
{
    for (; *words; words++)
        for (const char *p = line; (p = traininglog_words_find(p, *words)) != NULL;) {
            const int64_t v = traininglog_words_integer(p);
            double x;
            if (v >= 0 && !(traininglog_words_number(p, &x) && x != floor(x))) /* "ms/batch 12.11" */
                return v;
        }
    return -1;
}

/* ---- values that need not be finite ---- */

/* Behind the number of a step that stands between a name and its value: "loss 7364:  0.148571",
 * "loss 15 47.531357"; else p. */
static const char *skip_index(const char *p)
{
    const char *end = p + strspn(p, digits), *next = end + strspn(end, " \t:");
    const char *point = next + strspn(next, digits);
    return end > p && next > end && point > next && point[0] == '.' && isdigit((unsigned char)point[1]) ? next : p;
}

value_kind traininglog_words_value(const char *p, double *x)
{
    p = traininglog_words_skip_marks(p);
    p = skip_index(strncmp(p, "is ", 3) == 0 ? p + 3 : p);
    if (strncmp(p, "tensor(", 7) == 0)
        p += 7;
    const double sign = *p == '-' ? -1 : 1;
    p += *p == '-' || *p == '+';
    if (strncmp(p, "nan", 3) == 0 && !isalnum((unsigned char)p[3]))
        return VALUE_NAN;
    if (strncmp(p, "inf", 3) == 0 && (!isalpha((unsigned char)p[3]) || strncmp(p, "infin", 5) == 0))
        return VALUE_INF;
    if (strncmp(p, "1.#", 3) == 0) /* old C libraries of Windows: 1.#INF, 1.#QNAN, 1.#IND */
        return strncmp(p + 3, "inf", 3) == 0 ? VALUE_INF : VALUE_NAN;
    if (!traininglog_words_number(p, x))
        return VALUE_UNSAID;
    *x *= sign;
    return VALUE_FINITE;
}

value_kind traininglog_words_value_of(const char *line, const char *const *words, double *x)
{
    for (; *words; words++)
        for (const char *p = line; (p = traininglog_words_find(p, *words)) != NULL;) {
            const value_kind v = traininglog_words_value(p, x);
            if (v != VALUE_UNSAID)
                return v;
        }
    return VALUE_UNSAID;
}

int traininglog_words_say_yes(const char *p)
{
    static const char *const no[] = {"0", "n", "no", "none", "false", NULL};
    p = traininglog_words_skip_marks(p);
    const size_t word = strspn(p, "abcdefghijklmnopqrstuvwxyz");
    if (word && (p[word] == ':' || p[word] == '=')) /* "overflow cond: False" */
        p = traininglog_words_skip_marks(p + word);
    const size_t n = strcspn(p, " \t,;|)]}\"'.");
    for (size_t i = 0; no[i]; i++)
        if (strlen(no[i]) == n && strncmp(p, no[i], n) == 0)
            return 0;
    return 1;
}

/* ---- fractions ---- */

/* Whether the fraction at p counts epochs: "Epoch 1/200". */
static int is_of_epochs(const char *line, const char *p)
{
    static const char word[] = "epoch";
    const size_t n = sizeof word - 1;
    while (p > line && strchr(" :[(", p[-1]))
        p--;
    return (size_t)(p - line) >= n && strncmp(p - n, word, n) == 0;
}

int traininglog_words_fraction(const char *line, int64_t *n, int64_t *of)
{
    int nested = 0;
    for (const char *p = line; (p = strchr(p, '/')) != NULL; p++) {
        const char *a = p, *b = p + 1 + strspn(p + 1, " ");
        while (a > line && a[-1] == ' ')
            a--;
        const char *end = a;
        while (a > line && isdigit((unsigned char)a[-1]))
            a--;
        const char *behind = b + strspn(b, digits);
        if (a == end || behind == b || (a > line && !strchr(" \t[(|:", a[-1])) ||
            (*behind && !strchr(" \t]),|:[", *behind)))
            continue;
        if (is_of_epochs(line, a)) {
            nested = 1;
            continue;
        }
        if (*behind == ']' && behind[1] == '[') { /* the epoch's, before that in the epoch */
            nested = 1;
            continue;
        }
        *n = traininglog_words_integer(a);
        *of = traininglog_words_integer(b);
        const int bar = behind[0] == ' ' && behind[1] == '['; /* which may be at 0 */
        if (*n >= 1 - bar && *of > 1 && *n <= *of)
            return 1 + nested;
    }
    return 0;
}
