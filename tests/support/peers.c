/* peers.c -- see peers.h. */
#include "peers.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

void peers_note(report *p, const char *text, ...)
{
    va_list list;
    if (p->wrong++ == 0) {
        va_start(list, text);
        vsnprintf(p->first, sizeof p->first, text, list);
        va_end(list);
    }
}

mpsim_format peers_format(const char *name)
{
    mpsim_format f;
    ck_assert_msg(mpsim_format_parse(&f, name) == MPSIM_OK, "no format %s", name);
    return f;
}

mpsim_rounding rounding_of(const char *preset, const mpsim_format *f, int mode)
{
    mpsim_rounding r;
    const mpsim_preset *p = mpsim_preset_find(preset);
    ck_assert_msg(p != NULL, "no preset %s", preset);
    mpsim_rounding_preset(&r, p, f);
    r.mode = (uint8_t)mode;
    return r;
}

uint64_t encode(report *p, const mpsim_format *f, const mpsim_rounding *r, double x, unsigned *flags)
{
    unsigned flags32;
    const uint64_t c = mpsim_encode_f64(f, r, x, 0, flags);
    if (fabs(x) <= (double)FLT_MAX && (double)(float)x == x) {
        const uint64_t c32 = mpsim_encode_f32(f, r, (float)x, 0, &flags32);
        if (c32 != c || flags32 != *flags)
            peers_note(p, "%s %s x=%a: f64 gives %#" PRIx64 " (flags %u), f32 %#" PRIx64 " (flags %u)", f->name,
                       mpsim_round_mode_name(r->mode), x, c, *flags, c32, flags32);
    }
    return c;
}

void check_rows(const row *rows, size_t n)
{
    report p = {0};
    for (size_t i = 0; i < n; i++) {
        const mpsim_format f = peers_format(rows[i].format);
        const mpsim_rounding r = rounding_of(rows[i].preset, &f, rows[i].mode);
        unsigned flags;
        const uint64_t code = encode(&p, &f, &r, rows[i].x, &flags);
        const double got = mpsim_decode(&f, code);
        if (isnan(rows[i].want) ? !isnan(got) : bits_of_f64(got) != bits_of_f64(rows[i].want))
            peers_note(&p, "%s %s %s x=%a (%#018" PRIx64 "): expected %a, got %a (code %#" PRIx64 ")", f.name,
                       rows[i].preset, mpsim_round_mode_name(r.mode), rows[i].x, bits_of_f64(rows[i].x), rows[i].want,
                       got, code);
    }
    ck_no_mismatch(&p);
}
