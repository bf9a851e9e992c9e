/* SPDX-License-Identifier: MIT */
/*
 * Chooses between a file and its precompressed neighbours. See variant.h.
 *
 * A neighbour older than its file is ignored. Otherwise browsers would continue to receive the old
 * content after page.css was edited and page.css.br was not rebuilt.
 */
#include "variant.h"

#include <stdio.h>
#include <unistd.h>

#include "path.h"

#define NS_PER_US 1000L

static bool is_fresh(struct timespec neighbour, struct timespec file)
{
	if (neighbour.tv_sec != file.tv_sec)
		return neighbour.tv_sec > file.tv_sec;
	return neighbour.tv_nsec >= file.tv_nsec || neighbour.tv_nsec == 0 ||
	       neighbour.tv_nsec == file.tv_nsec - file.tv_nsec % NS_PER_US;
}

/* Open the neighbour of `name` in coding `e`. Returns 0; WEIR_ENOENT if no neighbour may be served;
 * WEIR_EPRESSURE if it cannot be opened for lack of descriptors or memory. */
static int open_neighbour(int root, enum file_links links, const char *name, enum encoding e,
    const struct file *of, struct file *file)
{
	char path[PATH_MAP_MAX];
	int n = snprintf(path, sizeof(path), "%s%s", name, encoding_ending(e));

	if (n < 0 || (size_t)n >= sizeof(path))
		return WEIR_ENOENT;
	if (file_open(root, links, path, file) != 0)
		return file->status == 503 ? WEIR_EPRESSURE : WEIR_ENOENT;
	if (is_fresh(file->modified, of->modified))
		return 0;
	close(file->fd);
	return WEIR_ENOENT;
}

/* Close all files found except `kept`. */
static void close_others(
    const struct file there[], const struct variant_order *found, enum encoding kept)
{
	for (int i = 0; i < found->n; i++)
		if (found->e[i] != kept)
			close(there[i].fd);
}

int variant_choose(int root, enum file_links links, const char *name,
    const struct variant_order *order, const struct encoding_wish *wish, struct variant *v)
{
	struct variant_order found = {.n = 0};
	struct file there[ENCODING_N], plain = v->file;

	for (int i = 0; i < order->n; i++) {
		int rc = open_neighbour(root, links, name, order->e[i], &plain, &there[found.n]);
		if (rc == WEIR_EPRESSURE) {
			close_others(there, &found, ENCODING_IDENTITY);
			close(plain.fd);
			return rc;
		}
		if (rc == 0)
			found.e[found.n++] = order->e[i];
	}
	v->varies = found.n > 0;
	enum encoding best =
	    v->varies ? encoding_choose(wish, found.e, found.n) : ENCODING_IDENTITY;
	close_others(there, &found, best);
	if (best != ENCODING_IDENTITY)
		close(plain.fd);
	for (int i = 0; i < found.n; i++)
		if (found.e[i] == best)
			v->file = there[i];
	v->file.coding = best;
	v->encoding = best;
	return best == ENCODING_N ? WEIR_ENOENT : 0;
}
