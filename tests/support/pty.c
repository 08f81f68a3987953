/* pty.c -- a program for tests: pty COLUMNS COMMAND [ARGUMENT...] runs a command whose standard output is a terminal of so many
 * columns, and writes what the command writes there to its own standard output. Its exit code; 77 where no terminal can be made. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/wait.h>
#include <termios.h>
#include <unistd.h>

enum { SKIPPED = 77 };

/* Two ends of a terminal that changes no byte. 0, or -1. */
static int open_terminal(unsigned short columns, int *near, int *far)
{
    struct winsize size = {.ws_col = columns, .ws_row = 24};
    struct termios as;
    *near = posix_openpt(O_RDWR | O_NOCTTY);
    if (*near < 0 || grantpt(*near) || unlockpt(*near))
        return -1;
    const char *name = ptsname(*near);
    *far = name ? open(name, O_RDWR | O_NOCTTY) : -1;
    if (*far < 0 || tcgetattr(*far, &as))
        return -1;
    as.c_oflag &= ~(tcflag_t)OPOST;
    return tcsetattr(*far, TCSANOW, &as) || ioctl(*far, TIOCSWINSZ, &size) ? -1 : 0;
}

/* What comes out until the last writer is gone, which is an error (EIO) on Linux. */
static void relay(int near)
{
    char block[4096];
    ssize_t n;
    while ((n = read(near, block, sizeof block)) > 0 || (n < 0 && errno == EINTR))
        if (n > 0)
            fwrite(block, 1, (size_t)n, stdout);
}

int main(int argc, char **argv)
{
    int near, far, status;
    if (argc < 3) {
        fputs("pty COLUMNS COMMAND [ARGUMENT...]\n", stderr);
        return 2;
    }
    if (open_terminal((unsigned short)atoi(argv[1]), &near, &far))
        return SKIPPED;
    const pid_t child = fork();
    if (child == 0) {
        dup2(far, STDOUT_FILENO);
        close(near);
        close(far);
        execvp(argv[2], argv + 2);
        _exit(127);
    }
    close(far);
    if (child < 0)
        return SKIPPED;
    relay(near);
    if (waitpid(child, &status, 0) != child)
        return SKIPPED;
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
