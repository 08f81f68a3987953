/* t-parts.c -- traces whose tensors lie in pieces in other files: more files than stay open, boxes of many dimensions,
 * and the recorded checkpoints (tests/trace/recorded/parts.py) with files missing, exchanged and changed. */
#include "support/badfile.h"
#include "support/support.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- copies of recorded folders ---- */

static blob read_all(const char *path)
{
    blob b = {0};
    char piece[4096];
    size_t n;
    FILE *f = fopen(path, "rb");
    ck_assert_msg(f != NULL, "%s", path);
    while ((n = fread(piece, 1, sizeof piece, f)) > 0)
        blob_add(&b, piece, n);
    fclose(f);
    return b;
}

/* tests/trace/recorded/NAME as a private folder of that last name, empty if NAME is NULL. */
static void copy_folder(const char *to, const char *name)
{
    char source[4400], path[5000], target[4700];
    const char *top = getenv("MPSIM_SRCDIR");
    const struct dirent *e;
    snprintf(target, sizeof target, "%s", bad_path(to));
    DIR *dir = opendir(target);
    while (dir && (e = readdir(dir))) {
        snprintf(path, sizeof path, "%s/%.255s", target, e->d_name);
        remove(path);
    }
    if (dir)
        closedir(dir);
    else
        ck_assert(mkdir(target, 0700) == 0);
    if (!name)
        return;
    snprintf(source, sizeof source, "%s/tests/trace/recorded/%s", top ? top : ".", name);
    dir = opendir(source);
    ck_assert_msg(dir != NULL, "%s", source);
    while ((e = readdir(dir))) {
        struct stat st;
        snprintf(path, sizeof path, "%s/%.255s", source, e->d_name);
        if (stat(path, &st) || !S_ISREG(st.st_mode))
            continue;
        blob b = read_all(path);
        snprintf(path, sizeof path, "%s/%.255s", to, e->d_name);
        bad_write(path, &b);
    }
    closedir(dir);
}

static void change(const char *file, const void *from, const void *into, size_t n)
{
    blob b = read_all(bad_path(file));
    unsigned char *at = memmem(b.data, b.n, from, n);
    ck_assert_msg(at != NULL, "%s", file);
    memcpy(at, into, n);
    bad_write(file, &b);
}

static uint32_t le32(const unsigned char *p)
{
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* The same within the data.pkl of a zip archive; all its CRCs change, too. */
static void change_pickle(const char *file, const void *from, const void *into, size_t n)
{
    static const char name[] = "/data.pkl";
    blob b = read_all(bad_path(file));
    unsigned char *entry = b.data;
    do {
        entry = memmem(entry + 1, b.n - (size_t)(entry + 1 - b.data), "PK\1\2", 4);
        ck_assert_msg(entry != NULL, "%s", file);
    } while (!memmem(entry + 46, entry[28], name, sizeof name - 1));
    unsigned char *data = b.data + le32(entry + 42);
    const uint32_t size = le32(entry + 24), crc = le32(entry + 16);
    data += 30 + (data[26] | data[27] << 8) + (data[28] | data[29] << 8);
    unsigned char *at = memmem(data, size, from, n);
    ck_assert_msg(at != NULL, "%s", file);
    memcpy(at, into, n);
    const uint32_t now = bad_crc32(data, size);
    for (size_t i = 0; i + 4 <= b.n; i++)
        if (le32(b.data + i) == crc)
            for (int k = 0; k < 4; k++)
                b.data[i + (size_t)k] = (unsigned char)(now >> 8 * k);
    bad_write(file, &b);
}

/* Reading must fail with exit code 3, in one line that begins with the path (a file in it may follow). */
static void expect(const char *what, const char *name, const char *fragment)
{
    const char *path = bad_path(name);
    const outcome o = bad_read(path, NULL);
    ck_assert_msg(o.failed && o.error.exit == 3, "%s: exit %d", what, o.failed ? o.error.exit : 0);
    ck_assert_msg(strncmp(o.error.text, path, strlen(path)) == 0 && !strchr(o.error.text, '\n'), "%s: \"%s\"", what,
                  o.error.text);
    ck_assert_msg(strstr(o.error.text, fragment) != NULL, "%s: no \"%s\" in \"%s\"", what, fragment, o.error.text);
}

/* ---- an index of safetensors ---- */

#define INDEX "s/model.safetensors.index.json"

static void write_index(const char *map, const char *metadata)
{
    blob b = {0};
    blob_text(&b, "{\"metadata\": {%s}, \"weight_map\": {", metadata);
    blob_add(&b, map, strlen(map));
    blob_text(&b, "}}");
    bad_write(INDEX, &b);
}

/* One tensor of two bytes numbers: 0x0100, 0x0302. */
static void write_shard(const char *file, const char *tensor)
{
    char header[200];
    snprintf(header, sizeof header, "{\"%s\":{\"dtype\":\"F16\",\"shape\":[2],\"data_offsets\":[0,4]}}", tensor);
    blob b = bad_safetensors(header, 4);
    bad_write(file, &b);
}

CASE("bad", 300);

TEST(an_index_and_its_files_say_the_same)
{
    copy_folder("s", NULL);
    write_shard("s/1.safetensors", "a");
    write_shard("s/2.safetensors", "b");
    write_index("\"a\": \"1.safetensors\", \"b\": \"2.safetensors\"", "\"total_size\": 8");
    outcome o = bad_read(bad_path(INDEX), NULL);
    ck_assert_msg(!o.failed && o.tensors == 2 && o.elements == 4, "%s", o.error.text);

    static const struct {
        const char *map, *metadata, *fragment;
    } rows[] = {
        {"\"a\": \"1.safetensors\", \"b\": \"3.safetensors\"", "", "its file '3.safetensors' is missing"},
        {"\"b\": \"1.safetensors\", \"a\": \"2.safetensors\"", "",
         "tensor 'a' is in '1.safetensors', not in '2.safetensors'"},
        {"\"a\": \"1.safetensors\", \"c\": \"1.safetensors\"", "", "tensor 'c' is not in '1.safetensors'"},
        {"\"c\": \"1.safetensors\"", "", "tensor 'a' of '1.safetensors' is not in the index"},
        {"\"a\": \"1.safetensors\", \"a\": \"1.safetensors\"", "", "tensor 'a' occurs twice in the index"},
        {"\"a\": \"1.safetensors\"", "\"total_size\": 8", "total_size is 8, its tensors have 4 bytes"},
        {"\"a\": \"../1.safetensors\"", "", "is not the name of a file beside the index"},
        {"\"a\": \"/etc/passwd\"", "", "is not the name of a file beside the index"},
        {"\"a\": \"\"", "", "is not the name of a file beside the index"},
        {"\"a\": \"model.safetensors.index.json\"", "", "a part of a trace cannot have parts itself"},
        {"\"a\": 1", "", "index is not valid: the name of its file expected"},
        {"\"a\": \"1.safetensors\",", "", "index is not valid"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        write_index(rows[i].map, rows[i].metadata);
        expect("index", INDEX, rows[i].fragment);
    }
    blob b = {0};
    blob_text(&b, "{\"metadata\": {\"weight_map\": 1}}");
    bad_write(INDEX, &b);
    expect("no map", INDEX, "the index has no weight_map");
    blob_text(&b, "{\"weight_map\": {}} x");
    bad_write(INDEX, &b);
    expect("junk", INDEX, "bytes after the JSON index");
}

/* More files than stay open: forwards, backwards, and each opened again. */
enum { N = 300 };
CASE("pieces", 60);

TEST(many_files_are_opened_as_needed)
{
    blob map = {0};
    trace_error e;
    copy_folder("s", NULL);
    for (int i = 0; i < N; i++) {
        char file[40], tensor[40];
        snprintf(file, sizeof file, "s/m%03d.safetensors", i);
        snprintf(tensor, sizeof tensor, "t%03d", i);
        write_shard(file, tensor);
        char row[100];
        snprintf(row, sizeof row, "%s\"%s\": \"%s\"", i ? ", " : "", tensor, file + 2);
        blob_add(&map, row, strlen(row));
    }
    blob_int(&map, 0, 1);
    write_index((const char *)map.data, "\"total_size\": 1200");
    blob_clear(&map);
    trace *t = trace_open(bad_path(INDEX), NULL, &e);
    ck_assert_msg(t != NULL, "%s", t ? "" : e.text);
    ck_assert(trace_count(t) == N);
    for (int i = 0; i < 2 * N; i++) {
        uint16_t codes[2];
        ck_assert_msg(trace_codes(t, (size_t)(i < N ? i : 2 * N - 1 - i), 0, codes, 2, &e) == 0, "%s", e.text);
        ck_assert(codes[0] == 0x0100 && codes[1] == 0x0302);
    }
    /* one that has become another since */
    blob b = bad_safetensors("{\"t000\":{\"dtype\":\"F16\",\"shape\":[1],\"data_offsets\":[0,2]}}", 2);
    uint16_t codes[2];
    bad_write("s/m000.safetensors", &b);
    for (size_t i = 100; i < N; i++) /* closed meanwhile */
        ck_assert(trace_codes(t, i, 0, codes, 2, &e) == 0);
    ck_assert(trace_codes(t, 0, 0, codes, 2, &e) == -1 && e.exit == 3);
    ck_assert_msg(strstr(e.text, "has 1 elements, not the 2 of a piece of 't000'") != NULL, "%s", e.text);
    trace_close(t);
}

/* ---- ZeRO ---- */

#define ZERO1 "zero1/global_step2"
#define RANK(r) "z/bf16_zero_pp_rank_" #r "_mp_rank_00_optim_states.pt"

static void move(const char *from, const char *to)
{
    ck_assert(rename(bad_path(from), bad_path(to)) == 0);
}

CASE("bad", 300);

TEST(zero_checkpoints_that_are_not_whole)
{
    copy_folder("z", ZERO1);
    outcome o = bad_read(bad_path("z"), NULL);
    ck_assert_msg(!o.failed && o.tensors == 21, "%s", o.error.text);

    remove(bad_path(RANK(1)));
    expect("a rank is missing", "z", "is a partition of 2, but there are files of 1 ranks");
    copy_folder("z", ZERO1);
    remove(bad_path(RANK(0)));
    expect("rank 0 is missing", "z", "the optimizer states of rank 0 of 2 are missing");
    copy_folder("z", ZERO1);
    move(RANK(1), RANK(2));
    expect("a hole", "z", "the optimizer states of rank 1 of 3 are missing");
    copy_folder("z", ZERO1);
    move(RANK(1), "z/zero_pp_rank_0_mp_rank_00_optim_states.pt");
    expect("a rank twice", "z", "rank 0 has two files of optimizer states");
    copy_folder("z", ZERO1);
    remove(bad_path("z/mp_rank_00_model_states.pt"));
    expect("no shapes", "z", "the model states of rank 0 are missing");
    copy_folder("z", ZERO1);
    move(RANK(1), "z/bf16_zero_pp_rank_0_mp_rank_01_optim_states.pt");
    expect("model parallel", "z", "several model-parallel ranks are not read");
    copy_folder("z", ZERO1);
    move(RANK(1), "z/expp_rank_0_mp_rank_00_optim_states.pt");
    expect("experts", "z", "partitions of experts are not read");
    copy_folder("z", ZERO1);
    move(RANK(1), "z/bf16_zero_pp_rank_99999_mp_rank_00_optim_states.pt");
    expect("a rank too large", "z", "is of a rank above");
    copy_folder("z", "zero3/global_step2");
    remove(bad_path("z/zero_pp_rank_2_mp_rank_00_optim_states.pt"));
    expect("stage 3", "z", "is a partition of 3, but there are files of 2 ranks");
    copy_folder("z", NULL);
    blob b = {0};
    bad_write(RANK(0), &b);
    expect("nothing", "z", "the model states of rank 0 are missing");
    bad_write("z/mp_rank_00_model_states.pt", &b);
    expect("empty", "z", "is empty");
}

/* Each recorded file in the place of another: one line or a tensor, never more. */
TEST(zero_checkpoints_mixed)
{
    static const char *const others[] = {"zero2/global_step2/bf16_zero_pp_rank_1_mp_rank_00_optim_states.pt",
                                         "zero3/global_step2/zero_pp_rank_1_mp_rank_00_optim_states.pt",
                                         "zero3/global_step2/zero_pp_rank_0_mp_rank_00_model_states.pt"};
    static const char *const places[] = {RANK(0), RANK(1), "z/mp_rank_00_model_states.pt"};
    char path[4700];
    const char *top = getenv("MPSIM_SRCDIR");
    for (size_t i = 0; i < 3; i++)
        for (size_t k = 0; k < 3; k++) {
            copy_folder("z", ZERO1);
            snprintf(path, sizeof path, "%s/tests/trace/recorded/%s", top ? top : ".", others[i]);
            blob b = read_all(path);
            bad_write(places[k], &b);
            const outcome o = bad_read(bad_path("z"), NULL);
            ck_assert(o.failed ? o.error.exit == 3 : i == 2 && k == 2);
        }
}

/* The shape of a.weight, (7, 5), in the model states, and that of a vector, (33,), in a rank's file. */
TEST(zero_shapes_that_lie)
{
    static const char model[] = "z/mp_rank_00_model_states.pt",
                      model3[] = "z/zero_pp_rank_0_mp_rank_00_model_states.pt";
    static const char shape[] = "K\7K\5\x86qI";
    static const struct {
        const char *into, *one, *three;
    } rows[] = {
        {"K\7K\5\x86qI", NULL, NULL},
        {"K\7K\7\x86qI", "the partitions of group 0 end within 'b.weight'", "the partitions end within 'a.bias'"},
        {"K\6K\5\x86qI", "the partitions of group 0 have 69 elements, its parameters need 64",
         "the parameters need 22 of each rank"},
        {"K\0K\5\x86qI", "the partitions of group 0 have 69 elements, its parameters need 34",
         "the parameters need 12 of each rank"},
    };
    for (size_t i = 0; i < 4; i++) {
        copy_folder("z", ZERO1);
        change_pickle(model, shape, rows[i].into, 7);
        if (rows[i].one)
            expect("shape", "z", rows[i].one);
        else
            ck_assert(!bad_read(bad_path("z"), NULL).failed);
        copy_folder("z", "zero3/global_step2");
        change_pickle(model3, "K\7K\5\x86q", rows[i].into, 6);
        if (rows[i].three)
            expect("shape", "z", rows[i].three);
        else
            ck_assert(!bad_read(bad_path("z"), NULL).failed);
    }
    copy_folder("z", ZERO1);
    change_pickle(RANK(1), "K!\x85", "K \x85", 3);
    expect("vector", "z", "the partitions of group 0 end within 'n.bias'");
}

/* ---- torch.distributed.checkpoint ---- */

/* An offset that begins with a number and goes on with none kept its length, but no numbers: a crash. */
TEST(bug_20261126_offsets_that_are_no_numbers)
{
    copy_folder("d", "shards");
    change("d/.metadata", "offset\x94h\"K\0K\0\x86", "offset\x94h\"K\0h\0\x86", 14);
    expect("an offset", "d", "chunk 0 of tensor 'columns' is in no file");
}

/* The size of the first chunk of 'columns', (6, 3) of (6, 10), one of four. */
TEST(distributed_chunks_that_do_not_fit)
{
    static const char size[] = "sizes\x94h\"K\6K\3\x86";
    static const struct {
        const char *into, *expected;
    } rows[] = {
        {"sizes\x94h\"K\6K\2\x86", "the pieces of tensor 'columns' have 54 of its 60 elements"},
        {"sizes\x94h\"K\6K\4\x86", "two pieces of tensor 'columns' overlap"},
        {"sizes\x94h\"K\7K\3\x86", "a piece of tensor 'columns' goes beyond its shape"},
        {"sizes\x94h\"K\6h\0\x86", "chunk 0 of tensor 'columns' has no offsets and sizes of 2 dimensions"},
    };
    for (size_t i = 0; i < 4; i++) {
        copy_folder("d", "shards");
        change("d/.metadata", size, rows[i].into, sizeof size - 1);
        expect("a size", "d", rows[i].expected);
    }
}

TEST(distributed_checkpoints_that_are_not_whole)
{
    copy_folder("d", "shards");
    outcome o = bad_read(bad_path("d"), NULL);
    ck_assert_msg(!o.failed && o.tensors == 9, "%s", o.error.text);

    remove(bad_path("d/__1_0.distcp"));
    expect("a file is missing", "d", "its file '__1_0.distcp' is missing");
    blob b = {0};
    bad_write("d/__1_0.distcp", &b);
    expect("an empty file", "d", "should be a tensor, but the file has 0");
    copy_folder("d", "shards");
    change("d/.metadata", "__1_0.distcp", "../_0.distcp", 12);
    expect("another folder", "d", "is not the name of a file beside .metadata");
    copy_folder("d", "shards");
    change("d/.metadata", "TensorStorageMetadata", "TensorStorageMutadata", 21);
    expect("a class", "d", "'columns' is of class torch.distributed.checkpoint.metadata.TensorStorageMutadata");
    copy_folder("d", "shards");
    change("d/.metadata", "\x8c\7float32", "\x8c\7floot32", 9);
    expect("a dtype", "d", "refused: global torch.floot32");
    copy_folder("d", "shards");
    change("d/.metadata", "torch.distributed.checkpoint.metadata\x94", "torch_distributed.checkpoint.metadata\x94", 38);
    expect("another module", "d", "refused: global torch_distributed.checkpoint.metadata.Metadata");
    copy_folder("d", "shards");
    blob_text(&b, "\x80\4N.");
    bad_write("d/.metadata", &b);
    expect("nothing", "d", "is not the metadata of torch.distributed.checkpoint");
    blob_text(&b, "no pickle");
    bad_write("d/.metadata", &b);
    expect("text", "d", ".metadata: offset");
}

/* The tensor of shape (2, 10) and its only chunk are said to be of shape (10, 2): as many elements, scrambled. */
TEST(a_chunk_of_another_shape)
{
    copy_folder("d", "shards");
    blob b = read_all(bad_path("d/.metadata"));
    unsigned char *at = memmem(b.data, b.n, "copies", 6);
    for (int i = 0; i < 2; i++) {
        at = at ? memmem(at, b.n - (size_t)(at - b.data), "K\2K\n\x86", 5) : NULL;
        ck_assert(at != NULL);
        memcpy(at, "K\nK\2", 4);
    }
    bad_write("d/.metadata", &b);
    expect("a shape", "d", "has not the shape of the piece of 'copies' that it is");
}

/* Sizes and offsets of chunks, K x K y TUPLE2, one after the other made smaller, a text, and larger. */
TEST(chunks_that_lie)
{
    size_t changed = 0, refused = 0;
    copy_folder("d", "shards");
    blob good = read_all(bad_path("d/.metadata"));
    for (size_t i = 0; i + 5 <= good.n; i++)
        for (int k = -1; k < 2 && good.data[i] == 'K' && good.data[i + 2] == 'K' && good.data[i + 4] == 0x86; k++) {
            blob b = {0};
            blob_add(&b, good.data, good.n);
            if (k)
                b.data[i + 3] = (unsigned char)(b.data[i + 3] + k);
            else
                memcpy(b.data + i + 2, "\x8c", 2); /* SHORT_BINUNICODE of no bytes */
            bad_write("d/.metadata", &b);
            const outcome o = bad_read(bad_path("d"), NULL);
            ck_assert(!o.failed || o.error.exit == 3);
            changed++;
            refused += o.failed != 0;
        }
    printf("# %zu of %zu changes are refused\n", refused, changed);
    ck_assert(changed > 30 && refused * 10 > changed * 8);
    blob_clear(&good);
}

/* Each byte of .metadata and of a file of tensors changed: what is refused is refused in one line. */
TEST(any_byte_changed)
{
    static const char *const files[] = {"d/.metadata", "d/__0_0.distcp", "z/mp_rank_00_model_states.pt", RANK(1)};
    copy_folder("d", "shards");
    copy_folder("z", ZERO1);
    for (size_t f = 0; f < 4; f++) {
        blob good = read_all(bad_path(files[f]));
        const size_t step = test_expensive() ? 1 : 7;
        size_t refused = 0;
        for (size_t i = 0; i < good.n; i += step) {
            if (!test_in_part(i / step, 1))
                continue;
            blob b = {0};
            blob_add(&b, good.data, good.n);
            b.data[i] ^= (unsigned char)(i % 3 ? 0x81 : 0x01);
            bad_write(files[f], &b);
            const outcome o = bad_read(bad_path(f < 2 ? "d" : "z"), NULL);
            ck_assert(!o.failed || o.error.exit == 3 || o.error.exit == 4);
            ck_assert(!o.failed || (strchr(o.error.text, '\n') == NULL && o.error.text[0]));
            refused += o.failed != 0;
        }
        printf("# %s: %zu refused\n", files[f], refused);
        bad_write(files[f], &good);
    }
}

TEST_MAIN_BY(bad_main, "parts");
