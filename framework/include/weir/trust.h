/* SPDX-License-Identifier: MIT */
/*
 * Checks on files that decide what a server does: plug-ins, which are code, and the configuration
 * of a server started by root. Such a file is accepted only if no users can change it except those
 * who have the same power anyway: root, the user of this process, the owner of the folder "/" and,
 * if the process runs as root, the user who called sudo (SUDO_UID). With WEIR_TRUST_FILES=any in
 * the environment, owners and modes are not checked, which is meant for containers and checkouts
 * where they mean nothing.
 */
#ifndef WEIR_TRUST_H
#define WEIR_TRUST_H

#include <weir/annotate.h>
#include <weir/error.h>

/**
 * Open the regular file `path` for reading, provided that it and every folder and symbolic link on
 * its path
 *
 *   - belongs to one of the users listed above,
 *   - is not writable by others, unless it is a folder with the sticky bit (/tmp), and
 *   - is not writable by its group, unless it is such a folder or the group is private to its
 *     owner: it has the owner's name (or, without names, number), no other member, and the file
 *     has no access control list.
 *
 * Walks the path by descriptors and checks what it has opened, so that nothing can be replaced
 * between check and use. Does not wait for the writer of a FIFO. The caller owns *fd, which is
 * close-on-exec, or -1 on failure. Returns 0, WEIR_EINVAL (the file does not meet the conditions),
 * WEIR_ENOENT or WEIR_ESYS. On failure err->text names the file or folder and the reason, and
 * err->hint is a command that fixes the problem, or "". Any thread; may query the system's user
 * database.
 */
WEIR_API int weir_trust_open(const char *path, int *fd, struct weir_err *err);

#endif
