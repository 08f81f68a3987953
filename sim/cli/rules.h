/* rules.h -- what goes together: rows of rules (options.h), of options of a command and of keys of a map (sim/policy). */
#pragma once

#include "options.h"

/* How rules spell what they are about: "--NAME WORD", or "NAME: WORD". */
typedef struct rule_style {
    const char *before, *between;
} rule_style;
extern const rule_style rule_options, rule_keys;

/* What stands on the command line, or in the map. */
typedef struct options_given {
    const option_row *const *rows; /* the options of the table                        */
    const char *const *texts;      /* of each the last argument, or NULL; of flags "" */
    const uint64_t *defaults;      /* of counts                                       */
    int n;
    int operands; /* how many, and they themselves */
    char **words;
    const rule_style *style;
} options_given;

/* rules_broken -- the first rule of a table that is not kept, or NULL. *text says what is wrong, without the rule's `help`; *held is the
 * term of the rule's name that holds, NULL for a rule that always counts: *text is what is needed then. */
const option_row *rules_broken(const option_row *table, const options_given *g, char *text, size_t size,
                               const char **held);

/* rules_check -- -1 if all rules are kept, else EXIT_USAGE after a message. */
int rules_check(const command *c, const option_row *table, const options_given *g);

/* rule_say -- the rule as a sentence for the help; empty where nothing is to be said, as of options that exclude each other of which
 * the table has one. */
void rule_say(char *to, size_t size, const option_row *table, const option_row *rule, const rule_style *style);

/* range_has -- whether a number is in a range. range_say -- "from 1 to 2^20", "above 0", "at least 1", "from 0 to below 1". */
int range_has(const option_range *r, double x);
/* number_say -- "an integer from 1 to 2^20", "a number of at least 0", "a number": r NULL has all. */
void number_say(char *to, size_t size, int is_whole, const option_range *r);
void range_say(char *to, size_t size, const option_range *r);
/* range_of -- the range of an option of the table; NULL: any number. */
const option_range *range_of(const option_row *table, const char *name);
