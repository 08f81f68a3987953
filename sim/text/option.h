/* option.h -- what options hold: numbers, and lists of texts. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef struct option_list {
    const char **items;
    size_t count;
} option_list;

/* option_list_add -- put a text behind the others, which must outlive the list. 0, or -1 without memory. */
int option_list_add(option_list *l, const char *text);
void option_list_clear(option_list *l);
/* option_list_has -- whether `word` is among the words of the list, an item of which may be
 * several, separated by commas. */
int option_list_has(const option_list *l, const char *word);

/* Values that several options take. Each returns 0, NUMBER_BAD if the text is not one, or
 * NUMBER_RANGE if it is one that the type does not hold.
 *
 * parse_count   decimal, also with leading zeros, or hexadecimal (0x10), with a unit (10k, 2M,
 *               1Ki); or a power of two (2^20, 2**20, 2.0**20)
 * parse_number  decimal, hexadecimal (0x1p-3), or a power of two; finite. Beyond the largest
 *               number and what is not zero but would be read as 0 are out of range. */
enum { NUMBER_BAD = -1, NUMBER_RANGE = -2 };
int parse_count(uint64_t *n, const char *text);
int parse_number(double *x, const char *text);
