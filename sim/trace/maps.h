/* maps.h -- what names mean, as --map and files beside traces say it (namemap.h). */
#pragma once

#include "../text/option.h"
#include "namemap.h"

/* The rules of a folder: those of the file in it, after those of the command line. */
typedef struct map_folder {
    char *folder; /* "" for the current one */
    namemap *map;
} map_folder;

typedef struct input_maps {
    namemap *given; /* --map; NULL: none */
    map_folder *folders;
    size_t count;
    /* Set first: what reads a file of rules, as trace_text_file_whole (textfile.h), and what is told of each that was found
     * beside traces: a line. warn: the same of a file above the operand's own folder that is somebody else's. */
    char *(*read)(const char *path, size_t most, size_t *n, trace_error *error);
    int (*tell)(void *context, const char *line); /* 0, or -1 without memory */
    int (*warn)(void *context, const char *line);
    void *context;
} input_maps;

/* trace_maps_give -- the rules of --map, each a rule or @FILE. 0, or -1 with *error filled. */
int trace_maps_give(input_maps *m, const option_list *rules, trace_error *error);

/* trace_maps_find -- look for files of rules in the folders of `paths`, which an operand stands for, and above as far as two
 * folders above the operand's. 0, or -1 with *error filled. */
int trace_maps_find(input_maps *m, const char *operand, char *const *paths, size_t n, trace_error *error);

/* trace_maps_of -- the rules for a file: of the nearest folder that has some. NULL: none. */
const namemap *trace_maps_of(const input_maps *m, const char *path);

void trace_maps_clear(input_maps *m);
