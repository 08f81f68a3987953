/* main.c -- the mpsim-mpi program: commands whose work the ranks of an MPI job divide (cli/world.h).
 *
 * The only file that knows MPI (3.0: shared windows). Messages are cut into pieces that an int counts. */
#include "../cli/confine.h"
#include "../process/world.h"
#include "../commands.h"
#include "../merge/ranks.h"
#include "../program.h"
#include "../trace/temporary.h"

#include <errno.h>
#include <mpi.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { PIECE = 1 << 30 };

/* ---- what connects the ranks ---- */

static int piece_of(size_t n)
{
    return n < PIECE ? (int)n : PIECE;
}

static void least(uint64_t *x, int n)
{
    MPI_Allreduce(MPI_IN_PLACE, x, n, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
}

static void unite(void *bytes, size_t n)
{
    for (char *p = bytes; n > 0; n -= (size_t)piece_of(n), p += PIECE)
        MPI_Allreduce(MPI_IN_PLACE, p, piece_of(n), MPI_BYTE, MPI_BOR, MPI_COMM_WORLD);
}

static void all(const void *mine, size_t n, void *of_all)
{
    MPI_Allgather(mine, (int)n, MPI_BYTE, of_all, (int)n, MPI_BYTE, MPI_COMM_WORLD);
}

static void tell(int from, void *bytes, size_t n)
{
    for (char *p = bytes; n > 0; n -= (size_t)piece_of(n), p += PIECE)
        MPI_Bcast(p, piece_of(n), MPI_BYTE, from, MPI_COMM_WORLD);
}

static void send(int to, const void *bytes, size_t n)
{
    for (const char *p = bytes; n > 0; n -= (size_t)piece_of(n), p += PIECE)
        MPI_Send(p, piece_of(n), MPI_BYTE, to, 0, MPI_COMM_WORLD);
}

static void receive(int from, void *bytes, size_t n)
{
    for (char *p = bytes; n > 0; n -= (size_t)piece_of(n), p += PIECE)
        MPI_Recv(p, piece_of(n), MPI_BYTE, from, 0, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

/* ---- ranks that die ---- */

/* Where one does, the starter of the job ends the others by a signal: the first on its machine that can see it
 * says so. In memory that those on a machine share. */
typedef struct life {
    _Atomic pid_t pid; /* 0: it has ended of itself, or by a signal of its own */
    int rank;
} life;

typedef struct neighbours {
    atomic_int said;
    life all[];
} neighbours;

static neighbours *here;
static int n_here, me_here;

static void say(const char *text)
{
    if (write(STDERR_FILENO, text, strlen(text)) < 0)
        return;
}

static void last_words(int number)
{
    (void)number;
    if (!here)
        return;
    atomic_store(&here->all[me_here].pid, 0);
    for (int i = 0; i < n_here; i++) {
        const pid_t pid = atomic_load(&here->all[i].pid);
        if (pid == 0 || kill(pid, 0) == 0 || errno != ESRCH || atomic_exchange(&here->said, 1))
            continue;
        char digits[12] = "";
        char *at = digits + sizeof digits - 1;
        int rank = here->all[i].rank;
        do
            *--at = (char)('0' + rank % 10);
        while ((rank /= 10) > 0);
        say("mpsim: rank ");
        say(at);
        say(" of the job has died: there is no report\n");
    }
}

static void end(int code)
{
    if (here) {
        atomic_store(&here->said, 1);
        atomic_store(&here->all[me_here].pid, 0);
    }
    MPI_Abort(MPI_COMM_WORLD, code);
}

static MPI_Win meet_neighbours(int rank)
{
    MPI_Comm near;
    MPI_Win window;
    MPI_Aint bytes;
    void *base;
    int unit;
    MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &near);
    MPI_Comm_size(near, &n_here);
    MPI_Comm_rank(near, &me_here);
    bytes = me_here ? 0 : (MPI_Aint)(sizeof(neighbours) + (size_t)n_here * sizeof(life));
    MPI_Win_allocate_shared(bytes, 1, MPI_INFO_NULL, near, &base, &window);
    MPI_Win_shared_query(window, 0, &bytes, &unit, &base);
    neighbours *all_here = base;
    if (me_here == 0)
        atomic_store(&all_here->said, 0);
    all_here->all[me_here].rank = rank;
    atomic_store(&all_here->all[me_here].pid, getpid());
    MPI_Barrier(near);
    MPI_Comm_free(&near);
    here = all_here;
    trace_temporary_last(last_words);
    return window;
}

/* ---- the program ---- */

static const command shared_commands[] = {
    {"stat", "FILE...", "Count underflow, overflow and error of casts", cmd_stat_ranks, 0, NULL},
    {"replay", "TRACE...", "Replay a recorded run through a mixed-precision policy", cmd_replay, COMMAND_DATA, NULL},
    {NULL, NULL, NULL, NULL, 0, NULL},
};

static const char more[] =
    "  mpsim-mpi COMMAND --help   options of a command, the same as of mpsim COMMAND\n\n"
    "The ranks divide tensors by bytes; the report, by the first, is that of mpsim, byte for byte.\n"
    "All read the files, by the same names. Standard input and pipes cannot be read.\n"
    "Exit codes are those of mpsim. mpirun -q leaves out what mpirun says of them.\n";

static const program mpsim_mpi = {"mpsim-mpi",
                                  "mpirun -n N mpsim-mpi",
                                  "What lower precision does to recorded tensors, bit for bit, on many processes",
                                  shared_commands,
                                  NULL,
                                  more};

static int run(int argc, char **argv)
{
    static char place[MPI_MAX_PROCESSOR_NAME + 32];
    static world w = {.least = least,
                      .unite = unite,
                      .all = all,
                      .tell = tell,
                      .send = send,
                      .receive = receive,
                      .end = end,
                      .place = place};
    char machine[MPI_MAX_PROCESSOR_NAME];
    int length;
    MPI_Comm_rank(MPI_COMM_WORLD, &w.rank);
    MPI_Comm_size(MPI_COMM_WORLD, &w.size);
    MPI_Get_processor_name(machine, &length);
    snprintf(place, sizeof place, "rank %d on %s", w.rank, machine);
    if (w.rank && !freopen("/dev/null", "w", stdout)) /* the report is the first one's */
        end(EXIT_IO);
    world_join(&w);
    confine_not("not under MPI, whose processes need sockets and memory that they share");
    MPI_Win window = meet_neighbours(w.rank);
    const int code = program_main(argc, argv, &mpsim_mpi);
    trace_temporary_last(NULL);
    MPI_Win_free(&window);
    return code;
}

int main(int argc, char **argv)
{
    int threads;
    MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &threads);
    const int code = run(argc, argv);
    MPI_Finalize();
    return code;
}
