/* confine.h -- the sandbox of a command: what the words of its user allow, and nothing else (sim/sandbox).
 *
 * Read: its operands and OPTION_INPUTs, all that is below those that are folders, what their symbolic links lead to; the files
 * beside an operand that a reader looks for by fixed names, or that an index may name; limits of the machine. Written:
 * files in the folders of its OPTION_OUTPUTs, and unnamed files in a folder of its own in TMPDIR. Standard
 * streams and pipes are open, or may always be opened. Decided before the first byte of a file is looked at, but for the word
 * that tells an index from a file of tensors.
 *
 * `info` and `stat` are confined by default. The type of an option (OPTION_INPUT, OPTION_OUTPUT, ...) says what its
 * file is for. A reader that opens another file by a fixed name has the name in trace_beside. tests/cli/sandbox.sh
 * has a line for each kind of operand. */
#pragma once

#include "options.h"

typedef enum confine_wish {
    CONFINE_AS_USUAL, /* COMMAND_CONFINED: as much as the kernel has, without a word; others: not */
    CONFINE_YES,      /* all of it, or an error */
    CONFINE_NO
} confine_wish;

/* confine -- close the sandbox of a command whose options have been parsed. 0, or -1 with a reason: then the wish was
 * CONFINE_YES, and some of it may be closed. */
int confine(const command *c, const option_row *table, char *const *operands, int n, confine_wish wish, char *why,
            size_t size);
/* confine_not -- never in this program, because of that. */
void confine_not(const char *because);
/* confine_end -- at the end of the work: removes the folder in TMPDIR. */
void confine_end(void);
/* confined -- whether it is closed, or some of it. */
int confined(void);

/* confine_text -- what there is of it, in words. Returns out. */
const char *confine_text(char *out, size_t size);
