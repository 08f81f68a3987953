/* t-device.c -- what devices answered through PyTorch (data/vectors/device), compared with the library.
 *
 * A folder there is what data/record/ask_device.py wrote of one device. Its file answers.txt keeps, a
 * line a case, what of the library gives the same bits; MPSIM_GOLDEN_UPDATE=1 writes it, and who does
 * reads it: "none fits" of a device is a row to be corrected or found. Arguments are folders, too: their
 * answers are printed and not judged. TAP of its own, so that what no device has answered is a SKIP. */
#include "device.h"

#include "support/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct question {
    const char *name;
    device_reader *read;
    const char *key; /* of a case: what the test damages, to see that it is found */
} questions[] = {
    {"casts", device_casts, "\"digest\": \""},
    {"functions", device_functions, "\"digest\": \""},
    {"reductions", device_reductions, "\"d\": \""},
    {"optimizers", device_optimizers, "\"sample\": \""},
    {"autocast", device_autocast, "\"result\": \""},
    {"products", device_products, "\"d\": \""},
    {"scaled", device_scaled, "\"d\": \""},
    {"attention", device_attention, "\"d\": \""},
    {"training", device_training, "\"mpsim\": "},
    {"division", device_division, "\"scales\": \""},
    {"doubles", device_doubles, "\"d\": \""},
    {"fused", device_fused, "\"m\": [\""},
    {"pointwise", device_pointwise, "\"digest\": \""},
    {"matrices", device_matrices, "\"d\": \""},
    {"segments", device_segments, "\"d\": \""},
    {"models", device_products, "\"d\": \""},
    {"models_fp8", device_scaled, "\"d\": \""},
    {"bias", device_batched, "\"d\": \""},
    {"batched", device_batched, "\"d\": \""},
    {"convolutions", device_convolutions, "\"d\": \""},
    {"grouped", device_grouped, "\"d\": \""},
    {"integers", device_integers, "\"d\": \""},
};
enum { QUESTIONS = sizeof questions / sizeof questions[0], LINE = 1 << 17, FOLDERS = 64 };

static int plan, failures;

static void ok(int passed, const char *format, const char *a, const char *b)
{
    printf("%sok %d - ", passed ? "" : "not ", ++plan);
    printf(format, a, b);
    putchar('\n');
    failures += !passed;
}

/* ---- answers of a file ---- */

typedef struct answers {
    char *text;                           /* QUESTION: CASE: ANSWER, a line each */
    size_t used, size, lines, cases, fit; /* lines: those of other parts, too */
    int found;                            /* the file is there */
    char kind[16];
} answers;

/* The cases of a question take turns, and so do the lines that are kept of them; those of devices are many. */
static unsigned turns = 4;

static int is_in_turn(size_t line)
{
    return getenv("MPSIM_GOLDEN_UPDATE") || test_in_part(line, turns);
}

static void add_line(answers *a, const char *question, const char *name, const char *answer)
{
    if (!is_in_turn(a->lines++))
        return;
    const size_t need = strlen(question) + strlen(name) + strlen(answer) + 6;
    if (a->used + need > a->size) {
        a->size = 2 * a->size + need;
        a->text = realloc(a->text, a->size);
        device_need(a->text != NULL);
    }
    a->used += (size_t)sprintf(a->text + a->used, "%s: %s: %s\n", question, name, answer);
}

static void answer_case(answers *a, const struct question *q, const json_t *head, const json_t *c)
{
    char answer[DEVICE_ANSWER] = "";
    if (!is_in_turn(a->lines))
        ;
    else if (*device_text(c, "refused"))
        device_say(answer, "refused: %s", device_text(c, "refused"));
    else
        q->read(head, c, answer);
    a->cases++;
    a->fit += strncmp(answer, "fits", 4) == 0;
    add_line(a, q->name, device_text(c, "case"), answer);
}

/* The first digit after the key becomes another one; 0: no such key. */
static int damage(char *line, const char *key)
{
    char *at = strstr(line, key);
    if (!at)
        return 0;
    at += strlen(key);
    *at = *at == '1' ? '2' : '1';
    return 1;
}

/* All cases of a question; `damaged`: only those that have the key, with another digit there. */
static answers read_answers(const char *folder, const struct question *q, int damaged)
{
    static char line[LINE];
    char path[4300];
    answers a = {.text = calloc(1, 1), .size = 1};
    json_t *head = NULL;
    int ended = 0;
    snprintf(path, sizeof path, "%s/%s.ndjson", folder, q->name);
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in)) {
        const int kept = damaged && head && !damage(line, q->key);
        json_t *o = json_loads(line, 0, NULL);
        if (!head)
            head = o;
        else if (kept)
            a.lines += json_object_get(o, "case") || *device_text(o, "skipped");
        else if (json_object_get(o, "case"))
            answer_case(&a, q, head, o);
        else if (*device_text(o, "skipped"))
            add_line(&a, q->name, "skipped", device_text(o, "skipped"));
        ended |= json_is_true(json_object_get(o, "end"));
        if (o != head)
            json_decref(o);
    }
    a.found = in != NULL && head != NULL;
    snprintf(a.kind, sizeof a.kind, "%s", head ? device_text(head, "kind") : "");
    if (a.found && !ended && !damaged)
        add_line(&a, q->name, "end", "cut short");
    json_decref(head);
    if (in)
        fclose(in);
    return a;
}

/* ---- what is kept of them ---- */

/* The lines of answers.txt that begin with "QUESTION:" and are in turn; to be freed. *lines: how many begin so. */
static char *kept_answers(const char *folder, const char *question, size_t *lines)
{
    static char line[LINE];
    char path[4300];
    size_t used = 0;
    char *text = calloc(1, 1);
    snprintf(path, sizeof path, "%s/answers.txt", folder);
    FILE *in = fopen(path, "r");
    while (in && text && fgets(line, sizeof line, in)) {
        const size_t n = strlen(question);
        if (strncmp(line, question, n) != 0 || line[n] != ':')
            continue;
        if (!is_in_turn((*lines)++))
            continue;
        text = realloc(text, used + strlen(line) + 1);
        if (text)
            used += (size_t)sprintf(text + used, "%s", line);
    }
    if (in)
        fclose(in);
    device_need(text != NULL);
    return text;
}

/* The first line that is not as it was kept. */
static void show_difference(const char *now, const char *kept)
{
    while (*now || *kept) {
        const int n = (int)strcspn(now, "\n"), k = (int)strcspn(kept, "\n");
        if (n != k || strncmp(now, kept, (size_t)n) != 0) {
            printf("# now:  %.*s\n# kept: %.*s\n", n, now, k, kept);
            return;
        }
        now += n + (now[n] == '\n');
        kept += k + (kept[k] == '\n');
    }
}

static void check_question(const char *folder, const char *name, const struct question *q, FILE *update)
{
    const answers a = read_answers(folder, q, 0);
    if (a.found) {
        size_t lines = update ? a.lines : 0;
        char *kept = update ? strdup(a.text) : kept_answers(folder, q->name, &lines);
        ok(kept && lines == a.lines && strcmp(a.text, kept) == 0, "%s, %s: answers as they were kept", name, q->name);
        printf("# %zu cases, %zu in this part fit; %zu lines were kept\n", a.cases, a.fit, lines);
        if (kept)
            show_difference(a.text, kept);
        if (update)
            fputs(a.text, update);
        free(kept);
    }
    free(a.text);
}

/* Lines that say what fits and are the same with a digit changed: none, and there was one to change. */
static void check_damage(const char *folder, const char *name, const struct question *q)
{
    const answers a = read_answers(folder, q, 0);
    if (strcmp(a.kind, "cpu") != 0) { /* a device's files are long, and read by the same readers */
        free(a.text);
        return;
    }
    const answers b = read_answers(folder, q, 1);
    size_t same = 0, changed = 0;
    for (const char *line = b.text; *line; line += strcspn(line, "\n") + 1) {
        char text[DEVICE_ANSWER + 200];
        snprintf(text, sizeof text, "%.*s\n", (int)strcspn(line, "\n"), line);
        if (strstr(a.text, text) && !strstr(text, ": none fits"))
            same++;
        else
            changed += strstr(a.text, text) == NULL;
    }
    if (a.found && b.cases) {
        ok(same == 0 && changed > 0, "%s, %s: a changed digit is found", name, q->name);
        printf("# %zu of %zu cases answer otherwise then\n", changed, b.cases);
    }
    free(a.text);
    free(b.text);
}

/* A device that the model rows play: its row, and its parts, are found. */
static void check_played(void)
{
    static const struct {
        const char *kind, *form, *out, *row, *answer;
        size_t part;
    } played[] = {
        {"float16 wide", "float16", "float32", "hopper-fp16-fp32", "fits hopper-fp16-fp32", 0},
        {"bfloat16 wide", "bfloat16", "float32", "hopper-bf16-fp32", "fits hopper-bf16-fp32 in parts of 256", 256},
        {"float16 sums", "float16", "float16", "hopper-fp16-fp16", "fits hopper-fp16-fp16", 0},
        {"tf32", "tf32", "float32", "hopper-tf32-fp32", "fits hopper-tf32-fp32 in parts of 352", 352},
        {"float32", "float32", "float32", "fma", "fits fma in parts of 512", 512},
    };
    json_t *head = json_pack("{s:[i,i]}", "capability", 9, 0);
    for (size_t i = 0; i < sizeof played / sizeof played[0]; i++) {
        char answer[DEVICE_ANSWER] = "";
        json_t *c = json_pack("{s:s,s:s,s:s,s:i,s:i,s:[i,i],s:[i,i,i]}", "case", played[i].kind, "form", played[i].form,
                              "out", played[i].out, "n", 128, "k", 1024, "streams", 40, 41, "places", 64, 42,
                              128 * 128);
        device_need(head && c);
        device_play_products(c, played[i].row, played[i].part);
        device_products(head, c, answer);
        ok(strcmp(answer, played[i].answer) == 0, "products of %s, played by %s", played[i].kind, played[i].row);
        printf("# %s\n", answer);
        json_decref(c);
    }
    json_decref(head);
}

/* ---- folders ---- */

static int by_name(const void *a, const void *b)
{
    return strcmp(a, b);
}

static size_t find_folders(const char *top, char found[FOLDERS][256])
{
    size_t n = 0;
    const struct dirent *e;
    DIR *d = opendir(top);
    while (d && (e = readdir(d)) && n < FOLDERS) {
        char path[4300];
        snprintf(path, sizeof path, "%s/%s/manifest.json", top, e->d_name);
        FILE *f = fopen(path, "r");
        if (!f || e->d_name[0] == '.') {
            if (f)
                fclose(f);
            continue;
        }
        fclose(f);
        snprintf(found[n++], sizeof found[0], "%s", e->d_name);
    }
    if (d)
        closedir(d);
    qsort(found, n, sizeof found[0], by_name);
    return n;
}

static void check_folder(const char *folder, const char *name)
{
    char path[4300];
    const char *golden = getenv("MPSIM_GOLDEN_UPDATE");
    turns = strncmp(name, "cpu-", 4) == 0 ? 4 : 16;
    snprintf(path, sizeof path, "%s/answers.txt", folder);
    FILE *update = golden && strcmp(golden, "1") == 0 ? fopen(path, "w") : NULL;
    for (size_t i = 0; i < QUESTIONS; i++)
        check_question(folder, name, &questions[i], update);
    if (update)
        fclose(update);
    for (size_t i = 0; i < QUESTIONS; i++)
        if (test_in_part(i, 4)) /* each answers its question once more */
            check_damage(folder, name, &questions[i]);
}

/* The questions that no CUDA device has answered. */
static void wait_for_devices(const char *top, char found[FOLDERS][256], size_t folders)
{
    for (size_t i = 0; i < QUESTIONS; i++) {
        int answered = 0;
        for (size_t k = 0; k < folders; k++) {
            char path[4300], line[1000] = "";
            snprintf(path, sizeof path, "%s/%s/%s.ndjson", top, found[k], questions[i].name);
            FILE *in = fopen(path, "r");
            answered |= in && fgets(line, sizeof line, in) && strstr(line, "\"kind\": \"cuda\"");
            if (in)
                fclose(in);
        }
        if (!answered)
            printf("ok %d - %s of a device # SKIP waits for a device\n", ++plan, questions[i].name);
    }
}

int main(int argc, char **argv)
{
    static char found[FOLDERS][256];
    const char *top = test_source_path("data/vectors/device");
    for (int i = 1; i < argc; i++)
        for (size_t k = 0; k < QUESTIONS; k++) {
            const answers a = read_answers(argv[i], &questions[k], 0);
            fputs(a.text, stdout);
            free(a.text);
        }
    if (argc > 1)
        return 0;
    const size_t folders = find_folders(top, found);
    ok(folders > 0, "%s%s", top, ": recorded folders");
    for (size_t i = 0; i < folders; i++) {
        char path[300];
        snprintf(path, sizeof path, "data/vectors/device/%s", found[i]);
        check_folder(test_source_path(path), found[i]);
    }
    check_played();
    device_check_plays(ok);
    wait_for_devices(top, found, folders);
    printf("1..%d\n", plan);
    return failures > 0;
}
