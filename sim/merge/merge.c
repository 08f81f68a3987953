/* merge.c -- see merge.h. */
#include "merge.h"

#include "../text/words.h"
#include "join.h"

#include <inttypes.h>
#include <stdlib.h>

int merge_report(const char *verb, const part_source *sources, size_t n, const stat_form *form)
{
    parts p;
    stat_settings settings = {0};
    target_list targets = {0};
    tally t = {0};
    stat_output to;
    char names[600], *first = NULL;
    int code = merge_parts_read(&p, sources, n);
    if (!code && !(code = merge_parts_complete(&p)) && !(code = merge_parts_settings(&p, &settings, &targets)) &&
        !(code = stat_tally_init(&t, verb, &settings, &form->fail_if, &targets)) &&
        !(code = stat_output_begin(&to, form, &t, (size_t)p.files, p.head.version))) {
        code = merge_join_parts(&p, &targets, settings.histogram, &t, &first);
        code = stat_output_end(&to, &t, code, files_names(first ? first : "", (size_t)p.files, names, sizeof names));
    }
    free(first);
    stat_tally_clear(&t);
    target_list_clear(&targets);
    stat_settings_clear(&settings);
    merge_parts_clear(&p);
    return code;
}

/* The sections, one behind the other. */
static int copy_sections(const parts *p, FILE *to)
{
    for (size_t i = 0; i < p->count; i++) {
        const section *s = &p->sections[i];
        part_reader r;
        trace_error error;
        const int bad = stat_part_open(&r, &p->sources[s->source], &error) || stat_part_seek(&r, s->place, &error) ||
                        stat_part_copy(&r, s->bytes, to, &error);
        stat_part_close(&r);
        if (bad)
            return fail(error.exit, "%s", error.text);
    }
    return 0;
}

int merge_part(const part_source *sources, size_t n, const char *path)
{
    parts p;
    part_writer w;
    output out;
    int code = merge_parts_read(&p, sources, n);
    if (!code && !(code = output_open(&out, path))) {
        stat_part_write_head(&w, out.file, &p.head);
        code = stat_part_write_finish(&w) ? fail(EXIT_IO, "out of memory") : copy_sections(&p, out.file);
        code = output_end(&out, code);
    }
    merge_parts_clear(&p);
    return code;
}

/* ---- what parts are ---- */

/* "2 of 7", "1, 3 to 5 of 7" */
static void print_shards(FILE *to, const parts *p)
{
    for (size_t i = 0, end; i < p->count; i = end) {
        const uint64_t k = p->sections[i].k;
        for (end = i + 1; end < p->count && p->sections[end].k == k + (end - i);)
            end++;
        fprintf(to, "%s%" PRIu64, i ? ", " : "", k);
        if (end > i + 1)
            fprintf(to, " to %" PRIu64, p->sections[end - 1].k);
    }
    fprintf(to, " of %" PRIu64, p->head.shards);
}

static void print_part(FILE *to, const char *name, const parts *p)
{
    char text[512], a[32], b[32];
    const part_head *h = &p->head;
    fprintf(to, "%s: shard%s ", escape_text(text, sizeof text, name), text_plural(p->count));
    print_shards(to, p);
    fprintf(to, ", mpsim %s, %s file%s, %s:", escape_text(text, sizeof text, h->version), text_count(a, h->files),
            text_plural(h->files), text_bytes(b, h->bytes));
    for (size_t i = 0; i < h->words.count; i++) {
        fprintf(to, " --%s", escape_text(text, sizeof text, h->words.items[i].name));
        fprintf(to, " %s", escape_text(text, sizeof text, h->words.items[i].value));
    }
    fprintf(to, " %s\n", escape_text(text, sizeof text, h->first));
}

int merge_list(const part_source *sources, size_t n, const char *path)
{
    output out;
    int code = output_open(&out, path);
    for (size_t i = 0; i < n && !code; i++) {
        parts p;
        if (!(code = merge_parts_read(&p, &sources[i], 1)))
            print_part(out.file, sources[i].name, &p);
        merge_parts_clear(&p);
        if (code)
            output_abandon(&out);
    }
    return code ? code : output_close(&out);
}
