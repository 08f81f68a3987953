/* ledger.h -- bytes by component, each a sum of terms with their formula; integers, checked. */
#pragma once

#include <stddef.h>
#include <stdint.h>

typedef enum ledger_component {
    LEDGER_WEIGHTS,
    LEDGER_COPIES,   /* of weights in the format of products: autocast's, quantised ones */
    LEDGER_GATHERED, /* ZeRO 3: the layer that is whole                                  */
    LEDGER_MASTER,
    LEDGER_GRADIENTS,
    LEDGER_MASTER_GRADIENTS,
    LEDGER_STATE,
    LEDGER_SCALING, /* histories and scales of delayed scaling */
    LEDGER_ACTIVATIONS,
    LEDGER_COMPONENTS
} ledger_component;

/* bytes: each * n where `each` is not 0. Of what is cut, `whole` is what n is a part of. */
typedef struct ledger_term {
    char what[64];      /* "binary32", "input of fc1 (bf16)"                            */
    const char *symbol; /* of whole / times: "s b h"; NULL: n is a number of parameters */
    uint64_t each, n, whole, times, bytes;
} ledger_term;

enum { LEDGER_TERMS = 24 };
typedef struct ledger {
    ledger_term terms[LEDGER_COMPONENTS][LEDGER_TERMS];
    size_t count[LEDGER_COMPONENTS];
    int overflow; /* a number did not fit */
} ledger;

extern const char *const memory_ledger_names[]; /* of components: "weights", ...; up to NULL */

/* memory_ledger_add -- each * n bytes, or t.bytes where each is 0; to the term of the same words if there is one.
 * Nothing for no bytes. */
void memory_ledger_add(ledger *l, ledger_component c, ledger_term t);

/* Products and sums that do not fit set l->overflow, and are 0. */
uint64_t memory_ledger_times(ledger *l, uint64_t a, uint64_t b);
uint64_t memory_ledger_plus(ledger *l, uint64_t a, uint64_t b);

uint64_t memory_ledger_bytes(const ledger *l, ledger_component c);
uint64_t memory_ledger_total(const ledger *l);

/* memory_ledger_formula -- "binary32: 4 x 117,187,500 of 7,500,000,000". */
const char *memory_ledger_formula(char *out, size_t size, const ledger_term *t);
