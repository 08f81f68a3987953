/* fuzz-report.c -- reports that mpsim plot reads; the first byte says for which figure. They give a figure's data and
 * script, or are refused in one line. */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static plot_input in;
    const plot_selection selection = {.kinds = {0}};
    const plot_figure *figure = plot_figures;
    if (n == 0)
        return 0;
    for (int i = data[0] % 16; i > 0 && figure[1].name; i--)
        figure++;
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
