/* decoder.h -- whole training steps of a transformer, computed again as nested loops from what train.h,
 * engine.h and mpsim/transformer.h say.
 *
 * As train.h beside this, whose products, copies for products, plans and scalers it has; rows are
 * decoderrows.h's, optimizers optim.h's. From the library are also: cos and sin of the rotations, log and cos of
 * initial weights, mpsim_norm and mpsim_clip_*; judged elsewhere. */
#pragma once

#include "train.h"

typedef struct oracle_decoder oracle_decoder;

/* What a step reports beside oracle_step. */
typedef struct oracle_decoded {
    oracle_step step;
    double lr;
    int clipped;
    const char *cause;
} oracle_decoded;

/* As those of train.h. The text must stay, too. */
oracle_decoder *oracle_decoder_open(const train_run *r, const train_text *text);
void oracle_decoder_close(oracle_decoder *d);
void oracle_decoder_next(oracle_decoder *d, oracle_decoded *out);
int oracle_decoder_find(oracle_decoder *d, const char *name, oracle_tensor *t);
int oracle_decoder_name(oracle_decoder *d, size_t i, char name[2 * TRAIN_NAME]);

/* Loss and accuracy of the windows that are held back. */
void oracle_decoder_evaluate(oracle_decoder *d, double *loss, double *accuracy);
