/* recipe.c -- see recipe.h. */
#include "recipe.h"

#include "../operand/element.h"

#include <float.h>
#include <string.h>

int cast_recipe_parse(cast_recipe *r, const char *text)
{
    /* "1x128" is short for a recipe of TransformerEngine's */
    static const char *const aliases[][2] = {{"1x128", "te-block-1x128"}, {"128x128", "te-block-128x128"}};
    char error[256];
    memset(r, 0, sizeof *r);
    for (size_t i = 0; i < sizeof aliases / sizeof aliases[0]; i++)
        if (strcmp(text, aliases[i][0]) == 0)
            text = aliases[i][1];
    const mpsim_status s = mpsim_block_parse(&r->block, &r->transform, text, error, sizeof error);
    if (s == MPSIM_ENOTFOUND)
        return -1;
    if (s != MPSIM_OK)
        return fail(EXIT_USAGE, "cast: --format: %s", error);
    r->scale = target_scale_format(&r->block);
    r->tensor_scale = target_has_tensor_scale(&r->block);
    r->given = 1;
    return 0;
}

int cast_recipe_options(cast_recipe *r, const target_options *o)
{
    double given = 1;
    if (o->scales && r->block.rule != MPSIM_SCALE_MSAMP)
        return fail(EXIT_USAGE, "cast: recipe %s computes its own scales: --scale does not go with it", r->block.name);
    if (o->round || o->preset || o->overflow || o->flush_input || o->flush_output)
        return fail(EXIT_USAGE, "cast: recipe %s sets its own rounding: options of rounding do not go with it",
                    r->block.name);
    if (o->scales && (parse_number(&given, o->scales) || !(given > 0 && given <= (double)FLT_MAX)))
        return fail(EXIT_USAGE, "cast: --scale: '%s' is not a positive number of binary32", o->scales);
    r->given = (float)given;
    return 0;
}
