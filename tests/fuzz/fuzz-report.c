/* fuzz-report.c -- reports that mpsim plot reads; the first byte says for which figure ('0' to '?') and, in its high bits,
 * what is selected. They give a figure's data and script, or are refused in one line. */
#include "input.h"
#include "sim/plot/figures.h"

#include <stdio.h>
#include <string.h>

static void draw(const plot_figure *figure, const plot_input *in, const plot_selection *selection)
{
    static FILE *nowhere;
    const plot_request r = {.prefix = "figure", .types = PLOT_SVG, .width = 5, .selection = selection};
    if (!nowhere)
        nowhere = fopen("/dev/null", "w");
    must(nowhere != NULL);
    figure->put_data(nowhere, in, &r);
    figure->put_variables(nowhere, in, &r);
}

/* What the options of a figure may select: nothing where the bits are those of a digit; of what the length says. */
static plot_selection select_by(uint8_t byte, size_t length, const plot_figure *figure)
{
    enum { CHOICES = 6 };
    static const char *formats[] = {"fp16", "e4m3,fp16", "mxfp8", "fp16,fp16", "fp1?", "none"},
                      *scales[] = {"1024", "1", "2^0..2^8", "3", "1,1024", "2^0..2^64"},
                      *match[] = {"*", "wgrad:*", "[a-m]*", "none", "*", "*"},
                      *kinds[] = {"wgrad", "act,agrad", "weight", "none", "act", "dgrad"};
    static const char *const by[CHOICES] = {"tensor", "layer", "step", "total", "kind", "none"},
                             *const columns[CHOICES] = {"max_rel_err", "bias", "agrad", "sqnr", "updates", "none"},
                             *const steps[CHOICES] = {NULL, "1", "none", "2", NULL, "1"},
                             *const underflows[CHOICES] = {"5", "none", "100", "0", "-1", "1"};
    const unsigned bits = byte >> 4 ^ 3, which = (unsigned)(length % CHOICES);
    plot_selection s = {.kinds = {0}};
    if (bits & 1 && strstr(figure->options, "by"))
        s.by = by[which];
    if (bits & 1 && strstr(figure->options, "column"))
        s.column = columns[which];
    if (bits & 2 && strstr(figure->options, "format"))
        s.formats = (option_list){.items = &formats[which], .count = 1};
    if (bits & 4 && strstr(figure->options, "scale"))
        s.scales = (option_list){.items = &scales[which], .count = 1};
    if (bits & 4 && strstr(figure->options, "underflow"))
        s.underflow = underflows[which];
    if (bits & 8 && strstr(figure->options, "match"))
        s.match = (option_list){.items = &match[which], .count = 1};
    if (bits & 8 && strstr(figure->options, "kind"))
        s.kinds = (option_list){.items = &kinds[which], .count = 1};
    if (bits & 8 && strstr(figure->options, "step"))
        s.step = steps[which];
    return s;
}

/* The report, or, where a figure takes several, two of them. */
static int load(plot_report *r, const char *path, const plot_figure *figure, int twice)
{
    plot_report other;
    int code = plot_report_load(r, path, figure->commands, figure->name);
    if (code || !twice || !figure->several)
        return code;
    memset(&other, 0, sizeof other);
    code = plot_report_load(&other, path, figure->commands, figure->name);
    if (!code)
        plot_report_join(r, &other);
    plot_report_clear(&other);
    return code;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static plot_input in;
    const plot_figure *figure = plot_figures;
    if (n == 0)
        return 0;
    for (int i = data[0] % 16; i > 0 && figure[1].name; i--)
        figure++;
    const plot_selection selection = select_by(data[0], n, figure);
    memset(&in, 0, sizeof in);
    messages_begin();
    int code = load(&in.report, input_path(data + 1, n - 1), figure, data[0] >> 6 & 1);
    if (!code)
        code = plot_figure_read(figure, &in, &selection);
    messages_check(code);
    if (!code)
        draw(figure, &in, &selection);
    plot_input_clear(&in);
    return 0;
}
