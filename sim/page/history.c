/* history.c -- what a loss scaler does over the recorded gradients: the scaler of the run itself, where its files name one, else
 * PyTorch's; see page.h. */
#include "page.h"

#include "../array/need.h"
#include "../scaler/spec.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { BY_STEP = 40, ROWS_MOST = 2000 };

/* As `mpsim scaler` does: weight gradients, where nothing else is asked for. */
static int open_input(page *p)
{
    static const char *gradients[] = {"wgrad"};
    p->scaler_from = *p->in.options;
    if (!p->scaler_from.wanted.match.count && !p->scaler_from.wanted.kinds.count)
        p->scaler_from.wanted.kinds = (option_list){.items = gradients, .count = 1};
    return input_open(&p->scaler_in, "report", &p->scaler_from, p->operands, p->n_operands);
}

int page_find_history(page *p)
{
    char spec[STATE_SPEC] = "torch";
    scalerrun *r = &p->scaler;
    if (!p->advice.has_gradients || !page_has_steps(p))
        return 0;
    int code = mpsim_format_parse(&r->format, "fp16") == MPSIM_OK ? open_input(p) : EXIT_DATA;
    if (code)
        return code;
    r->in = &p->scaler_in;
    r->repeat = 1;
    int own;
    if ((code = scaler_run_own(&p->scaler_in, spec, sizeof spec, &own)) || (code = scaler_spec_add_list(r, spec)))
        return code;
    for (size_t i = 0; i < r->count; i++)
        r->tracks[i].by_step = p->scaler_in.tree.count <= BY_STEP;
    if ((code = scaler_run_trace(r)))
        return code;
    p->scaler_report = (scaler_report){.run = r, .format = r->format.name, .own = own};
    p->has_history = 1;
    return 0;
}

void page_clear_history(page *p)
{
    for (size_t i = 0; i < p->scaler.count; i++)
        traininglog_track_clear(&p->scaler.tracks[i]);
    free(p->scaler.tracks);
    scaler_run_clear(&p->scaler);
    input_close(&p->scaler_in);
}

/* ---- the section ---- */

void page_history(const page *p, FILE *to)
{
    char text[1024], a[32], b[32];
    html_table t;
    fputs("<section aria-labelledby=\"scaler\">\n<h2 id=\"scaler\">Loss scaler</h2>\n", to);
    if (!p->has_history) {
        fputs(
            "<p>Not known: that needs weight gradients of several steps, and files that say of which step they are.</p>\n"
            "</section>\n",
            to);
        return;
    }
    const track *k = &p->scaler.tracks[0];
    const verdict v = scaler_verdict(&p->scaler_report, k, text, sizeof text);
    fputs("<p>", to);
    page_html_print(to, "%s, replayed over the recorded gradients in fp16 (%s): ", k->label,
                    p->scaler_report.own ? "the run's own scaler" : "the files name no scaler of their own");
    fputs("<b>", to);
    page_html_text(to, traininglog_verdict_name(v));
    fputs("</b>. ", to);
    page_html_print(to, "%c%s ", *text >= 'a' && *text <= 'z' ? *text - 'a' + 'A' : *text, *text ? text + 1 : "");
    page_html_print(to, "It starts at %s, skips ", text_scale(a, k->begin));
    page_html_print(to, "%s of %s recorded steps, and ends at ", text_count(a, k->skipped), text_count(b, k->steps));
    page_html_print(to, "%s.", text_scale(a, k->last));
    fputs(
        "</p>\n<p class=\"note\">Steps that were not recorded do not count: those that were are taken as if they followed each "
        "other. Lost: elements that are not zero and become zero; fits: the largest power of two without an overflow.",
        to);
    fputs("</p>\n", to);
    const size_t rows = k->count < ROWS_MOST ? k->count : ROWS_MOST;
    page_html_table_begin(&t, to, "scales", "Loss scale over the steps", &scaler_span_record, 0);
    for (size_t i = 0; i < rows; i++) {
        scaler_span row;
        scaler_span_fill(&row, &p->scaler_report, k, &k->spans[i]);
        page_html_row(&t, &row);
    }
    page_html_table_end(&t);
    if (rows < k->count)
        page_html_print(to, "%zu more rows: mpsim scaler --all.", k->count - rows);
    fputs("</section>\n", to);
}
