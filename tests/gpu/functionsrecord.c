/* functionsrecord.c -- see functionsrecord.h. */
#include "functionsrecord.h"

#include "../../gpu/functions/exact.h"
#include "../../gpu/functions/cases.h"
#include "../../gpu/functions/pack.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>

static const char *text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

static uint64_t integer(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

static uint64_t word(const json_t *s)
{
    return json_is_string(s) ? strtoull(json_string_value(s), NULL, 16) : 0;
}

/* Whether the item is done; counts. */
static int is_done(functions_record *r, const json_t *o, const char *operation)
{
    const char *status = text(o, "status");
    if (strcmp(text(o, "operation"), operation) != 0) {
        snprintf(r->why, sizeof r->why, "\"%s\" where %s is expected", text(o, "operation"), operation);
        return -1;
    }
    r->asked++;
    if (strcmp(status, "failed") == 0 && !r->failed++)
        snprintf(r->why, sizeof r->why, "%s: %.120s", operation, text(o, "text"));
    return strcmp(status, "done") == 0;
}

static int read_digests(functions_record *r, const json_t *list)
{
    for (int i = 0; i < GPU_OPERATIONS; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        const int done = is_done(r, o, gpu_operation_at(i)->name);
        if (done < 0)
            return -1;
        for (size_t k = 0; k < GPU_BINADES && done; k++) {
            r->digests[i][k].digest = word(json_array_get(json_object_get(o, "digests"), k));
            r->digests[i][k].sample = word(json_array_get(json_object_get(o, "samples"), k));
        }
        r->has_digests[i] = done;
    }
    return 0;
}

static int read_distances(functions_record *r, const json_t *list)
{
    for (int i = 0; i < GPU_FUNCTIONS; i++) {
        const json_t *o = json_array_get(list, (size_t)i);
        const int done = is_done(r, o, gpu_operation_at(i)->name);
        if (done < 0)
            return -1;
        for (size_t k = 0; k < GPU_BINADES && done; k++) {
            const json_t *d = json_array_get(json_object_get(o, "distances"), k);
            r->distances[i][k].equal = (uint64_t)json_integer_value(json_array_get(d, 0));
            r->distances[i][k].one = (uint64_t)json_integer_value(json_array_get(d, 1));
            r->distances[i][k].two = (uint64_t)json_integer_value(json_array_get(d, 2));
            r->distances[i][k].largest = (uint64_t)json_integer_value(json_array_get(d, 3));
        }
        r->has_distances[i] = done;
    }
    return 0;
}

/* ---- tables ---- */

static uint32_t exact_of(const gpu_table *t, uint32_t x)
{
    int open = 0;
    return t->operation < GPU_FUNCTIONS ? gpu_exact((gpu_function)t->operation, x, &open) : 0;
}

/* The results of bytes; NULL: they are damaged, or there is no memory. */
static uint32_t *unpacked(functions_record *r, size_t i, const uint8_t *from, size_t size, uint64_t digest)
{
    const gpu_table t = gpu_table_at(i);
    const uint32_t n = gpu_table_count(&t, &r->tables.extent);
    uint32_t *const results = malloc(n * sizeof *results), *const exact = malloc(n * sizeof *exact);
    uint64_t sum = 0;
    for (uint32_t k = 0; exact && k < n; k++)
        exact[k] = exact_of(&t, gpu_table_operand(&t, &r->tables.extent, k));
    int bad = !results || !exact || gpu_unpack(results, exact, n, t.operation < GPU_FUNCTIONS ? 32 : 16, from, size);
    for (uint32_t k = 0; !bad && k < n; k++)
        sum += mpsim_mix(gpu_table_operand(&t, &r->tables.extent, k), results[k]);
    bad = bad || sum != digest;
    free(exact);
    if (!bad)
        return results;
    free(results);
    snprintf(r->why, sizeof r->why, "the table of %s from %08" PRIx32 " has another digest",
             gpu_operation_at(t.operation)->name, t.first);
    return NULL;
}

static uint8_t *whole_file(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    uint8_t *bytes = NULL;
    *size = 0;
    if (f && fseek(f, 0, SEEK_END) == 0) {
        *size = (size_t)ftell(f);
        rewind(f);
        bytes = malloc(*size + 1);
        *size = bytes ? fread(bytes, 1, *size, f) : 0;
    }
    if (f)
        fclose(f);
    return bytes;
}

static int read_table(functions_record *r, size_t i, const json_t *o, const uint8_t *bytes, size_t size, int only)
{
    const gpu_table t = gpu_table_at(i);
    const int done = is_done(r, o, gpu_operation_at(t.operation)->name);
    const size_t offset = integer(o, "offset"), length = integer(o, "bytes");
    if (done < 0 || word(json_object_get(o, "first")) != t.first)
        return -1;
    if (!done || !bytes || offset > size || length > size - offset) {
        r->left_out++;
        return 0;
    }
    r->table_digest[i] = word(json_object_get(o, "digest"));
    if (only >= 0 && only != t.operation)
        return 0;
    r->tables.results[i] = unpacked(r, i, bytes + offset, length, r->table_digest[i]);
    return r->tables.results[i] ? 0 : -1;
}

static int read_tables(functions_record *r, const json_t *list, const char *path, int only)
{
    size_t size;
    uint8_t *bytes = whole_file(path, &size);
    int bad = 0;
    for (size_t i = 0; i < gpu_tables() && !bad; i++)
        bad = read_table(r, i, json_array_get(list, i), bytes, size, only);
    free(bytes);
    return bad;
}

int functions_read(functions_record *r, const char *record, const char *tables, int only)
{
    json_error_t error;
    memset(r, 0, sizeof *r);
    json_t *o = json_load_file(record, 0, &error);
    int bad = !o || strcmp(text(o, "schema"), "mpsim.gpu-functions/1") != 0 ||
              json_array_size(json_object_get(o, "tables")) != gpu_tables();
    if (bad)
        snprintf(r->why, sizeof r->why, "no record of mpsim-gpu-functions with these tables: %.80s",
                 o ? "" : error.text);
    snprintf(r->device, sizeof r->device, "%s", text(o, "device"));
    snprintf(r->date, sizeof r->date, "%s", text(o, "date"));
    r->tables.extent.shift = (int)integer(o, "shift");
    r->tables.extent.sample_step = (uint32_t)integer(o, "sample_step");
    r->tables.extent.pairs = (uint32_t)integer(o, "pairs");
    bad = bad || r->tables.extent.shift < 0 || r->tables.extent.shift > 23 || !r->tables.extent.sample_step;
    bad = bad || read_digests(r, json_object_get(o, "operations")) ||
          read_distances(r, json_object_get(o, "distances")) ||
          read_tables(r, json_object_get(o, "tables"), tables, only) || unit_quarter(&r->tables);
    json_decref(o);
    return bad ? -1 : 0;
}

void functions_free(functions_record *r)
{
    unit_free(&r->tables);
}
