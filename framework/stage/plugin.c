/* SPDX-License-Identifier: MIT */
/*
 * Copies plug-in files into memory and checks them; see plugin.h.
 *
 * A process maps the file of a shared object that it loads. Overwriting that file (with cp, for
 * example) changes the code in the process, which then crashes with SIGSEGV or SIGBUS. A sealed
 * memory file (memfd_create) can be neither written nor truncated.
 */
#include "stage/plugin.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <weir/event.h>
#include <weir/stage.h>
#include <weir/trust.h>

/* These flags exist since Linux 6.3. The sysctl vm.memfd_noexec may require one of them. */
#ifndef MFD_EXEC
#define MFD_NOEXEC_SEAL 0x0008U
#define MFD_EXEC        0x0010U
#endif

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE)

/* Size limit of a plug-in file, which is read into memory. 256 MiB is a guess: larger than any
 * stage type. */
#define BYTES_MAX (256UL << 20)

static int refuse(struct weir_err *err, int code, const char *path, const char *fmt, ...)
    WEIR_PRINTF(4, 5);
static int refuse(struct weir_err *err, int code, const char *path, const char *fmt, ...)
{
	char why[192];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	size_t n = strlen(path); /* show the end of a long path, which is the more useful part */
	snprintf(err->text, sizeof(err->text), "plug-in '%s%.90s' %.140s", n > 90 ? "..." : "",
	    path + (n > 90 ? n - 90 : 0), why);
	err->code = code;
	return code;
}

/* ---- the copy ---- */

/* Create the memory file for a copy. Its name, such as "/memfd:upper.so", appears in /proc/PID/maps
 * and perf. */
static int make_file(const char *path)
{
	static const unsigned flags[] = {MFD_EXEC, 0, MFD_NOEXEC_SEAL};
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	char name[200]; /* the kernel accepts up to 249 bytes */
	int fd = -1;

	snprintf(name, sizeof(name), "%s", base);
	for (size_t i = 0; fd == -1 && i < sizeof(flags) / sizeof(flags[0]); i++)
		fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | flags[i]);
	return fd;
}

static bool write_all(int fd, const char *p, size_t n)
{
	while (n > 0) {
		ssize_t done = write(fd, p, n);
		if (done == -1 && errno == EINTR)
			continue;
		if (done <= 0)
			return false;
		p += done;
		n -= (size_t)done;
	}
	return true;
}

/* Copy everything from `from` to `to`. Returns the number of bytes, or -1 with errno set. */
static ssize_t copy_bytes(int from, int to)
{
	char part[65536];
	ssize_t all = 0, n;

	while ((n = read(from, part, sizeof(part))) != 0) {
		if (n == -1 && errno == EINTR)
			continue;
		if (n == -1 || !write_all(to, part, (size_t)n))
			return -1;
		all += n;
	}
	return all;
}

static bool same_time(const struct timespec *a, const struct timespec *b)
{
	return a->tv_sec == b->tv_sec && a->tv_nsec == b->tv_nsec;
}

static bool was_written(const struct stat *a, const struct stat *b)
{
	return a->st_size != b->st_size || !same_time(&a->st_mtim, &b->st_mtim) ||
	       !same_time(&a->st_ctim, &b->st_ctim);
}

static int fill(const char *path, int from, struct plugin_copy *copy, struct weir_err *err)
{
	struct stat before, after;

	if (fstat(from, &before) != 0)
		return refuse(err, WEIR_ESYS, path, "cannot be read: %s", strerror(errno));
	if ((size_t)before.st_size > BYTES_MAX)
		return refuse(err, WEIR_EINVAL, path, "is larger than 256 MiB");
	ssize_t n = copy_bytes(from, copy->fd);
	if (n == -1 || fstat(from, &after) != 0)
		return refuse(err, WEIR_ESYS, path, "cannot be copied: %s", strerror(errno));
	if (n != before.st_size || was_written(&before, &after))
		return refuse(err, WEIR_EBUSY, path, "is being written: try again");
	copy->size = (size_t)n;
	if (fcntl(copy->fd, F_ADD_SEALS, SEALS) != 0)
		return refuse(err, WEIR_ESYS, path, "cannot be sealed: %s", strerror(errno));
	return 0;
}

/* ---- checks of the content ---- */

/* Whether the `n` bytes at offset `from` lie within the first `size` bytes. */
static bool inside(uint64_t from, uint64_t n, size_t size)
{
	return from <= size && n <= size - from;
}

static bool is_ours(const Elf64_Ehdr *head)
{
	return memcmp(head->e_ident, ELFMAG, SELFMAG) == 0 &&
	       head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_type == ET_DYN &&
	       head->e_machine == EM_X86_64;
}

/* Whether the file is complete. The loader maps the segments in the program headers, and touching a
 * page beyond the end of the file raises SIGBUS. The section headers are at the end of the file, so
 * they reveal truncation. */
static bool is_whole(const Elf64_Ehdr *head, size_t size)
{
	if (head->e_phentsize != sizeof(Elf64_Phdr) || head->e_phoff % sizeof(void *) != 0 ||
	    !inside(head->e_phoff, (uint64_t)head->e_phnum * sizeof(Elf64_Phdr), size) ||
	    !inside(head->e_shoff, (uint64_t)head->e_shnum * head->e_shentsize, size))
		return false;
	const Elf64_Phdr *ph = (const Elf64_Phdr *)((const char *)head + head->e_phoff);
	for (int i = 0; i < head->e_phnum; i++)
		if (!inside(ph[i].p_offset, ph[i].p_filesz, size))
			return false;
	return true;
}

/* Find the bytes of the file at virtual address `at`; *n receives the number of bytes from there to
 * the end of the segment. Returns NULL if no segment contains the address. */
static const char *bytes_at(const Elf64_Ehdr *head, Elf64_Addr at, size_t *n)
{
	const Elf64_Phdr *ph = (const Elf64_Phdr *)((const char *)head + head->e_phoff);

	for (int i = 0; i < head->e_phnum; i++) {
		if (ph[i].p_type != PT_LOAD || at < ph[i].p_vaddr ||
		    at - ph[i].p_vaddr >= ph[i].p_filesz)
			continue;
		*n = ph[i].p_filesz - (at - ph[i].p_vaddr);
		return (const char *)head + ph[i].p_offset + (at - ph[i].p_vaddr);
	}
	return NULL;
}

static const Elf64_Dyn *dynamic_of(const Elf64_Ehdr *head, size_t *n)
{
	const Elf64_Phdr *ph = (const Elf64_Phdr *)((const char *)head + head->e_phoff);

	for (int i = 0; i < head->e_phnum; i++)
		if (ph[i].p_type == PT_DYNAMIC && ph[i].p_offset % sizeof(void *) == 0) {
			*n = ph[i].p_filesz / sizeof(Elf64_Dyn);
			return (const Elf64_Dyn *)((const char *)head + ph[i].p_offset);
		}
	*n = 0;
	return NULL;
}

/* Whether the plug-in looks for libraries in its own directory ($ORIGIN). A copy in memory has no
 * directory. */
static bool uses_origin(const Elf64_Ehdr *head)
{
	size_t n, left = 0;
	const Elf64_Dyn *dyn = dynamic_of(head, &n);
	const char *names = NULL;

	for (size_t i = 0; i < n && dyn[i].d_tag != DT_NULL; i++)
		if (dyn[i].d_tag == DT_STRTAB)
			names = bytes_at(head, dyn[i].d_un.d_ptr, &left);
	for (size_t i = 0; names && i < n && dyn[i].d_tag != DT_NULL; i++) {
		bool path = dyn[i].d_tag == DT_RUNPATH || dyn[i].d_tag == DT_RPATH;
		if (!path || dyn[i].d_un.d_val >= left)
			continue;
		const char *text = names + dyn[i].d_un.d_val;
		size_t bytes = strnlen(text, left - dyn[i].d_un.d_val);
		if (memmem(text, bytes, "$ORIGIN", 7) || memmem(text, bytes, "${ORIGIN}", 9))
			return true;
	}
	return false;
}

/* The dynamic symbol table; NULL if the file has none or the section headers are invalid. */
static const Elf64_Shdr *symbols_of(const Elf64_Ehdr *head, size_t size)
{
	const Elf64_Shdr *sh = (const Elf64_Shdr *)((const char *)head + head->e_shoff);

	if (head->e_shentsize != sizeof(*sh) || head->e_shoff % sizeof(void *) != 0)
		return NULL;
	for (int i = 0; i < head->e_shnum; i++)
		if (sh[i].sh_type == SHT_DYNSYM && sh[i].sh_link < head->e_shnum &&
		    sh[i].sh_offset % sizeof(void *) == 0 &&
		    inside(sh[i].sh_offset, sh[i].sh_size, size) &&
		    inside(sh[sh[i].sh_link].sh_offset, sh[sh[i].sh_link].sh_size, size))
			return &sh[i];
	return NULL;
}

/* The symbol `name`, or NULL if the file does not define it. */
static const Elf64_Sym *find_symbol(
    const Elf64_Ehdr *head, const Elf64_Shdr *symbols, const char *name)
{
	const Elf64_Shdr *sh = (const Elf64_Shdr *)((const char *)head + head->e_shoff);
	const Elf64_Sym *sym = (const Elf64_Sym *)((const char *)head + symbols->sh_offset);
	const char *names = (const char *)head + sh[symbols->sh_link].sh_offset;
	size_t bytes = sh[symbols->sh_link].sh_size, n = strlen(name) + 1;

	for (size_t i = 0; i < symbols->sh_size / sizeof(*sym); i++)
		if (sym[i].st_shndx != SHN_UNDEF && inside(sym[i].st_name, n, bytes) &&
		    memcmp(names + sym[i].st_name, name, n) == 0)
			return &sym[i];
	return NULL;
}

/* Check that `symbol` exists and is a stage type of this ABI. This reads the file instead of
 * calling dlopen, so that no constructor of an unsuitable plug-in runs. */
static int judge_type(
    const char *path, const Elf64_Ehdr *head, size_t size, const char *symbol, struct weir_err *err)
{
	const Elf64_Shdr *symbols = symbols_of(head, size);
	unsigned abi;
	size_t n;

	/* not an error: dlopen and dlsym will detect a missing symbol */
	if (!symbols)
		return 0;
	const Elf64_Sym *sym = find_symbol(head, symbols, symbol);
	if (!sym)
		return refuse(err, WEIR_ENOENT, path, "has no symbol '%.100s'", symbol);
	const char *ops = bytes_at(head, sym->st_value, &n);
	if (!ops || n < sizeof(struct weir_stage_ops))
		return refuse(
		    err, WEIR_EINVAL, path, "has no stage type at the symbol '%.100s'", symbol);
	memcpy(&abi, ops + offsetof(struct weir_stage_ops, abi), sizeof(abi));
	if (abi == WEIR_STAGE_ABI)
		return 0;
	return refuse(err, WEIR_EABI, path,
	    "was built for stage ABI %u, this weir has %d: rebuild it", abi, WEIR_STAGE_ABI);
}

static int judge(const char *path, const char *symbol, const struct plugin_copy *copy,
    const void *bytes, struct weir_err *err)
{
	const Elf64_Ehdr *head = bytes;

	if (copy->size < sizeof(*head) || !is_ours(head))
		return refuse(err, WEIR_EINVAL, path, "is not a shared object for this machine");
	if (!is_whole(head, copy->size))
		return refuse(
		    err, WEIR_EINVAL, path, "is incomplete: it is being written, or was truncated");
	if (!uses_origin(head))
		return judge_type(path, head, copy->size, symbol, err);
	snprintf(err->hint, sizeof(err->hint),
	    "link the libraries into the plug-in, or use an absolute path as its run path");
	return refuse(err, WEIR_EINVAL, path,
	    "looks for libraries beside itself ($ORIGIN), but is loaded from a copy in memory");
}

static int look(
    const char *path, const char *symbol, struct plugin_copy *copy, struct weir_err *err)
{
	void *bytes =
	    copy->size == 0 ? NULL : mmap(NULL, copy->size, PROT_READ, MAP_PRIVATE, copy->fd, 0);

	if (bytes == MAP_FAILED)
		return refuse(err, WEIR_ENOMEM, path, "cannot be mapped: %s", strerror(errno));
	int rc = judge(path, symbol, copy, bytes, err);
	if (rc == 0)
		copy->id = weir_hash((struct weir_slice){bytes, copy->size});
	if (bytes)
		munmap(bytes, copy->size);
	return rc;
}

/* ---- calls ---- */

int plugin_copy(
    const char *path, const char *symbol, struct plugin_copy *copy, struct weir_err *err)
{
	struct weir_err why = {0};
	int from, rc;

	/* Report a missing file by the name as given; weir_trust_open would show the full path. */
	if (access(path, F_OK) != 0) {
		snprintf(
		    err->text, sizeof(err->text), "plug-in '%.180s': %s", path, strerror(errno));
		return err->code = errno == ENOENT || errno == ENOTDIR ? WEIR_ENOENT : WEIR_ESYS;
	}
	rc = weir_trust_open(path, &from, &why);
	if (rc != 0) {
		*err = why;
		snprintf(err->text, sizeof(err->text), "plug-in not loaded: %.230s", why.text);
		return rc;
	}
	*copy = (struct plugin_copy){.fd = make_file(path)};
	if (copy->fd == -1)
		rc = refuse(
		    err, WEIR_ESYS, path, "cannot be copied into memory: %s", strerror(errno));
	else
		rc = fill(path, from, copy, err);
	if (rc == 0)
		rc = look(path, symbol, copy, err);
	if (rc != 0 && copy->fd != -1)
		close(copy->fd);
	close(from);
	return rc;
}

bool plugin_same(const struct plugin_copy *a, const struct plugin_copy *b)
{
	if (a->id != b->id || a->size != b->size)
		return false;
	void *x = mmap(NULL, a->size, PROT_READ, MAP_PRIVATE, a->fd, 0);
	void *y = mmap(NULL, b->size, PROT_READ, MAP_PRIVATE, b->fd, 0);
	bool same = x != MAP_FAILED && y != MAP_FAILED && memcmp(x, y, a->size) == 0;

	if (x != MAP_FAILED)
		munmap(x, a->size);
	if (y != MAP_FAILED)
		munmap(y, b->size);
	return same;
}
