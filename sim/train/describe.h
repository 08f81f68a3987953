/* describe.h -- a training in words, for every form of its report. */
#ifndef MPSIM_SIM_TRAIN_DESCRIBE_H
#define MPSIM_SIM_TRAIN_DESCRIBE_H

#include "job.h"

/* train_status -- "", or what became of a run: "diverged (NaN from step 37)". */
const char *train_status(char *out, size_t size, const train_total *t);
/* train_products_text -- the models that multiply: "fp16 x fp16: hopper-fp16-fp32, ...". */
const char *train_products_text(char *out, size_t size, const train_run *r);
/* train_plan_text -- plan i of a job in a line, as the command line changed it. */
const char *train_plan_text(char *out, size_t size, const train_job *j, size_t i);

/* train_clip_text -- "none", "1 (megatron)"; of a schedule with several "1 (torch), none". */
const char *train_clip_text(char *out, size_t size, const train_run *r);

#endif
