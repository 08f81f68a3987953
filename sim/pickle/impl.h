/* impl.h -- what the files of sim/pickle share; not for other folders.
 *
 * Calls go one way: machine.c (the loop) runs instructions (literals.c, containers.c, objects.c), which work on the stack
 * (stack.c), read through input.c (bytes, lines, literals) and put values into tree.c. A value takes 16 bytes, its items four each: a tree is about as large as its pickle. */
#pragma once

#include "pickle.h"

/* What a value is: pickle_type, and for some of them where they are. */
enum {
    TEXT_BYTES = PICKLE_PERSISTENT + 1, /* short, of bytes: PICKLE_TEXT is a short one of characters */
    TEXT_AT                             /* in the source; TEXT_AT + coding                           */
};

/* word holds the type in its low byte, above it: of containers the room, of bytes and long texts the place, of
 * objects where their parts are (0: no more than callable and arguments) and how they come to be. */
typedef struct value {
    uint64_t word;
    union {
        int64_t i;
        double d;
        uint64_t n;        /* bytes, long texts                                                */
        uint32_t two[2];   /* containers: where the items are, how many; texts: likewise       */
        pickle_ref ref[2]; /* objects: callable, arguments; persistent: its identification     */
    } u;
} value;

enum { PART_KWARGS, PART_STATE, PART_LIST, PART_DICT, PARTS };

/* A growing array. */
typedef struct pool {
    void *p;
    size_t n, room;
} pool;

struct pickle {
    pool values, refs, chars; /* value, pickle_ref, char                        */
    size_t memory, max_memory;
    pickle_ref root;
    uint64_t end;
};

/* tree.c. Functions that make something return 0 where there is no room. */

/* pickle_pool_room -- room for n more items of `size` bytes; 0, or -1 with errno: ENOMEM, or E2BIG past max_memory. */
int pickle_pool_room(pickle *p, pool *a, size_t n, size_t size);
pickle_ref pickle_tree_value(pickle *p, uint64_t word, uint64_t n);
pickle_ref pickle_tree_text(pickle *p, int type, const char *s, size_t n);
pickle_ref pickle_tree_container(pickle *p, pickle_type type, const pickle_ref *items, size_t n);
int pickle_tree_append(pickle *p, pickle_ref container, const pickle_ref *items, size_t n);
pickle_ref pickle_tree_object(pickle *p, pickle_ref callable, pickle_ref args, pickle_use use);
/* pickle_tree_part -- where a part of an object is; NULL: no room. */
pickle_ref *pickle_tree_part(pickle *p, pickle_ref object, int part);

/* input.c: the bytes of a pickle. */
enum { WINDOW = 64 << 10 };
typedef struct input {
    const pickle_source *source;
    pickle_error *error;
    uint64_t at, end;    /* end: of the source                        */
    uint64_t frame_end;  /* 0: in no frame                            */
    size_t counted, max; /* bytes against the limit                   */
    unsigned char *window;
    size_t window_bytes; /* room in it                                */
    uint64_t window_at;
    size_t fill;
} input;

/* pickle_input_fail -- fill the error; always -1. */
#if defined(__GNUC__)
__attribute__((format(printf, 3, 4)))
#endif
int pickle_input_fail(input *in, uint64_t at, const char *message, ...);
/* pickle_input_take -- the next n bytes (at most WINDOW), valid until the next call; NULL: failed. */
const unsigned char *pickle_input_take(input *in, size_t n);
/* pickle_input_skip -- pass n bytes that stay where they are. */
int pickle_input_skip(input *in, uint64_t n);
/* pickle_input_line -- a line without its end: where it is, and its bytes if it is not longer than PICKLE_TEXT_MAX
 * (*text, not terminated; else NULL). */
int pickle_input_line(input *in, const char **text, uint64_t *at, uint64_t *n);

/* pickle_input_peek -- the byte at a place that was passed already. */
int pickle_input_peek(const input *in, uint64_t at, unsigned char *c);

/* pickle_input_quoted -- the first byte of what is between the quotes of a literal: how many of n characters write it; 0: more are needed,
 * which of the last piece is an error. */
int pickle_input_quoted(const char *s, size_t n, int last, unsigned char *c);
/* pickle_input_unescape -- s, coded, as UTF-8 (ESCAPED) or bytes (QUOTED), into out of 2 n + 1 bytes; the length, or
 * -1 if it is not a literal. */
long pickle_input_unescape(pickle_coding coding, const char *s, size_t n, char *out);
/* pickle_input_is_text -- whether it is UTF-8; lone surrogates are, as Python writes them. */
int pickle_input_is_text(const char *s, size_t n);
/* pickle_input_decimal -- a decimal integer as two's complement, in at most `size` bytes; how many, 0 if it is not one. */
size_t pickle_input_decimal(const char *s, size_t n, unsigned char *out, size_t size);
