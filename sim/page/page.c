/* page.c -- the page from its first byte to its last; see page.h. It is HTML and XML at once, so that any reader of either can
 * check it. */
#include "page.h"

#include "../text/sha256.h"
#include "../text/words.h"
#include "look.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { PAGE_BYTES = 4900000 };

/* ---- style and script, which the page's own policy names by their digests: nothing else runs in it ---- */

static const char script_begin[] = "/*<![CDATA[*/\n", script_end[] = "/*]]>*/";

static void put_lines(FILE *to, const char *const *lines)
{
    fputs(script_begin, to);
    for (; *lines; lines++)
        fprintf(to, "%s\n", *lines);
    fputs(script_end, to);
}

/* The digest of what put_lines writes, in base 64. */
static void put_digest(FILE *to, const char *const *lines)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    sha256 s;
    char hex[65];
    unsigned bytes[33] = {0};
    sha256_init(&s);
    sha256_add(&s, script_begin, strlen(script_begin));
    for (; *lines; lines++) {
        sha256_add(&s, *lines, strlen(*lines));
        sha256_add(&s, "\n", 1);
    }
    sha256_add(&s, script_end, strlen(script_end));
    sha256_hex(&s, hex);
    for (size_t i = 0; i < 32; i++)
        sscanf(hex + 2 * i, "%2x", &bytes[i]);
    fputs("'sha256-", to);
    for (size_t i = 0; i < 33; i += 3) {
        const unsigned three = bytes[i] << 16 | bytes[i + 1] << 8 | (i + 2 < 33 ? bytes[i + 2] : 0);
        for (int k = 3; k >= 0; k--)
            fputc(i == 30 && k == 0 ? '=' : digits[three >> (6 * k) & 63], to);
    }
    fputc('\'', to);
}

/* ---- head and frame ---- */

/* What the page is about, where nothing else is said: the last part of the first operand. */
static void put_title(const page *p, FILE *to)
{
    char name[256];
    if (p->options->title) {
        page_html_text(to, p->options->title);
        return;
    }
    snprintf(name, sizeof name, "%s", p->operands[0]);
    for (size_t n = strlen(name); n > 1 && name[n - 1] == '/'; n--)
        name[n - 1] = '\0';
    const char *slash = strrchr(name, '/');
    page_html_print(to, "Numerics of %s%s", slash && slash[1] ? slash + 1 : name,
                    p->n_operands > 1 ? " and others" : "");
}

static void put_head(const page *p, FILE *to)
{
    fputs(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\"/>\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\"/>\n"
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; form-action 'none'; "
        "style-src ",
        to);
    put_digest(to, page_look_style);
    fputs("; script-src ", to);
    put_digest(to, page_look_script);
    fprintf(to, "\"/>\n<meta name=\"generator\" content=\"mpsim %s\"/>\n<title>", mpsim_version());
    put_title(p, to);
    fputs("</title>\n<style>", to);
    put_lines(to, page_look_style);
    fputs("</style>\n</head>\n", to);
}

static void put_unread(const unread_list *l, FILE *to)
{
    char text[UNREAD_SENTENCE];
    if (!unread_sentence(text, sizeof text, l))
        return;
    fputs("<p>", to);
    page_html_print(to, "%s.", text);
    fputs("</p>\n", to);
}

static void put_lead(const page *p, FILE *to)
{
    const advise *a = &p->advice;
    char n[32], e[32], s[32];
    fputs("<p class=\"lead\">", to);
    page_html_print(to, "%s tensor%s, %s elements", text_count(n, p->n_tensors), text_plural(p->n_tensors),
                    text_count(e, p->sums.total.stats.count));
    if (page_has_steps(p))
        page_html_print(to, ", %s steps from %" PRId64 " to %" PRId64, text_count(s, a->steps), a->first_step,
                        a->last_step);
    else if (!a->no_step)
        page_html_print(to, ", step %" PRId64, a->last_step);
    fputs("</p>\n", to);
}

static const struct {
    const char *id, *title;
} parts[] = {{"summary", "In short"},      {"advice", "Advice"},
             {"kinds", "By kind"},         {"steps", "By step"},
             {"figures", "Figures"},       {"scaler", "Loss scaler"},
             {"each", "Tensor by tensor"}, {"provenance", "Where the numbers come from"}};

void page_begin(const page *p, FILE *to)
{
    put_head(p, to);
    fputs("<body>\n<a class=\"skip\" href=\"#summary\">To the verdicts</a>\n<header>\n<h1>", to);
    put_title(p, to);
    fputs("</h1>\n", to);
}

void page_end(FILE *to)
{
    fputs("</main>\n<p id=\"status\" class=\"vh\" role=\"status\"></p>\n<script>", to);
    put_lines(to, page_look_script);
    fputs("</script>\n</body>\n</html>\n", to);
}

static void put_before(const page *p, FILE *to)
{
    page_begin(p, to);
    put_lead(p, to);
    put_unread(&p->sums.unread, to);
    fputs("<nav aria-label=\"Sections\">\n<ul>\n", to);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i].id, "steps") != 0 || p->sums.steps.count > 1)
            fprintf(to, "<li><a href=\"#%s\">%s</a></li>\n", parts[i].id, parts[i].title);
    fputs("</ul>\n</nav>\n</header>\n<main>\n", to);
    page_summary(p, to);
    page_advice(p, to);
    page_kinds(p, to);
    page_steps(p, to);
    page_figures(p, to);
    page_history(p, to);
}

static void put_after(const page *p, FILE *to)
{
    page_provenance(p, to);
    page_end(to);
}

/* What is long in a page are its tensors: they get the room that all others leave. */
void page_write(const page *p, FILE *to)
{
    char *texts[2];
    size_t sizes[2];
    for (int i = 0; i < 2; i++) {
        FILE *f = page_html_begin(&texts[i], &sizes[i]);
        (i ? put_after : put_before)(p, f);
        page_html_end(f, &texts[i]);
    }
    const size_t others = sizes[0] + sizes[1];
    fwrite(texts[0], 1, sizes[0], to);
    page_put_tensors(p, to, others < PAGE_BYTES ? PAGE_BYTES - others : 0);
    fwrite(texts[1], 1, sizes[1], to);
    free(texts[0]);
    free(texts[1]);
}
