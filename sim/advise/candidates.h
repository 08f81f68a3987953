/* candidates.h -- the formats and recipes that are tried, in the order of bytes an element. */
#pragma once

#include "../policy/table.h"

/* How a tensor enters a product: recipes differ by it. */
typedef enum candidate_role { ROLE_WEIGHT, ROLE_ACT, ROLE_GRAD, CANDIDATE_ROLES } candidate_role;

typedef struct candidate {
    const char *name;                   /* as typed and shown                                          */
    const char *casts[CANDIDATE_ROLES]; /* block recipes, as `stat -f` takes them; NULL: a scalar format */
    double bits;                        /* an element, with its share of the block scales              */
} candidate;

enum { CANDIDATES_MOST = 12, CANDIDATE_CASTS_MOST = 3 * CANDIDATES_MOST };

typedef struct candidate_list {
    candidate items[CANDIDATES_MOST]; /* bits growing; the last is binary32, which fits everything */
    size_t count;
    const char *casts[CANDIDATE_CASTS_MOST]; /* all block recipes, each once */
    size_t n_casts;
} candidate_list;

/* advise_candidates_make -- those that are typed, separated by commas; NULL: the usual ones. 0, or an exit code after a message. */
int advise_candidates_make(candidate_list *l, const char *typed);
/* advise_candidates_find -- the number of a name, or -1. advise_candidates_cast -- that of a block recipe, by its name. */
int advise_candidates_find(const candidate_list *l, const char *name);
size_t advise_candidates_cast(const candidate_list *l, const char *recipe);

/* A recipe for the operands of linear layers: keys of a policy, and the candidates that they stand for. */
typedef struct advise_recipe {
    const char *name;                     /* for people */
    const char *forward, *gradient;       /* candidates of weights and activations, and of gradients */
    const char *precision, *recipe, *fp8; /* values of keys; NULL: left out */
} advise_recipe;

/* In the order of bytes an element; NULL past the end. */
const advise_recipe *advise_recipe_at(size_t i);
