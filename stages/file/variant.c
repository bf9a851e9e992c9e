/* SPDX-License-Identifier: MIT */
/*
 * Precompressed neighbours. See variant.h.
 *
 * An old neighbour is as if it were not there: who changes page.css and forgets page.css.br must not
 * find that browsers go on seeing the page of yesterday.
 */
#include "variant.h"

#include <stdio.h>
#include <unistd.h>

#include "path.h"

#define NS_PER_US 1000LL
#define NS_PER_S  1000000000LL

static bool is_fresh(int64_t neighbour_ns, int64_t file_ns)
{
	return neighbour_ns >= file_ns || neighbour_ns == file_ns - file_ns % NS_PER_US ||
	       neighbour_ns == file_ns - file_ns % NS_PER_S;
}

/* Open the neighbour of `name` in coding `e`; false when there is none to serve. */
static bool open_neighbour(int root, enum file_links links, const char *name, enum encoding e,
    const struct file *of, struct file *file)
{
	char path[PATH_MAP_MAX];
	int n = snprintf(path, sizeof(path), "%s%s", name, encoding_ending(e));

	if (n < 0 || (size_t)n >= sizeof(path) || file_open(root, links, path, file) != 0)
		return false;
	if (is_fresh(file->modified_ns, of->modified_ns))
		return true;
	close(file->fd);
	return false;
}

/* Close the files there are but the one that is kept. */
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

	for (int i = 0; i < order->n; i++)
		if (open_neighbour(root, links, name, order->e[i], &plain, &there[found.n]))
			found.e[found.n++] = order->e[i];
	v->varies = found.n > 0;
	enum encoding best =
	    v->varies ? encoding_choose(wish, found.e, found.n) : ENCODING_IDENTITY;
	close_others(there, &found, best);
	if (best != ENCODING_IDENTITY)
		close(plain.fd);
	for (int i = 0; i < found.n; i++)
		if (found.e[i] == best)
			v->file = there[i];
	v->encoding = best;
	return best == ENCODING_N ? WEIR_ENOENT : 0;
}
