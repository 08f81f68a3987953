/* options.c -- see options.h. */
#include "options.h"

#include "../../gpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef GPU_RUNS_DIR
#define GPU_RUNS_DIR "gpu/runs"
#endif

static int usage(FILE *to, int status)
{
    fprintf(to, "usage: mpsim-gpu [option]...\n"
                "Compare a CUDA device with mpsim's reference, bit for bit: instructions, tensor cores, whole\n"
                "trainings step by step; measure its kernels. CUDA_VISIBLE_DEVICES=N selects a device.\n"
                "  --quick           a thousandth of the inputs, a tenth of the training\n"
                "  --tiny            far less: for compute-sanitizer\n"
                "  --only WORD       only what has WORD in its name: probes, orders, training, speed,\n"
                "                    checks, or a part of a name, as wgmma or mlp-fp16; may be repeated\n"
                "  --skip WORD       all but these; may be repeated\n"
                "  --limit SECONDS   an item that is silent for so long is given up (default: 15 to 60)\n"
                "  --one-process     do everything in one process, which the first fault ends: for\n"
                "                    debuggers and compute-sanitizer\n"
                "  --runs DIR       the trainings (default: " GPU_RUNS_DIR ")\n"
                "  --output FILE     write the record (JSON, schema mpsim.gpu/1), and beside it the\n"
                "                    digests of the trainings\n"
                "  --output-dir DIR  the same, named DIR/<device>-<date>.json; DIR is made if need be\n"
                "Exit: 0 all agrees, 1 something differs, 2 usage, 4 trouble, 77 no device.\n");
    return status;
}

static int add_word(const char **words, const char *word)
{
    int n = 0;
    while (n < GPU_WORDS && words[n])
        n++;
    if (n == GPU_WORDS)
        return -1;
    words[n] = word;
    return 0;
}

/* An option and its value: 1; 0: not one of these; -1: too many, or not a number. */
static int take(gpu_options *o, const char *name, const char *value)
{
    const struct {
        const char *name;
        const char **value;
    } single[] = {{"--output", &o->output}, {"--output-dir", &o->directory}, {"--runs", &o->runs}};
    for (size_t k = 0; value && k < sizeof single / sizeof *single; k++)
        if (strcmp(name, single[k].name) == 0) {
            *single[k].value = value;
            return 1;
        }
    if (value && strcmp(name, "--limit") == 0) {
        char *end;
        o->limit = strtod(value, &end);
        return *end == 0 && o->limit >= 0.1 && o->limit <= 86400 ? 1 : -1;
    }
    if (value && strcmp(name, "--only") == 0)
        return add_word(o->only, value) ? -1 : 1;
    if (value && strcmp(name, "--skip") == 0)
        return add_word(o->skip, value) ? -1 : 1;
    return 0;
}

int gpu_options_parse(gpu_options *o, int argc, char **argv)
{
    memset(o, 0, sizeof *o);
    o->runs = GPU_RUNS_DIR;
    for (int i = 1; i < argc; i++) {
        const int taken = take(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL);
        if (taken > 0)
            i++;
        else if (taken == 0 && strcmp(argv[i], "--quick") == 0)
            o->quick = GPU_RUN_QUICK;
        else if (taken == 0 && strcmp(argv[i], "--tiny") == 0)
            o->quick = GPU_RUN_TINY;
        else if (taken == 0 && strcmp(argv[i], "--one-process") == 0)
            o->one_process = 1;
        else
            return 1 + (strcmp(argv[i], "--help") == 0 ? usage(stdout, GPU_AGREES) : usage(stderr, GPU_USAGE));
    }
    return 0;
}

static int is_among(const char *const *words, const char *name)
{
    for (int i = 0; i < GPU_WORDS && words[i]; i++)
        if (strstr(name, words[i]))
            return 1;
    return 0;
}

int gpu_options_chosen(const gpu_options *o, const char *section, const char *name)
{
    char all[160];
    snprintf(all, sizeof all, "%s %s", section, name);
    return (!o->only[0] || is_among(o->only, all)) && !is_among(o->skip, all);
}
