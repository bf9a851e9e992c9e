/* SPDX-License-Identifier: MIT */
/*
 * stage build: compile a stage type of one's own, check it, and put it where a server loads it.
 *
 *   sources --compiler--> DIR/NAME.so --loaded by a child process--> renamed to the output
 *
 * DIR is a new folder beside the output. The output is replaced only by a plug-in that can be loaded,
 * and never exists in part. Two commands at the same time do not disturb each other.
 */
#include "cli/verb.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <weir/plugin.h>

#include "cli/stage/compile.h"

struct stage_job {
	const char *out;
	char given[PATH_MAX];  /* the output if the command line names none */
	char folder[PATH_MAX]; /* of the output; "" is the working directory, else it ends in '/' */
	char name[NAME_MAX + 1];           /* of the output */
	char scratch[PATH_MAX + 24];       /* DIR */
	char so[PATH_MAX + NAME_MAX + 32]; /* DIR/NAME.so */
};

static int stage_fails(const char *what, const char *path)
{
	fprintf(stderr, "weir stage: cannot %s %s: %s\n", what, path, strerror(errno));
	return VERB_FINDING;
}

/* Whether the server will find a symbol in a file of this name: weir_stage_NAME. */
static bool is_stage_name(const char *file)
{
	size_t n = strcspn(file, ".");

	for (size_t i = 0; i < n; i++)
		if (!isalnum((unsigned char)file[i]) && file[i] != '_')
			return false;
	return n > 0 && strcmp(file + strlen(file) - 3, ".so") == 0;
}

/* Determine the output. Returns VERB_OK, or VERB_USAGE after printing the reason. */
static int stage_names(const struct verb *verb, const struct verb_args *args, struct stage_job *job)
{
	const char *source = args->operand[1], *slash = strrchr(source, '/');

	job->out = args->output;
	if (!job->out) {
		source = slash ? slash + 1 : source;
		snprintf(
		    job->given, sizeof(job->given), "%.*s.so", (int)strcspn(source, "."), source);
		job->out = job->given;
	}
	slash = strrchr(job->out, '/');
	int n = slash ? (int)(slash + 1 - job->out) : 0;
	if (snprintf(job->folder, sizeof(job->folder), "%.*s", n, job->out) >=
		(int)sizeof(job->folder) - 32 ||
	    snprintf(job->name, sizeof(job->name), "%s", job->out + n) >= (int)sizeof(job->name))
		return verb_misused(verb, "the name of the output is too long");
	if (!is_stage_name(job->name))
		return verb_misused(verb,
		    "'%s' cannot be loaded: use letters, digits and '_', and '.so' at the end",
		    job->name);
	return VERB_OK;
}

/* Load the plug-in as a server does, and exit. */
static _Noreturn void stage_try(const struct stage_job *job)
{
	struct weir_err err = {0};

	if (chdir(job->scratch) != 0)
		_exit(stage_fails("enter", job->scratch));
	if (weir_stage_load(job->name, &err) == 0)
		_exit(VERB_OK);
	fprintf(stderr, "weir stage: %s\n", err.text);
	if (*err.hint)
		fprintf(stderr, "    %s\n", err.hint);
	_exit(VERB_FINDING);
}

/* Load the plug-in in a child process, since its constructors run and may crash. */
static int stage_check(const struct stage_job *job)
{
	int status;

	fflush(NULL);
	pid_t pid = fork();
	if (pid == 0)
		stage_try(job);
	if (pid == -1 || waitpid(pid, &status, 0) == -1)
		return stage_fails("start a process for", job->name);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return VERB_OK;
	if (WIFSIGNALED(status))
		fprintf(stderr, "weir stage: loading %s ended a process by signal %d (%s)\n",
		    job->name, WTERMSIG(status), strsignal(WTERMSIG(status)));
	return VERB_FINDING;
}

static int stage_install(const struct stage_job *job)
{
	struct stat st;

	/* a server refuses files that others can write */
	if (stat(job->so, &st) != 0 || chmod(job->so, st.st_mode & 0755) != 0)
		return stage_fails("set the mode of", job->so);
	if (rename(job->so, job->out) != 0)
		return stage_fails("write", job->out);
	printf("%s is built; 'weir reload' loads it into a server whose YAML file names it "
	       "(plugin:)\n",
	    job->out);
	return VERB_OK;
}

static int stage_build(const struct verb_args *args, struct stage_job *job)
{
	/* such as build/, which the YAML of a new project names before anything is built */
	if (job->folder[0] && mkdir(job->folder, 0777) != 0 && errno != EEXIST)
		return stage_fails("create the folder of", job->out);
	snprintf(job->scratch, sizeof(job->scratch), "%s.weir-stage-XXXXXX", job->folder);
	if (!mkdtemp(job->scratch))
		return stage_fails("create a folder beside", job->out);
	snprintf(job->so, sizeof(job->so), "%s/%s", job->scratch, job->name);
	int rc = stage_compile(args->operand + 1, args->n - 1, job->scratch, job->so);
	if (rc == VERB_OK)
		rc = stage_check(job);
	if (rc == VERB_OK)
		rc = stage_install(job);
	if (rc != VERB_OK)
		fprintf(stderr, "%s was not changed.\n", job->out);
	unlink(job->so);
	rmdir(job->scratch);
	return rc;
}

int verb_stage(const struct verb *verb, const struct verb_args *args)
{
	struct stage_job job = {0};

	if (strcmp(args->operand[0], "build") != 0)
		return verb_misused(
		    verb, "'%s' is not known: weir stage build SOURCE...", args->operand[0]);
	if (args->n < 2)
		return verb_misused(verb, "a source file is missing");
	int rc = stage_names(verb, args, &job);
	return rc == VERB_OK ? stage_build(args, &job) : rc;
}
