/* recipes.h -- mpsim formats --recipes: the block recipes, by the names that stat and cast take. */
#pragma once

#include "../operand/target.h"
#include "../record/record.h"

extern const report_kind formats_recipes_kind;

/* formats_recipes_print -- what each stores, how its scales come about, and who has it so. */
void formats_recipes_print(const block_list *list, report_style style, FILE *to);
