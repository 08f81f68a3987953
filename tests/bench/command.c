/* command.c -- see command.h. */
#include "command.h"

#include "sim/commands.h"

#include <string.h>

int bench_command(const char *line)
{
    char words[8192], *argv[64];
    int argc = 0;
    const command *c = commands;
    if (strlen(line) >= sizeof words)
        return EXIT_USAGE;
    strcpy(words, line);
    for (char *w = strtok(words, " "); w && argc < 63; w = strtok(NULL, " "))
        argv[argc++] = w;
    argv[argc] = NULL;
    while (argc && c->name && strcmp(c->name, argv[0]) != 0)
        c++;
    return argc && c->name ? c->run(c, argc, argv) : EXIT_USAGE;
}
