/* SPDX-License-Identifier: MIT */
/* An auth with the tokens boss and eye, and requests to it. */
#ifndef WEIR_TESTS_ADMIN_AUTH_RIG_H
#define WEIR_TESTS_ADMIN_AUTH_RIG_H

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <weir/log.h>

#include "admin/admin.h"
#include "admin/auth/auth.h"
#include "cunit_main.h"

#define BOSS "boss-boss-0123456789-abcdef"
#define EYE  "00112233445566778899aabbccddeeff"
#define S    1000000000LL

extern char folder[];
extern bool made;
extern struct weir_spec *spec;
extern struct auth *auth;
extern struct auth_pass pass;
extern struct head_problem problem;

void put(const char *name, const char *text);
void add_token(const char *name, int role);

/* Begin a specification with the address `listen`; open_gate makes the auth, end_all frees both. */
void begin(const char *listen);
void open_gate(void);
void end_all(void);
struct auth_from from(const char *ip);

/* Returns 200 when the request may proceed, else the status of the refusal. */
int ask_at(
    const char *ip, int64_t now_ns, const char *method, const char *path, const char *fields);

int ask(const char *method, const char *path, const char *fields);
const char *bearer(const char *token);
void begin_tokens(void);

/* Log in with `token`; `field` gets "weir-9900=ID" as set by Set-Cookie. */
void log_in(const char *token, char *field, size_t size);

#endif
