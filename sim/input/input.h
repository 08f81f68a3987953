/* input.h -- the tensors that a command line selects: files, layouts, names, kinds. */
#pragma once

#include "../trace/maps.h"
#include "../trace/trace.h"
#include "../trace/wanted.h"
#include "../cli/options.h"
#include "twice.h"
#include "unread.h"

#include <jansson.h>
#include <mpsim/report.h>

typedef struct input_options {
    wanted_words wanted;
    int keep_going;
    int may_keep_going; /* the command has KEEP_GOING_OPTION_ROW */
    int names_files;    /* the command names files of no tensors */
} input_options;

/* input_options_clear -- the lists. */
void input_options_clear(input_options *o);

/* The rows of these options for a command's table; `o` is an input_options variable. */
#define INPUT_OPTION_ROW(o, letter, name, type, field, value, help) \
    {                                                               \
        letter, name, OPTION_##type, &(o).wanted.field, value, help \
    }
#define INPUT_OPTION_ROWS(o) WANTED_OPTIONS(INPUT_OPTION_ROW, o)
#define LOSS_SCALE_OPTION_ROW(o) LOSS_SCALE_OPTION(INPUT_OPTION_ROW, o)
/* Of raw files alone, for commands that name tensors in their own way. */
#define RAW_OPTION_ROWS(o) RAW_OPTIONS(INPUT_OPTION_ROW, o)

/* input_raw_form -- *f, all zero, from these alone; trace_wanted_form_clear in any case. 0, or an exit code after a message. */
int input_raw_form(wanted_form *f, const char *verb, const input_options *o);

/* For commands that take several files. */
#define KEEP_GOING_OPTION_ROW(o)                                                                                       \
    {                                                                                                                  \
        0, "keep-going", OPTION_FLAG, &(o).keep_going, NULL, "continue with the next file after bad data; exit code 5" \
    }

typedef struct input {
    const char *verb;
    const input_options *options;
    wanted_form form;
    trace_tree tree;
    int failed;      /* files that failed, with keep_going                        */
    char **operands; /* input_list: in the order of their bytes; they are not looked at */
    int n_operands;
    const trace_array *arrays; /* instead of files */
    size_t n_arrays;
    mpsim_count *count; /* of the arrays, whose elements are elsewhere; or NULL */
    void *count_context;
    trace_error *refused; /* what failed before any file was opened: the first `n_refused` of them */
    size_t n_refused;
    input_maps maps;
    twice_forms twice;
    int several;    /* operands may stand for more than one file                 */
    int folders;    /* all operands are directories, and what is in them is looked at */
    uint64_t empty; /* files of no tensors below them; the first of them */
    char first_empty[512];
    int needs_kinds;                               /* the command is lost where two tensors would be the same   */
    uint64_t unknown, unknown_elements;            /* of numbers, that --kind leaves out since they have no kind */
    uint64_t without_kind;                         /* how many those are in all files                            */
    int said_transform, said_not_read, said_zeros; /* once, of the first of its files                           */
    int lists_unread;                              /* what is selected and not read is wanted in `unread`       */
    unread_list unread;
    int looked;       /* all files have been looked at, and what they hold twice   */
    int headers;      /* the next visits read headers alone: progress does not count them */
    uint64_t bytes;   /* of all files, as progress expects them */
    uint64_t passes;  /* over all elements, this one included */
    uint64_t planned; /* of these, how many progress expects already */
} input;

/* input_open -- resolve options and operands (at least one). Paths are in natural order,
 * whatever the order of the operands. 0, or an exit code after a message. */
int input_open(input *in, const char *verb, const input_options *o, char **operands, int n);
/* input_open_arrays -- the same of arrays in memory, a file "-" (trace_of_arrays), which are read in place. */
int input_open_arrays(input *in, const char *verb, const input_options *o, const trace_array *arrays, size_t n);
/* input_list -- the same without opening a file: what is below a directory is taken for a file of tensors, until
 * input_each_open has come to it. */
int input_list(input *in, const char *verb, const input_options *o, char **operands, int n);
void input_close(input *in);

/* input_plan -- progress expects so many passes over all files, from the beginning; input_open plans one. */
void input_plan(input *in, uint64_t passes);

/* input_check_kinds -- EXIT_USAGE after a message if a word of the list is no kind, nor `other`
 * (which may be NULL). Else 0. */
int input_check_kinds(const char *verb, const char *option, const option_list *kinds, const char *other);

/* input_is_file -- whether a path is a regular file, or a folder whose files are one trace, which can be read as often as
 * needed; standard input ("-") and pipes are not. */
int input_is_file(const char *path);

/* input_trace_open -- one of its files; NULL with *error filled. */
trace *input_trace_open(input *in, const char *path, trace_error *error);

/* input_selects -- whether --match and --kind let a tensor through. */
int input_selects(const input *in, const trace_tensor *t);

/* input_first_kind -- the first kind that --kind asks for; "KIND" where it asks for none. Returns kind. */
const char *input_first_kind(const input *in, char kind[16]);

/* input_see -- what of a file has no kind; and what is selected and not read, to in->unread, if the command wants that. */
void input_see(input *in, const trace *t);

/* input_each -- call visit for every file in turn, opened; the file is closed afterwards.
 * visit returns 0 to go on, or an exit code to stop with; trace errors are to be reported by
 * `input_failed`, whose result it returns. Returns 0 or an exit code. */
int input_each(input *in, int (*visit)(input *in, trace *t, void *context), void *context);

/* input_each_open -- the same for files `first` to `end` - 1, but visit gets files that are small together,
 * which are opened at once on all threads: n of them in their order, for those that failed NULL and why. After
 * input_list there may be others, which are no files of tensors. */
typedef struct input_file {
    trace *t;
    size_t i;  /* its place among all */
    int other; /* it is no file of tensors: NULL, and no error */
    trace_error error;
} input_file;
int input_each_open(input *in, size_t first, size_t end,
                    int (*visit)(input *in, input_file *files, size_t n, void *context), void *context);

/* input_failed -- print a trace error; 0 if --keep-going says so, or a pickle below a directory is refused, which is passed
 * over; else the exit code. */
int input_failed(input *in, const trace_error *error);

/* input_note_empty -- says that n files, of which the first is named, hold no tensors. */
void input_note_empty(const char *first, uint64_t n);

/* input_names -- its files, for an error line: "x", or "x and 13 more". Returns out. */
const char *input_names(const input *in, char *out, size_t size);
const char *files_names(const char *first, size_t n, char *out, size_t size);

/* A path as JSON: escaped where it is not UTF-8. */
json_t *json_of_path(const char *path);
