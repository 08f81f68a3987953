/* print.c -- see print.h. */
#include "print.h"

#include "options.h"

#include <inttypes.h>
#include <mpsim/mpsim.h>
#include <stdio.h>

void gpu_print_device(const gpu_device *d)
{
    printf("device: %s, compute capability %d.%d, driver %s (CUDA %d), toolkit %d\n\n", d->name, d->sm / 10, d->sm % 10,
           d->driver_name, d->driver, d->runtime);
}

/* ---- checks ---- */

void gpu_print_checks_head(void)
{
    printf("%-34s %11s %11s %8s  %s\n", "check", "compared", "mismatches", "seconds", "first mismatch");
}

int gpu_print_check(const char *name, const gpu_result *r)
{
    if (r->status != GPU_DONE) {
        printf("%-34s %s: %s\n", name, r->status == GPU_SKIPPED ? "skipped" : "FAILED", r->text);
        return r->status == GPU_SKIPPED ? GPU_AGREES : GPU_TROUBLE;
    }
    printf("%-34s %11" PRIu64 " %11" PRIu64 " %8.2f", name, r->count, r->mismatches, r->seconds);
    if (r->mismatches)
        printf("  [%" PRIu64 "] %s", r->first, r->text);
    if (r->mismatches && r->question)
        printf(" (a question, not an error)");
    putchar('\n');
    return r->mismatches && !r->question ? GPU_DIFFERS : GPU_AGREES;
}

/* ---- probes ---- */

static void print_answer(const char *result, uint32_t code)
{
    const mpsim_format *f = mpsim_format_find(result);
    printf("0x%0*" PRIx32 " (%a)", f->bits / 4, code, mpsim_decode(f, code));
}

int gpu_print_probe(const gpu_probe *p, size_t i, int sm)
{
    uint32_t expected;
    if (p->status == GPU_SKIPPED)
        return GPU_AGREES;
    printf("%-6s %-15s %s-%-9s", p->id, p->instruction, p->operands, p->result);
    if (p->status == GPU_FAILED) {
        printf("FAILED: %s\n", p->text);
        return GPU_TROUBLE;
    }
    const int agrees = gpu_probe_agrees(p, i, sm, &expected);
    print_answer(p->result, p->d);
    if (agrees == 0) {
        printf(" BUT THE MODEL SAYS ");
        print_answer(p->result, expected);
    }
    printf("  %s %s\n", p->question, p->meaning);
    return agrees == 0 ? GPU_DIFFERS : GPU_AGREES;
}

/* ---- orders ---- */

/* What gives all sums: ways that are known, or a chain of lanes. */
static void print_ways(const gpu_order *o, size_t i)
{
    int lanes[GPU_ORDER_LANES];
    size_t n = 0, next = 0;
    for (const char *way; n < 2 && (way = gpu_order_fits(i, o, &next)) != NULL; n++)
        printf("%s%s", n ? "; or " : "", way);
    if (n == 0 && gpu_order_chain(i, o, lanes)) {
        printf("lanes");
        for (int k = 0; k < GPU_ORDER_LANES; k++)
            printf(" %d", lanes[k]);
    } else {
        printf("%s", n == 0 ? "no way that is known" : n == 2 ? "; or more" : "");
    }
}

int gpu_print_order(const gpu_order *o, size_t i)
{
    if (o->status != GPU_DONE) {
        printf("%-46s %s: %s\n", o->name, o->status == GPU_SKIPPED ? "skipped" : "FAILED", o->text);
        return o->status == GPU_SKIPPED ? GPU_AGREES : GPU_TROUBLE;
    }
    printf("%-46s %3d sums: ", o->name, o->sums);
    print_ways(o, i);
    if (o->changed)
        printf(" (%d not the same in %d rounds)", o->changed, o->rounds);
    if (o->uneven)
        printf(" (%d not the same in all elements)", o->uneven);
    const int is_wrong = gpu_order_is_wrong(i, o);
    puts(is_wrong ? " BUT ONE THREAD ADDS IN ITS ORDER" : "");
    return is_wrong ? GPU_DIFFERS : GPU_AGREES;
}

/* ---- speed ---- */

void gpu_print_speeds_head(void)
{
    printf("%-52s %10s %12s %7s  %-9s\n", "speed", "ms", "", "share", "bits");
}

int gpu_print_speed(const gpu_speed_row *r)
{
    static const char *const bits[] = {"-", "DIFFERENT", "equal"};
    if (r->status != GPU_DONE) {
        printf("%-52s %s: %s\n", r->name, r->status == GPU_SKIPPED ? "skipped" : "FAILED", r->text);
        return r->status == GPU_SKIPPED ? GPU_AGREES : GPU_TROUBLE;
    }
    const double rate = r->seconds > 0 ? (r->bytes + r->flops) / r->seconds : 0;
    printf("%-52s %10.3f %7.1f %s %6.1f%%  %-9s  %s", r->name, r->seconds * 1e3,
           r->bytes > 0 ? rate * 1e-9 : rate * 1e-12, r->bytes > 0 ? "GB/s" : "Tf/s", r->share * 100,
           bits[r->checked + 1], r->text);
    if (r->differing)
        printf(": %" PRIu64 " of %" PRIu64 " differ", r->differing, r->compared);
    if (r->difference > 0)
        printf(", largest difference %.2g of the largest number", r->difference);
    if (r->sm_clock)
        printf("; %u and %u MHz, %.0f W, %u C", r->sm_clock, r->memory_clock, r->power * 1e-3, r->temperature);
    if (r->throttle)
        printf(", held down by: %s", r->throttle_text);
    putchar('\n');
    return r->checked == 0 ? GPU_DIFFERS : GPU_AGREES;
}

/* ---- trainings ---- */

void gpu_print_trainings_head(void)
{
    printf("%-16s %-14s %6s %9s %9s %18s %9s %9s  %s\n", "training", "products of", "steps", "equal", "tensors", "loss",
           "skipped", "ms/step", "");
}

int gpu_print_training(const gpu_training *t)
{
    static const int statuses[] = {GPU_AGREES, GPU_DIFFERS, GPU_AGREES, GPU_TROUBLE};
    static const char *const words[] = {"", "DIFFERS: ", "skipped: ", "FAILED: "};
    char loss[40], graphs[40] = "";
    if (t->status == GPU_TRAINING_SKIPPED) {
        printf("%-16s skipped: %s\n", t->run, t->report);
        return GPU_AGREES;
    }
    snprintf(loss, sizeof loss, "%.4f to %.4f", (double)t->first_loss, (double)t->last_loss);
    if (t->seconds_graphs > 0)
        snprintf(graphs, sizeof graphs, "as graphs %.3f ms  ", 1e3 * t->seconds_graphs);
    printf("%-16s %-14s %6" PRIu64 " %9" PRIu64 " %9" PRIu64 " %18s %9" PRIu64 " %9.3f  %s%s%s\n", t->run, t->arch,
           t->steps, t->compared, t->tensors, loss, t->skipped, 1e3 * t->seconds_step, graphs, words[t->status],
           t->report);
    return statuses[t->status];
}
