/* textfile.c -- see textfile.h. */
#include "textfile.h"

#include "world.h"

#include <mpsim/digest.h>
#include <string.h>

char *text_file_read(const char *path, size_t most, size_t *n, trace_error *error)
{
    char *text = trace_text_file_whole(path, most, n, error);
    if (text)
        world_expect(mpsim_digest_bytes(text, n ? *n : strlen(text), 0));
    return text;
}
