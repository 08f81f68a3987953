/* record.c -- the record of mpsim-gpu-functions. fprintf only: the machine with the device may have nothing else. */
#include "session.h"

#include "../validation/program/json.h"

#include <inttypes.h>
#include <mpsim/mpsim.h>

/* Its name, how it ended; 1: it has results. */
static int write_outcome(FILE *to, int first, const char *operation, const gpu_outcome *o)
{
    static const char *const names[] = {"done", "skipped", "failed"};
    fprintf(to, "%s\n  {\"operation\":\"%s\"", first ? "" : ",", operation);
    gpu_json_text(to, "status", o->is_asked ? names[o->status] : "skipped");
    if (!o->is_asked || o->status != GPU_DONE)
        gpu_json_text(to, "text", o->is_asked ? o->text : "not asked");
    else
        fprintf(to, ",\"seconds\":%.3f", o->seconds);
    return o->is_asked && o->status == GPU_DONE;
}

static size_t rows_of(int operation)
{
    const gpu_shape shape = gpu_operation_at(operation)->shape;
    return shape == GPU_UNARY ? GPU_BINADES : shape == GPU_HALF ? 1 : 2;
}

static void write_digests(FILE *to, const gpu_functions_session *s, int i)
{
    if (write_outcome(to, i == 0, gpu_operation_at(i)->name, &s->digests_of[i])) {
        fprintf(to, ",\n   \"digests\":[");
        for (size_t k = 0; k < rows_of(i); k++)
            fprintf(to, "%s\"%016" PRIx64 "\"", k ? "," : "", s->digests[i][k].digest);
        fprintf(to, "],\n   \"samples\":[");
        for (size_t k = 0; k < rows_of(i); k++)
            fprintf(to, "%s\"%016" PRIx64 "\"", k ? "," : "", s->digests[i][k].sample);
        putc(']', to);
    }
    putc('}', to);
}

static void write_distances(FILE *to, const gpu_functions_session *s, int i)
{
    if (write_outcome(to, i == 0, gpu_operation_at(i)->name, &s->distances_of[i])) {
        fprintf(to, ",\n   \"distances\":[");
        for (size_t k = 0; k < GPU_BINADES; k++) {
            const gpu_distance *d = &s->distances[i][k];
            fprintf(to, "%s[%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 "]", k ? "," : "", d->equal, d->one, d->two,
                    d->largest);
        }
        putc(']', to);
    }
    putc('}', to);
}

static void write_table(FILE *to, const gpu_functions_session *s, size_t i)
{
    const gpu_table t = gpu_table_at(i);
    if (write_outcome(to, i == 0, gpu_operation_at(t.operation)->name, &s->table_of[i]))
        fprintf(to, ",\"count\":%" PRIu32 ",\"offset\":%zu,\"bytes\":%zu,\"digest\":\"%016" PRIx64 "\"",
                gpu_table_count(&t, &s->extent), s->table[i].offset, s->table[i].bytes, s->table[i].digest);
    fprintf(to, ",\"first\":\"%08" PRIx32 "\"}", t.first);
}

int gpu_functions_write(FILE *to, const gpu_functions_session *s)
{
    const gpu_device *d = &s->device;
    fprintf(to, "{\"schema\":\"mpsim.gpu-functions/1\"");
    gpu_json_text(to, "version", mpsim_version());
    gpu_json_text(to, "device", d->name);
    fprintf(to, ",\"sm\":%d,\"memory\":%" PRIu64, d->sm, d->memory);
    gpu_json_text(to, "driver", d->driver_name);
    fprintf(to, ",\"driver_cuda\":%d,\"toolkit\":%d", d->driver, d->runtime);
    gpu_json_text(to, "date", s->date);
    fprintf(to, ",\"tiny\":%d,\"shift\":%d,\"sample_step\":%" PRIu32 ",\"pairs\":%" PRIu32, s->options.tiny,
            s->extent.shift, s->extent.sample_step, s->extent.pairs);
    fprintf(to, ",\n \"operations\":[");
    for (int i = 0; i < GPU_OPERATIONS; i++)
        write_digests(to, s, i);
    fprintf(to, "],\n \"tables\":[");
    for (size_t i = 0; i < gpu_tables(); i++)
        write_table(to, s, i);
    fprintf(to, "],\n \"distances\":[");
    for (int i = 0; i < GPU_FUNCTIONS; i++)
        write_distances(to, s, i);
    fprintf(to, "]}\n");
    return fflush(to) == 0 && !ferror(to) ? 0 : -1;
}
