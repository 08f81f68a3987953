/* command.c -- see command.h. */
#include "command.h"

#include "sim/commands.h"

#include <string.h>

int bench_command(const char *line)
{
    char words[8192], *argv[64], open_to_all[] = "--no-sandbox"; /* this process goes on with other files */
    int argc = 0;
    const command *c = commands;
    if (strlen(line) >= sizeof words)
        return EXIT_USAGE;
    strcpy(words, line);
    for (char *w = strtok(words, " "); w && argc < 62; w = strtok(NULL, " ")) {
        argv[argc++] = w;
        if (argc == 1)
            argv[argc++] = open_to_all;
    }
    argv[argc] = NULL;
    while (argc && c->name && strcmp(c->name, argv[0]) != 0)
        c++;
    return argc && c->name ? c->run(c, argc, argv) : EXIT_USAGE;
}
