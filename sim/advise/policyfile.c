/* policyfile.c -- the advice as a policy; see advise.h. */
#include "advise.h"

#include "../text/escape.h"

#include <math.h>
#include <string.h>

/* A layer's name as a pattern that fits it alone, in YAML's double quotes. */
static void put_pattern(FILE *to, const char *name)
{
    uint32_t c;
    fputc('"', to);
    for (const char *p = name; *p;) {
        const size_t hidden = escape_hidden(p, strlen(p), &c), n = hidden ? hidden : utf8_character(p, &c);
        if (strchr("*?[\\", *p))
            fputs("\\\\", to); /* of the pattern */
        if (*p == '"' || *p == '\\')
            fputc('\\', to); /* of YAML */
        if (hidden)
            fprintf(to, "\\U%08lx", (unsigned long)c);
        else if (n)
            fwrite(p, 1, n, to);
        else
            fputc('?', to); /* a bad byte */
        p += n ? n : 1;
    }
    fputc('"', to);
}

static void put_layers(const advise *a, FILE *to, const char *key, int excluded)
{
    int n = 0;
    for (size_t i = 0; i < a->n_layers; i++) {
        const advise_layer *l = &a->layers[i];
        if (!*l->name || !(excluded ? l->excluded && !l->kept : l->kept))
            continue;
        if (n++ == 0)
            fprintf(to, "%s:\n", key);
        fputs("  - ", to);
        put_pattern(to, l->name);
        fputc('\n', to);
    }
}

void advise_write_policy(const advise *a, FILE *to)
{
    const advise_recipe *r = a->recipe;
    const int fp16 = strcmp(a->compute, "fp16") == 0;
    fprintf(to, "name: advised\nsource: mpsim advise %s\n", mpsim_version());
    fprintf(to,
            "note: within %.6g %% underflow, %.6g %% overflow, SQNR from %.6g dB in the steps that were looked at\n",
            100 * a->bounds.underflow, 100 * a->bounds.overflow, a->bounds.sqnr);
    fprintf(to, "precision: %s\n",
            r                                 ? r->precision
            : fp16                            ? "fp16"
            : strcmp(a->compute, "bf16") == 0 ? "bf16"
                                              : "fp32");
    if (r)
        fprintf(to, "compute: %s\n", a->compute);
    if (r && r->recipe)
        fprintf(to, "fp8_recipe: %s\n", r->recipe);
    if (r && r->fp8)
        fprintf(to, "fp8: %s\n", r->fp8);
    put_layers(a, to, "keep_fp32", 0);
    if (r)
        put_layers(a, to, "fp8_exclude", 1);
    if (strcmp(a->compute, "bf16") == 0)
        fprintf(to, "params: %s # %s\n", a->stall.keep ? "fp32" : "bf16",
                a->stall.unknown ? "not known whether bf16 would do"
                : a->stall.keep  ? "bf16 alone would lose updates"
                                 : "bf16 alone loses few updates");
    if (fp16 && a->scale_low <= a->scale_high)
        fprintf(to, "loss_scaling: {scaler: torch, init_scale: %.17g}\n", ldexp(1, a->scale));
    fputs("optimizer: trace\n", to);
}
