/* SPDX-License-Identifier: MIT */
/*
 * visible FILE: make the hidden symbols of a relocatable object visible to other programs.
 *
 * weir is compiled with hidden symbols, and its tests call them. A shared library of the same objects
 * exports them after this program has run over the objects, joined to one by `ld -r`. objcopy of
 * Debian 12 cannot do this. Symbols defined elsewhere keep their visibility.
 */
#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static int fail(const char *path, const char *message)
{
	fprintf(stderr, "visible: %s: %s\n", path, message);
	return 1;
}

static void show(Elf64_Sym *symbols, size_t n)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (symbols[i].st_shndx != SHN_UNDEF &&
		    ELF64_ST_BIND(symbols[i].st_info) != STB_LOCAL &&
		    ELF64_ST_VISIBILITY(symbols[i].st_other) == STV_HIDDEN)
			symbols[i].st_other = (unsigned char)(symbols[i].st_other & ~STV_PROTECTED);
	}
}

static int show_all(const char *path, unsigned char *file, size_t size)
{
	const Elf64_Ehdr *head = (const Elf64_Ehdr *)(const void *)file;
	const Elf64_Shdr *sections;
	size_t i;

	if (size < sizeof *head || memcmp(head->e_ident, ELFMAG, SELFMAG) != 0 ||
	    head->e_ident[EI_CLASS] != ELFCLASS64 || head->e_type != ET_REL)
		return fail(path, "not a relocatable object of 64 bits");
	if (head->e_shoff > size || (size - head->e_shoff) / sizeof *sections < head->e_shnum)
		return fail(path, "truncated");
	sections = (const Elf64_Shdr *)(const void *)(file + head->e_shoff);
	/* With 65,280 sections or more, e_shnum is 0 and the first section has the count. */
	for (i = 0; i < (head->e_shnum ? head->e_shnum : sections[0].sh_size); i++) {
		if (sections[i].sh_type == SHT_SYMTAB && sections[i].sh_offset <= size &&
		    sections[i].sh_size <= size - sections[i].sh_offset)
			show((Elf64_Sym *)(void *)(file + sections[i].sh_offset),
			    sections[i].sh_size / sizeof(Elf64_Sym));
	}
	return 0;
}

int main(int argc, char **argv)
{
	struct stat st;
	void *file;
	int fd, rc;

	if (argc != 2)
		return fail("usage", "visible FILE");
	fd = open(argv[1], O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) != 0 || st.st_size == 0)
		return fail(argv[1], "cannot be opened");
	file = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (file == MAP_FAILED)
		return fail(argv[1], "cannot be mapped");
	rc = show_all(argv[1], file, (size_t)st.st_size);
	munmap(file, (size_t)st.st_size);
	close(fd);
	return rc;
}
