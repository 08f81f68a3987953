/* cmd.c -- mpsim emulate: a script of PyTorch under a policy. The work is the Python package's: this command looks for a Python that has it and
 * becomes `PYTHON -m mpsim.emulate OPTIONS -- SCRIPT ARGUMENTS`. */
#include "../array/need.h"
#include "../cli/confine.h"
#include "../commands.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

static const char more[] =
    "The script runs unchanged, with its arguments. The PyTorch model that it trains computes as the policy\n"
    "says. A second model is an error. Options of this command come before the script. At the end, also after\n"
    "an exception, the report is printed and written: emulate.json (as of train), emulate.jsonl (as of\n"
    "stat --ndjson), emulate.audit.json and emulate.txt. The exit code is that of the script, or 4 if Python\n"
    "does not have the package mpsim. 'python3 -m mpsim.emulate --help' lists more options.\n"
    "\n"
    "Examples:\n"
    "  mpsim emulate -P te-nvfp4 --arch blackwell-scaled train.py run1\n"
    "  mpsim emulate -P mine.yaml -o report.json train.py\n";

typedef struct question {
    const char *python;
    const char *policy, *arch, *seed, *between, *out, *record; /* NULL: not given */
} question;

/* ---- Python ---- */

/* The interpreter that is meant: --python, PYTHON, python3. */
static const char *python_of(const question *q)
{
    const char *set = getenv("PYTHON");
    return q->python ? q->python : set && *set ? set : "python3";
}

/* The package is looked for, not loaded: its parts may need torch. */
static const char looks[] =
    "import importlib.util as u, os, sys\n"
    "s = u.find_spec('mpsim')\n"
    "there = s and any(os.path.exists(os.path.join(p, 'emulate', '__main__.py')) for p in s.submodule_search_locations or ())\n"
    "sys.exit(0 if there else 7)\n";

enum { NOT_THERE = 7 };

/* Run argv, which prints nothing, to its end: errno's value, or 0 with the wait status. */
static int run(char *const argv[], int *status)
{
    posix_spawn_file_actions_t files;
    pid_t child;
    int error = posix_spawn_file_actions_init(&files);
    if (error)
        return error;
    error |= posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    error |= posix_spawn_file_actions_addopen(&files, 1, "/dev/null", O_WRONLY, 0);
    error |= posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    error = error ? ENOMEM : posix_spawnp(&child, argv[0], &files, NULL, argv, environ);
    posix_spawn_file_actions_destroy(&files);
    while (!error && waitpid(child, status, 0) < 0)
        if (errno != EINTR)
            error = errno;
    return error;
}

/* Whether a Python has the package: 0, or an exit code after a message. */
static int check_python(const command *self, const char *python)
{
    char *argv[] = {(char *)(uintptr_t)python, (char *)(uintptr_t) "-c", (char *)(uintptr_t)looks, NULL};
    int status = 0;
    const int error = run(argv, &status);
    if (error)
        return fail(EXIT_IO, "%s: %s does not run: %s; --python names a Python that has the package mpsim", self->name,
                    python, strerror(error));
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    return fail(
        EXIT_IO,
        WIFEXITED(status) && WEXITSTATUS(status) == NOT_THERE
            ? "%s: %s has no package mpsim with mpsim.emulate; 'pip install' it there, or name another Python by --python"
            : "%s: %s does not run a line of Python; --python names one that has the package mpsim",
        self->name, python);
}

/* ---- its command line ---- */

enum { OWN = 18 }; /* words before the script's at most */

/* What runs: it has argc places for the script's words and OWN more. */
static void make_words(char **to, const question *q, const char *python, int argc, char **argv)
{
    const char *const options[][2] = {{"--policy", q->policy},   {"--arch", q->arch}, {"--seed", q->seed},
                                      {"--between", q->between}, {"--out", q->out},   {"--record", q->record}};
    const char *const start[] = {python, "-m", "mpsim.emulate"};
    size_t n = 0;
    for (size_t i = 0; i < sizeof start / sizeof *start; i++)
        to[n++] = (char *)(uintptr_t)start[i];
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (int k = 0; options[i][1] && k < 2; k++)
            to[n++] = (char *)(uintptr_t)options[i][k];
    to[n++] = (char *)(uintptr_t) "--";
    memcpy(to + n, argv, (size_t)argc * sizeof *argv);
    to[n + (size_t)argc] = NULL;
}

/* It returns only where that fails. SIGPIPE is the script's own business. */
static int become(const command *self, char **words)
{
    signal(SIGPIPE, SIG_DFL);
#ifdef SIGXFSZ
    signal(SIGXFSZ, SIG_DFL);
#endif
    execvp(words[0], words);
    return fail(EXIT_IO, "%s: %s does not run: %s", self->name, words[0], strerror(errno));
}

int cmd_emulate(const command *self, int argc, char **argv)
{
    question q = {NULL, NULL, NULL, NULL, NULL, NULL, NULL};
    const option_row table[] = {
        {'P', "policy", OPTION_STRING, &q.policy, "POLICY",
         "a policy file (YAML), or a bundled policy (mpsim help policies)"},
        {0, "arch", OPTION_STRING, &q.arch, "ARCH",
         "hardware of the matrix products: an architecture of 'mpsim train', a model of 'mpsim dot', or "
         "torch: casts only (default hopper)"},
        {0, "seed", OPTION_STRING, &q.seed, "N", "seed of stochastic rounding (default 0)"},
        {0, "between", OPTION_STRING, &q.between, "native|mpsim",
         "operations between matrix products: kernels of torch (default), or of mpsim, with the same bits "
         "everywhere"},
        {'o', "out", OPTION_STRING, &q.out, "FILE", "write the report to FILE, as JSON (default emulate.json)"},
        {0, "record", OPTION_STRING, &q.record, "FOLDER", "record a trace of the run, for 'mpsim replay'"},
        {0, "python", OPTION_STRING, &q.python, "PYTHON", "Python interpreter (default: $PYTHON, else python3)"},
        NEEDS("", "policy", "name one, as te-nvfp4; 'mpsim help policies' lists them"),
        NEEDS("", "SCRIPT", "mpsim emulate -P POLICY train.py"),
        {0, NULL, OPTION_FLAG, NULL, NULL, NULL}};
    int first;
    confine_not("a script of Python keeps its rights");
    const int code = options_parse(self, table, argc, argv, &first, more);
    if (code >= 0)
        return code;
    const char *python = python_of(&q);
    const int bad = check_python(self, python);
    char **words = bad ? NULL : need_memory((uint64_t)(argc - first) + OWN, sizeof *words);
    if (!words)
        return bad;
    make_words(words, &q, python, argc - first, argv + first);
    const int failed = become(self, words);
    free(words);
    return failed;
}
