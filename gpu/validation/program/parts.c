/* parts.c -- the parts of a run, see session.h: what each asks of the device, prints, and says of an item
 * whose process did not survive it. */
#include "print.h"
#include "session.h"
#include "worker.h"

#include "../checks/checks.h"
#include "../../train.h"

#include <threads/parallel.h>

#include <string.h>
#include <time.h>

/* ---- checks: a first look at a tiny part of each, later all of it ---- */

static size_t count_checks(const gpu_session *s)
{
    return s->record.checks;
}

static const char *check_name(const gpu_session *s, size_t i)
{
    (void)s;
    return gpu_check_name(i);
}

static void check_group(const gpu_session *s, size_t i, char *to, size_t size)
{
    (void)s;
    gpu_check_group(i, to, size);
}

static void end_check(gpu_result *r, gpu_status status, const char *why)
{
    memset(r, 0, sizeof *r);
    r->status = status;
    snprintf(r->text, sizeof r->text, "%s", why);
}

/* Layouts, and what differs everywhere, are known within seconds. */
static void run_look(gpu_session *s, size_t i)
{
    gpu_check_run(i, GPU_RUN_TINY, &s->looks[i]);
}

static int print_look(gpu_session *s, size_t i)
{
    const gpu_result *r = &s->looks[i];
    return r->status == GPU_FAILED || r->mismatches ? gpu_print_check(gpu_check_name(i), r) : GPU_AGREES;
}

static void fail_look(gpu_session *s, size_t i, const char *why)
{
    end_check(&s->looks[i], GPU_FAILED, why);
}

static void skip_look(gpu_session *s, size_t i, const char *why)
{
    end_check(&s->looks[i], GPU_SKIPPED, why);
}

static void foot_looks(const gpu_session *s)
{
    size_t looked = 0, agree = 0;
    for (size_t i = 0; i < s->record.checks; i++) {
        looked += s->looks[i].status != GPU_SKIPPED;
        agree += s->looks[i].status == GPU_DONE && s->looks[i].mismatches == 0;
    }
    printf("a first look at %zu checks: %zu agree\n\n", looked, agree);
}

static void run_check(gpu_session *s, size_t i)
{
    gpu_check_run(i, s->options.quick, &s->results[i]);
}

static int print_check(gpu_session *s, size_t i)
{
    return gpu_print_check(gpu_check_name(i), &s->results[i]);
}

static void fail_check(gpu_session *s, size_t i, const char *why)
{
    end_check(&s->results[i], GPU_FAILED, why);
}

/* What has not survived a first look has failed. */
static void skip_check(gpu_session *s, size_t i, const char *why)
{
    char text[1024];
    snprintf(text, sizeof text, "a first look: %.1000s", s->looks[i].text);
    if (s->looks[i].status == GPU_FAILED)
        end_check(&s->results[i], GPU_FAILED, text);
    else
        end_check(&s->results[i], GPU_SKIPPED, why);
}

static void head_checks(const gpu_session *s)
{
    (void)s;
    gpu_print_checks_head();
}

static void foot_checks(const gpu_session *s)
{
    double seconds = 0;
    uint64_t dots = 0;
    for (size_t i = 0; i < s->record.checks; i++) {
        gpu_check c;
        gpu_check_at(&c, i, 0, 1);
        seconds += s->results[i].seconds;
        dots += c.is_dots ? s->results[i].count : 0;
    }
    printf("%-34s %11llu %11s %8.2f\n\n", "all dot products", (unsigned long long)dots, "", seconds);
}

/* ---- probes ---- */

static size_t count_probes(const gpu_session *s)
{
    return s->record.probes;
}

static const char *probe_name(const gpu_session *s, size_t i)
{
    return s->probes[i].id;
}

static void probe_group(const gpu_session *s, size_t i, char *to, size_t size)
{
    gpu_probe same;
    int instruction = 0;
    (void)s;
    (void)gpu_probe_fill(i, &same, &instruction);
    gpu_instruction_name(gpu_instruction_at(instruction), to, size);
}

static void run_probe(gpu_session *s, size_t i)
{
    gpu_probe_run(i, &s->probes[i]);
}

static int print_probe(gpu_session *s, size_t i)
{
    return gpu_print_probe(&s->probes[i], i, s->record.device.sm);
}

static void end_probe(gpu_probe *p, gpu_status status, const char *why)
{
    p->status = status;
    snprintf(p->text, sizeof p->text, "%s", why);
}

static void fail_probe(gpu_session *s, size_t i, const char *why)
{
    end_probe(&s->probes[i], GPU_FAILED, why);
}

static void skip_probe(gpu_session *s, size_t i, const char *why)
{
    end_probe(&s->probes[i], GPU_SKIPPED, why);
}

static void foot_probes(const gpu_session *s)
{
    size_t answered = 0;
    for (size_t i = 0; i < s->record.probes; i++)
        answered += s->probes[i].status == GPU_DONE;
    printf("%zu of %zu probes answered\n\n", answered, s->record.probes);
}

static void foot_empty(const gpu_session *s)
{
    (void)s;
    putchar('\n');
}

/* ---- orders ---- */

static size_t count_orders(const gpu_session *s)
{
    return s->record.orders;
}

static const char *order_name(const gpu_session *s, size_t i)
{
    return s->orders[i].name;
}

/* The instruction: the name up to the comma. */
static void order_group(const gpu_session *s, size_t i, char *to, size_t size)
{
    const char *name = s->orders[i].name;
    snprintf(to, size, "order of %.*s", (int)strcspn(name, ","), name);
}

static void run_order(gpu_session *s, size_t i)
{
    gpu_order_run(i, &s->orders[i]);
}

static int print_order(gpu_session *s, size_t i)
{
    return gpu_print_order(&s->orders[i], i);
}

static void end_order(gpu_order *o, gpu_status status, const char *why)
{
    o->status = status;
    snprintf(o->text, sizeof o->text, "%s", why);
}

static void fail_order(gpu_session *s, size_t i, const char *why)
{
    end_order(&s->orders[i], GPU_FAILED, why);
}

static void skip_order(gpu_session *s, size_t i, const char *why)
{
    end_order(&s->orders[i], GPU_SKIPPED, why);
}

/* ---- speed ---- */

static size_t count_speeds(const gpu_session *s)
{
    return s->record.speeds;
}

static const char *speed_name(const gpu_session *s, size_t i)
{
    return s->speeds[i].name;
}

static void speed_group(const gpu_session *s, size_t i, char *to, size_t size)
{
    snprintf(to, size, "%s", s->speeds[i].group);
}

static void run_speed(gpu_session *s, size_t i)
{
    gpu_speed_measure(s->speeds, s->record.speeds, i, &s->speed);
}

static int print_speed(gpu_session *s, size_t i)
{
    return gpu_print_speed(&s->speeds[i]);
}

static void end_speed(gpu_speed_row *r, gpu_status status, const char *why)
{
    r->status = status;
    r->seconds = 0;
    r->checked = -1;
    snprintf(r->text, sizeof r->text, "%s", why);
}

static void fail_speed(gpu_session *s, size_t i, const char *why)
{
    end_speed(&s->speeds[i], GPU_FAILED, why);
}

static void skip_speed(gpu_session *s, size_t i, const char *why)
{
    end_speed(&s->speeds[i], GPU_SKIPPED, why);
}

static void head_speeds(const gpu_session *s)
{
    (void)s;
    gpu_print_speeds_head();
}

/* ---- trainings ---- */

static size_t count_trainings(const gpu_session *s)
{
    return s->record.trainings;
}

static const char *training_name(const gpu_session *s, size_t i)
{
    return s->trainings[i].run;
}

/* Each has kernels of its own. */
static void training_group(const gpu_session *s, size_t i, char *to, size_t size)
{
    (void)s;
    (void)i;
    snprintf(to, size, "%s", "");
}

static void run_training(gpu_session *s, size_t i)
{
    static const uint64_t part[] = {1, 10, 1}, most[] = {UINT64_MAX, UINT64_MAX, 2};
    static const int timed[] = {50, 20, 0};
    const int quick = s->options.quick;
    char device[256];
    const gpu_training_how how = {
        .open = train_engine_cuda,
        .graphs = train_engine_cuda_graphs,
        .pool = &parallel_pool,
        .arch = gpu_architecture(s->record.device.sm),
        .part = part[quick],
        .most = most[quick],
        .timed = timed[quick],
        .prefix = s->options.output ? s->prefix : NULL,
        .device = device,
        .alive = gpu_worker_alive,
    };
    snprintf(device, sizeof device, "%.128s, driver %.63s, %.31s", s->record.device.name, s->record.device.driver_name,
             s->record.date);
    parallel_init(0);
    gpu_training_run(&s->trainings[i], s->options.runs, &how);
}

static int print_training(gpu_session *s, size_t i)
{
    return gpu_print_training(&s->trainings[i]);
}

/* A difference that was found stays what is reported. */
static void fail_training(gpu_session *s, size_t i, const char *why)
{
    gpu_training *t = &s->trainings[i];
    t->digests[0] = 0; /* they are in a file that was not ended */
    if (t->status == GPU_TRAINING_DIFFERS)
        return;
    t->status = GPU_TRAINING_FAILED;
    snprintf(t->report, sizeof t->report, "behind %llu equal steps: %.300s", (unsigned long long)t->compared, why);
}

static void skip_training(gpu_session *s, size_t i, const char *why)
{
    snprintf(s->trainings[i].report, sizeof s->trainings[i].report, "%.500s", why);
}

static void head_trainings(const gpu_session *s)
{
    (void)s;
    gpu_print_trainings_head();
}

/* ---- the table ---- */

/* Seconds: several times what an item is thought to take on a device; of a training, a step. */
const gpu_part gpu_parts[GPU_PARTS] = {
    {"checks", 15, count_checks, check_name, check_group, run_look, print_look, fail_look, skip_look, NULL, foot_looks},
    {"probes", 15, count_probes, probe_name, probe_group, run_probe, print_probe, fail_probe, skip_probe, NULL,
     foot_probes},
    {"orders", 15, count_orders, order_name, order_group, run_order, print_order, fail_order, skip_order, NULL,
     foot_empty},
    {"speed", 30, count_speeds, speed_name, speed_group, run_speed, print_speed, fail_speed, skip_speed, head_speeds,
     foot_empty},
    {"checks", 40, count_checks, check_name, check_group, run_check, print_check, fail_check, skip_check, head_checks,
     foot_checks},
    {"training", 60, count_trainings, training_name, training_group, run_training, print_training, fail_training,
     skip_training, head_trainings, foot_empty},
};

/* ---- the beginning ---- */

/* What is not asked for says so; the rest has not been reached yet. */
static const char *reason(const gpu_session *s, const char *section, const char *name)
{
    return gpu_options_chosen(&s->options, section, name) ? "not reached" : "not asked for";
}

static void list_checks(gpu_session *s)
{
    for (size_t i = 0; i < s->record.checks; i++) {
        end_check(&s->results[i], GPU_SKIPPED, reason(s, "checks", gpu_check_name(i)));
        end_check(&s->looks[i], GPU_SKIPPED, "");
    }
    for (size_t i = 0; i < s->record.probes; i++) {
        int instruction;
        (void)gpu_probe_fill(i, &s->probes[i], &instruction);
        end_probe(&s->probes[i], GPU_SKIPPED, reason(s, "probes", s->probes[i].id));
    }
    for (size_t i = 0; i < s->record.orders; i++) {
        (void)gpu_order_list(i, &s->orders[i]);
        end_order(&s->orders[i], GPU_SKIPPED, reason(s, "orders", s->orders[i].name));
    }
}

/* Runs that are missing are trouble only where one is asked for. */
static void list_trainings(gpu_session *s)
{
    char why[1200];
    s->record.trainings = gpu_training_list(s->trainings, GPU_TRAININGS, s->options.runs, why, sizeof why);
    for (size_t i = 0; i < s->record.trainings; i++)
        skip_training(s, i, reason(s, "training", s->trainings[i].run));
    if (s->record.trainings == 0 && gpu_options_chosen(&s->options, "training", "")) {
        fprintf(stderr, "mpsim-gpu: %s\n", why);
        gpu_session_note(s, GPU_TROUBLE);
    }
}

int gpu_session_begin(gpu_session *s)
{
    gpu_record *r = &s->record;
    const time_t now = time(NULL);
    const struct tm *utc = gmtime(&now);
    if (!utc || strftime(r->date, sizeof r->date, "%Y-%m-%dT%H:%M:%SZ", utc) == 0)
        r->date[0] = 0;
    r->quick = s->options.quick;
    while (gpu_check_name(r->checks))
        r->checks++;
    r->probes = gpu_probe_count();
    r->orders = gpu_order_count();
    r->order = s->orders = gpu_shared(r->orders * sizeof *s->orders);
    r->result = s->results = gpu_shared(r->checks * sizeof *s->results);
    s->looks = gpu_shared(r->checks * sizeof *s->looks);
    r->probe = s->probes = gpu_shared(r->probes * sizeof *s->probes);
    s->ended = gpu_shared(2 * r->checks + r->probes + r->orders + GPU_SPEED_ROWS + GPU_TRAININGS);
    r->training = s->trainings;
    r->speed = s->speeds;
    if (!s->results || !s->looks || !s->probes || !s->orders || !s->ended)
        return -1;
    list_checks(s);
    list_trainings(s);
    return 0;
}

static void list_speeds(gpu_session *s)
{
    static const size_t elements[] = {(size_t)1 << 28, (size_t)1 << 27, (size_t)1 << 14};
    static const size_t order[] = {4096, 4096, 128};
    static const int before[] = {5, 3, 0}, runs[] = {30, 7, 1};
    const int quick = s->options.quick;
    s->speed = (gpu_speed_plan){.sm = s->record.device.sm,
                                .elements = elements[quick],
                                .order = order[quick],
                                .before = before[quick],
                                .runs = runs[quick]};
    s->record.speeds = gpu_speed_list(s->speeds, GPU_SPEED_ROWS, &s->speed);
    for (size_t i = 0; i < s->record.speeds; i++)
        end_speed(&s->speeds[i], GPU_SKIPPED, reason(s, "speed", s->speeds[i].name));
}

int gpu_session_device(gpu_session *s)
{
    gpu_device again;
    if (gpu_open(s->is_met ? &again : &s->record.device, s->refused, sizeof s->refused) != 0)
        return -1;
    s->refused[0] = 0;
    if (!s->is_met)
        list_speeds(s);
    return 0;
}
