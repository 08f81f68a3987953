/* environment.c -- see environment.h. */
#include "environment.h"

#include "../text/screen.h"
#include "../text/words.h"
#include "host.h"

#include <fenv.h>
#include <mpsim/isa.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <threads/parallel.h>
#include <unistd.h>

void environment_floats(void)
{
    (void)fesetenv(FE_DFL_ENV); /* on x86-64 and arm64 this ends flush-to-zero as well */
}

void environment_threads(void)
{
    const char *set = getenv("OMP_NUM_THREADS"); /* "4", or "4,2" for nested regions */
    const long n = set ? strtol(set, NULL, 10) : 0;
    parallel_default(n > 0 && n < 1 << 16 ? (unsigned)n : 0);
    parallel_eager(getenv("MPSIM_TEST_EAGER") != NULL);
}

/* 0: the terminal has no size. Such a terminal stands behind a program that carries the output elsewhere, as mpirun does. */
static int columns_of_terminal(void)
{
    struct winsize size;
    return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

void environment_screen(void)
{
    enum { LEAST = 20, MOST = 10000 };
    const char *set = getenv("COLUMNS");
    const long said = set ? strtol(set, NULL, 10) : 0, n = said > 0 ? said : columns_of_terminal();
    if (isatty(STDOUT_FILENO) && n > 0)
        screen_begin(stdout, n < LEAST ? LEAST : n < MOST ? (int)n : MOST);
}

int environment_isa(void)
{
    const char *wanted = getenv("MPSIM_ISA");
    char known[128] = "";
    if (!wanted || !*wanted)
        return 0;
    const mpsim_status status = mpsim_isa_use(wanted);
    if (status == MPSIM_OK)
        return 0;
    if (status == MPSIM_EUNAVAILABLE)
        return fail(EXIT_USAGE, "MPSIM_ISA: this processor does not have %s", wanted);
    for (size_t i = 0; mpsim_isa_at(i); i++)
        text_add(known, sizeof known, "%s%s", i ? ", " : "", mpsim_isa_at(i));
    return fail(EXIT_USAGE, "MPSIM_ISA: '%s' is not one of %s", wanted, known);
}
