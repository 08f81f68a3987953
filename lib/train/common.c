/* common.c -- what all files here use: error lines, questions about settings; see trainer.h. */
#include "trainer.h"

#include <stdarg.h>

int train_fail(char *error, const char *format, ...)
{
    va_list list;
    va_start(list, format);
    vsnprintf(error, TRAIN_ERROR, format, list);
    va_end(list);
    return -1;
}

int train_out_of_memory(const char *error)
{
    return strstr(error, "out of memory") != NULL;
}

int train_engine_failed(const train *t, const char *what, char *error)
{
    return train_fail(error, "%.80s: %.160s", what, t->e->error);
}

int train_fits_binary32(const mpsim_format *f)
{
    return f->mbits <= 23 && mpsim_format_is_signed(f) && f->zero != MPSIM_ZERO_NONE && f->nan != MPSIM_NAN_NONE &&
           mpsim_format_max(f) <= 0x1.fffffep+127 && mpsim_format_min_positive(f) >= 0x1p-149;
}

int train_is_text(const train_settings *s)
{
    return strcmp(s->net, "gpt") == 0 || strcmp(s->net, "llama") == 0;
}
