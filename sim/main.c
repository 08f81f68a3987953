/* main.c -- the mpsim program: all commands, in one process. */
#include "input/input.h"
#include "commands.h"
#include "program.h"

static const char more[] =
    "  mpsim COMMAND --help       options of a command, with examples\n"
    "  mpsim COMMAND --help=all   all options, and what the output means\n"
    "  mpsim [COMMAND] --help=man   a manual page; bash, zsh, fish: completions\n"
    "  mpsim --version            version, instruction set in use, sandbox\n\n"
    "Files: " TRACE_LAYOUTS(", ") ", raw, packed or\n"
                                  "not. A directory is a trace; - is standard input.\n"
                                  "Exit codes: 0 ok, 1 a check failed, 2 usage, 3 bad input data, 4 input/output,\n"
                                  "5 partial (some files failed, with --keep-going; verify: nothing was compared);\n"
                                  "train and stat: 130, 143, 129 after INT, TERM, HUP.\n"
                                  "Reports do not depend on the number of threads or the instruction set.\n"
                                  "Environment: MPSIM_ISA (instruction set: avx512, avx2 or generic), COLUMNS\n"
                                  "(width of reports on a terminal), MPSIM_POLICIES, MPSIM_PLOTS, MPSIM_GNUPLOT,\n"
                                  "MPSIM_HWVECTORS (folders and programs), TMPDIR.\n";

int main(int argc, char **argv)
{
    static const program mpsim = {"mpsim",  "mpsim", "What lower precision does to recorded tensors, bit for bit",
                                  commands, topics,  more};
    return program_main(argc, argv, &mpsim);
}
