/* host_tma.h -- the instructions of gpu/kernels/tma.cuh on the host executor: mbarriers, copies of tiles by the tensor
 * memory accelerator, barriers of a cluster. PTX ISA: "mbarrier", "cp.async.bulk.tensor", "Tensors".
 *
 * A copy arrives as late as it can: one at a time, in an arbitrary order, when no thread can run. Until then its place
 * holds bytes 0xff, which is NaN in every format. What is found beside wrong bits (host.h):
 *   - a deadlock, with the places where threads wait, and what each barrier still waits for;
 *   - a phase that ends while copies to its barrier are under way: expect_tx of too few bytes;
 *   - a thread that waits for a phase that is not the one after its last, or that ended two phases ago;
 *   - more arrivals than a barrier counts, and a barrier that was overwritten;
 *   - a copy into a place that a wgmma under way reads, or where another copy is under way; a wgmma that reads where one is;
 *   - a copy or an arrival for a block that has ended, and a copy that is under way when its cluster ends;
 *   - a descriptor, a box, a place or an address that the device refuses. */
#pragma once

#include <functional>
#include <map>

/* ---- mbarriers ---- */

enum : uint64_t { GPU_HOST_MBARRIER = 0x6d62617272696572u };

struct gpu_host_mbarrier {
    unsigned count, pending; /* arrivals of a phase; left of this one */
    long bytes;              /* expected and not there */
    long phase;              /* from 0 */
    std::vector<long> next;  /* by thread: the phase that its next wait is for, or -2: it has not waited */
};

struct gpu_host_transfer { /* an asynchronous copy */
    unsigned rank;         /* whose shared memory it goes to */
    size_t to, bytes, barrier;
    int counts; /* bytes are counted by the barrier, else it is an arrival */
    std::function<void()> copy;
};

struct gpu_host_tma_state {
    std::map<std::pair<unsigned, size_t>, gpu_host_mbarrier> barriers; /* by rank and place */
    std::vector<gpu_host_transfer> transfers;
    uint64_t serial, random;
};

inline gpu_host_tma_state gpu_host_tma;

inline void gpu_host_tma_fail(const char *file, int line, const char *text)
{
    char all[200];
    snprintf(all, sizeof all, "%s, thread %u, %s:%d", text, gpu_host.now->number, file, line);
    gpu_host_fail(cudaErrorLaunchFailure, all);
    gpu_host_to_scheduler();
}

inline size_t gpu_host_offset(const void *p)
{
    return size_t(static_cast<const unsigned char *>(p) - gpu_host.shared);
}

inline gpu_host_mbarrier *gpu_host_mbarrier_of(unsigned rank, size_t at, const char *file, int line)
{
    const auto found = gpu_host_tma.barriers.find({rank, at});
    uint64_t word = 0;
    if (at % 8 == 0 && at + 8 <= gpu_host.dynamic_bytes)
        memcpy(&word, gpu_host_shared_of(rank) + at, sizeof word);
    if (found == gpu_host_tma.barriers.end() || word != GPU_HOST_MBARRIER)
        gpu_host_tma_fail(file, line, "no mbarrier is there");
    return &found->second;
}

inline int gpu_host_has_ended(unsigned rank)
{
    return (rank == gpu_host.rank ? gpu_host.ended : gpu_host.members[rank].ended) == gpu_host.threads;
}

/* A phase ends when its arrivals and bytes are there. */
inline void gpu_host_mbarrier_look(unsigned rank, size_t at, gpu_host_mbarrier *b)
{
    if (b->pending || b->bytes)
        return;
    for (const gpu_host_transfer &t : gpu_host_tma.transfers)
        if (t.rank == rank && t.barrier == at && t.counts)
            gpu_host_fail(cudaErrorLaunchFailure,
                          "a phase of an mbarrier ends before its copies: expect_tx of too few bytes");
    b->phase++;
    b->pending = b->count;
}

inline void gpu_host_mbarrier_arrive(unsigned rank, size_t at, long bytes, const char *file, int line)
{
    gpu_host_mbarrier *b = gpu_host_mbarrier_of(rank, at, file, line);
    if (gpu_host_has_ended(rank))
        gpu_host_tma_fail(file, line, "an arrival for a block that has ended");
    if (b->pending == 0)
        gpu_host_tma_fail(file, line, "more arrivals than the mbarrier counts");
    b->bytes += bytes;
    b->pending--;
    gpu_host_mbarrier_look(rank, at, b);
}

inline int gpu_host_mbarrier_is_over(const gpu_host_fiber *f)
{
    return static_cast<const gpu_host_mbarrier *>(f->in)->phase > long(f->bytes);
}

/* try_wait in a loop. Parity 1 before all: the phase before the first, which is over. */
inline void gpu_host_mbarrier_wait(const uint64_t *bar, unsigned parity, const char *file, int line)
{
    gpu_host_fiber *self = gpu_host.now;
    gpu_host_mbarrier *b = gpu_host_mbarrier_of(gpu_host.rank, gpu_host_offset(bar), file, line);
    if (b->next.empty())
        b->next.assign(gpu_host.threads, -2);
    long *const next = &b->next[self->number];
    if (*next == -2)
        *next = parity ? -1 : 0;
    if (parity != unsigned(*next & 1))
        gpu_host_tma_fail(file, line, "a wait for another phase than the one after the thread's last");
    if (b->phase > *next + 1)
        gpu_host_tma_fail(file, line, "a wait for a phase after which another one ended, too");
    if (b->phase <= *next) {
        self->in = b;
        self->bytes = size_t(*next);
        self->may_go_on = gpu_host_mbarrier_is_over;
        self->file = file;
        self->line = line;
        self->wait = GPU_POLLS;
        gpu_host_to_scheduler();
    }
    ++*next;
}

/* ---- what is under way ---- */

inline int gpu_host_tma_is_used()
{
    return gpu_host_tma.serial == gpu_host.serial;
}

inline int gpu_host_meets(size_t a, size_t n, size_t b, size_t m)
{
    return a < b + m && b < a + n;
}

/* Whether a copy to these bytes of the block at hand is under way. */
inline int gpu_host_is_awaited(size_t at, size_t bytes)
{
    if (!gpu_host_tma_is_used())
        return 0;
    for (const gpu_host_transfer &t : gpu_host_tma.transfers)
        if (t.rank == gpu_host.rank && t.bytes && gpu_host_meets(t.to, t.bytes, at, bytes))
            return 1;
    return 0;
}

/* One of them arrives. */
inline int gpu_host_tma_deliver()
{
    gpu_host_tma_state *s = &gpu_host_tma;
    if (!gpu_host_tma_is_used() || s->transfers.empty())
        return 0;
    s->random = s->random * 6364136223846793005u + 1442695040888963407u;
    const size_t i = size_t(s->random >> 33) % s->transfers.size();
    const gpu_host_transfer t = s->transfers[i];
    s->transfers.erase(s->transfers.begin() + long(i));
    t.copy();
    gpu_host_mbarrier *b = &s->barriers[{t.rank, t.barrier}];
    if (gpu_host_has_ended(t.rank))
        gpu_host_fail(cudaErrorLaunchFailure, "a copy arrives in a block that has ended");
    if (!t.counts && b->pending == 0)
        gpu_host_fail(cudaErrorLaunchFailure, "more arrivals than the mbarrier counts");
    b->bytes -= t.counts ? long(t.bytes) : 0;
    b->pending -= t.counts ? 0 : 1;
    gpu_host_mbarrier_look(t.rank, t.barrier, b);
    return 1;
}

inline void gpu_host_tma_explain(char *text, size_t size)
{
    if (!gpu_host_tma_is_used())
        return;
    for (const auto &b : gpu_host_tma.barriers) {
        const size_t n = strlen(text);
        if (b.second.pending != b.second.count || b.second.bytes)
            snprintf(text + n, size - n, " mbarrier %zu of block %u lacks %u arrivals, %ld bytes;", b.first.second,
                     b.first.first, b.second.pending, b.second.bytes);
    }
}

inline void gpu_host_tma_end()
{
    if (gpu_host_tma_is_used() && !gpu_host_tma.transfers.empty())
        gpu_host_fail(cudaErrorLaunchFailure, "a cluster ended before its copies");
}

inline void gpu_host_tma_begin()
{
    if (gpu_host_tma_is_used())
        return;
    gpu_host_tma.serial = gpu_host.serial;
    gpu_host_tma.barriers.clear();
    gpu_host_tma.transfers.clear();
    gpu_host.deliver = gpu_host_tma_deliver;
    gpu_host.explain = gpu_host_tma_explain;
    gpu_host.end = gpu_host_tma_end;
}

inline void gpu_host_mbarrier_init(uint64_t *bar, unsigned count, const char *file, int line)
{
    gpu_host_tma_begin();
    const size_t at = gpu_host_offset(bar);
    if (at % 8 || at + 8 > gpu_host.dynamic_bytes || count == 0)
        gpu_host_tma_fail(file, line, "an mbarrier beside the shared memory");
    *bar = GPU_HOST_MBARRIER;
    gpu_host_tma.barriers[{gpu_host.rank, at}] = gpu_host_mbarrier{count, count, 0, 0, {}};
}

/* ---- tiles ---- */

struct
    gpu_tensor { /* cuTensorMapEncodeTiled: three dimensions, boxes of 128 bytes x lines x 1, the swizzle of 128 bytes */
    const unsigned char *at;
    size_t bytes; /* of an element */
    size_t elements[3], apart[3];
    unsigned box[2];
};

inline int gpu_tensor_set(gpu_tensor *t, const void *at, size_t bytes, const size_t elements[3], const size_t apart[3],
                          const unsigned box[2])
{
    int good = reinterpret_cast<uintptr_t>(at) % 16 == 0 && box[0] * bytes == 128 && box[1] >= 1 && box[1] <= 256;
    for (int i = 0; i < 3; i++)
        good = good && elements[i] >= 1 && elements[i] <= (size_t(1) << 32) &&
               (i == 0 || (apart[i] % 16 == 0 && apart[i] < (size_t(1) << 40)));
    *t = gpu_tensor{static_cast<const unsigned char *>(at),
                    bytes,
                    {elements[0], elements[1], elements[2]},
                    {apart[0], apart[1], apart[2]},
                    {box[0], box[1]}};
    return good ? 0 : -1;
}

/* A box from (x, y, z) on, zeros outside the tensor, to `to`: lines of 128 bytes whose pieces of 16 are exchanged by the
 * number of the line in its 1024 bytes. */
inline void gpu_host_tile(const gpu_tensor &t, unsigned char *shared, size_t to, size_t x, size_t y, size_t z)
{
    for (unsigned line = 0; line < t.box[1]; line++)
        for (unsigned i = 0; i < t.box[0]; i++) {
            const size_t at = to + line * 128u + i * t.bytes;
            unsigned char *const p = shared + (at ^ (at >> 7 & 7) << 4);
            memset(p, 0, t.bytes);
            if (x + i < t.elements[0] && y + line < t.elements[1] && z < t.elements[2]) {
                const unsigned char *const from = t.at + (x + i) * t.bytes + (y + line) * t.apart[1] + z * t.apart[2];
                if (!gpu_host_is_device(from, t.bytes))
                    gpu_host_fail(cudaErrorLaunchFailure, "a tile from beside the memory of the device");
                memcpy(p, from, t.bytes);
            }
        }
}

/* Bytes of shared memory that a wgmma under way reads: from the first to behind the last. */
inline void gpu_host_reads(const gpu_host_async &p, int of_b, size_t *from, size_t *bytes)
{
    const uint64_t d = of_b ? p.b : p.a;
    const size_t lines = of_b ? size_t(p.columns) : 64, leading = (d >> 16 & 0x3fff) << 4;
    const int mn = of_b ? p.mn_b : p.mn_a;
    *from = (d & 0x3fff) << 4;
    *bytes = mn ? (lines / 64 - 1) * leading + 2048 : (lines - 1) * 128 + 32;
}

inline void gpu_host_tma_check(unsigned rank, size_t to, size_t bytes, const char *file, int line)
{
    for (const gpu_host_transfer &t : gpu_host_tma.transfers)
        if (t.rank == rank && t.bytes && gpu_host_meets(t.to, t.bytes, to, bytes))
            gpu_host_tma_fail(file, line, "a copy to where another one is under way");
    for (unsigned i = 0; i < gpu_host.threads && gpu_host_cores.serial == gpu_host.serial; i++)
        for (const gpu_host_async &p : gpu_host_cores.queues[rank * gpu_host.threads + i].products)
            for (int of_b = 0; of_b < 2; of_b++) {
                size_t from, n;
                gpu_host_reads(p, of_b, &from, &n);
                if (gpu_host_meets(from, n, to, bytes))
                    gpu_host_tma_fail(file, line, "a copy to what a wgmma under way reads");
            }
}

/* cp.async.bulk.tensor to the blocks of `mask`, or to this one: 0. */
inline void gpu_host_tile_later(const gpu_tensor &t, unsigned char *shared, const uint64_t *bar, size_t x, size_t y,
                                size_t z, unsigned mask, const char *file, int line)
{
    const size_t to = gpu_host_offset(shared), bytes = size_t(128) * t.box[1], barrier = gpu_host_offset(bar);
    if (to % 1024 || to + bytes > gpu_host.dynamic_bytes)
        gpu_host_tma_fail(file, line, "a tile that is not aligned, or beside the shared memory");
    if (mask >> gpu_host.cluster)
        gpu_host_tma_fail(file, line, "a tile for a block that the cluster has not");
    for (unsigned rank = 0; rank < gpu_host.cluster; rank++) {
        if (mask ? !(mask >> rank & 1) : rank != gpu_host.rank)
            continue;
        gpu_host_mbarrier_of(rank, barrier, file, line);
        gpu_host_tma_check(rank, to, bytes, file, line);
        unsigned char *const base = gpu_host_shared_of(rank);
        memset(base + to, 0xff, bytes);
        gpu_host_tma.transfers.push_back(gpu_host_transfer{
            rank, to, bytes, barrier, 1, [t, base, to, x, y, z] { gpu_host_tile(t, base, to, x, y, z); }});
    }
}

/* cp.async.mbarrier.arrive.noinc: an arrival, when the copies of this thread have arrived. */
inline void gpu_host_copies_arrive(const uint64_t *bar, const char *file, int line)
{
    gpu_host_queue *q = gpu_host_queue_now();
    const std::vector<gpu_host_copy> copies = q->copies;
    const size_t barrier = gpu_host_offset(bar);
    q->copies.clear();
    gpu_host_mbarrier_of(gpu_host.rank, barrier, file, line);
    gpu_host_tma.transfers.push_back(gpu_host_transfer{gpu_host.rank, 0, 0, barrier, 0, [copies] {
                                                           for (const gpu_host_copy &c : copies)
                                                               gpu_host_copied(c);
                                                       }});
}
