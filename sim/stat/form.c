/* form.c -- see form.h. */
#include "form.h"

void stat_form_clear(stat_form *f)
{
    option_list_clear(&f->fail_if);
}

int stat_output_begin(stat_output *o, const stat_form *f, tally *t, size_t files, const char *version)
{
    const int code = f->style == REPORT_NDJSON ? output_open_stream(&o->out, f->out.path)
                                               : report_options_open(&o->out, &f->out);
    if (code)
        return code;
    o->form = (tally_form){.style = f->style, .to = o->out.file, .tensors = f->tensors, .level = f->level};
    return stat_tally_begin(t, &o->form, 1, files, version) ? (output_abandon(&o->out), EXIT_IO) : 0;
}

int stat_output_end(stat_output *o, tally *t, int code, const char *names)
{
    code = stat_tally_end(t, code, names);
    if (code) {
        output_abandon(&o->out);
        return code;
    }
    code = output_close(&o->out);
    return code ? code : stat_tally_tell(t);
}
