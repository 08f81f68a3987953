/* maps.h -- what names mean, as --map and files beside traces say it (../trace/namemap.h). */
#ifndef MPSIM_SIM_CLI_MAPS_H
#define MPSIM_SIM_CLI_MAPS_H

#include "../trace/namemap.h"
#include "options.h"

#include <jansson.h>

/* The rules of a folder: those of the file in it, after those of the command line. */
typedef struct map_folder {
    char *folder; /* "" for the current one */
    namemap *map;
} map_folder;

typedef struct input_maps {
    namemap *given; /* --map; NULL: none */
    map_folder *folders;
    size_t count;
} input_maps;

/* maps_give -- the rules of --map, each a rule or @FILE. 0, or an exit code after a message. */
int maps_give(input_maps *m, const char *verb, const option_list *rules);

/* maps_find -- look for files of rules in the folders of `paths`, which an operand stands for, and above as far as two
 * folders above the operand's; each is told on stderr. 0, or an exit code after a message. */
int maps_find(input_maps *m, const char *operand, char *const *paths, size_t n);

/* maps_of -- the rules for a file: of the nearest folder that has some. NULL: none. */
const namemap *maps_of(const input_maps *m, const char *path);

/* maps_json -- all rules with where they are from, for the configuration of a report; NULL: there are none. */
json_t *maps_json(const input_maps *m);

void maps_clear(input_maps *m);

#endif
