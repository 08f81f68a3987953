/* quantisedfit.h -- whether a row of the table of layouts fits tensors of a file (quantisedfit.c; for quantised.c). */
#pragma once

#include "quantised.h"

enum { QUANTISED_WHY = 256, QUANTISED_WORD = 64 };

/* One row that fits. */
typedef struct quantised_fit {
    quantised q;
    quant_geometry g;
    const char *evidence;
    int object; /* how names are written */
} quantised_fit;

typedef struct quantised_finder {
    trace *t;
    trace_error *error;
    const trace_entry **by_name; /* in the order of names                                          */
    quantised_index metadata;
    char *name, *other;      /* room for any name                                              */
    const quant_form *named; /* the row whose names were looked for last, of these codes:      */
    uint32_t named_codes, named_scales;
    int named_object, is_named; /* their name is one of codes; the tensor's is in name then       */
    size_t room;
    char layout[QUANTISED_WORD], element[QUANTISED_WORD]; /* the user's words, or empty                        */
    quantised **made;      /* by place of the codes: NULL, or what they are                  */
    unsigned char *hidden; /* parts of what was made                                         */
    size_t n_made;
    int no_memory;                     /* to find out                                            */
    char misfit[QUANTISED_WHY + 512];  /* why codes that have scales fit no row                          */
    int weak;                          /* a dtype is why: of a row whose dtypes fit there is more to say */
    char missing[QUANTISED_WHY + 512]; /* which part is not there, or what is not said                   */
} quantised_finder;

/* trace_quantised_part_name -- as quant_part_name. object: as an attribute of an object that was pickled, NAME/rowwise_data.
 * trace_quantised_part_of -- as quant_part_of. */
int trace_quantised_part_name(const quant_form *f, quant_part p, int object, const char *name, char *to, size_t size);
int trace_quantised_part_of(const quant_form *f, quant_part p, int object, const char *stored, char *name, size_t size);
/* trace_quantised_is_object -- whether a row's tensors may be objects of Python in the file, which a pickle then is. */
int trace_quantised_is_object(const quantised_finder *f, const quant_form *form);

/* trace_quantised_find -- the place of the tensor of that name, or QUANTISED_ABSENT. */
uint32_t trace_quantised_find(const quantised_finder *f, const char *name);

/* trace_quantised_dtype -- which dtype of a row's list an entry has; "": that of its own format. NULL: none. */
const char *trace_quantised_dtype(const quant_form *form, quant_part p, const trace_entry *e);

/* trace_quantised_try -- whether a row fits a tensor as its codes; f->name is the tensor's then. If not, f->misfit or
 * f->missing may say why. */
int trace_quantised_try(quantised_finder *f, const quant_form *form, int object, uint32_t codes, quantised_fit *x);
