/* program.c -- see program.h. */
#include "program.h"

#include "cli/confine.h"
#include "process/environment.h"
#include "cli/help.h"
#include "process/memory.h"
#include "process/output.h"
#include "process/progress.h"
#include "process/world.h"

#include <errno.h>
#include <fcntl.h>
#include <mpsim/mpsim.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Nothing was asked for. */
static int ask(const program *p)
{
    help_program(HELP_TEXT, p, world_rank() ? stdout : stderr);
    return EXIT_USAGE;
}

static const command *find(const program *p, const char *name)
{
    for (const command *c = p->commands; c->name; c++)
        if (strcmp(c->name, name) == 0)
            return c;
    return NULL;
}

/* What others call a command, which is no slip of a finger. */
static const char *other_word(const char *name)
{
    static const char *const words[][2] = {
        {"round", "cast"},   {"quantize", "cast"},  {"quantise", "cast"},     {"convert", "cast"},
        {"compare", "diff"}, {"show", "info"},      {"inspect", "info"},      {"analyze", "stat"},
        {"analyse", "stat"}, {"simulate", "train"}, {"histogram", "plot"},    {"figure", "plot"},
        {"matmul", "dot"},   {"gemm", "dot"},       {"version", "--version"}, {"-v", "--version"},
        {"-V", "--version"},
    };
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (strcmp(words[i][0], name) == 0)
            return words[i][1];
    return NULL;
}

static int unknown(const program *p, const char *name, int is_help)
{
    suggestion s;
    if (!is_help && other_word(name))
        return fail(EXIT_USAGE, "'%s' is not a command: did you mean %s?", name, other_word(name));
    suggestion_init(&s, name);
    for (const command *c = p->commands; c->name; c++)
        suggestion_consider(&s, c->name);
    for (const help_topic *t = is_help ? p->topics : NULL; t && t->name; t++)
        suggestion_consider(&s, t->name);
    return fail(EXIT_USAGE, is_help ? "'%s' is neither a command nor a topic%s" : "'%s' is not a command%s", name,
                suggestion_end(&s, ": see 'mpsim --help'"));
}

/* The help of a command, or the list that a topic is. */
static int help_about(const program *p, const char *name)
{
    char word[32], option[32] = "--help";
    const command *c = find(p, name);
    for (const help_topic *t = p->topics; !c && t && t->name; t++)
        if (strcmp(t->name, name) == 0) {
            c = find(p, t->command);
            snprintf(option, sizeof option, "%s", t->option);
        }
    if (!c)
        return unknown(p, name, 1);
    snprintf(word, sizeof word, "%s", c->name);
    char *words[] = {word, option, NULL};
    return c->run(c, 2, words);
}

/* Run the command that the words say: "--help", "help stat", "stat --json x". */
static int run(const program *p, int argc, char **argv)
{
    const char *word = argv[1];
    if (strcmp(word, "--version") == 0) {
        char sandbox[128];
        printf("mpsim %s\ninstruction set %s\nsandbox %s\n", mpsim_version(), mpsim_isa_active(),
               confine_text(sandbox, sizeof sandbox));
        return EXIT_OK;
    }
    const int is_help = strcmp(word, "help") == 0;
    if (strncmp(word, "--help=", 7) == 0 || strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0 ||
        (is_help && argc == 2)) {
        help_form form;
        if (help_form_find(&form, word[0] == '-' && word[1] == '-' && word[6] ? word + 7 : NULL))
            return fail(EXIT_USAGE, "--help is alone or " HELP_FORMS ", not '%s'", word + 7);
        help_program(form, p, stdout);
        return EXIT_OK;
    }
    if (is_help)
        return help_about(p, argv[2]);
    const command *c = find(p, word);
    return c ? c->run(c, argc - 1, argv + 1) : unknown(p, word, 0);
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
        code = argc < 2 ? ask(p) : environment_isa();
    if (code == EXIT_OK)
        code = run(p, argc, argv);
    memory_done();
    progress_end();
    confine_end();
    output_done();
    if (code == EXIT_OK)
        return flush();
    fflush(stdout); /* and it has been said why */
    return code;
}

int program_main(int argc, char **argv, const program *p)
{
    environment_floats();
    environment_threads();
    open_standard_streams();
    environment_screen();
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is a write error like any other, */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that grows beyond its limit   */
    output_watch();
    memory_watch();
    return world_meet(run_all(p, argc, argv));
}
