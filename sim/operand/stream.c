/* stream.c -- see stream.h. */
#include "stream.h"

#include <string.h>

static uint64_t hash(uint64_t h, const void *bytes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        h = (h ^ ((const unsigned char *)bytes)[i]) * 0x100000001b3u;
    return h;
}

uint64_t name_stream(int64_t step, const char *rank, const char *name)
{
    unsigned char digits[8];
    for (int i = 0; i < 8; i++)
        digits[i] = (unsigned char)((uint64_t)step >> (8 * i));
    uint64_t h = hash(0xcbf29ce484222325u, digits, sizeof digits);
    if (rank)
        h = hash(h, rank, strlen(rank) + 1);
    return hash(h, name, strlen(name));
}

uint64_t tensor_stream(const trace *t, const trace_tensor *tensor)
{
    const char *name = tensor->name;
    if (name[0] == '\0') {
        const char *slash = strrchr(trace_path(t), '/');
        name = slash ? slash + 1 : trace_path(t);
    }
    return name_stream(trace_step(t), trace_metadata(t, "mpsim.rank"), name);
}
