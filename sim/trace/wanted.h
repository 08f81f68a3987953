/* wanted.h -- which tensors are wanted, and how their files are to be read, in the words of the command line. */
#pragma once

#include "../text/option.h"
#include "trace.h"

/* The words; all zero: every tensor, of files as they are. */
typedef struct wanted_words {
    option_list match, kinds, map;
    const char *dtype, *shape, *assume, *as, *stored, *loss_scale;
    uint64_t offset, max_header, max_ratio;
    int big_endian;
} wanted_words;

/* These options, one by one: ROW(of, LETTER, NAME, TYPE, FIELD, VALUE, HELP), where TYPE is LIST, STRING, COUNT or FLAG,
 * FIELD is of wanted_words, VALUE what its argument is called, and LETTER and HELP are the program's. */
/* clang-format off */
#define RAW_OPTIONS(ROW, of)                                                                                        \
    ROW(of, 0, "dtype", STRING, dtype, "FORMAT", "read raw little-endian elements of this format"),       \
    ROW(of, 0, "shape", STRING, shape, "N,M...", "raw: shape; * fills up to the end of the file (default: *)"), \
    ROW(of, 0, "offset", COUNT, offset, "BYTES", "raw: bytes before the first element"),                            \
    ROW(of, 0, "big-endian", FLAG, big_endian, NULL, "raw: big-endian elements")
#define WANTED_OPTIONS(ROW, of)                                                                                     \
    ROW(of, 'm', "match", LIST, match, "GLOB",                                                                      \
        "only tensors whose name matches, as 'wgrad:*'; may be repeated"),                              \
    ROW(of, 'k', "kind", LIST, kinds, "LIST",                                                                       \
        "only tensors of these kinds: weight act out agrad dgrad wgrad opt.m opt.v opt.vmax master"),                                                                                         \
    ROW(of, 0, "map", LIST, map, "RULE",                                                                            \
        "derive kinds from names, as 'grad/(.*)=wgrad:\\1'; KIND alone is for tensors without one; @FILE: " \
         "rules in a file; may be repeated; see doc/reference/names.md"),                                          \
    RAW_OPTIONS(ROW, of),                                                                                           \
    ROW(of, 0, "assume", STRING, assume, "V1=F,V2=F",                                                               \
        "npy: formats of void elements of 1 and 2 bytes (ml_dtypes)"),                            \
    ROW(of, 0, "as", STRING, as, "FORMAT",                                                                          \
        "read integers as codes of this format, as bf16 saved as int16"),                              \
    ROW(of, 0, "stored", STRING, stored, "HOW",                                                                     \
        "layout of quantised tensors, as torchao, te:e5m2, gptq-v2; parts: read codes and scales as " \
         "separate tensors (default: detected)"),                                                             \
    ROW(of, 0, "max-header", COUNT, max_header, "BYTES", "largest header of a file (default 16Mi)"),                  \
    ROW(of, 0, "max-ratio", COUNT, max_ratio, "N",                                                                  \
        "largest ratio of unpacked to packed size (default 1000; 64 MiB are always allowed)")
/* For callers that need the factor of gradients. */
#define LOSS_SCALE_OPTION(ROW, of)                                                                                  \
    ROW(of, 0, "loss-scale", STRING, loss_scale, "S",                                                               \
        "loss scale that the gradients in the files still carry (GradScaler before unscale_), if a file " \
         "does not record it")
/* clang-format on */

void trace_wanted_clear(wanted_words *w); /* the lists */

/* trace_wanted_put -- an option by its name without dashes ("1": one without an argument); the value must outlive *w. 0, or -1 with
 * *error filled, whose exit code is 0 where there is no such option. */
int trace_wanted_put(wanted_words *w, const char *name, const char *value, trace_error *error);

/* What they say of the files. It points into itself. */
typedef struct wanted_form {
    trace_options options; /* but for the map */
    mpsim_format dtype, v1, v2, as;
    uint64_t *shape;
} wanted_form;

/* trace_wanted_resolve -- fill *f, which is all zero. 0, or -1 with *error filled: "--dtype: ...". */
int trace_wanted_resolve(wanted_form *f, const wanted_words *w, trace_error *error);
void trace_wanted_form_clear(wanted_form *f);

/* trace_wanted_check_kinds -- whether each word of the list is a kind, or `other` (which may be NULL). 0, or -1 with *error
 * filled: "--OPTION: ...". */
int trace_wanted_check_kinds(const char *option, const option_list *kinds, const char *other, trace_error *error);

/* trace_wanted_matches -- whether --match lets a tensor through; trace_wanted_selects -- that and --kind. */
int trace_wanted_matches(const wanted_words *w, const trace_tensor *t);
int trace_wanted_selects(const wanted_words *w, const trace_tensor *t);

/* trace_wanted_clash -- who needs kinds is lost in a trace in which two tensors would be the same. 0, or -1 with *error filled. */
int trace_wanted_clash(const trace *t, trace_error *error);
