/* SPDX-License-Identifier: MIT */
#include "unit/admin/auth_rig.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/stat.h>

char folder[] = "/tmp/weir-test-XXXXXX";
bool made;
struct weir_spec *spec;
struct auth *auth;
struct auth_pass pass;
struct head_problem problem;

void put(const char *name, const char *text)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	unlink(path);
	int fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	CU_ASSERT_FATAL(fd >= 0);
	CU_ASSERT_EQUAL(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	close(fd);
}

void add_token(const char *name, int role)
{
	char path[128];

	snprintf(path, sizeof(path), "%s/%s", folder, name);
	struct weir_admin_client_spec *c = weir_spec_add_client(spec, name, path);
	CU_ASSERT_PTR_NOT_NULL_FATAL(c);
	c->role = role;
}

void begin(const char *listen)
{
	weir_log_set_fd(-1);
	if (!made) /* a flag, since mkdtemp may return a name that ends with an X */
		CU_ASSERT_PTR_NOT_NULL_FATAL(mkdtemp(folder));
	made = true;
	spec = weir_spec_new("tested");
	CU_ASSERT_PTR_NOT_NULL_FATAL(spec);
	weir_spec_text(&spec->admin.listen, listen);
	put("boss", BOSS "\n");
	put("eye", EYE);
}

void open_gate(void)
{
	struct weir_errs errs = {0};
	struct weir_err err = {0};
	struct authority address;

	CU_ASSERT_EQUAL_FATAL(authority_parse(spec->admin.listen, &address, &err), 0);
	address.tls = *spec->admin.tls.cert != '\0';
	CU_ASSERT_EQUAL_FATAL(auth_new(&spec->admin, &address, &auth, &errs), 0);
	CU_ASSERT_EQUAL(errs.total, 0);
}

void end_all(void)
{
	auth_free(auth);
	auth = NULL;
	weir_spec_free(spec);
	spec = NULL;
}

struct auth_from from(const char *ip)
{
	struct auth_from f = {.address = {.ss_family = AF_INET}};

	inet_pton(AF_INET, ip, &((struct sockaddr_in *)&f.address)->sin_addr);
	return f;
}

int ask_at(const char *ip, int64_t now_ns, const char *method, const char *path, const char *fields)
{
	struct auth_from f = from(ip);
	char text[1024];
	int n = snprintf(text, sizeof(text), "%s %s HTTP/1.1\r\nHost: localhost\r\n%s\r\n", method,
	    path, fields);

	memset(&pass, 0, sizeof(pass));
	problem = (struct head_problem){0};
	bool let = auth_judge(auth, &f, text, (size_t)n, now_ns, &pass, &problem);
	CU_ASSERT_EQUAL(let, problem.status == 0);
	return let ? 200 : problem.status;
}

int ask(const char *method, const char *path, const char *fields)
{
	return ask_at("192.0.2.1", 100 * S, method, path, fields);
}

const char *bearer(const char *token)
{
	static char field[700];

	snprintf(field, sizeof(field), "Authorization: Bearer %s\r\n", token);
	return field;
}

void begin_tokens(void)
{
	begin("127.0.0.1:9900");
	add_token("boss", WEIR_ADMIN_OPERATOR);
	add_token("eye", WEIR_ADMIN_VIEWER);
	open_gate();
}

void log_in(const char *token, char *field, size_t size)
{
	char cookie[160] = "";

	CU_ASSERT_EQUAL(ask("POST", "/api/v1/session", bearer(token)), 200);
	CU_ASSERT_EQUAL(auth_begin(auth, &pass, cookie, sizeof(cookie), 100 * S), 0);
	CU_ASSERT_TRUE(strlen(cookie) < sizeof(cookie) - 1);
	CU_ASSERT_PTR_NOT_NULL(strstr(cookie, "; HttpOnly; SameSite=Strict"));
	snprintf(
	    field, size, "Cookie: a=b; %.*s; weir-9901=x\r\n", (int)strcspn(cookie, ";"), cookie);
}
