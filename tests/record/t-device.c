/* t-device.c -- what devices answered through PyTorch (data/vectors/device), compared with the library.
 *
 * A folder there is what data/record/ask_device.py wrote of one device. Its file answers.txt keeps, a
 * line a case, what of the library gives the same bits; MPSIM_GOLDEN_UPDATE=1 writes it, and who does
 * reads it: "none fits" of a device is a row to be corrected or found. Whole results of large products are worked out where
 * all parts run; on other days what is kept must be among what fits their sample. Arguments are folders, too: their
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
    const char *keys[2]; /* of a case: what the test damages, to see that it is found */
} questions[] = {
    {"casts", device_casts, {"\"digest\": \""}},
    {"functions", device_functions, {"\"digest\": \""}},
    {"reductions", device_reductions, {"\"d\": \""}},
    {"optimizers", device_optimizers, {"\"sample\": \""}},
    {"autocast", device_autocast, {"\"result\": \""}},
    {"products", device_products, {"\"d\": \"", "\"digest\": \""}},
    {"scaled", device_scaled, {"\"d\": \"", "\"digest\": \""}},
    {"attention", device_attention, {"\"d\": \""}},
    {"training", device_training, {"\"mpsim\": "}},
    {"division", device_division, {"\"scales\": \""}},
    {"doubles", device_doubles, {"\"d\": \""}},
    {"fused", device_fused, {"\"m\": [\""}},
    {"pointwise", device_pointwise, {"\"digest\": \""}},
    {"matrices", device_matrices, {"\"d\": \""}},
    {"segments", device_segments, {"\"d\": \"", "\"digest\": \""}},
    {"models", device_products, {"\"d\": \"", "\"digest\": \""}},
    {"models_fp8", device_scaled, {"\"d\": \"", "\"digest\": \""}},
    {"bias", device_batched, {"\"d\": \"", "\"digest\": \""}},
    {"batched", device_batched, {"\"d\": \"", "\"digest\": \""}},
    {"convolutions", device_convolutions, {"\"d\": \"", "\"digest\": \""}},
    {"grouped", device_grouped, {"\"d\": \"", "\"digest\": \""}},
    {"integers", device_integers, {"\"d\": \"", "\"digest\": \""}},
    {"attention_raw", device_attention_raw, {"\"codes\": \"", "\"digest\": \""}},
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
enum { CPU_TURNS = 4, DEVICE_TURNS = 16 };
static unsigned turns = CPU_TURNS;

static int is_in_turn(size_t line)
{
    return turns == 1 || getenv("MPSIM_GOLDEN_UPDATE") || test_in_part(line, turns);
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

/* What follows the key; the blank behind its colon may be missing. */
static char *behind(char *line, const char *key)
{
    const char *blank = strchr(key, ' ');
    char compact[40];
    char *at = strstr(line, key);
    if (at || !blank)
        return at ? at + strlen(key) : NULL;
    snprintf(compact, sizeof compact, "%.*s%s", (int)(blank - key), key, blank + 1);
    at = strstr(line, compact);
    return at ? at + strlen(compact) : NULL;
}

/* The first digit after the key becomes another one; 0: no such key. */
static int damage(char *line, const char *key)
{
    char *at = behind(line, key);
    if (!at)
        return 0;
    *at = *at == '1' ? '2' : '1';
    return 1;
}

/* All cases of a question; `damaged`, unless NULL: only those that have the key, with another digit there. */
static answers read_answers(const char *folder, const struct question *q, const char *damaged)
{
    static char line[LINE];
    char path[4300];
    answers a = {.text = calloc(1, 1), .size = 1};
    json_t *head = NULL;
    int ended = 0;
    snprintf(path, sizeof path, "%s/%s.ndjson", folder, q->name);
    FILE *in = fopen(path, "r");
    while (in && fgets(line, sizeof line, in)) {
        const int kept = damaged && head && !damage(line, damaged);
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

/* Whether the name, of n characters, is in the list, whose names ", " separates. */
static int is_among(const char *name, size_t n, const char *list)
{
    for (const char *at = list; (at = strstr(at, name)) != NULL; at++) {
        const char before = at == list ? ' ' : at[-1], after = at[n];
        if (before == ' ' && (after == ',' || after == '\0'))
            return 1;
    }
    return 0;
}

/* "... fits A, B" that was kept, beside "... sample fits A, B, C" of now, where no digest was read. */
static int is_within(char *now, char *kept)
{
    static const char sample[] = ": sample fits ", fits[] = ": fits ";
    char *of_now = strstr(now, sample), *of_kept = strstr(kept, fits), *next;
    if (!of_now || !of_kept || of_now - now != of_kept - kept || strncmp(now, kept, (size_t)(of_now - now)) != 0)
        return 0;
    int within = 1;
    for (char *name = of_kept + strlen(fits); name; name = next) {
        next = strstr(name, ", ");
        if (next) {
            *next = '\0';
            next += 2;
        }
        within &= is_among(name, strlen(name), of_now + strlen(sample) - 1);
    }
    return within;
}

/* Ends the line and gives the next. */
static char *end_line(char *line)
{
    char *end = line + strcspn(line, "\n");
    char *next = end + (*end == '\n');
    *end = '\0';
    return next;
}

/* Whether the answers are those that were kept, both texts line by line; *sampled: of how many the sample alone was
 * compared. */
static int compare(char *now, char *kept, size_t *sampled)
{
    while (*now || *kept) {
        char *next_now = end_line(now), *next_kept = end_line(kept);
        if (strcmp(now, kept) != 0) {
            char shown[DEVICE_ANSWER + 200];
            snprintf(shown, sizeof shown, "%s", kept);
            if (!is_within(now, kept)) {
                printf("# now:  %s\n# kept: %s\n", now, shown);
                return 0;
            }
            ++*sampled;
        }
        now = next_now;
        kept = next_kept;
    }
    return 1;
}

static void check_question(const char *folder, const char *name, const struct question *q, FILE *update)
{
    const answers a = read_answers(folder, q, NULL);
    if (a.found) {
        size_t lines = update ? a.lines : 0, sampled = 0;
        char *kept = update ? strdup(a.text) : kept_answers(folder, q->name, &lines);
        if (update)
            fputs(a.text, update);
        ok(kept && lines == a.lines && compare(a.text, kept, &sampled), "%s, %s: answers as they were kept", name,
           q->name);
        printf("# %zu cases, %zu in this part fit; %zu lines were kept\n", a.cases, a.fit, lines);
        if (sampled)
            printf("# of %zu of them the sample alone was compared; MPSIM_TEST_PART=all reads their digests\n",
                   sampled);
        free(kept);
    }
    free(a.text);
}

/* Lines that say what fits and are the same with a digit changed: none, and there was one to change. */
static void check_changed(const char *folder, const char *name, const struct question *q, const char *key)
{
    const answers a = read_answers(folder, q, NULL), b = read_answers(folder, q, key);
    size_t same = 0, changed = 0, unread = 0;
    for (const char *line = b.text; *line; line += strcspn(line, "\n") + 1) {
        char text[DEVICE_ANSWER + 200];
        snprintf(text, sizeof text, "%.*s\n", (int)strcspn(line, "\n"), line);
        if (strstr(text, ": sample fits") || strstr(text, ": a digest alone")) /* neither says that a digest is equal */
            unread++;
        else if (strstr(a.text, text) && !strstr(text, ": none fits"))
            same++;
        else
            changed += strstr(a.text, text) == NULL;
    }
    if (a.found && b.cases) {
        ok(same == 0 && changed + unread > 0, "%s, %s: a changed digit is found", name, q->name);
        printf("# %s another digit: %zu of %zu cases answer otherwise; of %zu no digest was read\n", key, changed,
               b.cases, unread);
    }
    free(a.text);
    free(b.text);
}

/* A device's files are long, and read by the same readers: there the digests of products alone. */
static void check_damage(const char *folder, const char *name, const struct question *q)
{
    for (size_t i = turns == CPU_TURNS ? 0 : 1; i < 2; i++)
        if (q->keys[i])
            check_changed(folder, name, q, q->keys[i]);
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
        json_t *c = json_pack("{s:s,s:s,s:s,s:i,s:i,s:i,s:[i,i],s:[i,i,i]}", "case", played[i].kind, "form",
                              played[i].form, "out", played[i].out, "m", 128, "n", 128, "k", 1024, "streams", 40, 41,
                              "places", 64, 42, 128 * 128);
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
    turns = strncmp(name, "cpu-", 4) == 0 ? CPU_TURNS : DEVICE_TURNS;
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
    turns = argc > 1 ? 1 : turns;
    for (int i = 1; i < argc; i++)
        for (size_t k = 0; k < QUESTIONS; k++) {
            const answers a = read_answers(argv[i], &questions[k], NULL);
            fputs(a.text, stdout);
            free(a.text);
        }
    if (argc > 1)
        return 0;
    if (!test_all_parts() && !getenv("MPSIM_GOLDEN_UPDATE"))
        device_most_products = 2.2e9; /* a second or two */
    const size_t folders = find_folders(top, found);
    ok(folders > 0, "%s%s", top, ": recorded folders");
    for (size_t i = 0; i < folders; i++) {
        char path[300];
        snprintf(path, sizeof path, "data/vectors/device/%s", found[i]);
        check_folder(test_source_path(path), found[i]);
    }
    check_played();
    device_check_plays(ok);
    device_check_attention(ok);
    wait_for_devices(top, found, folders);
    printf("1..%d\n", plan);
    return failures > 0;
}
