/* recipe.h -- the recipe that a file names for its quantised tensors, asked first. */
#pragma once

#include "verdict.h"

/* A judge: one side is the other quantised by the recipe that its file names, or by one of the layout that it has. */
verdict_judge diff_recipe_named;
