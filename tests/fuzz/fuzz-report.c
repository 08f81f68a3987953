/* fuzz-report.c -- reports that mpsim plot reads; the first byte says for which figure ('0' to '7') and, in its high bits,
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

/* What the options of a figure may select: nothing where the bits are those of a digit. */
static plot_selection select_by(uint8_t byte, const plot_figure *figure)
{
    static const char *formats[] = {"fp16"}, *scales[] = {"1024"}, *match[] = {"*"}, *kinds[] = {"wgrad"};
    static const char *const by[] = {"tensor", "layer", "step", "total"}, *const columns[] = {"max_rel_err", "bias",
                                                                                              "agrad", "sqnr"};
    const unsigned bits = byte >> 4 ^ 3, which = byte % 4;
    plot_selection s = {.kinds = {0}};
    if (bits & 1 && strstr(figure->options, "by"))
        s.by = by[which];
    if (bits & 1 && strstr(figure->options, "column"))
        s.column = columns[which];
    if (bits & 2 && strstr(figure->options, "format"))
        s.formats = (option_list){.items = formats, .count = 1};
    if (bits & 4 && strstr(figure->options, "scale"))
        s.scales = (option_list){.items = scales, .count = 1};
    if (bits & 4 && strstr(figure->options, "underflow"))
        s.underflow = "5";
    if (bits & 8 && strstr(figure->options, "match"))
        s.match = (option_list){.items = match, .count = 1};
    if (bits & 8 && strstr(figure->options, "kind"))
        s.kinds = (option_list){.items = kinds, .count = 1};
    if (bits & 8 && which == 0 && strstr(figure->options, "step"))
        s.step = "1";
    return s;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static plot_input in;
    const plot_figure *figure = plot_figures;
    if (n == 0)
        return 0;
    for (int i = data[0] % 16; i > 0 && figure[1].name; i--)
        figure++;
    const plot_selection selection = select_by(data[0], figure);
    memset(&in, 0, sizeof in);
    messages_begin();
    int code = plot_report_load(&in.report, input_path(data + 1, n - 1), figure->command, figure->name);
    if (!code)
        code = figure->read(&in, &selection);
    messages_check(code);
    if (!code)
        draw(figure, &in, &selection);
    plot_data_clear(&in.tensors);
    plot_scaled_clear(&in.scaled);
    plot_targets_clear(&in.targets);
    plot_sweep_clear(&in.sweep);
    plot_runs_clear(&in.runs);
    plot_differences_clear(&in.differences);
    plot_report_clear(&in.report);
    return 0;
}
