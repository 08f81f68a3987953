/* checked.c -- operations that check what they are given: see check.h. */
#include "check.h"

void train_engine_begin(train_engine *e, const train_ops *own)
{
    e->own = own;
    e->checked = *own;
    check_tensors(&e->checked);
    check_products(&e->checked);
    check_layers(&e->checked);
    check_updates(&e->checked);
    check_tokens(&e->checked);
    check_attention(&e->checked);
    e->ops = &e->checked;
}
