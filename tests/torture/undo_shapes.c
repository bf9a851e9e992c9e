/* SPDX-License-Identifier: MIT */
#include "torture/undo_shapes.h"

unsigned rnd; /* state of the random numbers */

unsigned below(unsigned n)
{
	return (unsigned)rand_r(&rnd) % n;
}

/* ---- stage types ---- */

static const struct weir_knob word_knobs[] = {{.name = "word",
						  .type = WEIR_KNOB_STRING,
						  .offset = offsetof(struct word_conf, word),
						  .def = "",
						  .flags = WEIR_KNOB_LIVE,
						  .help = "x"},
    {.name = "number",
	.type = WEIR_KNOB_INT,
	.offset = offsetof(struct word_conf, number),
	.def = "3",
	.max = 9,
	.flags = WEIR_KNOB_LIVE,
	.help = "x"},
    {.name = NULL}};
static const struct weir_outlet spring_outlets[] = {
    {"event", &probe_type, false, ""}, {.name = NULL}};

static int source_start(struct weir_stage *st, struct weir_err *err)
{
	(void)st, (void)err;
	return 0;
}

static void spring_pause(struct weir_stage *st, bool paused)
{
	*(bool *)weir_state(st) = paused;
}

const struct weir_stage_ops word_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.word",
    .summary = "has knobs",
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .knobs = word_knobs,
    .conf_size = sizeof(struct word_conf),
    .handle = pass_handle};
const struct weir_stage_ops single_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.single",
    .summary = "one thread",
    .flags = WEIR_STAGE_SINGLE,
    .accepts = &probe_type,
    .outlets = pass_outlets,
    .handle = pass_handle};
const struct weir_stage_ops spring_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.spring",
    .summary = "a source",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = spring_outlets,
    .state_size = sizeof(bool),
    .start = source_start,
    .pause = spring_pause};
const struct weir_stage_ops mute_ops = {.abi = WEIR_STAGE_ABI,
    .name = "t.mute",
    .summary = "a source that cannot be paused",
    .flags = WEIR_STAGE_SOURCE,
    .outlets = spring_outlets,
    .start = source_start};

/* ---- what a file may say ---- */

const char *const value_knob[VALUES] = {
    "threads.min", "threads.max", "queue.limit", "cohort.max", "admission.rate", "degrade.below"};
const char *const value_text[VALUES][4] = {{"1", "auto", "2", "3"}, {"2", "auto", "3", "1"},
    {"16", "64", "512", "1"}, {"64", "1", "7", "32"}, {"0", "1000", "50", "1000000"},
    {"20%", "10%", "50%", "90%"}};
static struct one random_one(int i)
{
	static const char *const uses[] = {"t.word", "t.pass", "t.single"};
	struct one s = {.use = uses[below(3)],
	    .place = (enum place)below(PLACES),
	    .policy = fixture_policy(below(1 << 16), false)};

	snprintf(s.name, sizeof(s.name), "s%u", below(8));
	s.mode = below(3) ? WEIR_MODE_SHARED : (int)below(3);
	if (i == 0) {
		s = (struct one){.use = below(4) ? "t.spring" : "t.mute", .policy = "auto"};
		snprintf(s.name, sizeof(s.name), "src");
	}
	for (int v = 0; v < VALUES; v++)
		snprintf(
		    s.value[v], sizeof(s.value[v]), "%s", value_text[v][below(3) ? 0 : below(4)]);
	return s;
}

void random_shape(struct shape *f)
{
	*f = (struct shape){.n = 2 + (int)below(STAGES_MAX - 1), .overload = (int)below(3)};
	for (int i = 0; i < f->n; i++)
		f->one[i] = random_one(i);
}

bool change_shape(struct shape *f)
{
	int i = (int)below((unsigned)f->n), v = (int)below(below(2) ? 2 : VALUES);
	struct one fresh = random_one(i), *s = &f->one[i];

	switch (below(9)) {
	case 0:
		f->n = f->n < STAGES_MAX ? f->n + 1 : 2;
		f->one[f->n - 1] = random_one(f->n - 1);
		return false;
	case 1:
		memcpy(s->name, fresh.name, sizeof(s->name));
		return false;
	case 2:
		s->use = fresh.use;
		return false;
	case 3:
		s->mode = fresh.mode;
		return false;
	case 4:
		s->policy = fresh.policy;
		return false;
	case 5:
	case 6:
		s->place = i > 0 ? (enum place)below(PLACES) : OWN;
		return false;
	default:
		snprintf(s->value[v], sizeof(s->value[v]), "%s", value_text[v][below(4)]);
		f->overload = (int)below(3);
		return true;
	}
}

static void add_one(struct weir_spec *spec, const struct one *s, const char *to)
{
	struct weir_stage_spec *st = fixture_stage(spec, s->name, s->use, to);

	for (int v = 0; v < VALUES; v++)
		fixture_set(st, value_knob[v], s->value[v]);
	fixture_set(st, "admission.policy", s->policy);
	st->mode = s->mode;
	if (s->mode == WEIR_MODE_PARTITIONED)
		weir_spec_text(&st->key, "producer");
	if (s->place == IN_G || s->place == IN_H)
		weir_spec_text(&st->group, s->place == IN_G ? "g" : "h");
	st->inlined = s->place == INLINE;
}

static struct weir_spec *spec_of(const struct shape *f)
{
	struct weir_spec *spec = weir_spec_new("undo");

	weir_spec_add_group(spec, "g")->threads.max = 2;
	weir_spec_add_group(spec, "h")->threads.max = 1;
	for (int i = 0; i < f->n; i++)
		add_one(spec, &f->one[i], i + 1 < f->n ? f->one[i + 1].name : "end");
	fixture_stage(spec, "end", "t.end", NULL);
	spec->overload_mode = f->overload;
	return spec;
}

struct weir_graph *build(const struct shape *f)
{
	struct weir_errs *errs = calloc(1, sizeof(*errs));
	struct weir_spec *spec = spec_of(f);
	struct weir_graph *g = NULL;

	if (weir_graph_build(spec, &g, errs) != 0)
		weir_spec_free(spec);
	free(errs);
	return g;
}
