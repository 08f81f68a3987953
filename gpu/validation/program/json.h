/* json.h -- texts of JSON, for records: by fprintf alone, since a machine with a device may have no library for more. */
#pragma once

#include <stdio.h>

/* ASCII as it is, but for what JSON must escape; other characters are left out. */
static inline void gpu_json_string(FILE *to, const char *s)
{
    putc('"', to);
    for (; *s; s++) {
        if (*s == '"' || *s == '\\')
            putc('\\', to);
        if ((unsigned char)*s >= 32 && (unsigned char)*s < 127)
            putc(*s, to);
    }
    putc('"', to);
}

/* A member behind another one: ,"name":"s". */
static inline void gpu_json_text(FILE *to, const char *name, const char *s)
{
    fprintf(to, ",\"%s\":", name);
    gpu_json_string(to, s);
}
