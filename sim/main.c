/* main.c -- the mpsim program: finds the command and runs it. */
#include "config.h"

#include "options.h"
#include "cmd.h"

#include <mpsim/mpsim.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

static int usage(FILE *to)
{
    fputs("Usage: mpsim COMMAND [option]... [operand]...\n\n"
          "What lower precision does to recorded tensors, bit for bit.\n\n", to);
    for (const command *c = commands; c->name; c++)
        fprintf(to, "  %-9s %s\n", c->name, c->summary);
    fputs("\n"
          "  mpsim COMMAND --help   options of a command, with examples\n"
          "  mpsim --version        version\n\n"
          "Files: safetensors, npy, npz, raw; a directory is a trace; - is standard input.\n"
          "Exit codes: 0 ok, 1 a check failed, 2 usage, 3 bad input data, 4 input/output,\n"
          "5 partial (some files failed, with --keep-going).\n", to);
    return EXIT_USAGE;
}

static const command *find(const char *name)
{
    for (const command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

int main(int argc, char **argv)
{
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error like any other */
    if (argc < 2)
        return usage(stderr);
    const char *word = argv[1];
    int code;
    if (strcmp(word, "--help") == 0 || (strcmp(word, "help") == 0 && argc == 2)) {
        usage(stdout);
        code = EXIT_OK;
    } else if (strcmp(word, "--version") == 0) {
        printf("mpsim %s\n", mpsim_version());
        code = EXIT_OK;
    } else {
        char help[] = "--help";
        char *ask[] = {argc > 2 ? argv[2] : NULL, help, NULL};
        const int is_help = strcmp(word, "help") == 0;
        const command *c = find(is_help ? argv[2] : word);
        if (!c)
            return fail(EXIT_USAGE, "'%s' is not a command: see 'mpsim --help'",
                        is_help ? argv[2] : word);
        code = is_help ? c->run(2, ask) : c->run(argc - 1, argv + 1);
    }
    if (fflush(stdout) != 0 && code == EXIT_OK)
        code = EXIT_IO;
    return code;
}
