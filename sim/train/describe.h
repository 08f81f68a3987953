/* describe.h -- a training in words, for every form of its report. */
#pragma once

#include "job.h"

/* train_status -- "", or what became of a run: "diverged (NaN from step 37)". */
const char *train_status(char *out, size_t size, const train_total *t);
/* train_loss_text -- "2.3026"; out: of at least 32 bytes. */
const char *train_loss_text(char *out, double x);
/* train_products_text -- the models that multiply: "fp16 x fp16: hopper-fp16-fp32, ...". */
const char *train_products_text(char *out, size_t size, const train_run *r);
/* train_plan_text -- plan i of a job in a line, as the command line changed it. */
const char *train_plan_text(char *out, size_t size, const train_job *j, size_t i);

/* train_clip_text -- "none", "1 (megatron)"; of a schedule with several "1 (torch), none". */
const char *train_clip_text(char *out, size_t size, const train_run *r);
/* ---- transformers ---- */

typedef struct train_decoder_words {
    const char *norm, *activation, *reduce, *decay; /* as options have them */
} train_decoder_words;

train_decoder_words train_decoder_say(const train_decoder *d);
/* train_decoder_text -- the network: "gpt: 2 blocks of width 64, 4 heads of 16, ...". */
const char *train_decoder_text(char *out, size_t size, const train_settings *s);
/* train_last_plan -- the plan of the last step done. */
size_t train_last_plan(const train_run *r, const train_total *t);
/* train_perplexity -- e^loss, correctly rounded. */
double train_perplexity(double loss);
