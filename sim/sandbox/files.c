/* files.c -- the paths of sandbox.h, by Landlock.
 *
 * Source: the kernel's documentation (userspace-api/landlock), which asks programs to do without what an older version lacks.
 * The numbers are those of the kernel's interface, which do not change: linux/landlock.h of a distribution may be
 * older than its kernel, or missing. */
#include "sandbox.h"

#include "config.h"

#include <errno.h>

#ifdef HAVE_SANDBOX
#include <fcntl.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { CREATE_RULESET = 444, ADD_RULE = 445, RESTRICT_SELF = 446 }; /* on every architecture */
enum { GET_VERSION = 1, PATH_BENEATH = 1 };

/* Accesses of files, a bit each; the first version that knows each of them. */
/* clang-format off */
enum {
    EXECUTE = 1 << 0, WRITE_FILE = 1 << 1, READ_FILE = 1 << 2, READ_DIR = 1 << 3, REMOVE_DIR = 1 << 4, REMOVE_FILE = 1 << 5,
    MAKE_DIR = 1 << 7, MAKE_REG = 1 << 8, REFER = 1 << 13, TRUNCATE = 1 << 14, IOCTL_DEV = 1 << 15,
    OF_FILES = EXECUTE | WRITE_FILE | READ_FILE | TRUNCATE | IOCTL_DEV, /* all others are of folders */
    IN_1 = (1 << 13) - 1, IN_2 = IN_1 | REFER, IN_3 = IN_2 | TRUNCATE, IN_5 = IN_3 | IOCTL_DEV
};
/* clang-format on */
enum { BIND_AND_CONNECT = 3, SOCKETS_AND_SIGNALS = 3 }; /* versions 4 and 6 */

typedef struct ruleset {
    uint64_t files, net, scope;
} ruleset;

typedef struct path_beneath {
    uint64_t access;
    int32_t parent;
} __attribute__((packed)) path_beneath;

static const unsigned accesses[] = {/* of the rights, in the order of their bits */
                                    READ_FILE | READ_DIR | IOCTL_DEV,
                                    WRITE_FILE | TRUNCATE | IOCTL_DEV,
                                    MAKE_REG | REMOVE_FILE,
                                    MAKE_DIR | REMOVE_DIR | REFER,
                                    REMOVE_DIR,
                                    EXECUTE};

int sandbox_files(void)
{
    static int version = -1;
    if (version < 0)
        version = (int)syscall(CREATE_RULESET, NULL, 0, GET_VERSION);
    version = version > 0 ? version : 0;
    return version;
}

static unsigned known(int version)
{
    return version >= 5 ? IN_5 : version >= 3 ? IN_3 : version >= 2 ? IN_2 : IN_1;
}

int sandbox_rules(void)
{
    const int version = sandbox_files();
    const ruleset r = {known(version), version >= 4 ? BIND_AND_CONNECT : 0, version >= 6 ? SOCKETS_AND_SIGNALS : 0};
    const size_t size = version >= 6 ? sizeof r : version >= 4 ? sizeof r - 8 : 8;
    return version ? (int)syscall(CREATE_RULESET, &r, size, 0) : -1;
}

int sandbox_allow(int rules, const char *path, unsigned rights)
{
    struct stat st;
    path_beneath p = {0, open(path, O_PATH | O_CLOEXEC)};
    if (p.parent < 0)
        return errno == EMFILE || errno == ENFILE || errno == ENOMEM ? -1 : 0;
    for (unsigned i = 0; i < sizeof accesses / sizeof *accesses; i++)
        if (rights & 1u << i)
            p.access |= accesses[i];
    p.access &= known(sandbox_files());
    if (fstat(p.parent, &st) == 0 && !S_ISDIR(st.st_mode))
        p.access &= OF_FILES;
    /* a pipe of /proc/self/fd is in no folder (EBADFD): it may always be opened */
    const int bad = p.access && syscall(ADD_RULE, rules, PATH_BENEATH, &p, 0) && errno != EBADFD;
    const int why = errno;
    close(p.parent);
    errno = why;
    return bad ? -1 : 0;
}

int sandbox_close_files(int rules)
{
    return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || syscall(RESTRICT_SELF, rules, 0) ? -1 : 0;
}

#else

int sandbox_files(void)
{
    return 0;
}

int sandbox_rules(void)
{
    errno = ENOSYS;
    return -1;
}

int sandbox_allow(int rules, const char *path, unsigned rights)
{
    (void)rules, (void)path, (void)rights;
    return sandbox_rules();
}

int sandbox_close_files(int rules)
{
    (void)rules;
    return sandbox_rules();
}
#endif
