/* program.c -- see program.h. */
#include "program.h"

#include "cli/confine.h"
#include "cli/environment.h"
#include "cli/memory.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/world.h"

#include <errno.h>
#include <fcntl.h>
#include <mpsim/mpsim.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

typedef struct program {
    const command *commands;
    const char *usage, *more;
} program;

static int usage(const program *p, FILE *to)
{
    fprintf(to,
            "Usage: %s COMMAND [option]... [operand]...\n\n"
            "What lower precision does to recorded tensors, bit for bit.\n\n",
            p->usage);
    for (const command *c = p->commands; c->name; c++)
        fprintf(to, "  %-9s %s\n", c->name, c->summary);
    fputs(p->more, to);
    return EXIT_USAGE;
}

static const command *find(const program *p, const char *name)
{
    for (const command *c = p->commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

static int unknown(const program *p, const char *name)
{
    suggestion s;
    suggestion_init(&s, name);
    for (const command *c = p->commands; c->name; c++)
        suggestion_consider(&s, c->name);
    return fail(EXIT_USAGE, "'%s' is not a command%s", name, suggestion_end(&s, ": see 'mpsim --help'"));
}

/* Run the command that the words say: "--help", "help stat", "stat --json x". */
static int run(const program *p, int argc, char **argv)
{
    char help[] = "--help";
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        char sandbox[128];
        printf("mpsim %s\ninstruction set %s\nsandbox %s\n", mpsim_version(), mpsim_isa_active(),
               confine_text(sandbox, sizeof sandbox));
        return EXIT_OK;
    }
    const int is_help = strcmp(word, "help") == 0;
    if (strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 || (is_help && argc == 2)) {
        usage(p, stdout);
        return EXIT_OK;
    }
    char **rest = argv + 1 + is_help;
    const command *c = find(p, rest[0]);
    char *ask[] = {rest[0], help, NULL};
    if (!c)
        return unknown(p, rest[0]);
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

/* The command's exit code, or that of what is written last. */
static int run_all(const program *p, int argc, char **argv)
{
    int code = world_agree_words(argc - 1, argv + 1);
    if (code == EXIT_OK)
        code = argc < 2 ? usage(p, world_rank() ? stdout : stderr) : environment_isa();
    if (code == EXIT_OK)
        code = run(p, argc, argv);
    memory_done();
    progress_end();
    confine_end();
    if (code == EXIT_OK)
        return flush();
    fflush(stdout); /* and it has been said why */
    return code;
}

int program_main(int argc, char **argv, const command *commands, const char *usage, const char *more)
{
    const program p = {commands, usage, more};
    environment_floats();
    environment_threads();
    open_standard_streams();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error like any other, */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that grows beyond its limit   */
    output_watch();
    memory_watch();
    return world_meet(run_all(&p, argc, argv));
}
