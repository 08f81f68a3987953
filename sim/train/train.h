/* train.h -- what the files of sim/train have of one another. */
#pragma once

#include "../cli/options.h"
#include "decoder.h"
#include "fields.h"
#include "meter.h"
#include "policy.h"

#include <train/train.h>

/* ---- report.c: what train writes (schema mpsim.train/1); its records are fields.h's. ---- */

typedef struct train_report {
    FILE *file;
    report_style style;
    int compare;          /* text and CSV: the table of all runs only                  */
    int decoder;          /* transformers: their columns                               */
    int as_published;     /* of compare: each policy clips as it says                  */
    const char *resumed;  /* file that the run was resumed from, or NULL               */
    const char *checked;  /* file of digests that it was compared with, or NULL        */
    const train_job *job; /* the current run                                          */
    table *rows;          /* text: the table under construction                        */
    train_config config;
    train_run_row run; /* the current one */
    record_writer out; /* of all forms but text */
} train_report;

/* In this order. compare: after the last run, text and CSV. */
void train_report_begin(train_report *r, const train_settings *s);
void train_report_run(train_report *r, const train_job *j);
void train_report_step(const train_row *step, void *report);
void train_report_row(const train_row *row, void *report);
void train_report_total(train_report *r, const train_total *t);
void train_report_compare(train_report *r, const train_job *jobs, const train_total *totals, size_t n);
void train_report_end(train_report *r);
void train_report_abandon(train_report *r);

/* ---- decodertable.c: the text of train's report where it speaks of transformers. ---- */

/* The network and what it is trained on; the steps, their batches, ranks and schedule, without a line's end;
 * the table of steps; the cells of a row of it, between the step and the scale. */
void train_decoder_print_network(FILE *f, const train_run *r);
void train_decoder_print_steps(FILE *f, const train_run *r);
table *train_decoder_rows(void);
void train_decoder_cells(table *t, const train_row *row);
/* After "loss ... at the end": the rest of the line, and perplexity and accuracy. */
void train_decoder_print_loss(FILE *f, const train_total *t, const train_run *r);
void train_decoder_print_operations(FILE *f, const train_job *j, const train_total *t);
/* What act, agrad, wgrad and updates of a table are. */
void train_decoder_print_lost(FILE *f);
/* The table of several runs with its explanation, and their operations. */
void train_decoder_compare_results(train_report *r, const train_job *jobs, const train_total *totals, size_t n);
void train_decoder_compare_operations(train_report *r, const train_job *jobs, const train_total *totals, size_t n);

/* ---- device.c: what a training can run on, by name. ---- */

extern const train_opener train_open_cuda; /* NULL in a build without CUDA */

/* train_device_find -- "cpu" (NULL) or "cuda". 0, or an exit code after a message: another name, or a
 * program that was built without CUDA. Whether there is a device shows when it is opened. */
int train_device_find(train_opener *device, const char *name);

/* ---- groups.c: the parameter groups of a transformer's training, as a trace says them. ---- */

/* train_groups_json -- mpsim.groups: what decays, then what does not (all decay: one group), at the step's
 * learning rate, after `taken` steps of the optimizer. train_tied_json -- mpsim.tied. To be freed. */
char *train_groups_json(const train_run *r, const mpsim_optim *o, double lr, uint64_t taken);
char *train_tied_json(void);

/* ---- table.c: the text of train's report. ---- */

void train_text_run(train_report *r, const train_job *j);
void train_text_row(train_report *r, const train_row *row);
void train_text_total(train_report *r, const train_total *t);
void train_text_compare(train_report *r, const train_job *jobs, const train_total *totals, size_t n);

/* ---- words.c: the options of train that say what is trained. ---- */

/* What is trained, and what the options write to. Late options write to the settings, which `begin` fills first. */
typedef struct train_words {
    train_settings *settings;
    train_overrides *overrides;
    const char *net; /* NULL: not given */
    uint64_t steps;  /* 0: not given */
    option_list math;
    int batchnorm, no_batchnorm, tf32;
    decoder_words decoder;
    char rule[32];  /* of --clip */
    text_file text; /* of transformers, if it is not the bundled one */
} train_words;

/* Their names, but for --steps and those of the text. */
#define TRAIN_WORDS                                                                                                    \
    "net batch seed depth width batchnorm no-batchnorm gain loss-factor math arch tf32 optimizer variant lr momentum " \
    "dampening weight-decay beta1 beta2 eps clip loss-scaling " DECODER_WORDS

/* Their rows for a command's table; `w` is a train_words variable, `s` its settings, `o` its overrides. */
/* clang-format off */
#define TRAIN_WORD_ROWS(w, s, o)                                                                  \
    {0, "The run", OPTION_HEADING, NULL, NULL, NULL},                                            \
    {0, "net", OPTION_CHOICE, &(w).net, "mlp|cnn|gpt|llama",                                     \
     "a perceptron (default), a convolutional network, or a transformer"},                       \
    {0, "", OPTION_THEN, READS(train_words_begin, &(w), NULL), NULL, NULL},                      \
    {0, "steps", OPTION_COUNT64, &(w).steps, "N", "steps (default: mlp 500; cnn 200; gpt, llama 300)"}, \
    {0, "batch", OPTION_COUNT32, &(s).batch, "N", "images in a step (default 64), or sequences (default 8)"}, \
    {0, "seed", OPTION_COUNT64, &(s).seed, "N",                                                   \
     "seed of initial weights, data order and stochastic rounding (default 0)"},               \
    {0, "depth", OPTION_COUNT32, &(s).depth, "N",                                                 \
     "hidden layers, convolutions, or blocks (default 2)"},                                      \
    {0, "width", OPTION_COUNT32, &(s).width, "N",                                                 \
     "units of a hidden layer (default 128), channels of the first convolution (16), or width of the " \
         "transformer (64)"},\
    {0, "batchnorm", OPTION_FLAG, &(w).batchnorm, NULL,                                          \
     "batch normalisation after hidden layers (default of cnn)"},                                \
    {0, "no-batchnorm", OPTION_FLAG, &(w).no_batchnorm, NULL, "no batch normalisation (default of mlp)"}, \
    {0, "gain", OPTION_NUMBER, &(s).gain, "X", "multiply initial weights by X"},                       \
    {0, "loss-factor", OPTION_NUMBER, &(s).loss_factor, "X",                                     \
     "multiply the loss by X, as averaging over many losses does"},                                     \
    {0, "math", OPTION_LIST, &(w).math, "FORMAT",                                                \
     "format of softmax, loss and normalisation (default binary32); gpt and llama: also norm=FORMAT, " \
         "softmax=FORMAT"},                                                                          \
    {0, "arch", OPTION_READ, READS(train_read_arch, (s).arch, "so long a name"), "NAME",                                                \
     "hardware of the matrix products (default hopper); see below"},                                   \
    {0, "tf32", OPTION_FLAG, &(w).tf32, NULL, "compute binary32 products on tensor cores, in tf32"},     \
    DECODER_WORD_ROWS((w).decoder, (s).decoder),                                                              \
    {0, "Instead of the policy", OPTION_HEADING, NULL, NULL, NULL},                              \
    {0, "optimizer", OPTION_READ, READS(train_read_optimizer, &(o).optimizer, NULL), "NAME", "sgd, adam, adamw, lion or adafactor"}, \
    {0, "variant", OPTION_READ, READS(train_read_variant, &(o).variant, VARIANTS), "NAME",                                          \
     "rounding order of the optimizer: ieee, torch, torch-foreach, torch-fused-c, apex, ..."},            \
    {0, "lr", OPTION_NUMBER, &(o).lr, "X", "learning rate"},                                     \
    {0, "momentum", OPTION_NUMBER, &(o).momentum, "X", "momentum"},                              \
    {0, "dampening", OPTION_NUMBER, &(o).dampening, "X", "dampening"},                           \
    {0, "weight-decay", OPTION_NUMBER, &(o).weight_decay, "X", "weight decay"},                  \
    {0, "beta1", OPTION_NUMBER, &(o).beta1, "X", "beta1 of Adam, AdamW and Lion"},                     \
    {0, "beta2", OPTION_NUMBER, &(o).beta2, "X", "beta2 of Adam, AdamW and Lion"},                     \
    {0, "eps", OPTION_NUMBER, &(o).eps, "X", "eps of Adam, AdamW and Adafactor"},                    \
    {0, "clip", OPTION_READ, READS(train_read_clip, &(w), CLIPS), "[RULE:]NORM",                                         \
     "clip the norm of all gradients, as 1 or megatron:1; none: do not clip"},                                \
    {0, "loss-scaling", OPTION_READ, READS(train_read_scaler, &(o).scaler, NULL), "SCALER",                                    \
     "loss scaler (mpsim scaler --list), with changes as torch:init=2^24"},                       \
    EXCLUSIVE("batchnorm no-batchnorm", NULL),                                                   \
    EXCLUDES("batchnorm no-batchnorm", DECODERS, NULL),                                          \
    RANGE("steps", 1, 1e9),                                                                      \
    RANGE("seed", 0, 0x1p63 - 1024),                                                             \
    RANGE("gain loss-factor", 1e-18, 1e18),                                                      \
    RANGE("lr weight-decay eps", 0, 1e6),                                                        \
    RANGE("momentum dampening beta1 beta2", 0, 1)
/* clang-format on */

/* Readers of these rows (options.h); train_words_begin: the settings of the network, before options change them. */
int train_words_begin(void *words, const char *where, const char *text);
int train_read_arch(void *arch, const char *where, const char *text);
int train_read_optimizer(void *name, const char *where, const char *text);
int train_read_variant(void *name, const char *where, const char *text);
int train_read_clip(void *words, const char *where, const char *text);
int train_read_scaler(void *spec, const char *where, const char *text);
#define VARIANTS "one of ieee, torch, torch-foreach, apex, ... (mpsim/optim.h)"
#define CLIPS "a norm from 1e-30 to 1e30, alone or behind its rule as megatron:1 (data/policies/README.md), or none"

/* train_words_read -- what follows from the options: 0, or an exit code after a message. The overrides point into *w, and so do
 * runs on its text.
 * train_words_text -- the text of a run that was read from `path`. */
int train_words_read(train_words *w);
int train_words_text(train_words *w, train_run *r, const char *path);
void train_words_clear(train_words *w);
