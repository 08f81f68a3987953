/* recipe.h -- block recipes as they are typed after -f, and what goes with them on a command line. */
#pragma once

#include "../operand/target.h"

typedef struct cast_recipe {
    mpsim_block_recipe block;
    unsigned transform; /* size of the groups of the Hadamard transform before it, or 0 */
    const char *scale;  /* format of the codes of block scales; "binary32" if they are numbers */
    int tensor_scale;   /* NVFP4: there is one beside those of the blocks               */
    float given;        /* MS-AMP: the scale so far, of --scale                         */
} cast_recipe;

/* cast_recipe_parse -- from a word of -f: 0; -1 if it is not a recipe (perhaps a format), or an exit code after a message. */
int cast_recipe_parse(cast_recipe *r, const char *text);

/* cast_recipe_options -- whether the other options of a cast go with it; `given` is set. 0, or EXIT_USAGE after a message. */
int cast_recipe_options(cast_recipe *r, const target_options *o);
