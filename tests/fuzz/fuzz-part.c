/* fuzz-part.c -- parts of a report: refused in one line, or merged, in any form; as they are, and with the digests
 * that are due. */
#include "input.h"
#include "sim/merge/merge.h"
#include "sim/merge/parts.h"

#include <mpsim/digest.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME = 5, DIGEST = 8 };

/* Records as they are, the digests corrected. */
static void correct(uint8_t *p, size_t n)
{
    const uint8_t *line = n ? memchr(p, '\n', n < 32 ? n : 32) : NULL;
    size_t at = line ? (size_t)(line - p) + 1 : n, start = at;
    while (n - at >= FRAME) {
        const size_t length = p[at + 1] | (size_t)p[at + 2] << 8 | (size_t)p[at + 3] << 16 | (size_t)p[at + 4] << 24;
        const uint8_t tag = p[at];
        if (length > n - at - FRAME)
            return;
        at += FRAME + length;
        if ((tag != 'H' && tag != 'Z') || length < DIGEST)
            continue;
        const uint64_t digest = mpsim_digest_bytes(p + start, at - DIGEST - start, 0);
        for (int i = 0; i < DIGEST; i++)
            p[at - DIGEST + (size_t)i] = (uint8_t)(digest >> 8 * i);
        start = at;
    }
}

static void merge(const uint8_t *data, size_t n)
{
    static const report_style styles[] = {REPORT_TEXT, REPORT_JSON, REPORT_NDJSON, REPORT_CSV};
    const part_source source = {.name = "part", .bytes = data, .n = n};
    parts p;
    messages_begin();
    const int code = parts_read(&p, &source, 1);
    messages_check(code);
    parts_clear(&p);
    if (code)
        return;
    const stat_form form = {.out.path = "/dev/null", .style = styles[n % 4], .tensors = 1};
    messages_begin();
    const int merged = merge_report(&source, 1, &form);
    must(merged >= 0 && merged <= 5 && merged != 1);
    must(merge_list(&source, 1, "/dev/null") == 0 && merge_part(&source, 1, "/dev/null") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n + 1);
    must(copy != NULL);
    if (n)
        memcpy(copy, data, n);
    merge(copy, n);
    correct(copy, n);
    merge(copy, n);
    free(copy);
    return 0;
}
