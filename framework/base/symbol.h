/* SPDX-License-Identifier: MIT */
/*
 * Names of functions by address, for call stacks.
 *
 * dladdr() knows exported functions only, and most functions of weir and of plug-ins are not
 * exported. The symbol table of the file (.symtab, which strip removes) has all of them, so it is
 * read here; if it is missing, that of the separate debug file with the same build id
 * (/usr/lib/debug/.build-id), and at last the table of exported functions (.dynsym).
 *
 * Plug-ins are loaded from files in memory and replaced while the server runs; the file that is read
 * is the one that the dynamic linker has mapped.
 */
#ifndef WEIR_BASE_SYMBOL_H
#define WEIR_BASE_SYMBOL_H

#include <stddef.h>
#include <stdint.h>

/** Prefix of the kernel's names for memfd_create files, such as "/memfd:upper.so (deleted)".
 *  Plug-ins are loaded from such files. */
#define SYMBOL_MEMORY "/memfd:"

/** A file with its symbol table, mapped until another one is needed: addresses of one stack are
 *  mostly in two or three files. Zero at first; free with symbol_file_close. */
struct symbol_file {
	uintptr_t base; /* address at which the file is loaded; 0: none */
	void *map;      /* the file, or its debug file; NULL: it has no symbols */
	size_t bytes;
	const void *symbols; /* ElfW(Sym)[n], in the map */
	size_t n;
	const char *names;
	size_t name_bytes;
};

/** An address in a loaded file. */
struct symbol {
	char function[128]; /* "??" if it is not known; may be truncated */
	char file[64];      /* name of the file without folders; "" if the address is in none */
	uintptr_t offset;   /* of the address in the file, as `addr2line -e` takes it */
};

/**
 * Describe the code at the return address `address`: the function that has made the call, which is
 * that of the byte before, and the file. Maps files and compares all symbols of one: about 50 us for
 * each address, and 100 us more for a new file. Any thread; `file` by one at a time. Not for signal
 * handlers.
 */
void symbol_find(struct symbol_file *file, uintptr_t address, struct symbol *symbol);

void symbol_file_close(struct symbol_file *file);

#endif
