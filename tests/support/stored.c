/* stored.c -- see stored.h. */
#include "stored.h"

#include "sim/trace/trace.h"
#include "support.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST = 1 << 20 };

stored_file stored_open(const char *path)
{
    stored_file s = {0};
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL && (s.bytes = malloc(MOST)) != NULL, "%s", path);
    const size_t n = fread(s.bytes, 1, MOST, f);
    fclose(f);
    ck_assert(n > 8 && n < MOST);
    uint64_t length = code_load(s.bytes, 8);
    trace_to_little_endian((unsigned char *)&length, sizeof length, 1); /* and back */
    ck_assert(length < n - 8);
    s.header = json_loadb((char *)s.bytes + 8, (size_t)length, 0, NULL);
    s.data = s.bytes + 8 + length;
    ck_assert(s.header != NULL);
    return s;
}

void stored_close(stored_file *s)
{
    json_decref(s->header);
    free(s->bytes);
}

int stored_find(const stored_file *s, const char *name, stored_tensor *t)
{
    const json_t *v = json_object_get(s->header, name), *sides = json_object_get(v, "shape");
    const json_t *range = json_object_get(v, "data_offsets");
    memset(t, 0, sizeof *t);
    if (!v)
        return 0;
    t->dtype = json_string_value(json_object_get(v, "dtype"));
    t->rank = json_array_size(sides);
    ck_assert(t->rank <= sizeof t->sides / sizeof t->sides[0]);
    for (size_t i = 0; i < t->rank; i++)
        t->sides[i] = (uint64_t)json_integer_value(json_array_get(sides, i));
    t->data = s->data + json_integer_value(json_array_get(range, 0));
    t->bytes = (size_t)(json_integer_value(json_array_get(range, 1)) - json_integer_value(json_array_get(range, 0)));
    return 1;
}

const char *stored_text(const stored_file *s, const char *key)
{
    return json_string_value(json_object_get(json_object_get(s->header, "__metadata__"), key));
}
