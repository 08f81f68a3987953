/* t-sandbox.c -- inside the sandbox: each thing that is allowed is done, each that is not is refused. What an input that takes the
 * program over would try is tried here by the test itself, each test in a process of its own. */
#include "sim/sandbox/sandbox.h"
#include "support/badfile.h"
#include "support/support.h"

#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef HAVE_SANDBOX
#include <netinet/in.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>

/* A path in the folder of the test, that stays. */
static char *at(const char *name)
{
    return strdup(bad_path(name));
}

static char *make(const char *name, const char *text)
{
    char *path = at(name);
    FILE *f = fopen(path, "w");
    ck_assert(f && fputs(text, f) >= 0 && fclose(f) == 0);
    return path;
}

static int reads(const char *path)
{
    const int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : errno;
}

static int writes(const char *path, int flags)
{
    const int fd = open(path, O_WRONLY | O_CLOEXEC | flags, 0600);
    if (fd >= 0)
        close(fd);
    return fd >= 0 ? 0 : errno;
}

#define REFUSED(call) ck_assert_msg((call) == -1 && errno == EPERM, "%s: errno %d", #call, errno)

/* ---- files ---- */

START_TEST(read_only_what_is_named)
{
    char *named = make("named", "x"), *other = make("other", "x"), *folder = at("folder"), *away = at("away");
    ck_assert(mkdir(folder, 0700) == 0 && mkdir(away, 0700) == 0);
    char *below = make("folder/below", "x"), *far = make("away/blob", "x"), *unlinked = make("away/unlinked", "x"),
         *link = at("folder/link"), *dangling = at("folder/dangling"), *loop = at("folder/loop"),
         *hidden = at("folder/.metadata");
    ck_assert(symlink("../away/blob", link) == 0 && symlink("nowhere", dangling) == 0 && symlink(".", loop) == 0 &&
              symlink("../named", hidden) == 0);
    int ends[2];
    ck_assert(pipe(ends) == 0);
    const int rules = sandbox_rules();
    ck_assert(rules >= 0 && sandbox_allow_read(rules, named, 0) == 0 && sandbox_allow_read(rules, folder, 0) == 0 &&
              sandbox_allow_read(rules, bad_path("none"), 1) == 0);
    ck_assert_int_eq(reads(other), 0);
    ck_assert_int_eq(sandbox_close_files(rules), 0);
    ck_assert_int_eq(reads(named), 0);
    ck_assert_int_eq(reads(below), 0);
    ck_assert_int_eq(reads(folder), 0);
    ck_assert_int_eq(reads(link), 0);
    ck_assert_int_eq(reads(far), 0);
    ck_assert_int_eq(reads(hidden), 0);
    ck_assert_int_eq(reads(other), EACCES);
    ck_assert_int_eq(reads(unlinked), EACCES);
    ck_assert_int_eq(reads(away), EACCES);
    ck_assert_int_eq(reads("/etc/passwd"), EACCES);
    ck_assert_int_eq(reads(bad_path("none")), ENOENT); /* as without */
    ck_assert_int_eq(writes(named, 0), EACCES);
    ck_assert_int_eq(writes(below, 0), EACCES);
    ck_assert_int_eq(writes(bad_path("folder/new"), O_CREAT), EACCES);
    ck_assert(unlink(below) == -1 && errno == EACCES);
    char pipe_path[64];
    snprintf(pipe_path, sizeof pipe_path, "/proc/self/fd/%d", ends[0]);
    const int again = open(pipe_path, O_RDONLY | O_NONBLOCK);
    ck_assert_msg(again >= 0, "a pipe by its number: errno %d", errno);
    char *const argv[] = {(char *)(uintptr_t) "true", NULL};
    ck_assert(execv("/bin/true", argv) == -1 && errno == EACCES);
}

START_TEST(read_beside)
{
    char *far = make("far", "x"), *folder = at("snapshot");
    ck_assert(mkdir(folder, 0700) == 0);
    char *index = make("snapshot/index", "x"), *shard = make("snapshot/shard", "x"), *link = at("snapshot/link"),
         *sub = at("snapshot/sub");
    ck_assert(symlink("../far", link) == 0 && mkdir(sub, 0700) == 0);
    char *deep = make("snapshot/sub/deep", "x");
    const int rules = sandbox_rules();
    ck_assert(rules >= 0 && sandbox_allow_read(rules, index, 1) == 0 && sandbox_close_files(rules) == 0);
    ck_assert_int_eq(reads(index), 0);
    ck_assert_int_eq(reads(shard), 0);
    ck_assert_int_eq(reads(link), 0);
    ck_assert_int_eq(reads(far), 0);
    ck_assert_int_eq(reads(deep), EACCES);
    ck_assert_int_eq(reads(folder), EACCES);
}

START_TEST(write_only_outputs)
{
    char *out = at("out"), *old = at("out/old"), *new = at("out/new"), *outside = make("outside", "x"),
         *private = at("private");
    ck_assert(mkdir(out, 0700) == 0 && mkdir(private, 0700) == 0);
    free(make("out/old", "x"));
    const int rules = sandbox_rules();
    ck_assert(rules >= 0 && sandbox_allow(rules, out, SANDBOX_WRITE | SANDBOX_MAKE) == 0 &&
              sandbox_allow(rules, "/dev/null", SANDBOX_WRITE) == 0 &&
              sandbox_allow(rules, bad_path("."), SANDBOX_EMPTY) == 0 && sandbox_close_files(rules) == 0);
    ck_assert_int_eq(writes(new, O_CREAT | O_EXCL), 0);
    ck_assert(rename(new, old) == 0);
    ck_assert_int_eq(writes(old, O_TRUNC), 0);
    ck_assert(unlink(old) == 0);
    ck_assert_int_eq(writes("/dev/null", 0), 0);
    ck_assert_int_eq(writes(outside, 0), EACCES);
    ck_assert_int_eq(writes(bad_path("elsewhere"), O_CREAT), EACCES);
    ck_assert_int_eq(writes("/dev/full", 0), EACCES);
    ck_assert(unlink(outside) == -1 && errno == EACCES);
    ck_assert(mkdir(bad_path("out/folder"), 0700) == -1 && errno == EACCES);
    ck_assert(symlink("x", bad_path("out/link")) == -1 && errno == EACCES);
    ck_assert(rename(outside, new) == -1 && (errno == EACCES || errno == EXDEV));
    ck_assert_int_eq(rmdir(private), 0); /* SANDBOX_EMPTY */
}

START_TEST(folders_and_moves)
{
    char *out = at("figures"), *temporary = at("figures/temporary"), *drawn = at("figures/temporary/x"),
         *wanted = at("figures/x");
    ck_assert(mkdir(out, 0700) == 0);
    const int rules = sandbox_rules();
    ck_assert(rules >= 0 &&
              sandbox_allow(rules, out, SANDBOX_WRITE | SANDBOX_MAKE | SANDBOX_FOLDERS | SANDBOX_READ) == 0 &&
              sandbox_close_files(rules) == 0);
    ck_assert(mkdir(temporary, 0700) == 0);
    ck_assert_int_eq(writes(drawn, O_CREAT), 0);
    if (sandbox_files() >= 2) /* version 1 forbids it always */
        ck_assert(rename(drawn, wanted) == 0 && rmdir(temporary) == 0);
    ck_assert(rmdir(out) == -1);
}

/* ---- calls ---- */

static void *of_a_thread(void *p)
{
    return reads(p) == 0 ? p : NULL;
}

static volatile sig_atomic_t signalled;

static void on_signal(int number)
{
    signalled = number;
}

START_TEST(no_calls_that_are_not_needed)
{
    char *mine = make("mine", "text");
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    struct sockaddr_in port = {.sin_family = AF_INET, .sin_port = htons(9), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const int unix_socket = socket(AF_UNIX, SOCK_STREAM, 0), tcp = socket(AF_INET, SOCK_STREAM, 0),
              terminal = open("/dev/null", O_RDWR);
    int pair[2];
    char *const argv[] = {(char *)(uintptr_t) "true", NULL};
    ck_assert(terminal >= 0);
    ck_assert_int_eq(sandbox_close_calls(0), 0);
    REFUSED(socket(AF_INET, SOCK_STREAM, 0));
    REFUSED(socketpair(AF_UNIX, SOCK_STREAM, 0, pair));
    REFUSED(connect(unix_socket, (struct sockaddr *)&name, sizeof name));
    REFUSED(connect(tcp, (struct sockaddr *)&port, sizeof port));
    REFUSED(bind(tcp, (struct sockaddr *)&port, sizeof port));
    REFUSED(sendto(tcp, "x", 1, 0, (struct sockaddr *)&port, sizeof port));
    REFUSED(execv("/bin/true", argv));
    REFUSED(syscall(SYS_execveat, terminal, "", argv, NULL, 0x1000));
    REFUSED(fork());
    REFUSED(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
    ck_assert(syscall(435 /* clone3 */, NULL, 0) == -1 && errno == ENOSYS);
    ck_assert(syscall(425 /* io_uring_setup */, 1, NULL) == -1 && errno == ENOSYS);
    ck_assert(syscall(442 /* mount_setattr */, 0) == -1 && errno == ENOSYS);
    ck_assert(syscall(0x40000000 | SYS_getpid) == -1 && errno == ENOSYS); /* the x32 names of calls */
    REFUSED((int)ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    REFUSED(syscall(SYS_process_vm_readv, getppid(), NULL, 0, NULL, 0, 0));
    REFUSED(kill(getppid(), 0));
    REFUSED(syscall(SYS_tgkill, getppid(), getppid(), 0));
    REFUSED(chmod(mine, 0777));
    REFUSED(chown(mine, 0, 0));
    REFUSED(truncate(mine, 0));
    REFUSED(open(mine, O_RDONLY | O_TRUNC));
    REFUSED(link(mine, bad_path("hard")));
    REFUSED(utimensat(AT_FDCWD, mine, NULL, 0));
    REFUSED(ioctl(terminal, TIOCSTI, "x"));
    REFUSED(ioctl(terminal, 0x541c /* TIOCLINUX */, "x"));
    REFUSED(setuid(0));
    REFUSED((int)syscall(SYS_bpf, 0, NULL, 0));
    REFUSED((int)syscall(SYS_keyctl, 0, 0, 0, 0, 0));
    REFUSED(chroot("/"));
    REFUSED(unshare(0));
    /* and what is */
    ck_assert(ioctl(terminal, TIOCGWINSZ, pair) == -1 && errno == ENOTTY);
    ck_assert_int_eq(reads(mine), 0);
    ck_assert_int_eq(writes(mine, O_TRUNC), 0);
    signal(SIGUSR1, on_signal);
    ck_assert(raise(SIGUSR1) == 0 && signalled == SIGUSR1);
    pthread_t thread;
    void *result = NULL;
    ck_assert(pthread_create(&thread, NULL, of_a_thread, mine) == 0 && pthread_join(thread, &result) == 0 &&
              result == mine);
    const int fd = open(mine, O_RDWR);
    ck_assert(fd >= 0 && fchmod(fd, 0600) == 0 && fsync(fd) == 0 && sysconf(_SC_NPROCESSORS_ONLN) > 0);
    for (size_t i = 1; i <= 64; i++) {
        void *p = malloc(i << 20);
        ck_assert(p);
        free(p);
    }
}

START_TEST(programs_where_they_are_needed)
{
    char *const argv[] = {(char *)(uintptr_t) "sh", (char *)(uintptr_t) "-c", (char *)(uintptr_t) "exit 7", NULL};
    pid_t child;
    int status = 0;
    ck_assert_int_eq(sandbox_close_calls(1), 0);
    ck_assert_int_eq(posix_spawn(&child, "/bin/sh", NULL, NULL, argv, NULL), 0);
    ck_assert(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 7);
    REFUSED(socket(AF_INET, SOCK_STREAM, 0));
    REFUSED((int)ptrace(PTRACE_TRACEME, 0, NULL, NULL));
    REFUSED(chmod("/", 0777));
}

#ifdef __x86_64__
START_TEST(root_reads_files_and_does_nothing_else)
{
    char *closed = make("closed", "x");
    const int root = geteuid() == 0 && chmod(closed, 0) == 0 && reads(closed) == 0;
    ck_assert_int_eq(sandbox_drop_capabilities(), 0);
    REFUSED(chown(closed, 12345, 12345));
    REFUSED(sethostname("x", 1));
    REFUSED(setuid(12345));
    ck_assert(!root || reads(closed) == 0);
    ck_assert_int_eq(sandbox_drop_capabilities(), 0);
}

/* The 32-bit calls of the same processor have other numbers: 11 is execve there, and munmap here. */
START_TEST(calls_of_another_architecture_end_the_process)
{
    int status = 0;
    const pid_t child = fork();
    if (child == 0) {
        long result = 20; /* getpid */
        if (sandbox_close_calls(0) == 0)
            __asm__ volatile("int $0x80" : "+a"(result) : : "memory");
        _exit(result == -ENOSYS ? 1 : 0);
    }
    ck_assert(child > 0 && waitpid(child, &status, 0) == child);
    ck_assert((WIFSIGNALED(status) && (WTERMSIG(status) == SIGSYS || WTERMSIG(status) == SIGSEGV)) ||
              WEXITSTATUS(status) == 1);
}
#endif

START_TEST(both_may_be_closed_twice)
{
    char *named = make("twice", "x");
    for (int i = 0; i < 2; i++) {
        const int rules = sandbox_rules();
        ck_assert(rules >= 0 && sandbox_allow_read(rules, named, 0) == 0 && sandbox_close_files(rules) == 0);
    }
    ck_assert_int_eq(sandbox_close_calls(0), 0);
    ck_assert_int_eq(reads(named), 0);
    ck_assert_int_eq(reads("/etc/passwd"), EACCES);
}

/* ck_assert_msg and exit need no more than a sandbox leaves. */
int main(void)
{
    TCase *files = test_case("files", 20), *calls = test_case("calls", 20);
    printf("# Landlock %d, seccomp %d\n", sandbox_files(), sandbox_calls());
    if (sandbox_files()) {
        tcase_add_test(files, read_only_what_is_named);
        tcase_add_test(files, read_beside);
        tcase_add_test(files, write_only_outputs);
        tcase_add_test(files, folders_and_moves);
    }
    if (sandbox_calls()) {
        tcase_add_test(calls, no_calls_that_are_not_needed);
        tcase_add_test(calls, programs_where_they_are_needed);
        tcase_add_test(calls, root_reads_files_and_does_nothing_else);
#ifdef __x86_64__
        tcase_add_test(calls, calls_of_another_architecture_end_the_process);
#endif
    }
    if (sandbox_files() && sandbox_calls())
        tcase_add_test(calls, both_may_be_closed_twice);
    TCase *const cases[] = {files, calls, NULL};
    return bad_main("sandbox", cases);
}
#else
START_TEST(nothing_is_promised)
{
    ck_assert(sandbox_files() == 0 && sandbox_calls() == 0 && sandbox_rules() == -1 && sandbox_close_files(-1) == -1 &&
              sandbox_close_calls(0) == -1 && sandbox_drop_capabilities() == -1);
}

int main(void)
{
    TCase *t = test_case("none", 20);
    tcase_add_test(t, nothing_is_promised);
    TCase *const cases[] = {t, NULL};
    return bad_main("sandbox", cases);
}
#endif
