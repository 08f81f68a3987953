/* decoderparts.h -- what the files of decoder.h share. */
#pragma once

#include "decoder.h"
#include "trainparts.h"

/* What a layer has beside those of trainparts.h. */
typedef struct decoder_layer {
    matrix key;                /* scores: K, context: V, as they enter; copies: layer.q[WEIGHT_Q]  */
    matrix out_key, out_value; /* of heads                                                         */
    matrix heads, agrad_heads; /* context: O and dO in the order of heads                          */
    matrix dkey, dkeys;        /* scores: dK, context: dV; of every head, with fewer kv_heads      */
    matrix lse, dots;          /* context in tiles                                                 */
    matrix micro[2], kahan[2]; /* of both parameters: gradients of the last micro-batch            */
    matrix *sums[2];           /* of every rank                                                    */
} decoder_layer;

struct oracle_decoder {
    oracle_train base;
    decoder_layer more[TRAIN_LAYERS];
    const train_text *text;
    const train_decoder *is;
    size_t sequences;          /* of the pass at hand */
    uint32_t *tokens, *labels; /* of a pass, places one after the other */
    const oracle_format *math_norm, *math_softmax;
    float *cos, *sin; /* of rotary positions: place by place */
    double lr;
};

/* Sizes of attention. */
typedef struct decoder_sizes {
    size_t sequences, length, heads, kv_heads, size;
    float scale;
} decoder_sizes;

decoder_sizes decoder_sizes_of(const oracle_decoder *d);
size_t decoder_index(const oracle_decoder *d, const layer *l);

/* attn.heads, attn.scores with attn.softmax and attn.context; x and dy: what comes. */
void heads_forward(oracle_decoder *d, layer *l, const matrix *x);
void attention_forward(oracle_decoder *d, layer *scores);
void attention_back(oracle_decoder *d, layer *scores);
void heads_back(oracle_decoder *d, layer *l);

/* Heads in the order sequence, head, place from columns of x from `first` on, and back into them. turned: 1 with
 * rotation; back: the other way. */
void heads_split(const oracle_decoder *d, matrix *y, const oracle_format *f, const matrix *x, size_t heads,
                 size_t first, int turned);
void heads_join(const oracle_decoder *d, matrix *x, const matrix *y, size_t heads, size_t first, int turned);

/* The gradients that a micro-batch left are added to those of its rank; all are reduced; the update. */
void gradients_add(oracle_decoder *d, unsigned rank, unsigned micro);
void gradients_end(oracle_decoder *d);
void decoder_update(oracle_decoder *d, oracle_decoded *out);

/* The copy of the model's head, which has the weight of another layer. */
void decoder_share(oracle_decoder *d);
