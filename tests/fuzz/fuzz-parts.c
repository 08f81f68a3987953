/* fuzz-parts.c -- any bytes as what says where the parts of a trace are: .metadata of torch.distributed.checkpoint, and
 * an index of safetensors. They are read or refused, and so is what they say of the files beside them. */
#include "input.h"
#include "sim/trace/trace.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[64];
static const char *const files[] = {"/.metadata", "/index.json", "/__0_0.distcp", "/__1_0.distcp", "/1.safetensors"};
enum { FILES = sizeof files / sizeof files[0] };

static const char *in_folder(const char *name)
{
    static char path[128];
    snprintf(path, sizeof path, "%s%s", folder, name);
    return path;
}

static void remove_folder(void)
{
    for (int i = 0; i < FILES; i++)
        unlink(in_folder(files[i]));
    rmdir(folder);
}

/* The input under two names, and three files, the last of them with a tensor "a" of one number. */
static void make_folder(const char *input)
{
    static const char header[] = "{\"a\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}";
    strcpy(folder, "/tmp/mpsim-fuzz-parts-XXXXXX");
    must(mkdtemp(folder) != NULL);
    atexit(remove_folder);
    for (int i = 0; i < 2; i++)
        must(symlink(input, in_folder(files[i])) == 0);
    for (int i = 2; i < FILES; i++) {
        FILE *f = fopen(in_folder(files[i]), "wb");
        must(f != NULL);
        if (i == FILES - 1)
            fprintf(f, "%c%c%c%c%c%c%c%c%s%c%c", (int)strlen(header), 0, 0, 0, 0, 0, 0, 0, header, 1, 2);
        must(fclose(f) == 0);
    }
}

static void read_all(const char *path)
{
    trace_error e;
    double values[300];
    size_t got;
    trace *t = trace_open(path, NULL, &e);
    for (size_t i = 0; t && i < trace_count(t); i++) {
        e.exit = 3;
        strcpy(e.text, "-");
        if (trace_select(t, i, &e) == 0)
            trace_read(t, values, 300, &got, &e); /* fewer than there may be: a shape costs nothing */
        must(e.exit == 3 || e.exit == 4);
        must_be_line(e.text);
    }
    if (!t)
        must_be_line(e.text);
    trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    const char *input = input_path(data, n);
    if (!folder[0])
        make_folder(input);
    read_all(folder);
    read_all(in_folder("/index.json"));
    return 0;
}
