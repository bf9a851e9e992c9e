/* SPDX-License-Identifier: MIT */
/* What a reload changes of an endpoint that keeps its address, and of one whose address changes in
 * the configuration. */
#include <fcntl.h>
#include <sys/stat.h>

#include "admin/admin_change.h"

#include "auth_rig.h"

#define NEW "ffeeddccbbaa99887766554433221100"

static struct authority address;
static struct alerts alerts;
static bool unless_shed;

/* Reload to the current contents of `spec`. Returns the result of admin_change_new. */
static int reload(const char *listen)
{
	struct admin_change *change = NULL;
	struct weir_errs errs = {0};
	struct weir_err err = {0};

	if (address.len == 0)
		CU_ASSERT_EQUAL_FATAL(authority_parse(listen, &address, &err), 0);
	int rc = admin_change_new(spec, listen, &address, &change, &errs);
	CU_ASSERT_EQUAL(errs.total > 0, rc != 0);
	CU_ASSERT_EQUAL(change == NULL, rc != 0);
	if (change)
		admin_change_make(change, &(struct admin_parts){.auth = auth,
					      .address = &address,
					      .alerts = &alerts,
					      .unless_shed = &unless_shed});
	admin_change_free(change);
	return rc;
}

static void new_spec(const char *listen)
{
	weir_spec_free(spec);
	spec = weir_spec_new("tested");
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	weir_spec_text(&spec->admin.listen, listen);
}

static void finish(void)
{
	alerts_fini(&alerts);
	alerts = (struct alerts){0};
	address = (struct authority){0};
	end_all();
}

static int status_of(const char *token)
{
	return ask("GET", "/metrics", bearer(token));
}

/* At the same address the tokens and the alerts of the new configuration take effect. */
static void test_same_address(void)
{
	begin_tokens();
	put("new", NEW);
	new_spec("127.0.0.1:9900");
	add_token("new", WEIR_ADMIN_VIEWER);
	CU_ASSERT_EQUAL(reload("127.0.0.1:9900"), 0);
	CU_ASSERT_EQUAL(status_of(NEW), 200);
	CU_ASSERT_EQUAL(status_of(BOSS), 401);
	CU_ASSERT_TRUE(alerts.ruled);
	CU_ASSERT_FALSE(unless_shed);
	spec->admin.ready.unless_shed = true;
	CU_ASSERT_EQUAL(reload("127.0.0.1:9900"), 0);
	CU_ASSERT_TRUE(unless_shed);
	finish();
}

/* A new address, or switching to TLS, waits for a restart. Until then the old tokens are valid,
 * with their files read again, but the alerts are the new ones. */
static void test_other_address(void)
{
	for (int tls = 0; tls < 2; tls++) {
		begin_tokens();
		put("new", NEW);
		new_spec(tls ? "127.0.0.1:9900" : "127.0.0.1:9901");
		if (tls)
			weir_spec_text(&spec->admin.tls.cert, "cert.pem");
		add_token("new", WEIR_ADMIN_VIEWER);
		put("eye", "0123456789abcdef0123456789abcdef");
		CU_ASSERT_EQUAL(reload("127.0.0.1:9900"), 0);
		CU_ASSERT_EQUAL(status_of(NEW), 401);
		CU_ASSERT_EQUAL(status_of(BOSS), 200);
		CU_ASSERT_EQUAL(status_of(EYE), 401);
		CU_ASSERT_EQUAL(status_of("0123456789abcdef0123456789abcdef"), 200);
		CU_ASSERT_TRUE(alerts.ruled);
		finish();
	}
}

/* A token file is missing: nothing changes. */
static void test_refused(void)
{
	begin_tokens();
	new_spec("127.0.0.1:9900");
	add_token("missing", WEIR_ADMIN_VIEWER);
	CU_ASSERT_NOT_EQUAL(reload("127.0.0.1:9900"), 0);
	CU_ASSERT_EQUAL(status_of(BOSS), 200);
	CU_ASSERT_FALSE(alerts.ruled);
	finish();
}

static int mode_of(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 ? (int)(st.st_mode & 0777) : -1;
}

static char log_path[64];

/* Log to a file in the folder. */
static int log_begin(void)
{
	put("log", "");
	snprintf(log_path, sizeof(log_path), "%s/log", folder);
	int fd = open(log_path, O_WRONLY | O_APPEND | O_CLOEXEC);
	CU_ASSERT_FATAL(fd >= 0);
	weir_log_set_fd(fd);
	return fd;
}

static bool logged(const char *words)
{
	char text[4096];
	int fd = open(log_path, O_RDONLY | O_CLOEXEC);
	ssize_t n = read(fd, text, sizeof(text) - 1);

	close(fd);
	text[n > 0 ? n : 0] = '\0';
	return strstr(text, words) != NULL;
}

/* Other users can connect to a socket file while `users` are configured. A file that has
 * disappeared is logged. */
static void test_socket_file(void)
{
	char listen[160];
	struct weir_err err = {0};
	int fd;

	begin("127.0.0.1:9900");
	snprintf(listen, sizeof(listen), "unix:%s/sock", folder);
	weir_spec_text(&spec->admin.listen, listen);
	open_gate();
	CU_ASSERT_EQUAL_FATAL(authority_parse(listen, &address, &err), 0);
	CU_ASSERT_EQUAL_FATAL(authority_listen(&address, &fd, &err), 0);
	CU_ASSERT_EQUAL(mode_of(listen + 5), 0600);
	weir_spec_add_client(spec, "4321", NULL);
	int log_fd = log_begin();
	CU_ASSERT_EQUAL(reload(listen), 0);
	CU_ASSERT_EQUAL(mode_of(listen + 5), 0666);
	new_spec(listen);
	CU_ASSERT_EQUAL(reload(listen), 0);
	CU_ASSERT_EQUAL(mode_of(listen + 5), 0600);
	CU_ASSERT_FALSE(logged("rights"));
	authority_unlink(&address);
	weir_spec_add_client(spec, "4321", NULL);
	CU_ASSERT_EQUAL(reload(listen), 0);
	CU_ASSERT_TRUE(logged("the permissions of the socket file could not be changed"));
	weir_log_set_fd(-1);
	close(log_fd);
	close(fd);
	finish();
}

CUNIT_MAIN("change of the endpoint", {"same address", test_same_address},
    {"another address", test_other_address}, {"refused", test_refused},
    {"socket file", test_socket_file})
