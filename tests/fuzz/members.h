/* members.h -- an input that is a small zip archive: its members, to be changed or to be files; and an archive of
 * members, with the sizes and CRCs that are due, so that what is inside is looked at. */
#pragma once

#include <stddef.h>
#include <stdint.h>

enum { MEMBERS_MAX = 24, MEMBER_NAME = 256, MEMBER_MOST = 1 << 20 };

typedef struct member {
    char name[MEMBER_NAME];
    uint8_t *bytes; /* on the heap, with nothing behind; NULL if n is 0 */
    size_t n;       /* MEMBER_MOST at most */
    int deflated;
} member;

typedef struct members {
    member of[MEMBERS_MAX];
    size_t count;
} members;

/* members_read -- of a zip archive as it should be: 0, to be cleared; or -1, and nothing to be cleared. */
int members_read(members *m, const uint8_t *data, size_t n);
void members_clear(members *m);

/* members_write -- an archive, to be freed; *n: its bytes. */
uint8_t *members_write(const members *m, size_t *n);
