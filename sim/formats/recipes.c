/* recipes.c -- see recipes.h. */
#include "recipes.h"

/* "1 x 32", "row", "tensor" */
static const char *shape_text(char out[32], const mpsim_block_recipe *b)
{
    if (b->block_cols)
        snprintf(out, 32, "%u x %u", (unsigned)b->block_rows, (unsigned)b->block_cols);
    else
        snprintf(out, 32, "%s", b->block_rows ? "row" : "tensor");
    return out;
}

static void add_row(table *t, const block_target *r)
{
    char shape[32];
    const mpsim_block_recipe *b = &r->recipe;
    table_cell(t, "%s", r->label);
    table_cell(t, "%s", b->element);
    table_cell(t, "%s", shape_text(shape, b));
    table_cell(t, "%s%s", target_scale_format(b), target_has_tensor_scale(b) ? ", tensor binary32" : "");
    table_cell(t, "%s", target_scale_rule(b));
    table_cell(t, "%s", b->source ? b->source : "");
}

static const char legend[] =
    "\n"
    "block      elements that share a scale: rows x columns, a row, or the whole tensor\n"
    "scales     the format of the scales of blocks, and of the tensor's if there is one beside them\n"
    "rule       how the scale comes from the largest magnitude of the block\n"
    "More words after a name: :floor :even :ceil :rceil :te :microx after mxfp8, mxfp8-e5m2, mxfp6-e3m2,\n"
    "mxfp6-e2m3 and mxfp4, and :* for all of these; :2d :sr :1level after nvfp4; :rht16 to :rht128 after any.\n"
    "ELEMENT/RxC, ELEMENT/row and ELEMENT/tensor, as e4m3/128x128:ue8m0, are recipes of your own.\n";

static void print_table(const block_list *l, FILE *to)
{
    table *t = table_new("<recipe|<element|<block|<scales|<rule|<source");
    for (size_t i = 0; i < l->count; i++)
        add_row(t, &l->items[i]);
    table_print(t, to, "");
    table_free(t);
    fputs(legend, to);
}

static void csv_row(const block_target *r, FILE *to)
{
    const mpsim_block_recipe *b = &r->recipe;
    csv_text(to, r->label);
    fprintf(to, ",%s,%s,%u,%u,%s,%s,%u,", b->element, target_scale_rule(b), (unsigned)b->block_rows,
            (unsigned)b->block_cols, target_scale_format(b), target_has_tensor_scale(b) ? "yes" : "no", r->transform);
    csv_text(to, b->source ? b->source : "");
    fputc('\n', to);
}

/* One object a line; in JSON they are items of an array. */
static void print_objects(const block_list *l, report_style style, FILE *to)
{
    const int array = style == REPORT_JSON;
    if (array)
        json_begin(to, "mpsim.recipes/1");
    fputs(array ? "\"recipes\": [" : "", to);
    for (size_t i = 0; i < l->count; i++) {
        jsonout o = {to, 0, 0};
        fputs(style == REPORT_NDJSON ? "" : i ? ",\n " : "\n ", to);
        target_recipe_json(&o, NULL, &l->items[i]);
        fputs(style == REPORT_NDJSON ? "\n" : "", to);
    }
    fputs(array ? "]}\n" : "", to);
}

void recipes_print(const block_list *l, report_style style, FILE *to)
{
    if (style != REPORT_CSV) {
        style == REPORT_TEXT ? print_table(l, to) : print_objects(l, style, to);
        return;
    }
    fputs("name,element,rule,block_rows,block_cols,scale_format,tensor_scale,transform,source\n", to);
    for (size_t i = 0; i < l->count; i++)
        csv_row(&l->items[i], to);
}
