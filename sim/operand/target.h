/* target.h -- what tensors are cast to: formats, scales and roundings of a command line. */
#pragma once

#include "../record/record.h"
#include "blocktarget.h"
#include "../cli/options.h"

#include <mpsim/mpsim.h>

/* One cast: a format, the rounding into it, and the scale before it. */
typedef struct target {
    mpsim_format format;
    mpsim_rounding rounding; /* with .scale */
    const char *preset;
    const char *label; /* as typed: "e4m3@cuda"; belongs to the target list */
} target;

/* Rounding options of the command line; NULL or 0: not given. */
typedef struct target_options {
    const char *formats; /* "fp16,e4m3@cuda" */
    const char *scales;  /* "1,2^8..2^16"    */
    const char *round;   /* "rne", "sr:8"    */
    const char *preset;
    const char *overflow; /* "inf", "saturate" */
    int flush_input, flush_output;
    uint64_t seed;
    int recipes;          /* the command takes block recipes among the formats, with what follows */
    const char *hadamard; /* "16" */
    const char *axis;     /* "both" */
} target_options;

/* The rows of these options for a command's table; `o` is a target_options variable. */
#define TARGET_OPTION_ROWS(o)                                                                           \
    {'r',                                                                                               \
     "round",                                                                                           \
     OPTION_STRING,                                                                                     \
     &(o).round,                                                                                        \
     "MODE",                                                                                            \
     "rounding: nearest-even (rne, default), nearest-away (rna), toward-zero (rtz), up (rup), down "    \
     "(rdn), to-odd (rto), stochastic-a (sra), -b (srb), -c (src); stochastic modes take :N random "    \
     "bits (default 32)"},                                                                              \
        {'p',         "preset", OPTION_STRING,                                                          \
         &(o).preset, "NAME",   "overflow, infinity and NaN rules of a library (mpsim help presets)"},  \
        {0,                                                                                             \
         "overflow",                                                                                    \
         OPTION_STRING,                                                                                 \
         &(o).overflow,                                                                                 \
         "inf|saturate",                                                                                \
         "what overflow becomes, instead of the preset's rule"},                                        \
        {0, "flush-subnormals", OPTION_FLAG, &(o).flush_output, NULL, "subnormal results become zero"}, \
        {0,           "flush-inputs",                                                                   \
         OPTION_FLAG, &(o).flush_input,                                                                 \
         NULL,        "inputs that are subnormal in their own dtype become zero"},                      \
    {                                                                                                   \
        0, "seed", OPTION_COUNT, &(o).seed, "N", "seed of stochastic rounding (default 0)"              \
    }

typedef struct target_list {
    target *items; /* formats x scales, scales varying fastest */
    size_t count;  /* 0 where there are block recipes alone    */
    size_t formats, scales;
    char **labels;
    size_t label_count;
    block_list blocks;
} target_list;

/* target_list_make -- 0, or an exit code after a message. `verb` is for the message;
 * `default_formats` is used if none are given. */
int target_list_make(target_list *l, const target_options *o, const char *verb, const char *default_formats);
void target_list_clear(target_list *l);

/* format_read -- the format of a name, without a preset. 0, or EXIT_USAGE after a message that says what there is instead:
 * "WHERE: fp8 is e4m3 or e5m2: name one". */
int format_read(mpsim_format *f, const char *where, const char *name);
/* What options are read by (READS of options.h): a format; one for both of two formats, or both; a rounding mode that needs no random bits. */
int format_option(void *format, const char *where, const char *text);
int formats_option(void *two, const char *where, const char *text);
int mode_option(void *mode, const char *where, const char *text);
#define FORMATS_EXPECTED(of) "one format, or two: of " of
#define MODE_EXPECTED "a deterministic mode: see 'mpsim formats --modes'"

/* target_list_one_format -- whether all targets are of one format, under whatever presets, and without recipes; *f is it. */
int target_list_one_format(mpsim_format *f, const target_list *l);

/* target_of_format -- the first target of format f, of l->formats; the others of it differ in their scales. */
const target *target_of_format(const target_list *l, size_t f);

extern const char *const target_modes[]; /* names of rounding modes, up to NULL */

/* target_rounding -- the rounding of t for a tensor of the format `source`: --flush-inputs
 * means the subnormal numbers of that format. */
mpsim_rounding target_rounding(const target *t, const mpsim_format *source);

/* target_scale_format -- the format in which a recipe's block scales are stored: "e8m0", "e4m3" or "binary32".
 * target_has_tensor_scale -- whether there is a scale of the tensor beside them. target_scale_rule -- how amax gives
 * them, in a word. */
const char *target_scale_format(const mpsim_block_recipe *b);
int target_has_tensor_scale(const mpsim_block_recipe *b);
const char *target_scale_rule(const mpsim_block_recipe *b);

/* A recipe in reports; the texts of `t` are its own. target_recipe -- that of t. */
typedef struct target_recipe_row {
    const char *name, *element, *rule, *scale_format, *source;
    char block[32], scales[64]; /* for people: "1 x 32", "row", "tensor"; "e4m3, tensor binary32" */
    size_t rows, cols, transform;
    int tensor_scale;
} target_recipe_row;
extern const record_kind recipe_record;
target_recipe_row target_recipe(const block_target *t);

/* format_is_narrow -- whether every number of f is one of binary32. */
int format_is_narrow(const mpsim_format *f);
