/* cpugroup.c -- verify: the group cpu, instructions of the CPU that this runs on; see cpu.h. */
#include "cpu.h"
#include "verify.h"

#include "../process/progress.h"

#include <inttypes.h>
#include <stdio.h>
#include <threads/parallel.h>

/* So many results of an instruction: a second or so of all of them together, or 10^7 of each. */
enum { SHORT = 200000, LONG = 10000000, TASKS = 64 };

typedef struct job {
    const cpu_instruction *t;
    uint64_t seed, cases;
    cpu_result found[TASKS];
    int bad[TASKS];
} job;

static void task(int i, void *context)
{
    job *j = context;
    const uint64_t first = j->cases * (uint64_t)i / TASKS, end = j->cases * ((uint64_t)i + 1) / TASKS;
    j->bad[i] = !verify_cpu_compare(j->t, j->seed, first, end - first, &j->found[i]);
}

static void one(verify *v, const cpu_instruction *t)
{
    static job j;
    verify_row *row = verify_add(v, "cpu", "%s", t->name);
    if (!t->here()) {
        row->status = VERIFY_SKIPPED;
        snprintf(row->text, sizeof row->text, "not there: this machine lacks %s", t->feature);
        return;
    }
    progress_say("cpu: %s", t->name);
    j = (job){.t = t, .seed = v->seed, .cases = (v->thorough ? LONG : SHORT) / verify_cpu_results(t) + 1};
    parallel_for(TASKS, task, &j);
    cpu_result all = {0};
    for (int i = 0; i < TASKS; i++) {
        if (j.bad[i])
            verify_differs(row, "%s", "the library does not know what the row names");
        for (uint64_t k = 0; k < j.found[i].mismatches; k++)
            verify_differs(row, "%s", j.found[i].first);
        all.compared += j.found[i].compared;
        all.mismatches += j.found[i].mismatches;
        all.digest += j.found[i].digest;
    }
    row->compared = all.compared;
    if (v->record)
        verify_cpu_record(v->record, t, v->seed, &all);
    snprintf(row->with, sizeof row->with, "%s%s; digest %016" PRIx64, t->model ? t->model : mpsim_op_name(t->op),
             t->traits & CPU_ANY_NAN ? ", any NaN" : ", NaNs too", all.digest);
}

int verify_cpu_here(const verify *v, char *text, size_t size)
{
    (void)v;
    if (!verify_cpu_instruction_at(0)) {
        snprintf(text, size, "no instruction of this kind of CPU is known");
        return 0;
    }
    verify_cpu_words(text, size);
    return 1;
}

int verify_cpu(verify *v)
{
    char cpu[200];
    verify_cpu_words(cpu, sizeof cpu);
    if (v->record)
        verify_cpu_record_head(v->record, cpu);
    for (size_t i = 0; verify_cpu_instruction_at(i); i++)
        one(v, verify_cpu_instruction_at(i));
    return 0;
}
