/* world.c -- see world.h. */
#include "world.h"

#include "../text/escape.h"
#include "host.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const world *ranks;        /* NULL: a single process                   */
static uint64_t passed, expected; /* pieces of work; a digest                 */
static uint64_t failed_at;        /* where the last line was kept, and 1      */
static int ended;                 /* the exit code that all know; 0: none yet */
static char *kept;                /* lines                                    */
static size_t kept_bytes;

void world_join(const world *w)
{
    ranks = w->size > 1 ? w : NULL;
}

int world_rank(void)
{
    return ranks ? ranks->rank : 0;
}

int world_size(void)
{
    return ranks ? ranks->size : 1;
}

void world_pass(uint64_t n)
{
    passed += n;
}

void world_expect(uint64_t x)
{
    expected = (expected ^ x) * UINT64_C(0x9e3779b97f4a7c15);
    expected ^= expected >> 32;
}

/* ---- lines that wait ---- */

int world_keep(const char *line)
{
    const size_t n = strlen(line);
    char *grown = ranks ? realloc(kept, kept_bytes + n + 1) : NULL;
    if (!grown)
        return 0;
    memcpy(grown + kept_bytes, line, n + 1);
    kept = grown;
    kept_bytes += n;
    failed_at = passed + 1;
    return 1;
}

void world_forget(void)
{
    kept_bytes = 0;
    failed_at = 0;
}

/* What only this process has seen may be the fault of its machine. */
static void say_kept(int code)
{
    if (kept_bytes && code == EXIT_IO && ranks->rank)
        fprintf(stderr, "%.*s (%s)\n", (int)(kept_bytes - 1), kept, ranks->place);
    else if (kept_bytes)
        fwrite(kept, 1, kept_bytes, stderr);
    kept_bytes = 0;
}

/* ---- meetings ---- */

static int different_files(void)
{
    if (ranks->rank == 0)
        fputs("mpsim: the processes do not read the same files: are they the same on all machines?\n", stderr);
    return EXIT_DATA;
}

/* Whether anybody has failed: each comes with its own exit code. */
static int agree(int code)
{
    enum { FIRST, PASSED, NOT_PASSED, EXPECTED, NOT_EXPECTED, NUMBERS };
    if (!ranks || ended)
        return ended ? ended : code;
    const uint64_t at = failed_at ? failed_at - 1 : passed, size = (uint64_t)ranks->size;
    uint64_t x[NUMBERS] = {code ? at * size + (uint64_t)ranks->rank : UINT64_MAX, passed, ~passed, expected, ~expected};
    ranks->least(x, NUMBERS);
    if (x[FIRST] == UINT64_MAX) {
        if (x[PASSED] != ~x[NOT_PASSED] || x[EXPECTED] != ~x[NOT_EXPECTED])
            ended = different_files();
        return ended;
    }
    const int first = (int)(x[FIRST] % size);
    ended = code;
    ranks->tell(first, &ended, sizeof ended);
    if (first == ranks->rank)
        say_kept(code);
    return ended;
}

/* ---- the words of the command line ---- */

enum { SHOWN = 128 };

static const char *word_at(int n, char *const *words, uint64_t i)
{
    return i < (uint64_t)n ? words[i] : NULL;
}

/* FNV-1a; 0 where there is no word. */
static uint64_t digest(const char *word)
{
    uint64_t x = word ? UINT64_C(0xcbf29ce484222325) : 0;
    for (; word && *word; word++)
        x = (x ^ (unsigned char)*word) * UINT64_C(0x100000001b3);
    return x;
}

static int is_same(uint64_t x)
{
    uint64_t ends[2] = {x, ~x};
    ranks->least(ends, 2);
    return ends[0] == ~ends[1];
}

/* "'-f fp16'", or "nothing" */
static void show_word(char text[SHOWN], int n, char *const *words, uint64_t i)
{
    const char *word = word_at(n, words, i), *before = word && i > 0 ? word_at(n, words, i - 1) : NULL;
    char a[SHOWN / 4], b[SHOWN / 2];
    memset(text, 0, SHOWN);
    if (!word)
        strcpy(text, "nothing");
    else
        snprintf(text, SHOWN, "'%s%s%s'", before && *before == '-' ? escape_text(a, sizeof a, before) : "",
                 before && *before == '-' ? " " : "", escape_text(b, sizeof b, word));
}

/* The first of those whose word is not that of the first process says so. */
static int different_words(int n, char *const *words, uint64_t i)
{
    char first[SHOWN], mine[SHOWN];
    show_word(mine, n, words, i);
    memcpy(first, mine, sizeof first);
    uint64_t theirs = digest(word_at(n, words, i));
    const uint64_t own = theirs;
    ranks->tell(0, first, sizeof first);
    ranks->tell(0, &theirs, sizeof theirs);
    uint64_t who = own == theirs ? UINT64_MAX : (uint64_t)ranks->rank;
    ranks->least(&who, 1);
    if (who == (uint64_t)ranks->rank)
        fprintf(stderr, "mpsim: the processes are not given the same words: rank %d has %s, rank 0 has %s\n",
                ranks->rank, mine, first);
    return ended = EXIT_USAGE;
}

int world_agree_words(int n, char *const *words)
{
    uint64_t fewest = (uint64_t)n, i = 0;
    if (!ranks)
        return 0;
    ranks->least(&fewest, 1);
    while (i < fewest && is_same(digest(words[i])))
        i++;
    return i == fewest && is_same((uint64_t)n) ? 0 : different_words(n, words, i);
}

int world_unite(void *bytes, size_t n)
{
    const int code = agree(0);
    if (ranks && !code)
        ranks->unite(bytes, n);
    return code;
}

int world_all(const void *mine, size_t n, void *of_all)
{
    const int code = agree(0);
    if (ranks && !code)
        ranks->all(mine, n, of_all);
    else if (!code)
        memcpy(of_all, mine, n);
    return code;
}

/* What one process has; all of it is received even where it cannot be taken. */
static int take_from(int rank, int (*take)(void *context, int rank, const void *bytes, size_t n), void *context)
{
    const int go = 1;
    uint64_t n;
    ranks->send(rank, &go, sizeof go);
    ranks->receive(rank, &n, sizeof n);
    void *bytes = n <= SIZE_MAX - 1 ? malloc((size_t)n + 1) : NULL;
    const int room = bytes != NULL;
    ranks->send(rank, &room, sizeof room);
    if (!room) {
        (void)world_keep("mpsim: out of memory\n");
        return EXIT_IO;
    }
    ranks->receive(rank, bytes, (size_t)n);
    const int code = take(context, rank, bytes, (size_t)n);
    free(bytes);
    return code;
}

static void give(const void *mine, size_t n)
{
    const uint64_t length = n;
    int go = 0;
    ranks->receive(0, &go, sizeof go);
    if (!go)
        return;
    ranks->send(0, &length, sizeof length);
    ranks->receive(0, &go, sizeof go);
    if (go)
        ranks->send(0, mine, n);
}

int world_collect(const void *mine, size_t n, int (*take)(void *context, int rank, const void *bytes, size_t n),
                  void *context)
{
    const int stop = 0, met = agree(0);
    if (met)
        return met;
    if (world_rank()) {
        give(mine, n);
        return 0;
    }
    int code = take(context, 0, mine, n);
    for (int i = 1; i < world_size(); i++)
        if (code)
            ranks->send(i, &stop, sizeof stop);
        else
            code = take_from(i, take, context);
    return code;
}

/* ---- files ---- */

enum { PIECE = 1 << 18 };

/* The next n bytes, at most a piece; zeros for those that cannot be read. -1: some could not. */
static int next_piece(FILE *from, char *piece, size_t n)
{
    const size_t got = fread(piece, 1, n, from);
    memset(piece + got, 0, n - got);
    return got == n ? 0 : -1;
}

static size_t piece_of(uint64_t n)
{
    return n < PIECE ? (size_t)n : PIECE;
}

static int give_file(FILE *mine, uint64_t n, char *piece)
{
    int go, bad = 0;
    ranks->receive(0, &go, sizeof go);
    if (go)
        ranks->send(0, &n, sizeof n);
    for (; go && n > 0; n -= piece_of(n)) {
        bad |= next_piece(mine, piece, piece_of(n));
        ranks->send(0, piece, piece_of(n));
    }
    return bad;
}

static void take_file(int rank, FILE *to, char *piece)
{
    const int go = 1;
    uint64_t n;
    ranks->send(rank, &go, sizeof go);
    for (ranks->receive(rank, &n, sizeof n); n > 0; n -= piece_of(n)) {
        ranks->receive(rank, piece, piece_of(n));
        fwrite(piece, 1, piece_of(n), to);
    }
}

int world_stream(FILE *mine, uint64_t n, FILE *to)
{
    char *piece = malloc(PIECE);
    int bad = 0;
    if (!piece)
        (void)world_keep("mpsim: out of memory\n");
    const int code = piece ? agree(0) : EXIT_IO;
    if (!code && world_rank()) {
        bad = give_file(mine, n, piece);
    } else if (!code) {
        for (; n > 0; n -= piece_of(n)) {
            bad |= next_piece(mine, piece, piece_of(n));
            fwrite(piece, 1, piece_of(n), to);
        }
        for (int i = 1; i < world_size(); i++)
            take_file(i, to, piece);
    }
    free(piece);
    if (bad)
        (void)world_keep("mpsim: a temporary file cannot be read\n");
    return code ? code : bad ? EXIT_IO : 0;
}

int world_meet(int code)
{
    if (ended)
        return ended;
    code = agree(code);
    free(kept);
    kept = NULL;
    kept_bytes = 0;
    return code;
}

void world_end(int code)
{
    static int ending; /* what ends the ranks may call exit, and exit this */
    if (ranks && !ending++) {
        say_kept(code);
        ranks->end(code);
    }
    _exit(code);
}
