/* field.h -- fields one by one, for the writers of records. */
#pragma once

#include "record.h"

/* field_end -- whether f ends the table. */
int field_end(const record_field *f);
/* field_at -- where the value of f is in the struct `at`; NULL where there is none: `at` is NULL, or a pointer, a text or a list. */
const void *field_at(const record_field *f, const void *at);
/* field_count -- how many are in a list. */
size_t field_count(const record_field *f, const void *at);
/* field_value_of -- what `value` is, of a type that has one value; VALUE_NONE: of a record, a list, a set. */
typedef enum value_kind { VALUE_NONE, VALUE_TEXT, VALUE_TRUTH, VALUE_COUNT, VALUE_INTEGER, VALUE_REAL } value_kind;
typedef struct field_value {
    value_kind is;
    const char *text; /* of VALUE_TEXT, and so on */
    int truth;
    uint64_t count;
    int64_t integer;
    double real;
} field_value;
field_value field_value_of(const record_field *f, const void *value);

/* field_item -- a field for an item of the list f, which takes *size bytes. */
record_field field_item(const record_field *f, size_t *size);
/* field_is_list -- whether f is a list of such items: a FIELD_LIST, or one of values. */
int field_is_list(const record_field *f);
/* field_find -- the field `key` of the struct *at that a writer of `in` writes, which may be in one of its inline records: then *at is that
 * record. NULL: there is none. */
const record_field *field_find(const record_kind *r, const void **at, const char *key, unsigned in);
/* field_counts -- the counts of a FIELD_SIZES or FIELD_COUNTS, as [2, 3]; of another type "". */
enum { FIELD_COUNTS_TEXT = 1536 };
const char *field_counts(char out[FIELD_COUNTS_TEXT], const record_field *f, const void *at);
/* field_word -- the word of a FIELD_WORD or FIELD_WORD8; NULL: none. */
const char *field_word(const record_field *f, const void *value);
/* field_has -- whether a FIELD_SET has the word f->words[i]. */
int field_has(const record_field *f, const void *value, size_t i);
/* field_lacks -- whether the struct `at` has no member for f: neither a value nor null. */
int field_lacks(const record_field *f, const void *at);
/* field_whole -- what a share is part of. */
uint64_t field_whole(const record_field *f, const void *at);
/* field_stream -- the first list of r that is written as it comes, or NULL. field_rows -- the innermost such list. */
const record_field *field_stream(const record_kind *r);
const record_field *field_rows(const record_kind *r);
/* field_shown -- whether a writer that shows `shows` has f. */
int field_shown(const record_field *f, unsigned shows);
/* field_columns -- the fields that have columns, in the order of the columns; how many. */
enum { FIELD_COLUMNS_MOST = 64 };
size_t field_columns(const record_field *to[FIELD_COLUMNS_MOST], const record_kind *r, unsigned shows);
/* field_sentence -- what is said of the column of f; NULL: nothing, or no more than its title says. */
enum { FIELD_SENTENCE = 256 };
const char *field_sentence(char out[FIELD_SENTENCE], const record_kind *r, const record_field *f);
/* field_json -- f of the struct `at` as a member of o, with its key. */
void field_json(jsonout *o, const record_field *f, const void *at, unsigned in);
