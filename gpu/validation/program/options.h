/* options.h -- the command line of mpsim-gpu. */
#pragma once

/* Exit statuses of the program. */
enum { GPU_AGREES = 0, GPU_DIFFERS = 1, GPU_USAGE = 2, GPU_TROUBLE = 4, GPU_NO_DEVICE = 77 };

enum { GPU_WORDS = 8 };

typedef struct gpu_options {
    const char *output, *directory;                /* of the record; both NULL: none */
    const char *runs;                              /* the folder of the runs         */
    const char *only[GPU_WORDS], *skip[GPU_WORDS]; /* NULL past the last one */
    int quick;                                     /* GPU_RUN_FULL, ...              */
    int one_process;                               /* 1: no workers                  */
    double limit;                                  /* seconds of silence that an item may keep; 0: the parts' own */
} gpu_options;

/* gpu_options_parse -- 0, or an exit status + 1 after help or usage was printed. */
int gpu_options_parse(gpu_options *o, int argc, char **argv);

/* gpu_options_chosen -- whether --only and --skip leave something in: words are found anywhere in
 * "SECTION NAME"; sections are probes, training, speed, checks. */
int gpu_options_chosen(const gpu_options *o, const char *section, const char *name);
