/* SPDX-License-Identifier: MIT */
/*
 * Checks on files that decide what a server does: plug-ins, which are code, and the configuration
 * of a server started by root. Such a file is accepted only if nobody can change it but root, the
 * user of this process, the owner of the folder "/" and, if the process runs as root, the user who
 * called sudo (SUDO_UID). With WEIR_TRUST_FILES=any in the environment, owners and modes are not
 * checked; this is meant for containers and checkouts, in which owners are arbitrary.
 */
#ifndef WEIR_TRUST_H
#define WEIR_TRUST_H

#include <weir/annotate.h>
#include <weir/error.h>

WEIR_C_BEGIN

/**
 * Open the regular file `path` for reading, provided that it and every folder and symbolic link on
 * its path
 *
 *   - belongs to one of the users listed above,
 *   - is not writable by others, unless it is a folder with the sticky bit (/tmp), and
 *   - is not writable by its group, unless it is such a folder, or its group is private to its
 *     owner and it has no access control list.
 *
 * A group is private if it has the name of the owner and no other member, or if neither the group
 * nor the owner has a name and their numbers are equal.
 *
 * Walks the path by descriptors and checks what it has opened, so that nothing can be replaced
 * between check and use. Does not wait for the writer of a FIFO. The caller owns *fd, which is
 * close-on-exec, or -1 on failure. Returns 0, WEIR_EINVAL (the file does not meet the conditions),
 * WEIR_ENOENT or WEIR_ESYS. On failure err->text names the file or folder and the reason, and
 * err->hint is a command that fixes the problem, or "". Any thread; may query the system's user
 * database.
 */
WEIR_API int weir_trust_open(const char *path, int *fd, struct weir_err *err);

WEIR_C_END

#endif
