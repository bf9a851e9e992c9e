/* SPDX-License-Identifier: MIT */
/*
 * Stage types: the generated table of built-in ones, those a program registered, and plug-ins.
 *
 * A plug-in is a shared object with the symbol weir_stage_<name>; that symbol is the whole
 * contract. It is never unloaded: graphs, events and metrics point into it. Types are kept sorted
 * by name.
 *
 * registry_lock is a leaf: find and at may be called by any thread while main loads.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <weir/stage.h>

#include "base/lock.h"

/* Written by weir_stage_table() in framework/cmake/WeirStage.cmake; absent in programs without it.
 */
extern const struct weir_stage_ops *const weir_builtin_stages[] __attribute__((weak));

static struct lock registry_lock;
static const struct weir_stage_ops **types WEIR_GUARDED_BY(registry_lock);
static int n_types WEIR_GUARDED_BY(registry_lock);
static pthread_once_t registry_once = PTHREAD_ONCE_INIT;

static int slot_of(const char *name)
{
	int lo = 0, hi = n_types;

	while (lo < hi) {
		int mid = (lo + hi) / 2;
		if (strcmp(types[mid]->name, name) < 0)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

static int insert(const struct weir_stage_ops *ops)
{
	int at = slot_of(ops->name);
	const struct weir_stage_ops **bigger =
	    realloc(types, ((size_t)n_types + 1) * sizeof(*bigger));

	if (!bigger)
		return WEIR_ENOMEM;
	types = bigger;
	memmove(types + at + 1, types + at, (size_t)(n_types - at) * sizeof(*types));
	types[at] = ops;
	n_types++;
	return 0;
}

static void registry_fill(void)
{
	lock_init(&registry_lock);
	if (!weir_builtin_stages)
		return;
	for (const struct weir_stage_ops *const *ops = weir_builtin_stages; *ops; ops++) {
		int rc = insert(*ops);
		WEIR_ASSERT(rc == 0);
	}
}

const struct weir_stage_ops *weir_stage_type_find(const char *name)
{
	pthread_once(&registry_once, registry_fill);
	lock_take(&registry_lock);
	int at = slot_of(name);
	const struct weir_stage_ops *ops =
	    at < n_types && strcmp(types[at]->name, name) == 0 ? types[at] : NULL;
	lock_release(&registry_lock);
	return ops;
}

const struct weir_stage_ops *weir_stage_type_at(int i)
{
	pthread_once(&registry_once, registry_fill);
	lock_take(&registry_lock);
	const struct weir_stage_ops *ops = i >= 0 && i < n_types ? types[i] : NULL;
	lock_release(&registry_lock);
	return ops;
}

static int fail(struct weir_err *err, int code, const char *fmt, ...) WEIR_PRINTF(3, 4);
static int fail(struct weir_err *err, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	err->code = code;
	return code;
}

/* Is the ops table one that this program can run? */
static int validate(const struct weir_stage_ops *ops, struct weir_err *err)
{
	const char *name = ops->name ? ops->name : "?";
	int n_metrics = 0;

	if (ops->abi != WEIR_STAGE_ABI)
		return fail(err, WEIR_EABI,
		    "stage type '%s' was built for stage ABI %u, this weir has %d: rebuild it",
		    name, ops->abi, WEIR_STAGE_ABI);
	if (!ops->name || !ops->name[0] || !ops->summary)
		return fail(err, WEIR_EINVAL, "stage type '%s' lacks a name or a summary", name);
	if (!(ops->flags & WEIR_STAGE_SOURCE) && !ops->handle)
		return fail(err, WEIR_EINVAL, "stage type '%s' has no handle function", name);
	if ((ops->flags & WEIR_STAGE_SOURCE) && !ops->start)
		return fail(err, WEIR_EINVAL, "source type '%s' has no start function", name);
	while (ops->metrics && ops->metrics[n_metrics].name)
		n_metrics++;
	if (n_metrics > WEIR_METRICS_MAX)
		return fail(err, WEIR_EINVAL,
		    "stage type '%s' has %d metrics, at most %d are possible", name, n_metrics,
		    WEIR_METRICS_MAX);
	return 0;
}

int weir_stage_register(const struct weir_stage_ops *ops, struct weir_err *err)
{
	int rc = validate(ops, err);

	if (rc != 0)
		return rc;
	const struct weir_stage_ops *same = weir_stage_type_find(ops->name);
	if (same == ops)
		return 0;
	if (same)
		return fail(err, WEIR_EBUSY, "there is a stage type '%s' already", ops->name);
	lock_take(&registry_lock);
	rc = insert(ops);
	lock_release(&registry_lock);
	return rc == 0 ? 0 : fail(err, rc, "out of memory");
}

/* "./dir/upper.so" -> "weir_stage_upper". Returns false when the name has none or is too long. */
static bool symbol_of(const char *path, char *symbol, size_t size)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t n = strcspn(base, ".");

	return n > 0 && snprintf(symbol, size, "weir_stage_%.*s", (int)n, base) < (int)size;
}

int weir_stage_load(const char *path, struct weir_err *err)
{
	char symbol[128], full[4096];

	if (!symbol_of(path, symbol, sizeof(symbol)))
		return fail(err, WEIR_EINVAL, "plug-in '%s': no stage name in the file name", path);
	if (!realpath(path, full))
		return fail(err, WEIR_ENOENT, "plug-in '%s': %m", path);
	void *so = dlopen(full, RTLD_NOW | RTLD_LOCAL);
	if (!so)
		return fail(err, WEIR_ENOENT, "plug-in %s", dlerror());
	const struct weir_stage_ops *ops = dlsym(so, symbol);
	if (!ops) {
		dlclose(so);
		return fail(err, WEIR_ENOENT, "plug-in '%s' has no symbol '%s'", path, symbol);
	}
	int rc = weir_stage_register(ops, err);
	if (rc != 0)
		dlclose(so);
	return rc;
}
