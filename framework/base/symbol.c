/* SPDX-License-Identifier: MIT */
/*
 * Reads the symbol tables of ELF files; see symbol.h. A file may be anything, for example one that was
 * replaced by a shorter one, so each offset is checked before it is used.
 */
#include "base/symbol.h"

#include <dlfcn.h>
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define PAGE_BYTES 4096

/* A part of the mapped file, or NULL if it is not entirely in the file or not aligned. */
static const void *part(const struct symbol_file *f, uint64_t at, uint64_t bytes, size_t align)
{
	if (at > f->bytes || bytes > f->bytes - at || at % align != 0)
		return NULL;
	return (const char *)f->map + at;
}

static bool map_file(struct symbol_file *f, const char *path)
{
	struct stat st;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd == -1)
		return false;
	if (fstat(fd, &st) == 0 && st.st_size > 0) {
		void *map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
		f->map = map == MAP_FAILED ? NULL : map;
		f->bytes = (size_t)st.st_size;
	}
	close(fd);
	return f->map != NULL;
}

static void unmap_file(struct symbol_file *f)
{
	if (f->map)
		munmap(f->map, f->bytes);
	f->map = NULL;
	f->symbols = NULL;
}

/* The section headers of the file, and their number; NULL if it is not an ELF file of this machine. */
static const ElfW(Shdr) * sections_of(const struct symbol_file *f, size_t *n)
{
	const ElfW(Ehdr) *head = part(f, 0, sizeof(*head), 1);

	if (!head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
	    head->e_shentsize != sizeof(ElfW(Shdr)))
		return NULL;
	*n = head->e_shnum;
	return part(f, head->e_shoff, *n * sizeof(ElfW(Shdr)), _Alignof(ElfW(Shdr)));
}

/* Find a symbol table of type `type`, SHT_SYMTAB or SHT_DYNSYM, with its names. */
static bool find_table(struct symbol_file *f, unsigned type)
{
	size_t n = 0;
	const ElfW(Shdr) *section = sections_of(f, &n);

	for (size_t i = 0; section && i < n; i++) {
		const ElfW(Shdr) *s = &section[i];
		if (s->sh_type != type || s->sh_link >= n)
			continue;
		const ElfW(Shdr) *names = &section[s->sh_link];
		f->symbols = part(f, s->sh_offset, s->sh_size, _Alignof(ElfW(Sym)));
		f->n = s->sh_size / sizeof(ElfW(Sym));
		f->names = part(f, names->sh_offset, names->sh_size, 1);
		f->name_bytes = names->sh_size;
		if (f->symbols && f->names && f->name_bytes > 0 &&
		    f->names[f->name_bytes - 1] == '\0')
			return true;
		f->symbols = NULL;
	}
	return false;
}

/* Write the path of the debug file with the build id of the file to path[size]. */
static bool debug_path(const struct symbol_file *f, char *path, size_t size)
{
	size_t n = 0;
	const ElfW(Shdr) *section = sections_of(f, &n);

	for (size_t i = 0; section && i < n; i++) {
		const ElfW(Nhdr) *note =
		    section[i].sh_type == SHT_NOTE
			? part(f, section[i].sh_offset, section[i].sh_size, _Alignof(ElfW(Nhdr)))
			: NULL;
		if (!note || section[i].sh_size < sizeof(*note) + 4 + 20 ||
		    note->n_type != NT_GNU_BUILD_ID || note->n_namesz != 4 || note->n_descsz != 20)
			continue;
		const unsigned char *id = (const unsigned char *)(note + 1) + 4;
		int at = snprintf(path, size, "/usr/lib/debug/.build-id/%02x/", id[0]);
		for (int k = 1; k < 20; k++)
			at += snprintf(path + at, size - (size_t)at, "%02x", id[k]);
		snprintf(path + at, size - (size_t)at, ".debug");
		return true;
	}
	return false;
}

/* Whether the file is the one that was loaded, and not one that has replaced it since. The first page
 * has the build id, and the dynamic linker has mapped it unchanged. */
static bool is_loaded(const struct symbol_file *f)
{
	size_t bytes = f->bytes < PAGE_BYTES ? f->bytes : PAGE_BYTES;

	return memcmp(f->map, (const void *)f->base, bytes) == 0;
}

static void load(struct symbol_file *f, const char *path)
{
	char debug[96];

	if (!map_file(f, path))
		return;
	if (!is_loaded(f)) {
		unmap_file(f);
		return;
	}
	if (find_table(f, SHT_SYMTAB))
		return;
	if (debug_path(f, debug, sizeof(debug))) {
		struct symbol_file apart = {.base = f->base};
		if (map_file(&apart, debug) && find_table(&apart, SHT_SYMTAB)) {
			unmap_file(f);
			*f = apart;
			return;
		}
		unmap_file(&apart);
	}
	if (!find_table(f, SHT_DYNSYM))
		unmap_file(f);
}

/* Whether the addresses of the file's symbols are relative to the address where it is loaded. Those
 * of a program that is not position-independent are absolute. */
static uintptr_t bias_of(const struct symbol_file *f)
{
	const ElfW(Ehdr) *head = f->map;

	return head->e_type == ET_DYN ? f->base : 0;
}

static bool find_in(const struct symbol_file *f, uintptr_t address, char *name, size_t size)
{
	const ElfW(Sym) *symbol = f->symbols;
	uintptr_t at = address - bias_of(f);

	for (size_t i = 0; i < f->n; i++) {
		const ElfW(Sym) *s = &symbol[i];
		/* the same for 32 and 64 bits */
		if (ELF64_ST_TYPE(s->st_info) != STT_FUNC || s->st_shndx == SHN_UNDEF ||
		    at < s->st_value || at - s->st_value >= s->st_size ||
		    s->st_name >= f->name_bytes || f->names[s->st_name] == '\0')
			continue;
		snprintf(name, size, "%s", f->names + s->st_name);
		return true;
	}
	return false;
}

/* Copy the name of the loaded file `path`, without folders, to name[size]. An object in memory
 * (SYMBOL_MEMORY) was loaded from a path such as "/proc/7/fd/9", which is a link to its name. */
static void file_name(const char *path, char *name, size_t size)
{
	char target[256];
	ssize_t bytes =
	    strncmp(path, "/proc/", 6) == 0 ? readlink(path, target, sizeof(target) - 1) : -1;
	const char *slash = strrchr(path, '/');

	snprintf(name, size, "%s", slash ? slash + 1 : path);
	if (bytes <= 0)
		return;
	target[bytes] = '\0';
	if (strncmp(target, SYMBOL_MEMORY, sizeof(SYMBOL_MEMORY) - 1) != 0)
		return;
	target[strcspn(target, " ")] = '\0';
	snprintf(name, size, "%.60s", target + sizeof(SYMBOL_MEMORY) - 1);
}

void symbol_find(struct symbol_file *f, uintptr_t address, struct symbol *s)
{
	Dl_info info;

	*s = (struct symbol){.function = "??", .offset = address};
	if (dladdr((const void *)(address - 1), &info) == 0 || !info.dli_fbase)
		return;
	s->offset = address - (uintptr_t)info.dli_fbase;
	file_name(info.dli_fname, s->file, sizeof(s->file));
	if (f->base != (uintptr_t)info.dli_fbase) {
		symbol_file_close(f);
		f->base = (uintptr_t)info.dli_fbase;
		/* dli_fname of the program is argv[0], which may be relative to another folder */
		load(f, info.dli_fname[0] == '/' ? info.dli_fname : "/proc/self/exe");
	}
	if (f->symbols && find_in(f, address - 1, s->function, sizeof(s->function)))
		return;
	if (info.dli_sname)
		snprintf(s->function, sizeof(s->function), "%s", info.dli_sname);
}

void symbol_file_close(struct symbol_file *f)
{
	unmap_file(f);
	*f = (struct symbol_file){0};
}
