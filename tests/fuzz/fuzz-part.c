/* fuzz-part.c -- parts of a report, one or two: refused in one line, or merged, in any form; as they are, and with the digests
 * that are due. */
#include "input.h"
#include "sim/merge/merge.h"
#include "sim/merge/parts.h"

#include <mpsim/digest.h>
#include <stdlib.h>
#include <string.h>

enum { FRAME = 5, DIGEST = 8 };
static const char magic[] = "mpsim-part/";

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

/* Where a second part begins; n: nowhere. */
static size_t second(const uint8_t *data, size_t n)
{
    const uint8_t *p = n ? memmem(data + 1, n - 1, magic, sizeof magic - 1) : NULL;
    return p ? (size_t)(p - data) : n;
}

static void merge(const uint8_t *data, size_t n)
{
    static const report_style styles[] = {REPORT_TEXT, REPORT_JSON, REPORT_NDJSON, REPORT_CSV};
    const size_t first = second(data, n), count = first < n ? 2 : 1;
    const part_source source[] = {{.name = "part", .bytes = data, .n = first},
                                  {.name = "other", .bytes = data + first, .n = n - first}};
    parts p;
    messages_begin();
    const int code = merge_parts_read(&p, source, count);
    messages_check(code);
    merge_parts_clear(&p);
    if (code)
        return;
    const stat_form form = {.out.path = "/dev/null", .style = styles[n % 4], .tensors = 1};
    messages_begin();
    const int merged = merge_report("merge", source, count, &form);
    must(merged >= 0 && merged <= 5 && merged != 1);
    must(merge_list(source, count, "/dev/null") == 0 && merge_part(source, count, "/dev/null") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    uint8_t *copy = malloc(n + 1);
    must(copy != NULL);
    if (n)
        memcpy(copy, data, n);
    const size_t first = second(copy, n);
    merge(copy, n);
    correct(copy, first);
    correct(copy + first, n - first);
    merge(copy, n);
    free(copy);
    return 0;
}
