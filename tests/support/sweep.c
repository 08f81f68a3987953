/* sweep.c -- see sweep.h. */
#include "sweep.h"

#include <mpsim/isa.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/* Wait for one child; print its line as test number `done`. Returns 1 if it failed. */
static int reap(const sweep_plan *s, const pid_t *pids, const int *pipes, size_t n, size_t done)
{
    int status;
    const pid_t pid = wait(&status);
    for (size_t i = 0; i < n; i++) {
        if (pids[i] != pid)
            continue;
        char line[801], name[128];
        const ssize_t got = read(pipes[i], line, sizeof line - 1);
        line[got > 0 ? got : 0] = '\0';
        close(pipes[i]);
        const int failed = got <= 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        if (got <= 0) {
            s->name(i, name, sizeof name);
            snprintf(line, sizeof line, "%s died", name);
        }
        printf("%s %zu - %s\n", failed ? "not ok" : "ok", done, line);
        fflush(stdout);
        return failed;
    }
    return 0;
}

int sweep_run(const sweep_plan *s, long jobs)
{
    static pid_t pids[SWEEP_MOST];
    static int pipes[SWEEP_MOST];
    const char *isa = getenv("MPSIM_ISA");
    if (isa && *isa && mpsim_isa_use(isa) != MPSIM_OK) {
        printf("1..0 # SKIP MPSIM_ISA=%s is not available\n", isa);
        return EXIT_SUCCESS;
    }
    printf("1..%zu\n# instruction set: %s\n", s->n, mpsim_isa_active());
    fflush(stdout);
    size_t running = 0, done = 0, failed = 0;
    for (size_t i = 0; i < s->n; i++) {
        int ends[2];
        if (pipe(ends) != 0 || (pids[i] = fork()) < 0) {
            perror(s->program);
            return 2;
        }
        if (pids[i] == 0)
            _exit(s->run(i, ends[1]));
        close(ends[1]);
        pipes[i] = ends[0];
        if (++running == (size_t)jobs) {
            failed += (size_t)reap(s, pids, pipes, i + 1, ++done);
            running--;
        }
    }
    for (; running > 0; running--)
        failed += (size_t)reap(s, pids, pipes, s->n, ++done);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
