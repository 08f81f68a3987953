/* pickle.h -- Python pickles, protocols 0 to 5, as a tree of typed values. Nothing is ever called: what the
 * pickle machine of Python would call becomes an object that holds the name and the arguments.
 *
 * A pickle is read through a function, from `at` on and never past `end`. Byte strings and long texts stay
 * where they are: the tree has their places. Everything else is bounded by limits; nothing recurses.
 * Source: Lib/pickle.py and Lib/pickletools.py of CPython 3.11. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

/* A value of a tree. Values may be reached in several ways, and contain themselves. */
typedef uint32_t pickle_ref;
enum { PICKLE_ABSENT = 0 }; /* what is not there; every function accepts it */

typedef enum pickle_type {
    PICKLE_NOTHING, /* of PICKLE_ABSENT                                                              */
    PICKLE_NONE,
    PICKLE_BOOL,
    PICKLE_INT, /* fits int64_t                                                               */
    PICKLE_BIG, /* an integer that does not                                                   */
    PICKLE_FLOAT,
    PICKLE_TEXT,  /* str; of Python 2 also byte strings                                         */
    PICKLE_BYTES, /* bytes, bytearray                                                           */
    PICKLE_LIST,
    PICKLE_TUPLE,
    PICKLE_SET,        /* and frozenset                                                              */
    PICKLE_DICT,       /* pairs in the order of the pickle, equal keys not united                    */
    PICKLE_GLOBAL,     /* what "module.name" stands for                                              */
    PICKLE_OBJECT,     /* what a global would make of arguments, with what is added to it afterwards */
    PICKLE_PERSISTENT, /* what the program that loads it would find elsewhere                        */
} pickle_type;

/* How an object comes to be. */
typedef enum pickle_use {
    PICKLE_NAMED, /* only its name is there                                                          */
    PICKLE_MADE,  /* by its class's __new__: NEWOBJ, NEWOBJ_EX                                       */
    PICKLE_CALLED /* with any arguments: REDUCE, OBJ, INST                                           */
} pickle_use;

typedef struct pickle pickle;

typedef struct pickle_source {
    /* Up to n bytes from `at` on, fewer only at the end; -1 and errno on failure. */
    ssize_t (*read)(void *context, void *p, size_t n, uint64_t at);
    void *context;
    uint64_t at, end;
} pickle_source;

typedef struct pickle_rules {
    size_t max_bytes;  /* of the pickle, but for byte strings and long texts */
    size_t max_memory; /* of the tree                                        */
    /* The name of what may not be in the tree ("refused: global NAME"), else NULL; asked when a global is named
     * and when a value (a global, a persistent one or an object) is to make an object. NULL: nothing of that
     * is refused. */
    const char *(*refused)(void *context, const pickle *p, pickle_ref what, pickle_use use);
    void *context;
} pickle_rules;

typedef struct pickle_error {
    enum { PICKLE_BAD, PICKLE_NO_MEMORY, PICKLE_CANNOT_READ /* errno */ } what;
    uint64_t at;    /* where in the source */
    char text[400]; /* may hold any bytes of the pickle */
} pickle_error;

/* pickle_read -- the tree, or NULL with *error filled. */
pickle *pickle_read(const pickle_source *source, const pickle_rules *rules, pickle_error *error);
void pickle_free(pickle *p); /* accepts NULL */

pickle_ref pickle_root(const pickle *p);
uint64_t pickle_end(const pickle *p);  /* where the source goes on after the pickle                */
size_t pickle_memory(const pickle *p); /* bytes that the tree takes                                */
size_t pickle_values(const pickle *p); /* all refs are below it                                    */

pickle_type pickle_type_of(const pickle *p, pickle_ref r);

/* Numbers: 0, or -1 if it is not one of these (bool counts as an integer). */
int pickle_int(const pickle *p, pickle_ref r, int64_t *value);
int pickle_float(const pickle *p, pickle_ref r, double *value);
/* pickle_big -- a PICKLE_BIG's bytes, two's complement, the lowest first; NULL of any other value. */
const unsigned char *pickle_big(const pickle *p, pickle_ref r, size_t *n);

/* pickle_text -- a text and its length; a NUL follows it. It may hold NUL characters and, where Python wrote
 * lone surrogates or bytes, what is not UTF-8. NULL if it is no text, or a long one (PICKLE_TEXT_MAX). */
enum { PICKLE_TEXT_MAX = 32 << 10 };
const char *pickle_text(const pickle *p, pickle_ref r, size_t *n);
/* pickle_is_text -- whether it is this text. */
int pickle_is_text(const pickle *p, pickle_ref r, const char *text);

/* pickle_data -- where the bytes of a byte string or a text are: in the source, coded in one of these ways,
 * or, of a short text, in memory. 0, or -1 if it is neither. */
typedef enum pickle_coding {
    PICKLE_PLAIN,   /* the bytes themselves                                                          */
    PICKLE_UTF8,    /* text, also what stands for bytes: each a character below U+0100               */
    PICKLE_ESCAPED, /* Latin-1 with \uHHHH and \UHHHHHHHH                                            */
    PICKLE_QUOTED   /* a string literal of Python, what is between its quotes                        */
} pickle_coding;
typedef struct pickle_bytes {
    const char *memory; /* NULL: in the source                                                       */
    uint64_t at, n;
    pickle_coding coding; /* in memory: PICKLE_PLAIN or PICKLE_UTF8                                  */
} pickle_bytes;
int pickle_data(const pickle *p, pickle_ref r, pickle_bytes *data);
/* pickle_decode -- the bytes that a piece of such data stands for, into out of n bytes: how many, or -1 if it
 * stands for none. *used: what of the piece has been decoded; the rest belongs to the next, unless this is the
 * last one. */
long pickle_decode(pickle_coding coding, const char *s, size_t n, int last, char *out, size_t *used);

/* pickle_count -- items of a list, tuple or set, pairs of a dict; else 0. pickle_item -- one of them, of a
 * dict the value; pickle_key -- the key of a pair. Past the end PICKLE_ABSENT. */
size_t pickle_count(const pickle *p, pickle_ref r);
pickle_ref pickle_item(const pickle *p, pickle_ref r, size_t i);
pickle_ref pickle_key(const pickle *p, pickle_ref r, size_t i);
/* pickle_get -- the last value with this text as its key, in a dict, or in the pairs of an object. */
pickle_ref pickle_get(const pickle *p, pickle_ref r, const char *key);

/* pickle_global -- "module.name" of a global, or of the global that an object is made by; else NULL. */
const char *pickle_global(const pickle *p, pickle_ref r);

/* The parts of an object; PICKLE_ABSENT where it has none. */
pickle_ref pickle_callable(const pickle *p, pickle_ref r); /* what makes it                          */
pickle_ref pickle_args(const pickle *p, pickle_ref r);     /* a tuple                                  */
pickle_ref pickle_kwargs(const pickle *p, pickle_ref r);   /* a dict: NEWOBJ_EX                        */
pickle_ref pickle_state(const pickle *p, pickle_ref r);    /* BUILD                                    */
pickle_ref pickle_list(const pickle *p, pickle_ref r);     /* what was appended, or added: a list      */
pickle_ref pickle_dict(const pickle *p, pickle_ref r);     /* pairs that were set: a dict              */
pickle_use pickle_use_of(const pickle *p, pickle_ref r);

/* pickle_persistent -- the identification of a PICKLE_PERSISTENT. */
pickle_ref pickle_persistent(const pickle *p, pickle_ref r);
