/* t-diff-faults.c -- mpsim diff on trainings in which something went wrong, and on those in which nothing did.
 *
 * The judge is support/faultyrun.c, which knows what it did, and where; it was written from what diff promises and
 * without a look at it. */
#include "support/faultyrun.h"
#include "support/support.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { EACH = 8, MAY_MISS = 5 }; /* of a hundred */

static char top[512];

static const char *place(const char *name)
{
    static char path[2][700];
    static int at;
    at = !at;
    snprintf(path[at], sizeof path[at], "%s/%s", top, name);
    return path[at];
}

static void begin(void)
{
    const char *under = getenv("TMPDIR");
    snprintf(top, sizeof top, "%s/mpsim-diff-XXXXXX", under && *under ? under : "/tmp");
    ck_assert_ptr_nonnull(mkdtemp(top));
}

static void clear(const char *name)
{
    char command[1024];
    snprintf(command, sizeof command, "rm -rf '%s/%s'", top, name);
    ck_assert_int_eq(system(command), 0);
}

static void end(void)
{
    clear("");
}

/* What diff says of the two directories; its exit code. */
static json_t *diff(int *code)
{
    char command[2048];
    json_error_t error;
    const char *program = getenv("MPSIM");
    ck_assert_ptr_nonnull(program);
    snprintf(command, sizeof command, "'%s' diff --json '%s' '%s'", program, place("a"), place("b"));
    FILE *pipe = popen(command, "r");
    ck_assert_ptr_nonnull(pipe);
    json_t *v = json_loadf(pipe, 0, &error);
    const int status = pclose(pipe);
    ck_assert_msg(v != NULL, "%s: %s", command, error.text);
    ck_assert(WIFEXITED(status));
    *code = WEXITSTATUS(status);
    return v;
}

static const char *text(const json_t *v, const char *key)
{
    const char *s = json_string_value(json_object_get(v, key));
    return s ? s : "";
}

/* ---- what went wrong is found ---- */

static const char *const words[FAULT_KINDS] = {
    [FAULT_FLIP] = "flipped-bit",     [FAULT_ROUND] = "rounded",       [FAULT_SCALE] = "scaled",
    [FAULT_RATIO] = "scaled",         [FAULT_ORDER] = "sum-order",     [FAULT_SKIP] = "step-skipped",
    [FAULT_TRANSPOSE] = "transposed", [FAULT_PERMUTE] = "permuted",    [FAULT_ZERO] = "zeroed",
    [FAULT_NONFINITE] = "non-finite", [FAULT_SIGN] = "negated",        [FAULT_CLIP] = "clipped",
    [FAULT_SHIFT] = "shifted",        [FAULT_UNRELATED] = "unrelated",
};

/* Whether the first difference is what happened, where it happened. */
static int is_found(const fault *f, const json_t *first, char *said, size_t size)
{
    const char *verdict = text(first, "verdict"), *format = text(first, "format");
    const json_int_t step = json_integer_value(json_object_get(first, "step"));
    const double scale = json_number_value(json_object_get(first, "scale"));
    int ok = strcmp(verdict, words[f->kind]) == 0 && strcmp(text(first, "name"), f->tensor) == 0 && step == f->step;
    if (f->kind == FAULT_ROUND)
        ok &= strcmp(format, f->format) == 0;
    if (f->kind == FAULT_SCALE || f->kind == FAULT_RATIO)
        ok &= fabs(scale / f->amount - 1) < 1e-6;
    snprintf(said, size, "%s of %s at step %d: %s of %s at step %d, %s %g", words[f->kind], f->tensor, f->step, verdict,
             text(first, "name"), (int)step, format, scale);
    return ok;
}

CASE("faults", 60);

TEST(faults_are_named)
{
    const recorded_as plain = {.prefix = ""};
    int missed = 0, all = 0;
    begin();
    for (int kind = FAULT_NONE + 1; kind < FAULT_KINDS; kind++)
        for (int i = 0; i < EACH; i++) {
            char said[512];
            int code;
            if (!test_in_part((uint64_t)(kind + i), 2))
                continue;
            all++;
            fault f = {.kind = (fault_kind)kind, .seed = test_seed() + 1000 * (uint64_t)kind + (uint64_t)i};
            faulty_run(place("a"), f.seed, NULL, &plain);
            faulty_run(place("b"), f.seed, &f, &plain);
            json_t *v = diff(&code);
            const json_t *first = json_object_get(v, "first");
            ck_assert_int_eq(code, 1);
            ck_assert_ptr_nonnull(first);
            if (!is_found(&f, first, said, sizeof said)) {
                missed++;
                printf("# missed: seed %llu: %s\n", (unsigned long long)f.seed, said);
            }
            json_decref(v);
            clear("a");
            clear("b");
        }
    end();
    printf("# %d of %d faults named with their tensor and step\n", all - missed, all);
    ck_assert_int_le(missed * 100, MAY_MISS * all);
}

/* ---- where nothing went wrong, nothing is found ---- */

/* Whether the two are equal or, recorded in a wider dtype, the same numbers: nothing else is said of any tensor. */
static int is_quiet(const recorded_as *as, const json_t *v, int code)
{
    const char *word = as->wide ? "dtype" : "equal";
    const json_t *verdicts = json_object_get(json_object_get(v, "total"), "verdicts");
    return code == as->wide && strcmp(text(v, "verdict"), word) == 0 && json_object_size(verdicts) == 1 &&
           json_object_get(verdicts, word) != NULL;
}

CASE("equal", 60);

TEST(no_false_alarms)
{
    static const recorded_as plain = {.prefix = ""};
    static const recorded_as others[] = {
        {.prefix = ""},
        {.prefix = "module."},
        {.prefix = "model.", .flat = 1},
        {.prefix = "", .reversed = 1},
        {.prefix = "", .flat = 1, .reversed = 1},
        {.prefix = "", .wide = 1},
        {.prefix = "_orig_mod.", .reversed = 1, .wide = 1},
    };
    const int pairs = test_expensive() ? 1000 : (int)(7 * test_scaled(10));
    begin();
    for (int i = 0; i < pairs; i++) {
        int code;
        const uint64_t model = test_part_seed() + 77 * (uint64_t)i;
        const recorded_as *as = &others[i % (int)(sizeof others / sizeof *others)];
        faulty_run(place("a"), model, NULL, &plain);
        faulty_run(place("b"), model, NULL, as);
        json_t *v = diff(&code);
        ck_assert_msg(is_quiet(as, v, code), "pair %d, seed %llu: exit %d, %s", i, (unsigned long long)model, code,
                      text(v, "verdict"));
        json_decref(v);
        clear("a");
        clear("b");
    }
    end();
    printf("# %d equal pairs, no false alarm\n", pairs);
}

TEST_MAIN("diff of faults");
