/* output.c -- the files that a run leaves: their names, and the record as it grows. See session.h. */
#include "session.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>

/* "nvidia-h200-2026-11-20.json" in a folder. */
static void record_path(char *to, size_t size, const char *directory, const gpu_record *r)
{
    size_t n = (size_t)snprintf(to, size, "%s/", directory);
    n = n < size - 24 ? n : size - 24; /* too long a name: opening it fails and says so */
    for (const char *p = r->device.name; *p && n + 20 < size; p++) {
        const char c = *p >= 'A' && *p <= 'Z' ? (char)(*p - 'A' + 'a') : *p;
        const int word = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
        if (word || to[n - 1] != '-')
            to[n++] = word ? c : '-';
    }
    snprintf(to + n, size - n, "-%.10s.json", r->date);
}

void gpu_session_name(gpu_session *s)
{
    gpu_options *o = &s->options;
    if (o->directory && !o->output) {
        (void)mkdir(o->directory, 0777); /* what is wrong with it, opening the record says */
        record_path(s->path, sizeof s->path, o->directory, &s->record);
        o->output = s->path;
    }
    if (!o->output)
        return;
    snprintf(s->prefix, sizeof s->prefix, "%s", o->output);
    const size_t n = strlen(s->prefix);
    if (n > 5 && strcmp(s->prefix + n - 5, ".json") == 0)
        s->prefix[n - 5] = 0;
}

int gpu_session_write(gpu_session *s, int complete)
{
    const char *path = s->options.output;
    char part[1024], beside[1032];
    if (!path)
        return 0;
    snprintf(part, sizeof part, "%s.part", path);
    snprintf(beside, sizeof beside, "%s.new", part);
    FILE *f = fopen(beside, "w");
    int bad = !f || gpu_record_write(f, &s->record) != 0;
    bad |= f && fclose(f) != 0;
    bad = bad || rename(beside, complete ? path : part) != 0;
    if (bad) {
        fprintf(stderr, "mpsim-gpu: %s: %s\n", path, strerror(errno));
        gpu_session_note(s, GPU_TROUBLE);
        return -1;
    }
    if (complete) {
        (void)remove(part);
        printf("record: %s\n", path);
    }
    return 0;
}
