/* main.c -- the mpsim program: all commands, in one process. */
#include "input/input.h"
#include "commands.h"
#include "program.h"

static const char more[] =
    "  mpsim COMMAND --help       options of a command, with examples\n"
    "  mpsim COMMAND --help=all   all of them, where there are many\n"
    "  mpsim --help=FORM          man (a manual page), bash, zsh or fish\n"
    "                             (completions); of a COMMAND, too\n"
    "  mpsim --version            version, instruction set in use, sandbox\n\n"
    "Files: " TRACE_LAYOUTS(", ") ", raw, packed or\n"
                                  "not; a directory is a trace; - is standard input.\n"
                                  "Exit codes: 0 ok, 1 a check failed, 2 usage, 3 bad input data, 4 input/output,\n"
                                  "5 partial (some files failed, with --keep-going; verify: nothing was compared);\n"
                                  "130, 143, 129 ended by INT, TERM, HUP (train, stat; other commands end by the\n"
                                  "signal).\n"
                                  "Environment: MPSIM_ISA (instruction set: avx512, avx2 or generic; the results\n"
                                  "are the same), COLUMNS (width of reports on a terminal), MPSIM_POLICIES,\n"
                                  "MPSIM_PLOTS, MPSIM_GNUPLOT, MPSIM_HWVECTORS (where things are), TMPDIR.\n";

int main(int argc, char **argv)
{
    static const program mpsim = {"mpsim",  "mpsim", "What lower precision does to recorded tensors, bit for bit",
                                  commands, topics,  more};
    return program_main(argc, argv, &mpsim);
}
