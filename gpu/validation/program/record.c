/* record.c -- see record.h. fprintf only: the machine with the device may have nothing else. */
#include "record.h"

#include "json.h"

#include "../checks/checks.h"

#include <inttypes.h>
#include <mpsim/mpsim.h>

int gpu_probe_agrees(const gpu_probe *p, size_t i, int sm, uint32_t *reference)
{
    gpu_probe same;
    int instruction;
    if (p->status != GPU_DONE || !gpu_probe_fill(i, &same, &instruction) ||
        gpu_probe_reference(&same, instruction, sm, reference) != 0)
        return -1;
    return p->d == *reference;
}

static const char *status_name(gpu_status s)
{
    return s == GPU_DONE ? "done" : s == GPU_SKIPPED ? "skipped" : "failed";
}

static void write_check(FILE *to, size_t i, const gpu_record *record)
{
    const gpu_result *r = &record->result[i];
    gpu_check c;
    mpsim_model m;
    const int found = gpu_check_at(&c, i, record->device.sm, record->quick);
    fprintf(to, "%s\n  {\"name\":", i ? "," : "");
    gpu_json_string(to, gpu_check_name(i));
    fprintf(to, ",\"status\":\"%s\"", status_name(r->status));
    if (r->status != GPU_DONE) {
        fprintf(to, ",\"text\":");
        gpu_json_string(to, r->text);
        putc('}', to);
        return;
    }
    if (found == 1 && c.is_dots && c.dots.same_as < 0 &&
        gpu_model(&m, record->device.sm, gpu_instruction_at(c.dots.instruction)) == 0) {
        fprintf(to, ",\"model\":");
        gpu_json_string(to, m.name);
    }
    fprintf(to, ",\"count\":%" PRIu64 ",\"mismatches\":%" PRIu64 ",\"question\":%s", r->count, r->mismatches,
            r->question ? "true" : "false");
    fprintf(to,
            ",\"digest_all\":\"%016" PRIx64 "\",\"digest_sample\":\"%016" PRIx64 "\",\"digest_large\":\"%016" PRIx64
            "\"",
            r->digest_all, r->digest_sample, r->digest_large);
    fprintf(to, ",\"sample_end\":%" PRIu64 ",\"sample_step\":%" PRIu64 ",\"large_step\":%" PRIu64, r->sample_end,
            r->sample_step, r->large_step);
    if (r->mismatches) {
        fprintf(to, ",\"first\":%" PRIu64 ",\"text\":", r->first);
        gpu_json_string(to, r->text);
        fprintf(to, ",\"samples\":[");
        for (uint32_t k = 0; k < r->kept; k++)
            fprintf(to, "%s[%" PRIu64 ",%" PRIu32 "]", k ? "," : "", r->kept_index[k], r->kept_output[k]);
        putc(']', to);
    }
    fprintf(to, ",\"seconds\":%.3f}", r->seconds);
}

static void write_codes(FILE *to, const char *name, const uint32_t *codes, int n)
{
    fprintf(to, ",\"%s\":[", name);
    for (int k = 0; k < n; k++)
        fprintf(to, "%s%" PRIu32, k ? "," : "", codes[k]);
    putc(']', to);
}

static void write_probe(FILE *to, size_t i, const gpu_record *record)
{
    const gpu_probe *p = &record->probe[i];
    fprintf(to, "%s\n  {\"id\":", i ? "," : "");
    gpu_json_string(to, p->id);
    fprintf(to, ",\"instruction\":");
    gpu_json_string(to, p->instruction);
    fprintf(to, ",\"operands\":");
    gpu_json_string(to, p->operands);
    fprintf(to, ",\"result\":");
    gpu_json_string(to, p->result);
    fprintf(to, ",\"status\":\"%s\"", status_name(p->status));
    write_codes(to, "a", p->a, p->k);
    write_codes(to, "b", p->b, p->k);
    fprintf(to, ",\"c\":%" PRIu32, p->c);
    if (p->status == GPU_DONE)
        fprintf(to, ",\"d\":%" PRIu32, p->d);
    else
        gpu_json_text(to, "text", p->text);
    putc('}', to);
}

/* Sums as hexadecimal digits, a code after the other. */
static void write_sums(FILE *to, const gpu_order *o)
{
    const int digits = (mpsim_format_find(o->format)->bits + 3) / 4;
    fprintf(to, ",\"sums\":\"");
    for (int k = 0; k < o->sums; k++)
        fprintf(to, "%0*" PRIx32, digits, o->result[k]);
    putc('"', to);
}

static void write_order(FILE *to, size_t i, const gpu_record *record)
{
    const gpu_order *o = &record->order[i];
    fprintf(to, "%s\n  {\"name\":", i ? "," : "");
    gpu_json_string(to, o->name);
    gpu_json_text(to, "status", status_name(o->status));
    if (o->status == GPU_DONE) {
        gpu_json_text(to, "format", o->format);
        fprintf(to, ",\"rounds\":%d,\"changed\":%d,\"uneven\":%d", o->rounds, o->changed, o->uneven);
        write_sums(to, o);
    } else {
        gpu_json_text(to, "text", o->text);
    }
    putc('}', to);
}

/* Finite numbers only. */
static void write_number(FILE *to, const char *name, double x)
{
    if (x - x == 0)
        fprintf(to, ",\"%s\":%.9g", name, x);
    else
        fprintf(to, ",\"%s\":null", name);
}

static void write_training(FILE *to, size_t i, const gpu_record *record)
{
    static const char *const statuses[] = {"equal", "differs", "skipped", "failed"};
    const gpu_training *t = &record->training[i];
    fprintf(to, "%s\n  {\"run\":", i ? "," : "");
    gpu_json_string(to, t->run);
    gpu_json_text(to, "status", statuses[t->status]);
    if (t->report[0])
        gpu_json_text(to, "report", t->report);
    if (t->steps) {
        gpu_json_text(to, "arch", t->arch);
        fprintf(to,
                ",\"steps\":%" PRIu64 ",\"compared\":%" PRIu64 ",\"tensors\":%" PRIu64 ",\"skipped_steps\":%" PRIu64,
                t->steps, t->compared, t->tensors, t->skipped);
        write_number(to, "first_loss", (double)t->first_loss);
        write_number(to, "last_loss", (double)t->last_loss);
        write_number(to, "seconds", t->seconds);
        if (t->seconds_step > 0)
            write_number(to, "seconds_step", t->seconds_step);
        if (t->seconds_graphs > 0)
            write_number(to, "seconds_step_graphs", t->seconds_graphs);
        if (t->digests[0])
            gpu_json_text(to, "digests", t->digests);
    }
    putc('}', to);
}

static void write_speed(FILE *to, size_t i, const gpu_record *record)
{
    const gpu_speed_row *r = &record->speed[i];
    fprintf(to, "%s\n  {\"name\":", i ? "," : "");
    gpu_json_string(to, r->name);
    gpu_json_text(to, "status", status_name(r->status));
    if (r->status != GPU_DONE) {
        gpu_json_text(to, "text", r->text);
        putc('}', to);
        return;
    }
    write_number(to, "bytes", r->bytes);
    write_number(to, "flops", r->flops);
    write_number(to, "seconds", r->seconds);
    write_number(to, "share", r->share);
    gpu_json_text(to, "bits", r->checked < 0 ? "unchecked" : r->checked ? "equal" : "different");
    if (r->compared)
        fprintf(to, ",\"compared\":%" PRIu64 ",\"differing\":%" PRIu64, r->compared, r->differing);
    if (r->difference > 0)
        write_number(to, "difference", r->difference);
    if (r->sm_clock) {
        fprintf(to, ",\"sm_clock\":%u,\"memory_clock\":%u,\"power\":%u,\"temperature\":%u,\"throttle\":%" PRIu64,
                r->sm_clock, r->memory_clock, r->power, r->temperature, r->throttle);
        gpu_json_text(to, "throttle_text", r->throttle_text);
    }
    if (r->text[0])
        gpu_json_text(to, "text", r->text);
    putc('}', to);
}

/* An array; its name begins the line. */
static void write_list(FILE *to, const char *name, size_t n, const gpu_record *r,
                       void (*each)(FILE *to, size_t i, const gpu_record *r))
{
    fprintf(to, ",\"%s\":[", name);
    for (size_t i = 0; i < n; i++)
        each(to, i, r);
    fprintf(to, "\n ]");
}

int gpu_record_write(FILE *to, const gpu_record *r)
{
    fprintf(to, "{\"schema\":\"mpsim.gpu/1\",\"version\":");
    gpu_json_string(to, mpsim_version());
    gpu_json_text(to, "device", r->device.name);
    fprintf(to, ",\"sm\":%d,\"memory\":%" PRIu64, r->device.sm, r->device.memory);
    gpu_json_text(to, "driver", r->device.driver_name);
    fprintf(to, ",\"driver_cuda\":%d,\"toolkit\":%d", r->device.driver, r->device.runtime);
    gpu_json_text(to, "date", r->date);
    fprintf(to, ",\"quick\":%d", r->quick);
    write_list(to, "checks", r->checks, r, write_check);
    write_list(to, "probes", r->probes, r, write_probe);
    write_list(to, "orders", r->orders, r, write_order);
    write_list(to, "training", r->trainings, r, write_training);
    write_list(to, "speed", r->speeds, r, write_speed);
    fprintf(to, "}\n");
    return fflush(to) == 0 && !ferror(to) ? 0 : -1;
}
