/* note.c -- what is said once of a run; see state.h. */
#include "impl.h"

#include <stdarg.h>

void replay_say(replay *r, replay_note note, const char *message, ...)
{
    char text[sizeof r->notes.text[note]];
    va_list args;
    if (r->notes.text[note][0])
        return;
    va_start(args, message);
    vsnprintf(text, sizeof text, message, args);
    va_end(args);
    escape_text(r->notes.text[note], sizeof r->notes.text[note], text);
}
