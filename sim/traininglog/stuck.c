/* stuck.c -- see stuck.h. */
#include "stuck.h"

#include "../report/report.h"
#include "../text/words.h"

#include <math.h>
#include <stdio.h>

/* ENDLESS: overflows in a row that a constant scale explains. FLOORED: overflows at a floor. */
enum { ENDLESS = 10, FLOORED = 3 };

/* Ten powers of two: what is lost below is all that the mantissa of fp16 has. */
static const double far_below = 0x1p-10;

/* The scale that the last clean steps fit; where that is any, or not known, the one that the scaler began with. */
static double wanted(const track *t)
{
    return isfinite(t->clean_fits) && t->clean_fits > 0 ? t->clean_fits : t->begin;
}

double stuck_floor(const track *t)
{
    return t->run > 0 && t->run_fits > 0 && t->run_fits < t->last ? t->run_fits : 0;
}

stuck stuck_find(const track *t)
{
    if (t->recorded)
        return STUCK_NOT;
    if (!t->scaler.config.dynamic)
        return t->run >= ENDLESS || 2 * t->overflows > t->steps ? STUCK_CONSTANT : STUCK_NOT;
    if (t->run_floored >= FLOORED && stuck_floor(t) > 0)
        return STUCK_FLOOR;
    return t->run == 0 && t->last > 0 && t->last <= far_below * wanted(t) && (t->last < t->begin || t->last < 1)
               ? STUCK_LOW
               : STUCK_NOT;
}

/* Why a scale that is too small comes up late, or never. */
static void low_text(const track *t, char *text, size_t size)
{
    const mpsim_scaler_config *c = &t->scaler.config;
    const double ratio = wanted(t) / t->last, times = ceil(log(ratio) / log(c->growth));
    char a[32], b[32], d[32], e[32];
    snprintf(text, size,
             "the scale is stuck at %s, %.0f powers of two below %s, which %s. Small gradients become "
             "zero meanwhile.",
             text_scale(a, t->last), log2(ratio), text_scale(b, wanted(t)),
             t->clean_fits == wanted(t) ? "fits" : "it began with");
    if (t->last >= c->ceiling)
        text_add(text, size, " At fault is its ceiling: it never comes back.");
    else if (!(c->growth > 1))
        text_add(text, size, " At fault is its growth, a factor of %s: it never comes back.",
                 text_number(d, c->growth));
    else if (t->last >= t->begin)
        text_add(text, size,
                 " At fault is the first scale, %s: with a growth after %s clean steps the way up takes %s steps.",
                 text_scale(a, t->begin), text_count(d, c->window),
                 text_count(e, (uint64_t)fmin(times * (double)c->window, 1e18)));
    else
        text_add(text, size,
                 " At fault are the window and %s: with a growth after %s clean steps the way back takes %s steps.",
                 c->floor > 0 ? "a low floor" : "the missing floor", text_count(d, c->window),
                 text_count(e, (uint64_t)fmin(times * (double)c->window, 1e18)));
}

void stuck_text(const track *t, char *text, size_t size)
{
    char a[32], b[32], c[32], d[32];
    const stuck how = stuck_find(t);
    if (how == STUCK_LOW)
        low_text(t, text, size);
    else if (how == STUCK_FLOOR)
        snprintf(text, size,
                 "the last %s steps overflow, %s of them at the floor, a scale of %s, where %s fits: the floor is at "
                 "fault. Lower it to %s or less.",
                 text_count(a, t->run), text_count(b, t->run_floored), text_scale(c, t->last),
                 text_scale(d, t->run_fits), text_scale((char[32]){0}, exp2(floor(log2(t->run_fits)))));
    else if (stuck_floor(t) > 0)
        snprintf(text, size,
                 "%s of %s steps overflow at the constant scale of %s, where %s fits: the constant is at fault. A "
                 "dynamic scaler finds it.",
                 text_count(a, t->overflows), text_count(b, t->steps), text_scale(c, t->last),
                 text_scale(d, t->run_fits));
    else
        snprintf(text, size,
                 "%s of %s steps overflow at the constant scale of %s, which never moves. A smaller one, or a dynamic "
                 "scaler, shows whether it is the scale or Inf and NaN from somewhere else.",
                 text_count(a, t->overflows), text_count(b, t->steps), text_scale(c, t->last));
}
