/* field.c -- see field.h. */
#include "field.h"

int field_end(const record_field *f)
{
    return !f->key && !f->title;
}

size_t field_count(const record_field *f, const void *at)
{
    return *(const size_t *)(const void *)((const char *)at + f->of);
}

/* Whether a value that is NULL is none: a text, or a list that is not merely empty. */
static int may_lack(const record_field *f)
{
    return f->type == FIELD_TEXT || (f->type > FIELD_TEXT && f->in & (FIELD_NULL | FIELD_OPTIONAL));
}

const void *field_at(const record_field *f, const void *at)
{
    if (!at || (f->in & FIELD_IF && field_count(f, at) == 0))
        return NULL;
    const void *value = (const char *)at + f->at;
    if (f->in & FIELD_POINTER)
        return *(const void *const *)value;
    return may_lack(f) && !*(const void *const *)value ? NULL : value;
}

uint64_t field_whole(const record_field *f, const void *at)
{
    return *(const uint64_t *)(const void *)((const char *)at + f->of);
}

int field_shown(const record_field *f, unsigned shows)
{
    return !f->when || (f->when & shows);
}
