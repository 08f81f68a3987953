/* unmatched.c -- see unmatched.h. */
#include "unmatched.h"

#include "../text/escape.h"
#include "../text/words.h"

#include <string.h>

/* Who asks, and where what is found goes. */
typedef struct finding {
    policy_fits *fits;
    const void *context;
    char *out;
    size_t size;
} finding;

static void list_unmatched(const finding *f, const char *key, const policy_patterns *list)
{
    int first = 1;
    for (size_t i = 0; list && i < list->count; i++) {
        const char *glob = list->items[i].glob;
        const size_t n = strlen(f->out);
        char escaped[128];
        if (f->fits(f->context, glob))
            continue;
        if (f->size - n < sizeof escaped + 32) {
            text_add(f->out, f->size, ", ...");
            return;
        }
        text_add(f->out, f->size, "%s%s '%s'",
                 n && first ? "; "
                 : first    ? ""
                            : ",",
                 first ? key : "", escape_text(escaped, sizeof escaped, glob));
        first = 0;
    }
}

void policy_find_unmatched(const policy *p, policy_fits *fits, const void *context, char *out, size_t size)
{
    const finding f = {fits, context, out, size};
    out[0] = '\0';
    for (size_t i = 0; i < p->count; i++) {
        const plan *now = &p->plans[i], *before = i ? now - 1 : NULL;
        if (!before || before->keep_fp32 != now->keep_fp32)
            list_unmatched(&f, "keep_fp32", now->keep_fp32);
        if (!before || before->fp8_exclude != now->fp8_exclude)
            list_unmatched(&f, "fp8_exclude", now->fp8_exclude);
        if (!before || before->muon_exclude != now->muon_exclude)
            list_unmatched(&f, "muon_exclude", now->muon_exclude);
        if (!before || before->layer_kinds != now->layer_kinds)
            list_unmatched(&f, "layer_kinds", now->layer_kinds);
    }
}
