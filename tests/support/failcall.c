/* failcall.c -- loaded before glibc (LD_PRELOAD): a chosen call fails, of the program or of any library that it uses.
 *
 * MPSIM_FAIL=KIND with MPSIM_FAIL_AT=N: the N-th call of that kind from the start of main on fails, and with MPSIM_FAIL_ON
 * all after it; what a constructor calls, as NVIDIA's libcudart does, counts for nothing, since it could not say that it failed.
 * MPSIM_FAIL_WITH: how, the name of an error (`failures`), or `short`: half of the bytes. MPSIM_FAIL_COUNT=FILE: how many calls
 * of each kind there were is written there, a line each. MPSIM_FAIL_ROOM=N: file systems say that they have N bytes left.
 *
 * System calls are caught in the kernel: a filter (seccomp) sends those that glibc makes here as a signal, so that what stdio or
 * zlib write fails, too. What is written to standard error does not count. Where there are no such filters, or for another
 * machine, `malloc`, `spawn` and `thread` are counted alone. */
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#ifdef __GLIBC__
#pragma GCC visibility push(default)

extern void *__libc_malloc(size_t n);
extern void *__libc_calloc(size_t n, size_t size);
extern void *__libc_realloc(void *p, size_t n);
extern void *__libc_memalign(size_t alignment, size_t n);

/* clang-format off */
typedef enum kind {
    MALLOC, SPAWN, THREAD, /* caught as functions */
    OPEN, READ, WRITE, CLOSE, FINISH, SEEK, STAT, SYNC, TRUNCATE, CHMOD, RENAME, UNLINK, FOLDER, LIST, MAP, PIPE, WAIT,
    KINDS
} kind;
/* clang-format on */

static const char *const names[KINDS] = {"malloc", "spawn",  "thread", "open", "read",     "write", "close",
                                         "finish", "seek",   "stat",   "sync", "truncate", "chmod", "rename",
                                         "unlink", "folder", "list",   "map",  "pipe",     "wait"};

static const struct failure {
    const char *name;
    int error;
} failures[] = {{"ENOMEM", ENOMEM}, {"EIO", EIO},       {"ENOSPC", ENOSPC}, {"EINTR", EINTR},
                {"EMFILE", EMFILE}, {"EACCES", EACCES}, {"EAGAIN", EAGAIN}};

static atomic_ulong counts[KINDS];
static kind chosen = KINDS;
static unsigned long at;
static int counting, on, halved, failure = ENOMEM;
static long counts_fd = -1; /* opened at the start: a sandbox lets nobody do that later */

/* 1 if this call is to fail */
static int fails(kind k)
{
    if (!counting)
        return 0;
    const unsigned long i = atomic_fetch_add(&counts[k], 1) + 1;
    return k == chosen && at && (i == at || (on && i > at));
}

/* ---- functions ---- */

static int fails_memory(void)
{
    const int failed = fails(MALLOC);
    if (failed)
        errno = ENOMEM;
    return failed;
}

void *malloc(size_t n)
{
    return fails_memory() ? NULL : __libc_malloc(n);
}

void *calloc(size_t n, size_t size)
{
    return fails_memory() ? NULL : __libc_calloc(n, size);
}

void *realloc(void *p, size_t n)
{
    return fails_memory() ? NULL : __libc_realloc(p, n);
}

void *aligned_alloc(size_t alignment, size_t n)
{
    return fails_memory() ? NULL : __libc_memalign(alignment, n);
}

int posix_memalign(void **p, size_t alignment, size_t n)
{
    *p = fails_memory() ? NULL : __libc_memalign(alignment, n);
    return *p ? 0 : ENOMEM;
}

typedef int spawner(pid_t *, const char *, const posix_spawn_file_actions_t *, const posix_spawnattr_t *, char *const[],
                    char *const[]);

int posix_spawnp(pid_t *child, const char *file, const posix_spawn_file_actions_t *actions,
                 const posix_spawnattr_t *attributes, char *const argv[], char *const environment[])
{
    spawner *next;
    *(void **)&next = dlsym(RTLD_NEXT, "posix_spawnp");
    return fails(SPAWN) ? failure : next(child, file, actions, attributes, argv, environment);
}

typedef int starter(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *), void *argument)
{
    starter *next;
    *(void **)&next = dlsym(RTLD_NEXT, "pthread_create");
    return fails(THREAD) ? failure : next(thread, attributes, work, argument);
}

int fstatvfs(int fd, struct statvfs *v)
{
    int (*next)(int, struct statvfs *);
    *(void **)&next = dlsym(RTLD_NEXT, "fstatvfs");
    const char *room = getenv("MPSIM_FAIL_ROOM");
    const int failed = next(fd, v);
    if (!failed && room)
        v->f_bavail = strtoul(room, NULL, 10) / v->f_frsize;
    return failed;
}

/* ---- system calls ---- */

#if defined __x86_64__
#define MACHINE AUDIT_ARCH_X86_64
#define REGISTER(c, name) ((c)->uc_mcontext.gregs[name])
#define RESULT(c) REGISTER(c, REG_RAX)
#define ARGUMENTS(c)                                                                                                 \
    {                                                                                                                \
        REGISTER(c, REG_RDI), REGISTER(c, REG_RSI), REGISTER(c, REG_RDX), REGISTER(c, REG_R10), REGISTER(c, REG_R8), \
            REGISTER(c, REG_R9)                                                                                      \
    }

/* The filter lets calls from here pass. */
static long ask(long number, const long a[6])
{
    long result;
    register long r10 __asm__("r10") = a[3];
    register long r8 __asm__("r8") = a[4];
    register long r9 __asm__("r9") = a[5];
    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "0"(number), "D"(a[0]), "S"(a[1]), "d"(a[2]), "r"(r10), "r"(r8), "r"(r9)
                     : "rcx", "r11", "memory");
    return result;
}
#elif defined __aarch64__
#define MACHINE AUDIT_ARCH_AARCH64
#define REGISTER(c, name) ((c)->uc_mcontext.regs[name])
#define RESULT(c) REGISTER(c, 0)
#define ARGUMENTS(c)                                                                                                  \
    {                                                                                                                 \
        (long)REGISTER(c, 0), (long)REGISTER(c, 1), (long)REGISTER(c, 2), (long)REGISTER(c, 3), (long)REGISTER(c, 4), \
            (long)REGISTER(c, 5)                                                                                      \
    }

static long ask(long number, const long a[6])
{
    register long x8 __asm__("x8") = number;
    register long x0 __asm__("x0") = a[0];
    register long x1 __asm__("x1") = a[1];
    register long x2 __asm__("x2") = a[2];
    register long x3 __asm__("x3") = a[3];
    register long x4 __asm__("x4") = a[4];
    register long x5 __asm__("x5") = a[5];
    __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2), "r"(x3), "r"(x4), "r"(x5) : "memory");
    return x0;
}
#endif

#ifdef MACHINE
#include <linux/audit.h>

static const struct call {
    long number;
    kind kind;
} calls[] = {
#ifdef SYS_open
    {SYS_open, OPEN},          {SYS_creat, OPEN},         {SYS_stat, STAT},     {SYS_lstat, STAT},
    {SYS_access, STAT},        {SYS_rename, RENAME},      {SYS_link, RENAME},   {SYS_unlink, UNLINK},
    {SYS_rmdir, UNLINK},       {SYS_mkdir, FOLDER},       {SYS_pipe, PIPE},     {SYS_readlink, STAT},
#endif
    {SYS_openat, OPEN},        {SYS_read, READ},          {SYS_pread64, READ},  {SYS_readv, READ},
    {SYS_write, WRITE},        {SYS_pwrite64, WRITE},     {SYS_writev, WRITE},  {SYS_close, CLOSE},
    {SYS_lseek, SEEK},         {SYS_fstat, STAT},         {SYS_statx, STAT},    {SYS_newfstatat, STAT},
    {SYS_faccessat, STAT},     {SYS_readlinkat, STAT},    {SYS_fsync, SYNC},    {SYS_fdatasync, SYNC},
    {SYS_ftruncate, TRUNCATE}, {SYS_fallocate, TRUNCATE}, {SYS_fchmod, CHMOD},  {SYS_fchmodat, CHMOD},
    {SYS_renameat, RENAME},    {SYS_renameat2, RENAME},   {SYS_linkat, RENAME}, {SYS_unlinkat, UNLINK},
    {SYS_mkdirat, FOLDER},     {SYS_getdents64, LIST},    {SYS_mmap, MAP},      {SYS_mremap, MAP},
    {SYS_pipe2, PIPE},         {SYS_wait4, WAIT}};
enum { CALLS = sizeof calls / sizeof *calls, BLOCK = 6, RANGES = 2 };

/* the bytes of the system's own set of signals */
enum { SET = 8 };

static int is_written(long fd)
{
    struct stat st;
    const long of_stat[6] = {fd, (long)&st}, of_flags[6] = {fd, F_GETFL};
    return ask(SYS_fstat, of_stat) == 0 && S_ISREG(st.st_mode) && st.st_nlink > 0 &&
           (ask(SYS_fcntl, of_flags) & O_ACCMODE) != O_RDONLY;
}

static void tell_counts(void)
{
    for (int k = 0; counts_fd >= 0 && k < KINDS; k++) {
        char line[64];
        const long n = snprintf(line, sizeof line, "%s %lu\n", names[k], atomic_load(&counts[k]));
        const long of_write[6] = {counts_fd, (long)line, n};
        (void)ask(SYS_write, of_write);
    }
}

/* A program that blocks all signals must not block the one that tells of calls. */
static long masked(ucontext_t *c, const long a[6])
{
    uint64_t *mask = (uint64_t *)(void *)&c->uc_sigmask;
    const uint64_t was = *mask, *set = (const uint64_t *)a[1];
    if (set)
        *mask = a[0] == SIG_BLOCK ? was | *set : a[0] == SIG_UNBLOCK ? was & ~*set : *set;
    *mask &= ~((uint64_t)1 << (SIGSYS - 1));
    if (a[2])
        *(uint64_t *)a[2] = was;
    return 0;
}

static long failing(long number, kind k, long a[6])
{
    if (halved && (k == READ || k == WRITE) && a[2] > 1) {
        a[2] /= 2;
        return ask(number, a);
    }
    if (number == SYS_close) /* it is closed all the same */
        (void)ask(number, a);
    return halved ? ask(number, a) : -failure;
}

static void on_call(int number_of_signal, siginfo_t *what, void *context)
{
    ucontext_t *c = context;
    long a[6] = ARGUMENTS(c);
    const long number = what->si_syscall;
    (void)number_of_signal;
    if (number == SYS_rt_sigprocmask) {
        RESULT(c) = masked(c, a);
        return;
    }
    if (number == SYS_rt_sigaction && a[0] == SIGSYS) {
        RESULT(c) = 0;
        return;
    }
    if (number == SYS_exit_group)
        tell_counts();
    kind k = KINDS;
    for (size_t i = 0; i < CALLS && k == KINDS; i++)
        if (calls[i].number == number)
            k = calls[i].kind;
    if (k == CLOSE && a[0] > STDERR_FILENO && is_written(a[0]))
        k = FINISH;
    const int counted = k != KINDS && !(k == WRITE && a[0] == STDERR_FILENO);
    RESULT(c) = counted && fails(k) ? failing(number, k, a) : ask(number, a);
}

/* Where the instructions of glibc are. */
typedef struct place {
    uintptr_t first, last;
} place;

static int find(struct dl_phdr_info *object, size_t size, void *to)
{
    place *p = to;
    (void)size;
    if (!strstr(object->dlpi_name, "/libc.so") && !strstr(object->dlpi_name, "/libpthread"))
        return 0;
    while (p->last && p < (place *)to + RANGES - 1)
        p++;
    for (int i = 0; i < object->dlpi_phnum; i++)
        if (object->dlpi_phdr[i].p_type == PT_LOAD && (object->dlpi_phdr[i].p_flags & PF_X)) {
            p->first = object->dlpi_addr + object->dlpi_phdr[i].p_vaddr;
            p->last = p->first + object->dlpi_phdr[i].p_memsz;
        }
    return 0;
}

#define STEP(...) program[n++] = (struct sock_filter)__VA_ARGS__
#define LOAD(field) STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, field)))

/* Of glibc's calls those that the test is about, and what would hide them: a program for each range. */
static int watch(const place *p)
{
    struct sock_filter program[CALLS + 16];
    unsigned short n = 0;
    const uint32_t high = (uint32_t)((uint64_t)p->first >> 32);
    if (!p->last || high != (uint32_t)((uint64_t)p->last >> 32))
        return -1;
    LOAD(arch);
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, MACHINE, 1, 0));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    LOAD(instruction_pointer) /* of 8 bytes, little-endian */;
    STEP(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)p->first, 0, 1));
    STEP(BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, (uint32_t)p->last, 0, 1));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    STEP(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, instruction_pointer) + 4));
    STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, high, 1, 0));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    LOAD(nr);
    const unsigned short first = n;
    static const long always[] = {SYS_rt_sigprocmask, SYS_rt_sigaction, SYS_exit_group};
    for (size_t i = 0; i < sizeof always / sizeof *always; i++)
        STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)always[i], 0, 0));
    for (size_t i = 0; i < CALLS; i++)
        if (chosen == KINDS || calls[i].kind == chosen || (calls[i].kind == CLOSE && chosen == FINISH))
            STEP(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)calls[i].number, 0, 0));
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW));
    for (unsigned short i = first; i < n - 1; i++)
        program[i].jt = (unsigned char)(n - 1 - i);
    STEP(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP));
    const struct sock_fprog filter = {n, program};
    return prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}

static void catch_calls(void)
{
    place places[RANGES] = {{0, 0}};
    struct sigaction action = {.sa_flags = SA_SIGINFO | SA_NODEFER};
    action.sa_sigaction = on_call;
    sigemptyset(&action.sa_mask);
    (void)dl_iterate_phdr(find, places);
    if (sigaction(SIGSYS, &action, NULL) != 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0)
        return;
    for (int i = 0; i < RANGES && places[i].last; i++)
        (void)watch(&places[i]);
}
#else
static void catch_calls(void)
{
}
#endif

static void begin(void)
{
    const char *text = getenv("MPSIM_FAIL_AT"), *which = getenv("MPSIM_FAIL"), *how = getenv("MPSIM_FAIL_WITH");
    const char *file = getenv("MPSIM_FAIL_COUNT");
    at = text ? strtoul(text, NULL, 10) : 0;
    on = getenv("MPSIM_FAIL_ON") != NULL;
    halved = how && strcmp(how, "short") == 0;
    for (int k = 0; which && k < KINDS; k++)
        if (strcmp(which, names[k]) == 0)
            chosen = (kind)k;
    for (size_t i = 0; how && i < sizeof failures / sizeof *failures; i++)
        if (strcmp(how, failures[i].name) == 0)
            failure = failures[i].error;
    unsetenv("LD_PRELOAD"); /* programs that it starts are left alone */
    if (file) {
        enum { APART = 200 }; /* from the numbers that the program gets */
        const int fd = open(file, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
        counts_fd = fcntl(fd, F_DUPFD_CLOEXEC, APART);
        close(fd);
    }
    catch_calls();
    counting = 1;
}

typedef int begun(int, char **, char **);
typedef int loader(begun *, int, char **, void (*)(void), void (*)(void), void (*)(void), void *);

extern loader __libc_start_main;
static begun *program;

static int main_of_program(int argc, char **argv, char **environment)
{
    begin();
    return program(argc, argv, environment);
}

/* What glibc starts a program by; the constructors of the program run in it, before main. */
int __libc_start_main(begun *first, int argc, char **argv, void (*init)(void), void (*fini)(void), void (*end)(void),
                      void *stack)
{
    loader *next;
    *(void **)&next = dlsym(RTLD_NEXT, "__libc_start_main");
    program = first;
    return next(main_of_program, argc, argv, init, fini, end, stack);
}
#endif
