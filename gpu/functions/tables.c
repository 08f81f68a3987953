/* tables.c -- a table as it is kept: asked of the device, judged, packed, unpacked again. */
#include "cases.h"
#include "exact.h"
#include "pack.h"
#include "session.h"

#include <inttypes.h>
#include <stdlib.h>

/* The device's correctly rounded results are the ones that will be formed at home: some are formed here. */
static int same_reference(const gpu_table *t, const gpu_extent *e, const uint32_t *exact, gpu_outcome *o)
{
    const uint32_t count = gpu_table_count(t, e);
    int open = 0;
    if (gpu_operation_at(t->operation)->shape == GPU_HALF)
        return 1;
    for (uint32_t i = 0; i < count; i += 61) {
        const uint32_t x = gpu_table_operand(t, e, i), y = gpu_exact((gpu_function)t->operation, x, &open);
        if (y != exact[i]) {
            snprintf(o->text, sizeof o->text,
                     "the device rounds the value of operand %08" PRIx32 " to %08" PRIx32 ", not to %08" PRIx32, x,
                     exact[i], y);
            return 0;
        }
    }
    return 1;
}

/* Packs them behind the other tables; what was packed must give the same again. */
static gpu_status pack(gpu_functions_session *s, size_t i, const uint32_t *results, const uint32_t *exact,
                       uint32_t *again)
{
    const gpu_table t = gpu_table_at(i);
    const int bits = gpu_operation_at(t.operation)->shape == GPU_HALF ? 16 : 32;
    const uint32_t n = gpu_table_count(&t, &s->extent);
    uint8_t *const to = s->packed + s->used;
    const size_t bytes = gpu_pack(results, exact, n, bits, to, s->options.most - s->used);
    if (!bytes) {
        snprintf(s->table_of[i].text, GPU_TEXT, "left out: no room in %zu bytes of tables", s->options.most);
        return GPU_SKIPPED;
    }
    int same = gpu_unpack(again, exact, n, bits, to, bytes) == 0;
    s->table[i].digest = 0;
    for (uint32_t k = 0; k < n; k++) {
        same = same && again[k] == results[k];
        s->table[i].digest += mpsim_mix(gpu_table_operand(&t, &s->extent, k), results[k]);
    }
    s->table[i].offset = s->used;
    s->table[i].bytes = bytes;
    if (!same)
        snprintf(s->table_of[i].text, GPU_TEXT, "the packed table gives other results");
    else
        s->used += bytes;
    return same ? GPU_DONE : GPU_FAILED;
}

void gpu_functions_keep(gpu_functions_session *s, size_t i)
{
    const gpu_table t = gpu_table_at(i);
    const size_t n = gpu_table_count(&t, &s->extent);
    gpu_outcome *const o = &s->table_of[i];
    uint32_t *const memory = malloc(3 * n * sizeof *memory), *const exact = memory + n, *const again = exact + n;
    o->status = GPU_FAILED;
    if (!memory)
        snprintf(o->text, sizeof o->text, "out of memory");
    else if (gpu_functions_values(&t, &s->extent, memory, exact, o->text, sizeof o->text) == 0 &&
             same_reference(&t, &s->extent, exact, o))
        o->status = pack(s, i, memory, exact, again);
    free(memory);
}
