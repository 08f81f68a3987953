/* fields.h -- the keys of a run as text: tables of the fields of its structures, how a field is
 * written and read. */
#pragma once

#include <train/train.h>

typedef enum train_field_type {
    TEXT,
    OPTION, /* text, "-": none */
    FLAG,
    U32,
    U64,
    I16,
    F64,
    WORD,
    FORMAT,
    RECIPE, /* may be missing: none */
    DEPTH,  /* of a uint32_t; may be missing: 0 */
    SPARE,  /* of a double; may be missing: 0   */
    STATES, /* may be missing: none */
    U8
} train_field_type;

typedef struct train_field {
    const char *key;
    uint8_t type;
    size_t offset;
    size_t size;              /* TEXT, OPTION: of the array          */
    const char *const *words; /* WORD: of a uint8_t, NULL at the end */
} train_field;

typedef struct train_fields {
    const train_field *list;
    size_t n;
} train_fields;

/* Of train_settings, train_decoder, mpsim_optim, mpsim_delayed_config, train_placement and mpsim_scaler_config
 * (whose keys are those of mpsim_scaler_parse, which reads them). */
extern const train_fields train_settings_fields, train_decoder_fields, train_optim_fields, train_history_fields,
    train_layer_fields, train_scaler_fields, train_muon_fields;
extern const char *const train_master_words[];

void train_write_value(FILE *out, const train_field *f, const void *base);
/* One that may be missing, and is: what a key that is not read leaves. */
int train_may_miss(const train_field *f);
int train_is_missing(const train_field *f, const void *base);
/* 0, or -1 if the text is no value of the field. */
int train_read_value(const train_field *f, void *base, const char *text);
/* Decimal digits up to max; the number of a word. */
int train_read_integer(const char *text, uint64_t max, uint64_t *value);
int train_read_word(const char *text, const char *const *words, unsigned *value);
int train_read_text(const char *text, char *to, size_t size);
