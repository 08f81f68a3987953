/* layout.c -- which layout a file has, by its first bytes. */
#include "config.h"
#include "impl.h"
#include "stream.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static uint64_t le64(const unsigned char *p)
{
    uint64_t u = 0;
    for (int i = 8; i-- > 0;)
        u = u << 8 | p[i];
    return u;
}

/* safetensors has no magic: a length and a JSON object. The length may be wrong, as long as
 * the eight bytes could not be text instead. */
static int is_safetensors(const unsigned char *head, size_t n)
{
    size_t i = 8;
    int text = 1;
    if (n < 9)
        return 0;
    for (size_t k = 0; k < 8; k++)
        text &= head[k] >= 0x20 || (head[k] >= '\t' && head[k] <= '\r');
    if (le64(head) > TRACE_HEADER_MAX && text)
        return 0;
    while (i < n && strchr(" \t\r\n", head[i]) && head[i])
        i++;
    return i == n ? n == TRACE_HEAD : head[i] == '{';
}

/* Pickles of protocol 2 and later begin with their protocol, older ones with one of few instructions. What only
 * looks like it is told by the pickle machine. */
static int is_pickle(const unsigned char *head, size_t n)
{
    static const char *const begins[] = {"(dp",
                                         "(lp",
                                         "(d.",
                                         "}q",
                                         "]q",
                                         "}(",
                                         "ccollections\n",
                                         "ctorch",
                                         "cnumpy",
                                         "ccopy_reg\n",
                                         "ccopyreg\n",
                                         "(dq",
                                         "L119547037146038801333356L\n"};
    if (n >= 2 && head[0] == 0x80)
        return head[1] >= 2 && head[1] <= 5;
    for (size_t i = 0; i < sizeof begins / sizeof begins[0]; i++) {
        const size_t k = strlen(begins[i]);
        if (n >= k && memcmp(head, begins[i], k) == 0)
            return 1;
    }
    return 0;
}

const trace_layout_type *trace_layout_of(const unsigned char *head, size_t n)
{
    static const struct {
        const char *magic;
        size_t n;
        const trace_layout_type *type;
    } rows[] = {
        {"\x93NUMPY", 6, &trace_layout_npy},
        {"PK\3\4", 4, &trace_layout_zip},
        {"PK\5\6", 4, &trace_layout_zip},
        {"GGUF", 4, &trace_layout_gguf},
#ifdef HAVE_HDF5
        {"\x89HDF\r\n\x1a\n", 8, &trace_layout_hdf5},
#endif
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (n >= rows[i].n && memcmp(head, rows[i].magic, rows[i].n) == 0)
            return rows[i].type;
    if (trace_is_index(head, n))
        return &trace_layout_shards;
    if (trace_llmc_begins(head, n))
        return &trace_layout_llmc;
    if (is_safetensors(head, n))
        return &trace_layout_safetensors;
    if (is_pickle(head, n))
        return &trace_layout_pickle;
    if (trace_msgpack_begins(head, n))
        return &trace_layout_msgpack;
    if (trace_onnx_begins(head, n))
        return &trace_layout_onnx;
    return NULL;
}

/* ---- what is not a file of tensors ---- */

/* Whether n bytes are text: UTF-8 without control characters but those of lines. A head may end within a character. */
static int is_text(const unsigned char *head, size_t n)
{
    char text[TRACE_HEAD + 1];
    size_t length = 1;
    uint32_t c;
    memcpy(text, head, n);
    text[n] = '\0';
    for (const char *s = text; s < text + n; s += length) {
        length = utf8_character(s, &c);
        if (length == 0)
            return n == TRACE_HEAD && s > text + n - 4;
        if ((c < 0x20 && !strchr("\t\n\r\f", (int)c)) || c == 0x7f || c == 0)
            return 0;
    }
    return n > 0;
}

/* Whether text begins with a word, in any case. */
static int text_begins(const char *text, size_t n, const char *word)
{
    size_t i = 0;
    while (i < n && word[i] && (text[i] | 0x20) == (word[i] | 0x20))
        i++;
    return !word[i];
}

/* What a text is, behind a byte order mark and white space; NULL: it is not text. */
static const char *what_text(const unsigned char *head, size_t n)
{
    static const struct {
        const char *begin, *what;
    } rows[] = {
        {"version https://git-lfs",
         "a Git LFS pointer, which stands for a file that was not fetched: run git lfs pull"},
        {"<!doctype html", "a page of HTML: a download that failed, or the page about the file"},
        {"<html", "a page of HTML: a download that failed, or the page about the file"},
        {"<", "XML"},
        {"{", "JSON"},
        {"[", "JSON"},
        {"(", NULL}, /* a pickle of before Python 3 may begin so */
    };
    n = n < TRACE_HEAD ? n : TRACE_HEAD;
    if (!is_text(head, n))
        return NULL;
    const size_t mark = n >= 3 && memcmp(head, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    const char *text = (const char *)head + mark;
    n -= mark;
    for (; n && strchr(" \t\n\r", *text); text++)
        n--;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (text_begins(text, n, rows[i].begin))
            return rows[i].what;
    return "text";
}

/* A pointer where a file of tensors should be is not passed over: opening it says what it is. */
static int is_pointer(const char *path, const unsigned char *head, size_t n)
{
    static const char *const ends[] = {".safetensors", ".bin", ".pt",   ".pth", ".ckpt",
                                       ".npz",         ".npy", ".gguf", ".h5",  ".pkl"};
    const size_t length = strlen(path);
    if (!text_begins((const char *)head, n, "version https://git-lfs"))
        return 0;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        const size_t k = strlen(ends[i]);
        if (length > k && strcmp(path + length - k, ends[i]) == 0)
            return 1;
    }
    return 0;
}

/* What a file is by its name, of those whose bytes do not tell; NULL: it is not known. */
static const char *what_name(const char *path)
{
#define SAVE ", which is not read: save its arrays as safetensors or npz"
    static const struct {
        const char *name, *what;
    } rows[] = {
        {"*.data-[0-9]*-of-[0-9]*", "a part of a checkpoint of TensorFlow" SAVE},
        {"*.index", "the index of a checkpoint of TensorFlow" SAVE},
        {"saved_model.pb", "a SavedModel of TensorFlow" SAVE},
        {"zarr.json", "the description of a Zarr array or group" SAVE},
        {".zarray", "the description of a Zarr array" SAVE},
        {".zgroup", "the description of a Zarr group" SAVE},
        {"*.tfevents.*", TRACE_EVENTS},
        {"_METADATA", "the description of a checkpoint of Orbax" SAVE},
    };
    const char *slash = strrchr(path, '/');
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        if (fnmatch(rows[i].name, slash ? slash + 1 : path, 0) == 0)
            return rows[i].what;
    return NULL;
}

/* Record: length, CRC, event: wall time and "brain.Event:2", whatever CRCs and lengths are. */
#define EVENTS_AT 23
#define EVENTS_MAGIC "brain.Event:"

int trace_is_events(const void *head, size_t n)
{
    return n >= EVENTS_AT + strlen(EVENTS_MAGIC) &&
           memcmp((const char *)head + EVENTS_AT, EVENTS_MAGIC, strlen(EVENTS_MAGIC)) == 0;
}

static const char not_one[] = "not a " TRACE_LAYOUTS(" or ") " file";

int trace_layout_unknown(const trace *t, const unsigned char *head, size_t n, trace_error *error)
{
    static const struct {
        size_t at;
        const char *magic;
        const char *what;
    } others[] = {
        {0, "\x93NUM", "a damaged npy file"},
        {0, "PK", "a damaged or split zip file"},
        {0, "\x89HDF", "an HDF5 file, which this mpsim was built without: save it as safetensors or npz"},
        {0, "mpsim-part/", "a part of a report: see mpsim merge --list"},
        {0, "\x1f\x8b", "damaged gzip data"},
        {0, "\xc8\xd7\x34\x01", "a tokenizer of llm.c, which holds no tensors"},
        {4, "TFL3", "a TensorFlow Lite model: save its weights as npz or safetensors"},
        {0, "\x0c\xdb\x3a\x2a", "the manifest of an OCDBT database" SAVE},
        {0, "\x0c\xdb\x20\xde", "a part of an OCDBT database" SAVE},
        {EVENTS_AT, EVENTS_MAGIC, TRACE_EVENTS},
        {0, "PAR1", "a Parquet file"},
        {0, "ARROW1", "an Arrow file"},
        {0, "%PDF", "a PDF document"},
        {0, "\x89PNG", "a picture (PNG)"},
        {0,
         "\x7f"
         "ELF",
         "a program or library (ELF)"},
        {257, "ustar",
         "a tar archive: unpack it first (one that PyTorch wrote before 0.1.10: load and save it by a later one)"},
    };
    if (t->size == 0)
        return trace_fail(t, error, TRACE_NO_OFFSET, "is empty");
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (n >= others[i].at + strlen(others[i].magic) &&
            memcmp(head + others[i].at, others[i].magic, strlen(others[i].magic)) == 0)
            return trace_fail(t, error, 0, "%s but %s", not_one, others[i].what);
    const char *named = what_name(t->path);
    if (!named)
        named = trace_core_ml(head, n);
    if (named)
        return trace_fail(t, error, 0, "%s but %s", not_one, named);
    if (t->size < 8)
        return trace_fail(t, error, 0, "%" PRIu64 " bytes are too few for a file of tensors", t->size);
    const char *text = what_text(head, n);
    if (text)
        return trace_fail(t, error, 0, "%s but %s", not_one, text);
    const uint64_t length = le64(head);
    if (length > t->max_header)
        return trace_fail(t, error, 0, "%s (as safetensors: header length %" PRIu64 " is above the cap of %" PRIu64 ")",
                          not_one, length, t->max_header);
    if (length > t->size - 8)
        return trace_fail(t, error, 0,
                          "%s (as safetensors: header length %" PRIu64 ", but the file has %" PRIu64 " bytes)", not_one,
                          length, t->size);
    if (length == 0)
        return trace_fail(t, error, 0, "%s (as safetensors: header length 0)", not_one);
    return trace_fail(t, error, 8, "%s (as safetensors: the header does not begin with '{')", not_one);
}

/* The same of a file, which may be packed. What cannot be unpacked is known: opening it says why. */
static int is_known(int fd, const unsigned char *head, size_t n)
{
    unsigned char inside[TRACE_HEAD];
    if (!trace_stream_of(head, n))
        return trace_layout_of(head, n) != NULL;
    if (!trace_stream_readable(head, n))
        return 0;
    stream *s = trace_stream_open(fd, 1, head, n);
    const ssize_t got = s ? trace_stream_read(s, inside, sizeof inside) : -1;
    trace_stream_close(s);
    return got < 0 || trace_layout_of(inside, (size_t)got) || trace_stream_of(inside, (size_t)got);
}

int trace_names_others(const char *path)
{
    unsigned char head[TRACE_HEAD];
    struct stat st;
    if (stat(path, &st) || !S_ISREG(st.st_mode)) /* opening a pipe disturbs its writer */
        return 0;
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    const ssize_t n = fd < 0 ? 0 : trace_pread(fd, head, sizeof head, 0);
    if (fd >= 0)
        close(fd);
    return n > 0 && (trace_is_index(head, (size_t)n) || trace_onnx_begins(head, (size_t)n));
}

int trace_probe(const char *path, const trace_options *options)
{
    unsigned char head[TRACE_HEAD];
    struct stat st;
    int known = 0;
    if (stat(path, &st) || !S_ISREG(st.st_mode))
        return 0;
    /* it may have become a FIFO since: do not wait for a writer */
    const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) {
        const ssize_t n = trace_pread(fd, head, sizeof head, 0);
        known = (options && options->raw_format) ||
                (n > 0 && (is_known(fd, head, (size_t)n) || is_pointer(path, head, (size_t)n)));
    }
    close(fd);
    return known;
}
