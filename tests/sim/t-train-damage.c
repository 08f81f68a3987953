/* t-train-damage.c -- a checkpoint with a bit flipped, with parts that are missing, doubled or in another
 * order, cut off or longer: none is taken for one. */
#include "sim/cli/options.h"
#include "sim/train/checkpoint.h"
#include "support/replaykept.h"
#include "support/support.h"
#include "support/trainer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static unsigned char bytes[1 << 20];
static size_t n_bytes, header; /* of the file; of its length and its JSON */

/* A checkpoint of three steps in `bytes`. */
static void make_checkpoint(void)
{
    trainer t;
    trace_error error;
    checkpoint c = {.state = NULL};
    const char *path = trainer_path("whole");
    trainer_open(&t, "pytorch-amp-fp16", "mlp", 6);
    for (int i = 0; i < 3; i++)
        (void)trainer_next(&t);
    const checkpoint_note note = {.step = 3, .taken = 3};
    ck_assert_msg(train_checkpoint_take(&c, path, t.train, &note, &error) == 0 &&
                      train_checkpoint_write(&c, path, &t.run, &error) == 0,
                  "%s", error.text);
    train_checkpoint_clear(&c);
    trainer_close(&t);
    FILE *f = fopen(path, "rb");
    ck_assert_ptr_nonnull(f);
    n_bytes = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    ck_assert_uint_lt(n_bytes, sizeof bytes);
    header = 8 + (bytes[0] | (size_t)bytes[1] << 8 | (size_t)bytes[2] << 16);
    ck_assert_uint_lt(header, n_bytes);
}

static FILE *open_copy(const char *path, const void *p, size_t n)
{
    FILE *f = fopen(path, "w+b");
    ck_assert_ptr_nonnull(f);
    ck_assert_uint_eq(fwrite(p, 1, n, f), n);
    ck_assert_int_eq(fflush(f), 0);
    return f;
}

/* One line that names the file, exit code 3: the line; NULL: it was taken. */
static const char *refusal(const char *path)
{
    static trace_error error;
    train_run r;
    memset(&error, 0, sizeof error);
    if (train_checkpoint_run(path, &r, &error) == 0) {
        train_run_clear(&r);
        return NULL;
    }
    ck_assert_int_eq(error.exit, EXIT_DATA);
    ck_assert_msg(strncmp(error.text, path, strlen(path)) == 0 && !strchr(error.text, '\n'), "%s", error.text);
    return error.text;
}

/* Into a trainer that waits for it: 0: it was taken. */
static int resumes(const char *path)
{
    trainer t;
    trace_error error;
    checkpoint_note note = {0};
    trainer_open(&t, "pytorch-amp-fp16", "mlp", 6);
    const int bad = train_checkpoint_read(path, &t.run, t.train, &note, &error);
    trainer_close(&t);
    return bad;
}

static void flip(FILE *f, size_t at, unsigned bit)
{
    ck_assert_int_eq(fseek(f, (long)at, SEEK_SET), 0);
    fputc(bytes[at] ^ (bit < 8 ? 1 << bit : 0), f);
    ck_assert_int_eq(fflush(f), 0);
}

/* Where a tensor's bytes are. */
static size_t tensor_at(const char *name, size_t *end)
{
    char key[64];
    static char text[sizeof bytes];
    unsigned long from, to;
    memcpy(text, bytes + 8, header - 8);
    text[header - 8] = 0;
    snprintf(key, sizeof key, "\"%s\":{", name);
    const char *p = strstr(text, key);
    ck_assert_msg(p && (p = strstr(p, "data_offsets\":[")) && sscanf(p, "data_offsets\":[%lu,%lu]", &from, &to) == 2,
                  "no %s", name);
    *end = header + to;
    return header + from;
}

CASE("damage", 120);

/* Every bit of the header and of the data, or of a part of the bytes. */
TEST(a_flipped_bit_is_found)
{
    const char *path = trainer_path("flipped");
    size_t positions = 0, flips = 0, in_header = 0, end;
    make_checkpoint();
    FILE *f = open_copy(path, bytes, n_bytes);
    ck_assert_ptr_null(refusal(path));
    const size_t m = tensor_at("opt.m:fc1.weight", &end);
    const size_t stride = test_expensive() ? 1 : 7;
    for (size_t at = 0; at < n_bytes; at += stride) {
        for (unsigned bit = 0; bit < 8; bit++) {
            flip(f, at, bit);
            const char *line = refusal(path);
            ck_assert_msg(line != NULL, "bit %u of byte %zu of %zu: taken", bit, at, n_bytes);
            if (at >= m && at < end)
                ck_assert_msg(strstr(line, "'opt.m:fc1.weight'") != NULL, "%s", line);
            flips++;
        }
        flip(f, at, 8);
        positions++;
        in_header += at < header;
    }
    ck_assert_ptr_null(refusal(path));
    for (size_t at = 3; at < n_bytes; at += n_bytes / 60) { /* the other way in */
        flip(f, at, at % 8);
        ck_assert_msg(resumes(path) != 0, "byte %zu", at);
        flip(f, at, 8);
    }
    ck_assert_int_eq(resumes(path), 0);
    fclose(f);
    printf("# %zu positions (%zu in the header of %zu bytes, %zu in the data of %zu), %zu flips: all "
           "refused\n",
           positions, in_header, header, positions - in_header, n_bytes - header, flips);
    ck_assert_uint_gt(positions, 200);
}

TEST(other_lengths_are_found)
{
    const char *path = trainer_path("longer");
    make_checkpoint();
    for (size_t more = 1; more < 20; more += 6) {
        memset(bytes + n_bytes, more == 1 ? 0 : 'x', more);
        fclose(open_copy(path, bytes, n_bytes + more));
        ck_assert_ptr_nonnull(refusal(path));
        fclose(open_copy(path, bytes, n_bytes - more));
        ck_assert_ptr_nonnull(refusal(path));
    }
}

/* The header with `from` replaced by `to` n times, as the only change. */
static const char *edited(const char *from, const char *to, int times)
{
    static char text[2 * sizeof bytes];
    const char *path = trainer_path("edited");
    char *at = text;
    size_t n = header - 8;
    memcpy(text, bytes + 8, n);
    text[n] = 0;
    for (int i = 0; i < times; i++) {
        at = strstr(at, from);
        ck_assert_msg(at != NULL, "no '%s'", from);
        memmove(at + strlen(to), at + strlen(from), strlen(at + strlen(from)) + 1);
        memcpy(at, to, strlen(to));
        at += strlen(to);
    }
    n = strlen(text);
    unsigned char length[8] = {0};
    for (int i = 0; i < 4; i++)
        length[i] = (unsigned char)(n >> 8 * i);
    FILE *f = open_copy(path, length, 8);
    fwrite(text, 1, n, f);
    fwrite(bytes + header, 1, n_bytes - header, f);
    fclose(f);
    return path;
}

TEST(other_headers_are_found)
{
    static const struct {
        const char *from, *to;
        int times;
    } rows[] = {
        {"\"mpsim.step\":\"3\",", "", 1},
        {"\"mpsim.step\":\"3\",", "\"mpsim.step\":\"3\",\"mpsim.step\":\"3\",", 1},
        {"\"mpsim.step\":\"3\",", "\"mpsim.step\":\"3\",\"more\":\"3\",", 1},
        {"\"mpsim.step\":\"3\"", "\"mpsim.step\":\"2\"", 1},
        {"\"mpsim.optimizer_steps\":\"3\"", "\"mpsim.optimizer_steps\":\"2\"", 1},
        {"\"mpsim.step\":\"3\",\"mpsim.optimizer_steps\":\"3\"", "\"mpsim.optimizer_steps\":\"3\",\"mpsim.step\":\"3\"",
         1},
        {"momentum=0x1.ccccccccccccdp-1", "momentum=0x1.cccccccccccccp-1", 1},
        {"clean=3", "clean=2", 1},
        {"age fc1.weight 3", "age fc1.weight 2", 1},
        {"mpsim.train.digests", "mpsim.train.digestz", 1},
        {"checkpoint/2", "checkpoint/3", 1},
        {"checkpoint/2", "checkpoint/1", 1},
        {"\\nall ", "\\nall  ", 1},
        {"\"opt.m:fc1.weight\"", "\"opt.v:fc1.weight\"", 1},
        {"opt.m:fc1.weight", "opt.v:fc1.weight", 2}, /* in the digests, too */
        {"\"dtype\":\"F32\",\"shape\":[12,64]", "\"dtype\":\"F32\",\"shape\":[64,12]", 1},
        {"\"dtype\":\"F32\",\"shape\":[12]", "\"dtype\":\"I32\",\"shape\":[12]", 1},
    };
    make_checkpoint();
    ck_assert_ptr_null(refusal(edited("fc1", "fc1", 1))); /* nothing is changed */
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        ck_assert_msg(refusal(edited(rows[i].from, rows[i].to, rows[i].times)) != NULL, "row %zu: %s", i, rows[i].from);
}

/* Two tensors of one shape: their elements; then their places, too, so that each name has its own. */
TEST(swapped_tensors_are_found)
{
    size_t end_m, end_w;
    unsigned char kept[256];
    char range[2][64], *at[2];
    const char *path = trainer_path("swapped");
    make_checkpoint();
    const size_t m = tensor_at("opt.m:fc1.bias", &end_m), w = tensor_at("weight:fc1.bias", &end_w);
    ck_assert(end_m - m == end_w - w && end_m - m <= sizeof kept);
    memcpy(kept, bytes + m, end_m - m);
    memcpy(bytes + m, bytes + w, end_m - m);
    memcpy(bytes + w, kept, end_m - m);
    fclose(open_copy(path, bytes, n_bytes));
    const char *line = refusal(path);
    ck_assert_msg(line && strstr(line, "'opt.m:fc1.bias'"), "%s", line ? line : "taken");
    snprintf(range[0], sizeof range[0], "[%zu,%zu]", m - header, end_m - header);
    snprintf(range[1], sizeof range[1], "[%zu,%zu]", w - header, end_w - header);
    ck_assert_uint_eq(strlen(range[0]), strlen(range[1]));
    for (int i = 0; i < 2; i++) {
        at[i] = memmem(bytes, header, range[i], strlen(range[i]));
        ck_assert_ptr_nonnull(at[i]);
    }
    memcpy(at[0], range[1], strlen(range[1]));
    memcpy(at[1], range[0], strlen(range[0]));
    fclose(open_copy(path, bytes, n_bytes));
    ck_assert_ptr_nonnull(refusal(path));
}

TEST_MAIN_BY(replay_test_main, "train-damage");
