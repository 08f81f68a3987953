/* main.c -- the mpsim program: finds the command and runs it. */
#include "config.h"

#include "cli/environment.h"
#include "cli/memory.h"
#include "cli/options.h"
#include "cli/output.h"
#include "commands.h"

#include <errno.h>
#include <fcntl.h>
#include <mpsim/mpsim.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int usage(FILE *to)
{
    fputs("Usage: mpsim COMMAND [option]... [operand]...\n\n"
          "What lower precision does to recorded tensors, bit for bit.\n\n", to);
    for (const command *c = commands; c->name; c++)
        fprintf(to, "  %-9s %s\n", c->name, c->summary);
    fputs("\n"
          "  mpsim COMMAND --help   options of a command, with examples\n"
          "  mpsim --version        version, instruction set in use\n\n"
          "Files: safetensors, npy, npz, raw; a directory is a trace; - is standard input.\n"
          "Exit codes: 0 ok, 1 a check failed, 2 usage, 3 bad input data, 4 input/output,\n"
          "5 partial (some files failed, with --keep-going; verify: nothing was compared),\n"
          "130, 143, 129 ended by INT, TERM, HUP (train); other commands end by the signal.\n"
          "Environment: MPSIM_ISA (instruction set: avx512, avx2 or generic; the results are the same),\n"
          "MPSIM_POLICIES, MPSIM_PLOTS, MPSIM_GNUPLOT, MPSIM_HWVECTORS (where things are), TMPDIR.\n", to);
    return EXIT_USAGE;
}

static const command *find(const char *name)
{
    for (const command *c = commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static int unknown(const char *name)
{
    suggestion s;
    suggestion_init(&s, name);
    for (const command *c = commands; c->name; c++)
        suggestion_consider(&s, c->name);
    return fail(EXIT_USAGE, "'%s' is not a command%s", name,
                suggestion_end(&s, ": see 'mpsim --help'"));
}

/* Run the command that the words say: "--help", "help stat", "stat --json x". */
static int run(int argc, char **argv)
{
    char help[] = "--help";
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        printf("mpsim %s\ninstruction set %s\n", mpsim_version(), mpsim_isa_active());
        return EXIT_OK;
    }
    const int is_help = strcmp(word, "help") == 0;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (is_help && argc == 2)) {
        usage(stdout);
        return EXIT_OK;
    }
    char **rest = argv + 1 + is_help;
    const command *c = find(rest[0]);
    char *ask[] = {rest[0], help, NULL};
    if (!c)
        return unknown(rest[0]);
    return is_help ? c->run(c, 2, ask) : c->run(c, argc - 1, rest);
}

/* Whether standard output is a pipe that nobody reads; errno of the write that found out may be gone. */
static int is_closed_pipe(void)
{
    struct pollfd out = {.fd = STDOUT_FILENO, .events = POLLOUT};
    return errno == EPIPE || (poll(&out, 1, 0) > 0 && (out.revents & POLLERR));
}

/* What is still in the buffer of standard output: help, summaries, streams. */
static int flush(void)
{
    errno = 0;
    if (fflush(stdout) == 0 && !ferror(stdout))
        return EXIT_OK;
    if (is_closed_pipe()) /* the reader has gone, and knows */
        return EXIT_IO;
    return fail(EXIT_IO, "standard output: %s", strerror(errno ? errno : EIO));
}

/* Take the places of standard streams that are closed, so that no file gets their numbers. What is put
 * there cannot be written (or read), so that using it is an error. */
static void open_standard_streams(void)
{
    for (int fd = 0; fd < 3; fd++)
        if (fcntl(fd, F_GETFD) < 0)
            (void)open("/dev/null", fd == 0 ? O_WRONLY : O_RDONLY); /* the lowest number is fd */
}

int main(int argc, char **argv)
{
    environment_floats();
    open_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error like any other, */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that grows beyond its limit   */
    output_watch();
    memory_watch();
    if (argc < 2)
        return usage(stderr);
    int code = environment_isa();
    if (code == EXIT_OK)
        code = run(argc, argv);
    memory_done();
    if (code != EXIT_OK) { /* and it has been said why */
        fflush(stdout);
        return code;
    }
    return flush();
}
