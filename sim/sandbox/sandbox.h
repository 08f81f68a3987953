/* sandbox.h -- what is left of a process's rights before it reads a file of somebody else: the files that it opens and
 * makes (Linux: Landlock), and the calls to the kernel that it makes (seccomp).
 *
 * Only the thread that closes the sandbox and those that it starts later are inside; nothing opens it again. Whatever is
 * open stays open. Where a kernel has only an older Landlock, what that cannot forbid stays allowed. */
#pragma once

/* Rights at a path. Of a folder they hold for all that is below it, now or later; a symbolic link is followed. */
enum {
    SANDBOX_READ = 1 << 0,    /* files are read, folders listed                             */
    SANDBOX_WRITE = 1 << 1,   /* files that are there are written                           */
    SANDBOX_MAKE = 1 << 2,    /* files are made, renamed and removed                        */
    SANDBOX_FOLDERS = 1 << 3, /* folders are made and removed, files moved between them     */
    SANDBOX_EMPTY = 1 << 4,   /* folders with nothing in them are removed                   */
    SANDBOX_RUN = 1 << 5      /* programs are run                                           */
};

/* What of it the kernel has; 0: nothing. */
int sandbox_files(void); /* the version of Landlock */
int sandbox_calls(void); /* 1: it takes filters of calls */

/* sandbox_rules -- begin a list of paths: a descriptor, or -1 and errno. */
int sandbox_rules(void);
/* sandbox_allow -- rights at a path; one that is not there, or that nobody may open, adds nothing. 0, or -1 and errno. */
int sandbox_allow(int rules, const char *path, unsigned rights);
/* sandbox_allow_read -- reading a file, or a folder with all that symbolic links in and below it lead to, now; folders whose name
 * begins with '.' are not looked into for links. With `beside`, of the files beside it, too (not below its folder). 0, or -1 and errno. */
int sandbox_allow_read(int rules, const char *path, int beside);
/* sandbox_close_files -- from now on only these paths; no connections by TCP, and no signals to processes outside.
 * The caller closes `rules`. 0, or -1 and errno. */
int sandbox_close_files(int rules);
/* sandbox_drop_capabilities -- what root may do besides reading and writing anybody's files (of which sandbox_close_files leaves
 * some) is given up. 0, or -1 and errno. */
int sandbox_drop_capabilities(void);
/* sandbox_close_calls -- from now on no sockets, tracing, changes of owners, modes and times, mounts, ...; without
 * `programs`, no processes, programs and signals to others either. Such calls fail with EPERM, those that are newer than this
 * list with ENOSYS. 0, or -1 and errno. */
int sandbox_close_calls(int programs);
