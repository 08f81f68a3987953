/* element.h -- numbers as a command line has them: "0x3c00,1.5,0x1p-3,-inf". */
#pragma once

#include "../exact/exact.h"

#include <mpsim/format.h>
#include <stddef.h>
#include <string.h>

/* What elements are. */
typedef struct element_kind {
    const mpsim_format *format; /* they are rounded to it; NULL: they stay as they were typed */
    const mpsim_format *codes;  /* of which 0x3c00 is a code; NULL: no format is known, and codes are refused */
    mpsim_round_mode mode;      /* of the rounding to the format */
    const char *ask;            /* what would say of which format codes are: "--from FORMAT"; NULL: nothing */
} element_kind;

typedef struct element {
    const char *typed; /* the text; element_list has its own copy */
    uint64_t code; /* of the format that elements are rounded to; without one that of a NaN that was given as a code */
    const mpsim_format *nan_of; /* the format of `code` where it is a NaN, else NULL */
    double value;               /* of the code; without a format the number of binary64 nearest to what was typed */
    double given;               /* the number of binary64 nearest to what was typed; of a code its value */
    int rounded;                /* the value is not what was typed */
    int is_code;
} element;

/* element_read -- the exact number of a text: of a code its value. 0, or an exit code after a message that begins
 * with "VERB: OPTION: ". */
int element_read(exact_number *x, const char *verb, const char *option, const element_kind *kind, const char *text);

/* element_parse -- one. element_exact -- what is rounded: the number as it was typed, or the value of the code. */
int element_parse(element *e, const char *verb, const char *option, const element_kind *kind, const char *text);
void element_exact(exact_number *x, const element *e);

/* element_list -- several, separated by commas, at most ELEMENTS_MOST; *list is to be freed. */
enum { ELEMENTS_MOST = 1 << 16 };
int element_list(element **list, size_t *n, const char *verb, const char *option, const element_kind *kind,
                 const char *text);

/* What happened in a rounding, by name: MPSIM_FLAG_* of round.h and arith.h, and IEEE 754's own underflow, tiny
 * after (and so before) rounding, or before only; the last name is NULL. */
enum { ELEMENT_IEEE_UNDERFLOW = 1 << 16, ELEMENT_IEEE_UNDERFLOW_BEFORE = 1 << 17 };
enum { ELEMENT_FLAGS = 8 };
extern const char *const element_flag_words[]; /* up to NULL */
/* element_ieee_underflow -- that flag, or 0; tiny: MPSIM_TINY_*. */
unsigned element_ieee_underflow(unsigned flags, unsigned tiny);
/* element_flags_list -- the words of the flags that are set, in this order; how many. */
size_t element_flags_list(const char *list[ELEMENT_FLAGS], unsigned flags);
/* element_flags_text -- "overflow, inexact". */
const char *element_flags_text(char *out, size_t size, unsigned flags);

/* element_code, element_put_code -- the code at place i of an array of codes of so many bytes, in the host's order. */
static inline uint64_t element_code(const void *codes, size_t bytes, size_t i)
{
    const unsigned char *p = (const unsigned char *)codes + i * bytes;
    uint16_t two;
    uint32_t four;
    uint64_t eight;
    switch (bytes) {
    case 1:
        return *p;
    case 2:
        memcpy(&two, p, 2);
        return two;
    case 4:
        memcpy(&four, p, 4);
        return four;
    default:
        memcpy(&eight, p, 8);
        return eight;
    }
}

static inline void element_put_code(void *codes, size_t bytes, size_t i, uint64_t code)
{
    const uint8_t one = (uint8_t)code;
    const uint16_t two = (uint16_t)code;
    const uint32_t four = (uint32_t)code;
    const void *from = bytes == 1   ? (const void *)&one
                       : bytes == 2 ? (const void *)&two
                       : bytes == 4 ? (const void *)&four
                                    : (const void *)&code;
    memcpy((unsigned char *)codes + i * bytes, from, bytes);
}

/* element_code_text -- "0x3c00", in as many digits as f has. */
const char *element_code_text(char out[24], const mpsim_format *f, uint64_t code);
