/* calls.c -- the calls of sandbox.h, by a filter of seccomp.
 *
 * A list of what is refused, not of what is allowed: the calls behind malloc, stdio or a thread differ between C libraries, their
 * versions and architectures, and a report must not fail because of one nobody thought of. What the kernel learnt
 * in version 5.1 and later is refused as if it had not: programs and libraries ask such calls whether they are there. So a
 * call that is newer than this list is outside it, too. Refusal is an error, not the end of the process: what was
 * refused is told in one line, and temporary files are removed, as after any other error.
 *
 * libseccomp is not needed: the filter is a table. */
#include "sandbox.h"

#include "config.h"

#include <errno.h>

#if defined HAVE_SANDBOX && (defined __x86_64__ || (defined __aarch64__ && defined __AARCH64EL__))
#include <fcntl.h>
#include <linux/audit.h>
#include <linux/capability.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#ifdef __x86_64__
enum { ARCHITECTURE = (int)AUDIT_ARCH_X86_64 };
#else
enum { ARCHITECTURE = (int)AUDIT_ARCH_AARCH64 };
#endif

/* From this number on calls are the same on all architectures (pidfd_send_signal of Linux 5.1). */
enum { NEW = 424 };
static const int new_allowed[] = {
    436 /* close_range */, 439 /* faccessat2 */, 449 /* futex_waitv */,   453 /* map_shadow_stack */,
    454 /* futex_wake */,  455 /* futex_wait */, 456 /* futex_requeue */, 462 /* mseal */};

/* clang-format off */
static const int refused[] = {
    /* other machines and processes */
    SYS_socket, SYS_socketpair, SYS_connect, SYS_bind, SYS_listen, SYS_accept, SYS_accept4, SYS_sendto, SYS_sendmsg, SYS_sendmmsg,
    SYS_shmget, SYS_shmat, SYS_semget, SYS_semop, SYS_semtimedop, SYS_msgget, SYS_msgsnd, SYS_msgrcv, SYS_mq_open, SYS_mq_unlink,
    SYS_ptrace, SYS_process_vm_readv, SYS_process_vm_writev, SYS_kcmp, SYS_rt_sigqueueinfo, SYS_rt_tgsigqueueinfo,
    SYS_unshare, SYS_setns, SYS_execveat,
    /* files, where Landlock has no say */
    SYS_truncate, SYS_fchmodat, SYS_fchown, SYS_fchownat, SYS_utimensat, SYS_setxattr, SYS_lsetxattr, SYS_fsetxattr, SYS_removexattr,
    SYS_lremovexattr, SYS_fremovexattr, SYS_name_to_handle_at, SYS_open_by_handle_at, SYS_linkat, SYS_symlinkat, SYS_mknodat,
    SYS_mount, SYS_umount2, SYS_pivot_root, SYS_chroot, SYS_swapon, SYS_swapoff, SYS_quotactl, SYS_acct, SYS_fanotify_init,
    /* the kernel itself */
    SYS_bpf, SYS_perf_event_open, SYS_userfaultfd, SYS_init_module, SYS_finit_module, SYS_delete_module, SYS_kexec_load, SYS_reboot,
    SYS_syslog, SYS_sethostname, SYS_setdomainname, SYS_settimeofday, SYS_clock_settime, SYS_adjtimex, SYS_clock_adjtime,
    SYS_add_key, SYS_request_key, SYS_keyctl, SYS_vhangup, SYS_io_setup,
    SYS_capset, SYS_personality, SYS_setfsuid, SYS_setfsgid,
#ifdef __x86_64__ /* the older names of some of these */
    SYS_chmod, SYS_chown, SYS_lchown, SYS_utime, SYS_utimes, SYS_futimesat, SYS_link, SYS_symlink, SYS_mknod, SYS_iopl, SYS_ioperm,
    SYS_modify_ldt, SYS_uselib,
#endif
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
};
/* clang-format on */

/* Without programs. (gnuplot ends when it cannot be sure who it runs for.) */
static const int refused_alone[] = {
    SYS_execve,   SYS_kill,     SYS_tkill,     SYS_setuid,    SYS_setgid,
    SYS_setreuid, SYS_setregid, SYS_setresuid, SYS_setresgid, SYS_setgroups,
#ifdef __x86_64__
    SYS_fork,     SYS_vfork,
#endif
};

/* Calls that an argument decides: refused where its bits of `mask` are `value`, or, of others, where they are not. The low half
 * is enough: the kernel reads no more of these. */
typedef struct decided {
    int call, argument;
    uint32_t mask, value;
    int others;
} decided;

static const decided always[] = {
    {SYS_ioctl, 1, UINT32_MAX, TIOCSTI, 0},           /* types into the terminal what a shell would run */
    {SYS_ioctl, 1, UINT32_MAX, 0x541c, 0},            /* TIOCLINUX, the same on a console */
    {SYS_openat, 2, O_ACCMODE | O_TRUNC, O_TRUNC, 0}, /* empties a file that may only be read, before Landlock 3 */
#ifdef __x86_64__
    {SYS_open, 1, O_ACCMODE | O_TRUNC, O_TRUNC, 0},
#endif
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

/* What becomes of each call: an answer, or DECIDED and the index of the first row that decides. */
enum { ALLOWED, REFUSED, UNKNOWN, DECIDED, CALLS = 512, ROWS = COUNT(always) + 3 };
_Static_assert(DECIDED + ROWS < 256, "verdicts fit bytes");

typedef struct filter {
    unsigned char verdicts[CALLS]; /* the last one is that of all calls above, too */
    decided rows[ROWS];
    size_t n_rows;
    unsigned short starts[CALLS]; /* of calls with the same verdict */
    struct sock_filter code[8 * CALLS];
    unsigned short n;
    int too_far; /* a branch is longer than a byte can tell: never, but for a mistake here */
} filter;

static void put(filter *f, uint16_t code, uint32_t k, uint8_t yes, uint8_t no)
{
    f->code[f->n++] = (struct sock_filter){code, yes, no, k};
}

static void load(filter *f, size_t offset)
{
    put(f, BPF_LD | BPF_W | BPF_ABS, (uint32_t)offset, 0, 0);
}

static void answer(filter *f, unsigned verdict)
{
    static const uint32_t answers[] = {SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO | EPERM, SECCOMP_RET_ERRNO | ENOSYS};
    put(f, BPF_RET | BPF_K, answers[verdict], 0, 0);
}

/* By all rows of a call. */
static void decide(filter *f, size_t first)
{
    for (size_t i = first; i < f->n_rows && f->rows[i].call == f->rows[first].call; i++) {
        const decided *d = &f->rows[i];
        load(f, offsetof(struct seccomp_data, args) + 8 * (size_t)d->argument);
        put(f, BPF_ALU | BPF_AND | BPF_K, d->mask, 0, 0);
        put(f, BPF_JMP | BPF_JEQ | BPF_K, d->value, (uint8_t)(d->others ? 1 : 0), (uint8_t)(d->others ? 0 : 1));
        answer(f, REFUSED);
    }
    answer(f, ALLOWED);
}

/* A tree over runs of calls. (The kernel tries a new filter on every call that there is, to know which it always allows: a list of
 * a hundred comparisons takes it half a millisecond.) */
static void put_tree(filter *f, const unsigned short *starts, size_t n)
{
    const unsigned verdict = f->verdicts[*starts];
    if (n == 1 && verdict >= DECIDED) {
        decide(f, verdict - DECIDED);
    } else if (n == 1) {
        answer(f, verdict);
    } else {
        const unsigned short jump = f->n;
        put(f, BPF_JMP | BPF_JGE | BPF_K, starts[n / 2], 0, 0);
        put_tree(f, starts, n / 2);
        const unsigned left = f->n - jump - 1u;
        f->too_far |= left > UINT8_MAX;
        f->code[jump].jt = (uint8_t)left;
        put_tree(f, starts + n / 2, n - n / 2);
    }
}

static void set(filter *f, const int *calls, size_t n, unsigned char verdict)
{
    for (size_t i = 0; i < n; i++)
        f->verdicts[calls[i]] = verdict;
}

/* Rows of one call follow one another. */
static void set_decided(filter *f, const decided *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (f->verdicts[rows[i].call] < DECIDED)
            f->verdicts[rows[i].call] = (unsigned char)(DECIDED + f->n_rows);
        f->rows[f->n_rows++] = rows[i];
    }
}

static void build(filter *f)
{
    size_t runs = 1;
    f->starts[0] = 0;
    for (unsigned short i = 1; i < CALLS; i++)
        if (f->verdicts[i] != f->verdicts[i - 1])
            f->starts[runs++] = i;
    load(f, offsetof(struct seccomp_data, arch));
    put(f, BPF_JMP | BPF_JEQ | BPF_K, (uint32_t)ARCHITECTURE, 1, 0);
    put(f, BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS, 0, 0); /* the numbers of another: nobody does that by accident */
    load(f, offsetof(struct seccomp_data, nr));
    put_tree(f, f->starts, runs);
}

int sandbox_calls(void)
{
    const uint32_t action = SECCOMP_RET_KILL_PROCESS; /* the youngest of what is used */
    return syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

int sandbox_drop_capabilities(void)
{
    enum { DATA = 2 };
    const uint32_t kept = 1u << CAP_DAC_OVERRIDE | 1u << CAP_DAC_READ_SEARCH;
    struct __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
    struct __user_cap_data_struct data[DATA] = {{0, 0, 0}};
    if (syscall(SYS_capget, &header, data) != 0)
        return -1;
    data[0].permitted &= kept;
    data[0].effective &= kept;
    data[1].permitted = data[1].effective = data[0].inheritable = data[1].inheritable = 0;
    return syscall(SYS_capset, &header, data) == 0 ? 0 : -1;
}

int sandbox_close_calls(int programs)
{
    const decided alone[] = {{SYS_clone, 0, CLONE_THREAD, 0, 0},                 /* a process; clone3 is new */
                             {SYS_tgkill, 0, UINT32_MAX, (uint32_t)getpid(), 1}, /* raise and abort are this */
                             {SYS_prlimit64, 0, UINT32_MAX, 0, 1}};              /* limits of another process */
    static filter f;                                                             /* once */
    memset(f.verdicts + NEW, UNKNOWN, CALLS - NEW);
    set(&f, new_allowed, COUNT(new_allowed), ALLOWED);
    set(&f, refused, COUNT(refused), REFUSED);
    set_decided(&f, always, COUNT(always));
    if (!programs) {
        set(&f, refused_alone, COUNT(refused_alone), REFUSED);
        set_decided(&f, alone, COUNT(alone));
    }
    build(&f);
    if (f.too_far) {
        errno = E2BIG;
        return -1;
    }
    const struct sock_fprog program = {f.n, f.code};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))
        return -1;
    /* SPEC_ALLOW: the cost of mitigations is that of code that was chosen by others, and none is run here */
    return syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &program) == 0 ? 0 : -1;
}

#else

int sandbox_calls(void)
{
    return 0;
}

int sandbox_drop_capabilities(void)
{
    errno = ENOSYS;
    return -1;
}

int sandbox_close_calls(int programs)
{
    (void)programs;
    errno = ENOSYS;
    return -1;
}
#endif
