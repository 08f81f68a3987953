/* convention.h -- what names of other programs mean: a table of patterns, and how one is fitted to a name. */
#pragma once

#include <stddef.h>

/* What must hold beside the pattern. */
enum {
    CONVENTION_PARAMETER = 1, /* the last word of the fqn is that of a parameter, and of no buffer             */
    CONVENTION_GRADIENT = 2,  /* it is not that of an activation or of a norm; one dimension or more           */
    CONVENTION_MATRIX = 4,    /* two dimensions or more: what has one may be a running mean                    */
    CONVENTION_SAVED = 8,     /* metadata "format" says that a framework saved it                              */
    CONVENTION_INDEX = 16,    /* the fqn may be a number: which parameter, the file may say (kinds.c)          */
    CONVENTION_PACKED = 32,   /* shapes are those of a partition, not of the parameter                         */
    CONVENTION_VECTOR = 64,   /* one dimension or more: a number is a setting                                  */
    CONVENTION_TWICE = 128,   /* the fqn begins with the word of {class}                                       */
    CONVENTION_MODEL = 256    /* it is one of a model's dictionary: of a parameter, but for known buffers      */
};

/* A name that fits `name`, in a file whose path ends with what fits `path` (NULL: any), is of a kind. In
 * patterns ~ stands for '.' or '/', and
 *   {fqn}   the parameter or module, of any characters; {file} the same without '/'
 *   {leaf}  a word of letters, digits and '_', which is a part of the fqn, too; {class} one that is not
 *   {call}  digits, a part of the fqn if not 0; {n} digits that are not; {n~} digits and a separator, repeated
 *   {torch} {zero} {optax} {te} {keras}: a word of such a list, which says the kind, or part of the fqn
 *   {ext}   '.' and letters or digits, to the end */
typedef struct convention {
    const char *framework; /* as `info` shows it */
    const char *path, *name;
    const char *kind; /* NULL: what the word of the list says */
    unsigned flags;
} convention;

/* The part of a fqn: what is between `at` and at + n. */
typedef struct convention_part {
    const char *at;
    size_t n;
} convention_part;

typedef struct convention_match {
    const convention *row;
    const char *kind; /* a word of the vocabulary */
    convention_part fqn, leaf, call, class;
    const char *ends; /* what the fqn ends with beyond its parts, or "" */
} convention_match;

/* Which rows a file's path lets in. */
enum { CONVENTIONS_MAX = 128 };
typedef struct convention_scope {
    const char *path;
    unsigned char row[CONVENTIONS_MAX];
} convention_scope;

void trace_convention_scope_init(convention_scope *s, const char *path);

/* A tensor of `rank` dimensions in a file whose metadata say who saved it, or not. */
typedef struct convention_query {
    const convention_scope *scope;
    const char *name;
    size_t rank;
    int first_is_one; /* its first dimension is 1 */
    int saved;
    int numbers; /* its elements are floating-point numbers */
    const char *dtype;
} convention_query;

/* trace_convention_find -- the first row that fits; 0 if none does. */
int trace_convention_find(convention_match *m, const convention_query *q);
