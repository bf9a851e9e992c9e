/* SPDX-License-Identifier: MIT */
#undef NDEBUG /* assert is active in every build */
#include <assert.h>
#include <string.h>

#include <weir/test.h>

extern const struct weir_stage_ops weir_stage_vote;

static struct weir_errs errs;

/* GET `target` is answered with `status` and, unless it is NULL, `body`. */
static void expect(struct weir_test *t, const char *target, int status, const char *body)
{
	struct weir_test_answer answer;

	assert(weir_test_get(t, target, &answer) == 0);
	assert(answer.status == status);
	assert(!body || strcmp(answer.body, body) == 0);
	weir_test_answer_free(&answer);
}

int main(void)
{
	struct weir_test *t;

	assert(weir_test_open(&weir_stage_vote, "with: { names: 2 }", &t, &errs) == 0);
	expect(t, "/vote?for=caf%C3%A9+au+lait", 204, NULL);
	expect(t, "/vote?x=1&for=tea", 204, NULL);
	expect(t, "/vote?for=tea", 204, NULL);
	expect(t, "/vote?for=milk", 403, NULL); /* the third name */
	expect(t, "/vote?for=%zz", 400, NULL);
	expect(t, "/vote", 400, NULL);
	expect(t, "/votes/tea", 200, "2\n");
	expect(t, "/votes/caf%c3%a9%20au%20lait", 200, "1\n");
	expect(t, "/votes/milk", 404, NULL);
	assert(weir_test_metric(t, "votes_total") == 3);
	assert(weir_test_metric(t, "vote_names") == 2);
	assert(weir_test_left(t, "other") == 0);
	expect(t, "/", 204, NULL); /* what leaves is finished without a response */
	assert(weir_test_left(t, "other") == 1);
	assert(weir_test_close(t) == 0);

	/* `init` refuses this */
	assert(weir_test_open(&weir_stage_vote, "with: { names: 1001 }", &t, &errs) == WEIR_EINVAL);
	assert(strstr(errs.err[0].text, "'names' is above 1000"));
	return 0;
}
