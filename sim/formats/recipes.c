/* recipes.c -- see recipes.h. */
#include "recipes.h"

static const char legend[] =
    "\n"
    "block      elements that share a scale: rows x columns, a row, or the whole tensor\n"
    "scales     the format of the scales of blocks, and of the tensor's if there is one beside them\n"
    "rule       how the scale comes from the largest magnitude of the block\n"
    "More words after a name: :floor :even :ceil :rceil :te :microx after mxfp8, mxfp8-e5m2, mxfp6-e3m2,\n"
    "mxfp6-e2m3 and mxfp4, and :* for all of these; :2d :sr :1level after nvfp4; :rht16 to :rht128 after any.\n"
    "ELEMENT/RxC, ELEMENT/row and ELEMENT/tensor, as e4m3/128x128:ue8m0, are recipes of your own.\n";

const report_kind formats_recipes_kind = {
    "mpsim.recipes/1", "mpsim formats --recipes: block recipes",
    "Block recipes: elements and their scales. $defs/line is a line of --ndjson, which names no "
    "schema.",
    REPORT_ROWS("recipes", &recipe_record)};

void formats_recipes_print(const block_list *l, report_style style, FILE *to)
{
    record_writer w = {.kind = &formats_recipes_kind, .to = to, .style = style};
    record_begin(&w);
    for (size_t i = 0; i < l->count; i++) {
        const target_recipe_row row = target_recipe(&l->items[i]);
        record_row(&w, &row);
    }
    table_print(w.rows, to, "");
    fputs(style == REPORT_TEXT ? legend : "", to);
    record_end(&w);
}
