/* commands.c -- the table of commands; see commands.h. */
#include "commands.h"

const command commands[] = {
    {"formats", "[NAME...]", "List number formats, or look at some of them", cmd_formats, 0},
    {"info", "FILE...", "Show what is in files of tensors", cmd_info, COMMAND_CONFINED},
    {"cast", "FILE", "Round tensors to a format and write them", cmd_cast, COMMAND_FOLDERS},
    {"stat", "FILE...", "Count underflow, overflow and error of casts", cmd_stat, COMMAND_CONFINED},
    {"diff", "A B", "Where two files or runs begin to differ, and what it looks like", cmd_diff, 0},
    {"merge", "PART...", "Join the parts of a report that stat --shard writes", cmd_merge, 0},
    {"calc", "OP X [Y [Z]]", "Calculate in low precision: one operation, correctly rounded", cmd_calc, 0},
    {"dot", "[FILE [FILE]]", "Dot products as hardware and software add them, with their errors", cmd_dot, 0},
    {"attention", "[Q K V]", "Attention in tiles under models of its products: errors, bias, P", cmd_attention, 0},
    {"mismatch", "-a SIDE -b SIDE", "Log-probabilities of the same tokens under two precisions or orders of sums",
     cmd_mismatch, 0},
    {"replay", "TRACE...", "Replay a recorded run through a mixed-precision policy", cmd_replay, COMMAND_DATA},
    {"scaler", "[TRACE...]", "Replay loss scalers over gradients, overflow patterns or a training log", cmd_scaler, 0},
    {"explain", "[MESSAGE]", "What a framework's message about mixed precision means, and its cure", cmd_explain, 0},
    {"log", "FILE...", "Judge a training log; tell how far runs are apart, beside noise and seeds", cmd_log, 0},
    {"train", "--policy POLICY", "Train a network in mixed precision, emulated to the bit", cmd_train,
     COMMAND_DATA | COMMAND_FOLDERS},
    {"memory", "[FILE...]", "Bytes of weights, gradients, optimizer state, activations under a policy", cmd_memory,
     COMMAND_DATA},
    {"advise", "TRACE...", "Which format, loss scale and recipe a recorded run bears, and why", cmd_advise,
     COMMAND_DATA},
    {"report", "TRACE...", "One page for a browser: verdicts, tables, figures, advice of a recorded run", cmd_report,
     COMMAND_DATA | COMMAND_GNUPLOT},
    {"plot", "FIGURE REPORT...", "Draw a figure from a report of another command", cmd_plot,
     COMMAND_DATA | COMMAND_FOLDERS | COMMAND_GNUPLOT},
    {"verify", "[GROUP...]", "Compare with MPFR, NVIDIA's headers, recorded hardware, a GPU", cmd_verify, COMMAND_DATA},
    {NULL, NULL, NULL, NULL, 0},
};

const help_topic topics[] = {
    {"presets", "What overflow, infinity and NaN become in real stacks", "formats", "--presets"},
    {"rounding", "Rounding modes", "formats", "--modes"},
    {"recipes", "Block recipes: MX, NVFP4, tiles", "formats", "--recipes"},
    {"models", "How tensor cores and libraries add", "formats", "--models"},
    {"policies", "Bundled policies of precision", "replay", "--list"},
    {"scalers", "Loss scalers of frameworks", "scaler", "--list"},
    {"messages", "Messages of frameworks that are explained", "explain", "--list"},
    {NULL, NULL, NULL, NULL},
};
