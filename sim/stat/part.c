/* part.c -- see part.h. */
#include "part.h"

#include "../array/need.h"
#include "../text/words.h"
#include "../trace/inputs.h"
#include "../trace/whole.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <mpsim/digest.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static const char magic[] = "mpsim-part/";
enum { VERSION = 4, VERSION_WITHOUT_RECIPES = 3, VERSION_WITH_UNREAD = 3, FRAME = 5, RANK_MOST = 64 };

/* ---- the head ---- */

const char *stat_part_describe(char *out, size_t size, const mpsim_format *f, const mpsim_rounding *r)
{
    snprintf(out, size,
             "%s: bits %d exponent %d significand %d bias %d inf %d nan %d zero %d max 0x%" PRIx64
             " nan code 0x%" PRIx64,
             f->name, f->bits, f->ebits, f->mbits, f->bias, f->inf, f->nan, f->zero, f->max_finite, f->nan_code);
    if (r)
        text_add(out, size, "; mode %d random %d overflow %d infinity %d %d nan %d %d negative %d zero %d flush %d %d",
                 r->mode, r->sr_bits, r->overflow, r->infinity, r->no_inf, r->nan, r->no_nan, r->negative, r->no_zero,
                 r->flush_input, r->flush_output);
    return out;
}

const char *stat_part_describe_block(char *out, size_t size, const block_target *t)
{
    const mpsim_block_recipe *b = &t->recipe;
    snprintf(out, size,
             "%s: element %s rule %d power of two %d mode %d random %d block %u x %u infinity %a epsilon %a "
             "margin %a transform %u",
             t->label, b->element, b->rule, b->power_of_two, b->element_mode, b->sr_bits, (unsigned)b->block_rows,
             (unsigned)b->block_cols, b->scale_for_inf, b->amax_epsilon, b->margin, t->transform);
    return out;
}

void stat_part_head_clear(part_head *h)
{
    free(h->words.items);
    free(h->formats.items);
    free(h->memory);
    memset(h, 0, sizeof *h);
}

static void put_pairs(array_bytes *b, const part_pairs *l)
{
    stat_bytes_put_count(b, l->count);
    for (size_t i = 0; i < l->count; i++) {
        stat_bytes_put_text(b, l->items[i].name);
        stat_bytes_put_text(b, l->items[i].value);
    }
}

/* Every pair takes at least four bytes, so that no more are there than bytes are left. */
static void take_pairs(taker *t, part_pairs *l)
{
    const size_t n = (size_t)stat_take_number(t, (uint64_t)(t->end - t->p) / 4);
    l->items = need_memory(n, sizeof *l->items);
    for (; l->count < n && !t->bad; l->count++) {
        l->items[l->count].name = stat_take_text(t);
        l->items[l->count].value = stat_take_text(t);
    }
}

/* ---- writing ---- */

/* The record at hand, with its frame. */
static void put_record(part_writer *w, int tag)
{
    const unsigned char frame[FRAME] = {(unsigned char)tag, (unsigned char)w->b.n, (unsigned char)(w->b.n >> 8),
                                        (unsigned char)(w->b.n >> 16), (unsigned char)(w->b.n >> 24)};
    w->b.failed |= w->b.n > UINT32_MAX;
    w->digest += mpsim_digest_bytes(frame, sizeof frame, w->at);
    w->digest += mpsim_digest_bytes(w->b.p, w->b.n, w->at + sizeof frame);
    w->at += sizeof frame + w->b.n;
    if (!w->b.failed) {
        fwrite(frame, 1, sizeof frame, w->to);
        fwrite(w->b.p, 1, w->b.n, w->to);
    }
    w->b.n = 0;
}

/* The same for the one that ends with the digest of all before it. */
static void put_last_record(part_writer *w, int tag)
{
    const size_t n = w->b.n + sizeof w->digest;
    const unsigned char frame[FRAME] = {(unsigned char)tag, (unsigned char)n, (unsigned char)(n >> 8),
                                        (unsigned char)(n >> 16), (unsigned char)(n >> 24)};
    w->digest += mpsim_digest_bytes(frame, sizeof frame, w->at);
    w->digest += mpsim_digest_bytes(w->b.p, w->b.n, w->at + sizeof frame);
    stat_bytes_put_digest(&w->b, w->digest);
    put_record(w, tag);
    w->at = w->digest = 0;
}

void stat_part_write_head(part_writer *w, FILE *to, const part_head *h)
{
    memset(w, 0, sizeof *w);
    w->to = to;
    fprintf(to, "%s%d\n", magic, h->recipes ? VERSION : VERSION_WITHOUT_RECIPES);
    stat_bytes_put_count(&w->b, h->sections);
    stat_bytes_put_count(&w->b, h->shards);
    stat_bytes_put_text(&w->b, h->version);
    stat_bytes_put_count(&w->b, h->files);
    stat_bytes_put_count(&w->b, h->bytes);
    stat_bytes_put_digest(&w->b, h->digest);
    stat_bytes_put_text(&w->b, h->first);
    put_pairs(&w->b, &h->words);
    put_pairs(&w->b, &h->formats);
    put_last_record(w, 'H');
}

void stat_part_write_section(part_writer *w, uint64_t k, uint64_t n)
{
    stat_bytes_put_count(&w->b, k);
    stat_bytes_put_count(&w->b, n);
    put_record(w, 'S');
}

void stat_part_write_file(part_writer *w, uint64_t i, const char *path, uint64_t tensors, const twice_look *look)
{
    stat_bytes_put_count(&w->b, i);
    stat_bytes_put_text(&w->b, path);
    stat_bytes_put_signed(&w->b, look->step);
    stat_bytes_put_count(&w->b, tensors);
    stat_bytes_put_digest(&w->b, look->form);
    stat_bytes_put_text(&w->b, look->layout);
    stat_bytes_put_count(&w->b, look->tensors ? look->count : 0);
    for (size_t k = 0; look->tensors && k < look->count; k++)
        stat_bytes_put_digest(&w->b, look->tensors[k]);
    put_record(w, 'F');
}

void stat_part_write_failed(part_writer *w, uint64_t place, const char *path, const trace_error *why)
{
    stat_bytes_put_count(&w->b, place);
    stat_bytes_put_text(&w->b, path);
    stat_bytes_put_count(&w->b, (uint64_t)why->exit);
    stat_bytes_put_text(&w->b, why->text);
    put_record(w, 'X');
}

void stat_part_write_other(part_writer *w, uint64_t i)
{
    stat_bytes_put_count(&w->b, i);
    put_record(w, 'O');
}

void stat_part_write_tensor(part_writer *w, const stat_place *place, const walk_piece *piece, const group *of)
{
    const trace_tensor *x = place->tensor;
    array_bytes *b = &w->b;
    stat_bytes_put_count(b, piece->ordinal);
    stat_bytes_put_text(b, x->name);
    stat_bytes_put_text(b, x->dtype);
    stat_bytes_put_text(b, place->kind ? place->kind : "");
    stat_bytes_put_count(b, x->rank);
    for (size_t i = 0; i < x->rank; i++)
        stat_bytes_put_count(b, x->shape[i]);
    stat_bytes_put_count(b, x->count);
    stat_bytes_put_count(b, piece->first);
    stat_bytes_put_count(b, piece->n);
    stat_bytes_put_count(b, of ? 1 + (uint64_t)(of->scaled != 0) : 0);
    if (!of) {
        stat_bytes_put_text(b, x->unread ? x->unread : "");
        stat_bytes_put_count(b, x->unseen != 0);
    }
    put_record(w, 'T');
    for (int row = 0; of && row < PACK_ROWS; row++)
        for (size_t i = 0; i < stat_pack_count(row, of); i++) {
            stat_pack_put(b, row, of, i);
            put_record(w, stat_pack_tag(row));
        }
}

void stat_part_write_end(part_writer *w, uint64_t counted)
{
    stat_bytes_put_count(&w->b, counted);
    put_last_record(w, 'Z');
}

int stat_part_write_finish(part_writer *w)
{
    const int failed = w->b.failed;
    stat_bytes_clear(&w->b);
    return failed ? -1 : 0;
}

/* ---- bytes of a part ---- */

static int failed(const part_reader *r, trace_error *error, int code, const char *what)
{
    return trace_error_set(error, code, r->source->name, UINT64_MAX, "%s", what);
}

int stat_part_damaged(const part_reader *r, const char *what, trace_error *error)
{
    return trace_error_set(error, EXIT_DATA, r->source->name, r->place, "damaged: %s", what);
}

static int get(part_reader *r, void *p, size_t n, trace_error *error)
{
    if (n > r->size - r->place)
        return trace_error_set(error, EXIT_DATA, r->source->name, UINT64_MAX,
                               "truncated: it ends after %" PRIu64 " bytes, within a record", r->size);
    if (!r->from)
        memcpy(p, (const char *)r->source->bytes + r->place, n);
    else if (fread(p, 1, n, r->from) != n)
        return failed(r, error, ferror(r->from) ? EXIT_IO : EXIT_DATA,
                      ferror(r->from) ? text_error(errno) : "truncated while it was read");
    r->place += n;
    return 0;
}

int stat_part_seek(part_reader *r, uint64_t place, trace_error *error)
{
    r->place = place;
    r->at = r->digest = 0;
    return r->from && fseeko(r->from, (off_t)place, SEEK_SET) ? failed(r, error, EXIT_IO, text_error(errno)) : 0;
}

static int open_file(part_reader *r, trace_error *error)
{
    struct stat st;
    const int fd = r->source->file ? dup(fileno(r->source->file)) : open(r->source->name, O_RDONLY | O_CLOEXEC);
    r->has_fd = fd >= 0;
    r->fd = fd;
    r->from = fd < 0 ? NULL : trace_whole_stream(fd, "r", NULL);
    if (!r->from || (r->source->file && fseeko(r->from, 0, SEEK_SET) != 0) || fstat(fd, &st) != 0)
        return failed(r, error, EXIT_IO, text_error(errno));
    if (!S_ISREG(st.st_mode))
        return failed(r, error, EXIT_DATA, "is not a regular file");
    trace_inputs_add(fd);
    r->size = (uint64_t)st.st_size;
    return 0;
}

int stat_part_open(part_reader *r, const part_source *source, trace_error *error)
{
    char text[sizeof magic + 16] = "";
    memset(r, 0, sizeof *r);
    r->source = source;
    r->size = source->n;
    if (!source->bytes && open_file(r, error))
        return -1;
    size_t n = 0;
    while (n + 1 < sizeof text && n < r->size && (n == 0 || text[n - 1] != '\n')) {
        if (get(r, text + n, 1, error))
            return -1;
        n++;
    }
    if (strncmp(text, magic, sizeof magic - 1) != 0 || sscanf(text + sizeof magic - 1, "%u\n", &r->version) != 1 ||
        r->version == 0 || text[n - 1] != '\n')
        return failed(r, error, EXIT_DATA, "not a part of a report, as 'mpsim stat --shard' writes it");
    if (r->version > VERSION)
        return trace_error_set(error, EXIT_DATA, source->name, UINT64_MAX,
                               "mpsim-part/%u: a newer version than mpsim-part/%d, which is the newest that is known "
                               "here",
                               r->version, VERSION);
    return 0;
}

int stat_part_copy(part_reader *r, uint64_t n, FILE *to, trace_error *error)
{
    unsigned char block[1 << 14];
    while (n) {
        const size_t m = n < sizeof block ? (size_t)n : sizeof block;
        if (get(r, block, m, error))
            return -1;
        fwrite(block, 1, m, to);
        n -= m;
    }
    return 0;
}

void stat_part_close(part_reader *r)
{
    if (r->from)
        fclose(r->from);
    if (r->has_fd)
        close(r->fd);
    free(r->record.p);
    free(r->tensor.p);
    memset(r, 0, sizeof *r);
}

int stat_part_has_more(const part_reader *r)
{
    return r->place < r->size;
}

/* ---- records ---- */

/* The next record: its tag, and what it holds, without the digest that the last of a section and the head end
 * with. */
static int get_record(part_reader *r, int *tag, taker *body, trace_error *error)
{
    unsigned char frame[FRAME];
    if (get(r, frame, sizeof frame, error))
        return -1;
    taker length = {frame + 1, frame + sizeof frame, 0};
    const size_t n = stat_take_word(&length);
    if (n > r->size - r->place)
        return get(r, frame, n, error);
    struct part_buffer *to = frame[0] == 'T' ? &r->tensor : &r->record;
    if (n > to->room || !to->p) {
        to->p = need_more(to->p, n + 1, 1);
        to->room = n + 1;
    }
    if (get(r, to->p, n, error))
        return -1;
    *tag = frame[0];
    *body = (taker){to->p, to->p + n, 0};
    const int last = *tag == 'Z' || *tag == 'H';
    if (last && n < sizeof r->digest)
        return stat_part_damaged(r, "a record without a digest", error);
    if (last)
        body->end -= sizeof r->digest;
    r->digest += mpsim_digest_bytes(frame, sizeof frame, r->at);
    r->digest += mpsim_digest_bytes(body->p, (size_t)(body->end - body->p), r->at + sizeof frame);
    r->at += sizeof frame + n;
    if (!last)
        return 0;
    taker digest = {body->end, body->end + sizeof r->digest, 0};
    if (stat_take_digest(&digest) != r->digest)
        return stat_part_damaged(r, "what it holds does not have the digest that it gives", error);
    r->at = r->digest = 0;
    return 0;
}

int stat_part_read_head(part_reader *r, part_head *h, trace_error *error)
{
    int tag;
    taker t;
    memset(h, 0, sizeof *h);
    if (get_record(r, &tag, &t, error))
        return -1;
    if (tag != 'H')
        return stat_part_damaged(r, "it does not begin with a head", error);
    h->memory = r->record.p; /* the texts stay */
    r->record = (struct part_buffer){NULL, 0};
    h->recipes = r->version % 2 == 0;
    h->sections = stat_take_number(&t, SHARDS_MOST);
    h->shards = stat_take_number(&t, SHARDS_MOST);
    h->version = stat_take_text(&t);
    h->files = stat_take_count(&t);
    h->bytes = stat_take_count(&t);
    h->digest = stat_take_digest(&t);
    h->first = stat_take_text(&t);
    take_pairs(&t, &h->words);
    take_pairs(&t, &h->formats);
    if (stat_take_end(&t) || h->sections < 1 || h->sections > h->shards)
        return stat_part_damaged(r, "its head is malformed", error);
    return 0;
}

static const char *take_kind(taker *t)
{
    const char *text = stat_take_text(t), *kind = NULL;
    for (int i = 0; *text && (kind = trace_kind_at(i)) && strcmp(kind, text) != 0;)
        i++;
    t->bad |= *text && !kind;
    return kind;
}

static void take_file(taker *t, part_record *x)
{
    x->file = stat_take_count(t);
    x->path = stat_take_text(t);
    x->step = stat_take_signed(t);
    x->tensors = stat_take_count(t);
    x->form = stat_take_digest(t);
    x->layout = stat_take_text(t);
    x->seen = (size_t)stat_take_number(t, (uint64_t)(t->end - t->p) / 8);
    t->bad |= (size_t)(t->end - t->p) != 8 * x->seen;
}

/* Why a tensor was not read. What an older part does not say may be that its numbers were not seen. */
static void take_unread(taker *t, part_record *x, unsigned version)
{
    const char *said = version < VERSION_WITH_UNREAD ? "its part does not say why" : stat_take_text(t);
    x->tensor.unseen = version < VERSION_WITH_UNREAD || stat_take_number(t, 1);
    x->tensor.unread = *said ? said : NULL;
}

static void take_tensor(taker *t, part_record *x, unsigned version)
{
    x->piece.ordinal = stat_take_count(t);
    x->tensor.name = stat_take_text(t);
    x->tensor.dtype = stat_take_text(t);
    x->kind = take_kind(t);
    x->tensor.rank = (size_t)stat_take_number(t, RANK_MOST);
    x->tensor.shape = x->shape;
    for (size_t i = 0; i < x->tensor.rank; i++)
        x->shape[i] = stat_take_count(t);
    x->tensor.count = stat_take_count(t);
    x->piece.first = stat_take_number(t, x->tensor.count);
    x->piece.n = stat_take_number(t, x->tensor.count - x->piece.first);
    const uint64_t numbers = stat_take_number(t, 2);
    x->numbers = numbers > 0;
    x->scaled = numbers > 1;
    x->tensor.unread = NULL;
    x->tensor.unseen = 0;
    if (!x->numbers)
        take_unread(t, x, version);
}

int stat_part_next(part_reader *r, part_record *x, trace_error *error)
{
    taker *t = &x->body;
    if (get_record(r, &x->tag, t, error))
        return -1;
    switch (x->tag) {
    case 'S':
        x->k = stat_take_count(t);
        x->n = stat_take_count(t);
        break;
    case 'F':
        take_file(t, x);
        break;
    case 'O':
        x->file = stat_take_count(t);
        break;
    case 'X':
        x->file = stat_take_count(t);
        x->path = stat_take_text(t);
        x->exit = (int)stat_take_number(t, 255);
        x->message = stat_take_text(t);
        break;
    case 'T':
        take_tensor(t, x, r->version);
        break;
    case 'Z':
        x->counted = stat_take_count(t);
        break;
    default: /* of a group, or nothing */
        return 0;
    }
    return t->bad || (x->tag != 'F' && stat_take_end(t)) ? stat_part_damaged(r, "a record is malformed", error) : 0;
}

int stat_part_take_group(part_reader *r, const part_record *tensor, group *of, trace_error *error)
{
    int tag;
    taker t;
    stat_pack_begin(of, tensor->scaled);
    for (int row = 0; row < PACK_ROWS; row++)
        for (size_t i = 0, n = stat_pack_count(row, of); i < n; i++)
            if (get_record(r, &tag, &t, error))
                return -1;
            else if (tag != stat_pack_tag(row) || stat_pack_take(&t, row, of, i))
                return stat_part_damaged(r, "the records of a tensor are malformed or in another order", error);
    return of->stats.count == tensor->piece.n ? 0 : stat_part_damaged(r, "a tensor of other elements", error);
}
