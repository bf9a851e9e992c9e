/* SPDX-License-Identifier: MIT */
/*
 * Loads plug-ins, and unloads them when nothing needs them; see registry.h and weir/plugin.h.
 *
 * A plug-in is a shared object that defines the symbol weir_stage_<name>; nothing else is required.
 * A copy of the file in memory (plugin.h) is loaded, one copy per content. So a changed file is loaded
 * in addition to its former version. Files of equal content under several names, such as links, share
 * one object: each name is the symbol of another stage type in it.
 *
 *   copied --dlopen--> named by a type name, or held by graphs --neither--> unloaded
 *
 * Graphs, events, metrics and threads of a graph point into its plug-ins, so a graph holds them until
 * it has been freed. After that, nothing of the framework does. The dynamic loader may keep an object
 * that is closed here: it was linked with -z nodelete, has unique symbols of C++, or a thread has still
 * to destroy a thread_local variable of it. Such an object is looked at again at later occasions.
 *
 * The descriptor of a copy stays open while the object is loaded. The dynamic loader knows the object
 * by the name /proc/PID/fd/N, under which debuggers and profilers read it, and would take another copy
 * at the same N for the same object.
 *
 * Constructors and destructors of plug-ins may take long, or hang. They run without plugins_lock, so
 * other threads can hold and release plug-ins meanwhile. The thread that runs them has the turn: only
 * it changes the lists, with the lock, so it may read them without. A thread that releases a plug-in
 * during the turn of another leaves the unloading to that one.
 */
#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/plugin.h>

#include "stage/plugin.h"
#include "stage/registry.h"

/** A loaded copy of a file. */
struct object {
	struct object *older;
	struct plugin_copy copy;
	char name[48]; /* by which the dynamic loader knows it */
	int users;     /* plug-ins; 0 if the dynamic loader has kept it */
};

/** A stage type of a loaded object. */
struct plugin {
	struct plugin *older;
	char symbol[128];
	struct object *object;
	void *so;
	const struct weir_stage_ops *ops;
	int holds; /* number of plugin_holds */
};

struct plugin_hold {
	int n;
	struct plugin *plugin[];
};

static pthread_mutex_t plugins_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t turn_ended = PTHREAD_COND_INITIALIZER;
/* under the lock */
static bool turn;           /* a thread loads or unloads */
static bool sweep_required; /* look for plug-ins to unload before the turn ends */
static struct object *newest_object;
static struct plugin *newest_plugin;

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

/* ---- objects; the caller has the turn ---- */

/* Return the object of this content, with one more user. Takes ownership of the copy. NULL if out of
 * memory. */
static struct object *object_get(const struct plugin_copy *copy)
{
	struct object *o = newest_object;

	while (o && !plugin_same(&o->copy, copy))
		o = o->older;
	if (o) {
		close(copy->fd);
		o->users++;
		return o;
	}
	o = calloc(1, sizeof(*o));
	if (!o) {
		close(copy->fd);
		return NULL;
	}
	*o = (struct object){.older = newest_object, .copy = *copy, .users = 1};
	snprintf(o->name, sizeof(o->name), "/proc/%d/fd/%d", (int)getpid(), copy->fd);
	pthread_mutex_lock(&plugins_lock);
	newest_object = o;
	pthread_mutex_unlock(&plugins_lock);
	return o;
}

/* Whether the dynamic loader has not unloaded the object. */
static bool still_loaded(const struct object *o)
{
	void *so = dlopen(o->name, RTLD_NOW | RTLD_NOLOAD);

	if (so)
		dlclose(so);
	else
		(void)dlerror();
	return so;
}

/* Forget the objects without users that are no longer loaded. */
static void objects_sweep(void)
{
	for (struct object **at = &newest_object; *at;) {
		struct object *o = *at;
		if (o->users > 0 || still_loaded(o)) {
			at = &o->older;
			continue;
		}
		pthread_mutex_lock(&plugins_lock);
		*at = o->older;
		pthread_mutex_unlock(&plugins_lock);
		close(o->copy.fd);
		free(o);
	}
}

/* ---- turns, unloading ---- */

/* Unload a plug-in that is in no list. The caller has the turn. */
static void forget(struct plugin *p)
{
	if (p->so)
		dlclose(p->so);
	if (p->object)
		p->object->users--;
	objects_sweep();
	free(p);
}

static void turn_begin(void)
{
	pthread_mutex_lock(&plugins_lock);
	while (turn)
		pthread_cond_wait(&turn_ended, &plugins_lock);
	turn = true;
	pthread_mutex_unlock(&plugins_lock);
}

/* Remove the plug-ins that nothing needs from the list, and return them as a list. The caller holds
 * the lock. */
static struct plugin *take_unused(void)
{
	struct plugin *unused = NULL;

	for (struct plugin **at = &newest_plugin; *at;) {
		struct plugin *p = *at;
		if (p->holds > 0 || registry_names(p) || registry_may_revert(p)) {
			at = &p->older;
			continue;
		}
		*at = p->older;
		p->older = unused;
		unused = p;
	}
	return unused;
}

/* Unload what is required, then end the turn. */
static void turn_end(void)
{
	pthread_mutex_lock(&plugins_lock);
	while (sweep_required) {
		sweep_required = false;
		struct plugin *p = take_unused(), *older;
		pthread_mutex_unlock(&plugins_lock);
		for (; p; p = older) {
			older = p->older;
			forget(p);
		}
		objects_sweep(); /* of earlier turns */
		pthread_mutex_lock(&plugins_lock);
	}
	turn = false;
	pthread_cond_signal(&turn_ended);
	pthread_mutex_unlock(&plugins_lock);
}

/* Unload the plug-ins that nothing needs, in this thread or in the one that has the turn. The caller
 * holds the lock, which is released. */
static void sweep_and_unlock(void)
{
	bool mine = !turn;

	sweep_required = true;
	turn = true;
	pthread_mutex_unlock(&plugins_lock);
	if (mine)
		turn_end();
}

/* ---- holding ---- */

int plugins_hold(struct plugin_hold **hold)
{
	int n = 0;

	pthread_mutex_lock(&plugins_lock);
	for (struct plugin *p = newest_plugin; p; p = p->older)
		n++;
	struct plugin_hold *h = calloc(1, sizeof(*h) + (size_t)n * sizeof(h->plugin[0]));
	for (struct plugin *p = newest_plugin; h && p; p = p->older) {
		if (!registry_names(p))
			continue;
		p->holds++;
		h->plugin[h->n++] = p;
	}
	pthread_mutex_unlock(&plugins_lock);
	*hold = h;
	return h ? 0 : WEIR_ENOMEM;
}

void plugins_release(struct plugin_hold *hold)
{
	if (!hold)
		return;
	pthread_mutex_lock(&plugins_lock);
	for (int i = 0; i < hold->n; i++)
		hold->plugin[i]->holds--;
	sweep_and_unlock();
	free(hold);
}

void weir_stage_plugins_begin(void)
{
	registry_begin();
	weir_stage_plugins_keep();
}

void weir_stage_plugins_keep(void)
{
	registry_keep();
	pthread_mutex_lock(&plugins_lock);
	sweep_and_unlock();
}

void weir_stage_plugins_revert(void)
{
	registry_revert();
	weir_stage_plugins_keep();
}

int weir_stage_plugins_loaded(void)
{
	int n = 0;

	pthread_mutex_lock(&plugins_lock);
	for (struct object *o = newest_object; o; o = o->older)
		n++;
	pthread_mutex_unlock(&plugins_lock);
	return n;
}

const struct weir_stage_ops *weir_stage_type_take(const char *name)
{
	pthread_mutex_lock(&plugins_lock);
	const struct weir_stage_ops *ops = weir_stage_type_find(name);
	for (struct plugin *p = newest_plugin; p; p = p->older)
		p->holds += p->ops == ops;
	pthread_mutex_unlock(&plugins_lock);
	return ops;
}

void weir_stage_type_put(const struct weir_stage_ops *ops)
{
	if (!ops)
		return;
	pthread_mutex_lock(&plugins_lock);
	for (struct plugin *p = newest_plugin; p; p = p->older)
		p->holds -= p->ops == ops;
	sweep_and_unlock();
}

/* ---- loading; the caller has the turn ---- */

/* Derive the symbol from the path: "./dir/upper.so" gives "weir_stage_upper". Returns false if the
 * file has no base name, or the symbol is too long. */
static bool symbol_of(const char *path, char *symbol, size_t size)
{
	const char *base = strrchr(path, '/') ? strrchr(path, '/') + 1 : path;
	size_t n = strcspn(base, ".");

	return n > 0 && snprintf(symbol, size, "weir_stage_%.*s", (int)n, base) < (int)size;
}

/* The newest plug-in with this symbol and, if `copy` is not NULL, with the same content. */
static struct plugin *loaded(const char *symbol, const struct plugin_copy *copy)
{
	struct plugin *p = newest_plugin;

	while (
	    p && (strcmp(p->symbol, symbol) != 0 || (copy && !plugin_same(&p->object->copy, copy))))
		p = p->older;
	return p;
}

/* Report the error of dlopen. Its text begins with the name of the copy, as in "/proc/7/fd/9:
 * undefined symbol: x"; strip that name, which is meaningless to the user. */
static int not_loaded(const char *path, struct weir_err *err)
{
	const char *text = dlerror(), *why = text ? strstr(text, ": ") : NULL;

	if (text && strstr(text, "failed to map"))
		snprintf(err->hint, sizeof(err->hint),
		    "plug-ins run from memory (memfd_create): a policy of this host, such as "
		    "SELinux, may forbid this");
	if (access("/proc/self/fd", X_OK) != 0)
		snprintf(err->hint, sizeof(err->hint),
		    "plug-ins are loaded through /proc/self/fd, which does not exist");
	return fail(err, WEIR_ENOENT, "plug-in '%.80s' cannot be loaded: %s", path,
	    why    ? why + 2
	    : text ? text
		   : "the reason is unknown");
}

/* Load the object of `p` and find its type. */
static int open_object(struct plugin *p, const char *path, struct weir_err *err)
{
	p->so = dlopen(p->object->name, RTLD_NOW | RTLD_LOCAL);
	if (!p->so)
		return not_loaded(path, err);
	p->ops = dlsym(p->so, p->symbol);
	if (!p->ops)
		return fail(err, WEIR_ENOENT, "plug-in '%s' has no symbol '%s'", path, p->symbol);
	return stage_type_check(p->ops, err);
}

/* Register the type of `p`. Other threads can take it as soon as it has its name, so it is in the list
 * before. */
static int enter(struct plugin *p, struct weir_err *err)
{
	pthread_mutex_lock(&plugins_lock);
	p->holds = 1;
	p->older = newest_plugin;
	newest_plugin = p;
	pthread_mutex_unlock(&plugins_lock);
	int rc = registry_enter(p->ops, p, err);
	pthread_mutex_lock(&plugins_lock);
	p->holds--;
	sweep_required |= rc != 0; /* `p` is unloaded when the turn ends */
	pthread_mutex_unlock(&plugins_lock);
	return rc;
}

/* Load `copy`. Takes ownership of the copy, even on failure. */
static int load_copy(
    const char *path, const char *symbol, const struct plugin_copy *copy, struct weir_err *err)
{
	struct plugin *p = calloc(1, sizeof(*p));

	if (!p) {
		close(copy->fd);
		return fail(err, WEIR_ENOMEM, "out of memory");
	}
	snprintf(p->symbol, sizeof(p->symbol), "%s", symbol);
	p->object = object_get(copy);
	int rc = p->object ? open_object(p, path, err) : fail(err, WEIR_ENOMEM, "out of memory");
	if (rc == 0)
		return enter(p, err);
	forget(p);
	return rc;
}

static int not_looked_at(const char *path, struct weir_err *err)
{
	snprintf(
	    err->hint, sizeof(err->hint), "run 'weir check', which loads it in a separate process");
	return fail(err, WEIR_ENOENT,
	    "plug-in '%s' is not loaded yet, and a preview does not run its code in this server",
	    path);
}

int weir_stage_plugin(const char *path, bool look, uint64_t *id, struct weir_err *err)
{
	struct plugin_copy copy;
	char symbol[128];

	if (!symbol_of(path, symbol, sizeof(symbol)))
		return fail(err, WEIR_EINVAL,
		    "the file name of plug-in '%s' does not contain a stage name", path);
	int rc = plugin_copy(path, symbol, &copy, err);
	if (rc != 0)
		return rc;
	*id = copy.id;
	turn_begin();
	struct plugin *p = loaded(symbol, &copy);
	if (!p && !look) {
		rc = load_copy(path, symbol, &copy, err);
	} else {
		close(copy.fd);
		if (!p)
			p = loaded(symbol, NULL);
		rc = p ? registry_enter(p->ops, p, err) : not_looked_at(path, err);
	}
	turn_end();
	return rc;
}

int weir_stage_load(const char *path, struct weir_err *err)
{
	uint64_t id;

	return weir_stage_plugin(path, false, &id, err);
}
