/* stuck.h -- a simulated scale that its own settings keep from what the gradients fit. */
#pragma once

#include "track.h"

typedef enum stuck {
    STUCK_NOT,
    STUCK_CONSTANT, /* too large, and it never moves */
    STUCK_FLOOR,    /* too large: a smaller one fits */
    STUCK_LOW       /* far too small */
} stuck;

stuck stuck_find(const track *t);
/* stuck_text -- which setting it is, and how long the way back takes. */
void stuck_text(const track *t, char *text, size_t size);
/* stuck_floor -- the largest scale that the last overflows would have fitted, where it is below the one in force: then
 * the floor is at fault, not Inf or NaN. 0: that is not known. */
double stuck_floor(const track *t);
