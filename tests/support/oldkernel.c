/* oldkernel.c -- runs a program as on a kernel that has no Landlock ("landlock"), takes no filters of seccomp ("seccomp"), or has
 * neither ("both"): oldkernel WHAT PROGRAM [ARGUMENT]... */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#ifdef __linux__
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/syscall.h>

int main(int argc, char **argv)
{
    const int landlock = argc > 2 && strcmp(argv[1], "seccomp") != 0,
              seccomp = argc > 2 && strcmp(argv[1], "landlock") != 0;
    struct sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 444 /* landlock_create_ruleset */, !landlock, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                 BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_seccomp, !seccomp, 1),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                                 BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const struct sock_fprog program = {sizeof code / sizeof *code, code};
    if (argc < 3 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program))
        return 99;
    execvp(argv[2], argv + 2);
    return 99;
}
#else
int main(void)
{
    return 99;
}
#endif
