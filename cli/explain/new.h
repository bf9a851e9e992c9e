/* SPDX-License-Identifier: MIT */
/*
 * The files of a new server, for `weir new NAME`. In names and texts, @NAME@ stands for the name, and
 * @ID@ for the name as a word of C, which is the name of the stage.
 */
#ifndef WEIR_CLI_NEW_H
#define WEIR_CLI_NEW_H

struct new_file {
	const char *name; /* NULL ends the table */
	const char *text;
};

extern const struct new_file new_files[];

#endif
