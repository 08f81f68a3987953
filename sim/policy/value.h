/* value.h -- values of a policy's YAML tree, and the errors of those that are not valid. */
#pragma once

#include "../cli/options.h"
#include "table.h"
#include "yaml.h"

typedef struct policy_reader {
    const char *path;
    trace_error *error;
    char **remarks; /* lines about what of the file does not count; *remarks NULL: none */
} policy_reader;

/* policy_bad -- set the error "PATH: line N: MESSAGE"; returns -1. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int policy_bad(policy_reader *r, unsigned line, const char *message, ...);

/* policy_remark -- add "line N: MESSAGE" to the remarks. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
void policy_remark(policy_reader *r, unsigned line, const char *message, ...);

/* Values: 0, or -1 after policy_bad, which names the key. A format is one of tensors: its numbers
 * are binary32 numbers, and signed. */
int policy_value_text(policy_reader *r, const char *key, const yaml_value *v, const char **text);
int policy_value_number(policy_reader *r, const char *key, const yaml_value *v, double *x);
int policy_value_count(policy_reader *r, const char *key, const yaml_value *v, uint64_t *n);
int policy_value_bool(policy_reader *r, const char *key, const yaml_value *v, int *b);
int policy_value_format(policy_reader *r, const char *key, const yaml_value *v, mpsim_format *f);

/* policy_word -- the place of a word in a list; -1 after policy_bad: "KEY: 'x' is not one of a, b, c". */
int policy_word(policy_reader *r, unsigned line, const char *key, const char *word, const policy_words *words);

/* A key of a map: what its value is, and where the value goes. */
typedef enum policy_type {
    POLICY_OWN,    /* what `set` makes of it                      */
    POLICY_LATER,  /* what the owner of the map reads itself      */
    POLICY_YES,    /* an int, 0 or 1                              */
    POLICY_FLAG,   /* a uint8_t, 0 or 1                           */
    POLICY_NUMBER, /* a double                                    */
    POLICY_FORMAT, /* an mpsim_format                             */
    POLICY_INT16,  /* an int16_t                                  */
    POLICY_BYTE,   /* a uint8_t, a count                          */
    POLICY_COUNT,  /* a uint32_t                                  */
    POLICY_COUNT64,
    POLICY_WORD /* a uint8_t, the place of the word in `words` */
} policy_type;

typedef struct policy_row {
    const char *key;
    policy_type type;
    size_t at; /* in what the map describes */
    const policy_words *words;
    const char *label;  /* in the error of a word; NULL: "MAP: KEY" */
    option_range range; /* of a number; all zero: any. Of an integer always there */
    int (*set)(policy_reader *r, const yaml_item *item, void *to); /* to: what the map describes            */
    const char *(*word)(const void *to);                           /* of what `set` has made, for the rules */
} policy_row;

/* The keys of a map. */
typedef struct policy_map {
    const char *name, *needed; /* what is needed, for the error of another type of value */
    const policy_row *rows;
    size_t count;
    const policy_row *text; /* what a text in the place of the map is; NULL: an error */
    const option_row *
        rules; /* NEEDS, EXCLUDES, EXCLUSIVE of keys (cli/options.h), up to a NULL name; or NULL. A key that is false is not given */
} policy_map;
#define POLICY_MAP(name, needed, rows, text, rules)                       \
    {                                                                     \
        name, needed, rows, sizeof(rows) / sizeof((rows)[0]), text, rules \
    }

/* policy_row_range -- the range of the row's number, or NULL. */
const option_range *policy_row_range(const policy_row *row);

/* policy_map_read -- each key by its row, then the rules. policy_row_read -- one key of a map, or (map NULL) of the policy itself. 0, or -1
 * after policy_bad. */
int policy_map_read(policy_reader *r, const policy_map *map, const yaml_value *v, void *to);
int policy_row_read(policy_reader *r, const char *map, const policy_row *row, const yaml_item *item, void *to);
