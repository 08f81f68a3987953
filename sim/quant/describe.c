/* describe.c -- see describe.h. */
#include "describe.h"

#include "../text/json.h"

#include <stdio.h>
#include <string.h>

static const char *const axes[] = {"rows", "columns"}, *const orders[] = {"plain", "swizzled"};
static const char *const tensor_scales[] = {[QUANT_NONE] = "none",
                                            [QUANT_MULTIPLY] = "multiply",
                                            [QUANT_DIVIDE] = "divide",
                                            [QUANT_AMAX] = "amax",
                                            [QUANT_MAYBE] = "multiply"};

char *quant_describe(const quant_description *d)
{
    const quant_form *f = quant_form_find(d->layout, d->element, d->scale, d->block_rows, d->block_cols,
                                          d->tensor_scale, NULL, 0);
    json_t *shape = json_array();
    for (size_t i = 0; i < d->rank; i++)
        json_array_append_new(shape, json_integer((json_int_t)d->shape[i]));
    json_t *v =
        json_pack("{s:s, s:s, s:s, s:s, s:o, s:[I, I], s:s, s:s, s:s, s:s, s:i}", "layout", d->layout, "recipe",
                  d->recipe, "element", d->element, "scale", d->scale, "shape", shape, "block",
                  (json_int_t)d->block_rows, (json_int_t)d->block_cols, "axis", axes[d->columns != 0], "packing",
                  quant_packing_name(f ? f->packing : QUANT_BYTES), "scales", orders[d->swizzled != 0], "tensor_scale",
                  tensor_scales[f && d->tensor_scale ? f->tensor_scale : QUANT_NONE], "transform", (int)d->transform);
    char *text = v ? json_dumps(v, JSON_COMPACT) : NULL;
    json_decref(v);
    return text;
}

/* ---- and back ---- */

static int no(char *why, size_t size, const char *key)
{
    snprintf(why, size, "its description has no %s that can be read", key);
    return -1;
}

static int text_of(const json_t *v, const char *key, char *to, size_t room)
{
    const char *s = json_string_value(json_object_get(v, key));
    if (!s || strlen(s) >= room)
        return -1;
    memcpy(to, s, strlen(s) + 1);
    return 0;
}

/* Which of two words. */
static int word_of(const json_t *v, const char *key, const char *const words[2], int *to)
{
    const char *s = json_string_value(json_object_get(v, key));
    *to = s && strcmp(s, words[1]) == 0;
    return s && strcmp(s, words[*to]) == 0 ? 0 : -1;
}

static int sides_of(const json_t *v, const char *key, uint64_t *to, size_t max, size_t *n)
{
    const json_t *list = json_object_get(v, key);
    *n = json_array_size(list);
    if (!json_is_array(list) || *n > max)
        return -1;
    for (size_t i = 0; i < *n; i++) {
        const json_t *x = json_array_get(list, i);
        if (!json_is_integer(x) || json_integer_value(x) < 0)
            return -1;
        to[i] = (uint64_t)json_integer_value(x);
    }
    return 0;
}

static const char *fill(quant_description *d, const json_t *v)
{
    uint64_t block[2];
    size_t n;
    char tensor_scale[16];
    const struct {
        const char *key;
        char *to;
        size_t room;
    } texts[] = {{"layout", d->layout, sizeof d->layout},
                 {"recipe", d->recipe, sizeof d->recipe},
                 {"element", d->element, sizeof d->element},
                 {"scale", d->scale, sizeof d->scale},
                 {"tensor_scale", tensor_scale, sizeof tensor_scale}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (text_of(v, texts[i].key, texts[i].to, texts[i].room))
            return texts[i].key;
    d->tensor_scale = strcmp(tensor_scale, "none") != 0;
    if (sides_of(v, "shape", d->shape, QUANT_RANK_MAX, &d->rank))
        return "shape";
    if (sides_of(v, "block", block, 2, &n) || n != 2 || block[0] >= QUANT_ANY || block[1] >= QUANT_ANY)
        return "block";
    d->block_rows = (uint32_t)block[0];
    d->block_cols = (uint32_t)block[1];
    if (word_of(v, "axis", axes, &d->columns))
        return "axis";
    if (word_of(v, "scales", orders, &d->swizzled))
        return "scales";
    const json_t *transform = json_object_get(v, "transform");
    if (!json_is_integer(transform) || json_integer_value(transform) < 0 || json_integer_value(transform) > 4096)
        return "transform";
    d->transform = (unsigned)json_integer_value(transform);
    return NULL;
}

int quant_described(quant_description *d, const char *text, char *why, size_t size)
{
    enum { TEXT_MAX = 4096 }; /* no nesting that matters in so much */
    memset(d, 0, sizeof *d);
    int no_memory = 0;
    json_t *v = strlen(text) < TEXT_MAX ? json_text(text, strlen(text), 0, NULL, &no_memory) : NULL;
    const char *missing = json_is_object(v) ? fill(d, v) : "object";
    json_decref(v);
    return no_memory ? -2 : missing ? no(why, size, missing) : 0;
}
