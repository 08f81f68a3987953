/* kept.c -- see kept.h. */
#include "kept.h"

#include "sim/text/sha256.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int kept_complain(char *why, const char *name, const char *what)
{
    if (!*why)
        snprintf(why, WHY, "%s: %s", name ? name : "?", what);
    return 1;
}

const char *kept_text(const json_t *o, const char *key)
{
    const char *s = json_string_value(json_object_get(o, key));
    return s ? s : "";
}

uint64_t kept_number(const json_t *o, const char *key)
{
    return (uint64_t)json_integer_value(json_object_get(o, key));
}

int kept_ends(const char *name, const char *end)
{
    const size_t n = strlen(name), m = strlen(end);
    return n >= m && strcmp(name + n - m, end) == 0;
}

char *kept_read(const char *folder, const char *name, size_t *n)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    char *text = NULL;
    size_t room = 0;
    *n = 0;
    for (size_t got = 1; f && got > 0; *n += got) {
        if (*n + 65536 > room) {
            char *more = realloc(text, (room = 2 * room + 131072) + 1);
            if (!more)
                break;
            text = more;
        }
        got = fread(text + *n, 1, 65536, f);
    }
    if (f)
        fclose(f);
    if (text)
        text[*n] = 0;
    return text;
}

/* ---- digests of files ---- */

static int is_kept(const char *name)
{
    static const char *const others[] = {"README.md", "SHA256SUMS", "answers.txt"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(name, others[i]) == 0)
            return 0;
    return name[0] != '.' && !kept_ends(name, ".sh") && !kept_ends(name, ".tsv");
}

/* Whether the text of SHA256SUMS has the line of a file with these bytes. */
static int has_line(const char *sums, const char *name, const void *bytes, size_t n)
{
    char line[512];
    sha256 s;
    sha256_init(&s);
    sha256_add(&s, bytes, n);
    sha256_hex(&s, line);
    snprintf(line + 64, sizeof line - 64, "  %s\n", name);
    const char *at = sums ? strstr(sums, line) : NULL;
    return at && (at == sums || at[-1] == '\n');
}

int kept_has(const char *folder, const char *name, const void *bytes, size_t n)
{
    size_t length;
    char *sums = kept_read(folder, "SHA256SUMS", &length);
    const int has = has_line(sums, name, bytes, n);
    free(sums);
    return has;
}

/* Files of the folder, and how many of them have another digest. */
static int compare_files(const char *folder, const char *sums, char *why, size_t *files)
{
    DIR *d = opendir(folder);
    int bad = d ? 0 : kept_complain(why, folder, "cannot be read");
    for (struct dirent *e; d && (e = readdir(d)) != NULL;) {
        size_t n;
        char *bytes = is_kept(e->d_name) && strchr(e->d_name, '.') ? kept_read(folder, e->d_name, &n) : NULL;
        if (!bytes)
            continue;
        ++*files;
        if (!has_line(sums, e->d_name, bytes, n))
            bad += kept_complain(why, e->d_name,
                                 "SHA256SUMS has another digest, or none: sh data/gpu/take.sh --sums FOLDER");
        free(bytes);
    }
    if (d)
        closedir(d);
    return bad;
}

int kept_sums(const char *folder, char *why)
{
    size_t n, files = 0, lines = 0;
    char *sums = kept_read(folder, "SHA256SUMS", &n);
    int bad = sums ? 0 : kept_complain(why, folder, "no SHA256SUMS");
    bad += compare_files(folder, sums, why, &files);
    for (size_t i = 0; i < n; i++)
        lines += sums[i] == '\n';
    if (lines > files)
        bad += kept_complain(why, folder, "SHA256SUMS has a file that is not there");
    free(sums);
    return bad;
}

/* ---- reports ---- */

static int is_zero(const json_t *o, const char *key)
{
    return json_is_integer(json_object_get(o, key)) && kept_number(o, key) == 0;
}

static int is_hex(const char *s)
{
    return strlen(s) == 16 && strspn(s, "0123456789abcdef") == 16;
}

int kept_statistics(const json_t *root, char *why)
{
    const json_t *arrays = json_object_get(root, "arrays"), *o;
    size_t i;
    int bad = 0;
    if (!*kept_text(root, "device") || json_array_size(arrays) == 0 ||
        !json_is_integer(json_object_get(root, "compared")) ||
        kept_number(root, "compared") != json_array_size(arrays) || !is_zero(root, "differing"))
        bad += kept_complain(why, "statistics", "not as many arrays as it says, or some differ");
    json_array_foreach(arrays, i, o)
    {
        if (!json_is_true(json_object_get(o, "equal")) || !is_hex(kept_text(o, "digest")) || !*kept_text(o, "format") ||
            !*kept_text(o, "numbers") || !json_is_integer(json_object_get(o, "elements")))
            bad += kept_complain(why, kept_text(o, "format"), "an array that differs, or is not whole");
    }
    return bad;
}

int kept_cuda_check(const json_t *root, char *why)
{
    const json_t *rows = json_object_get(root, "questions"), *o;
    size_t i;
    int bad = 0;
    if (!*kept_text(root, "device") || !*kept_text(root, "torch") || !*kept_text(root, "date") ||
        json_array_size(rows) == 0 || !is_zero(root, "stat_differing") || !is_zero(root, "watch_differing"))
        bad += kept_complain(why, "cuda_check", "not whole, or some differ");
    json_array_foreach(rows, i, o)
    {
        if (!*kept_text(o, "question") || strcmp(kept_text(o, "status"), "equal") != 0)
            bad += kept_complain(why, kept_text(o, "question"), "differs, or is not whole");
    }
    return bad;
}

/* ---- logs ---- */

int kept_log(const char *path, char *why)
{
    static const char *const summaries[] = {"ERROR SUMMARY: ", "RACECHECK SUMMARY: "};
    FILE *f = fopen(path, "r");
    char line[4096];
    int seen = 0, bad = 0;
    while (f && fgets(line, sizeof line, f))
        for (size_t i = 0; i < 2; i++) {
            const char *at = strstr(line, summaries[i]);
            seen += at != NULL;
            if (at && strncmp(at + strlen(summaries[i]), "0 ", 2) != 0)
                bad += kept_complain(why, path, at);
        }
    if (f)
        fclose(f);
    return bad + (seen ? 0 : kept_complain(why, path, "no summary of compute-sanitizer"));
}
