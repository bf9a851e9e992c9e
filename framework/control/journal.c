/* SPDX-License-Identifier: MIT */
/* Stores decisions in the journal; see journal.h. */
#include "control/journal.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/probe.h"

void journal_init(struct journal *j)
{
	lock_init(&j->lock);
}

void journal_fini(struct journal *j)
{
	lock_fini(&j->lock);
}

uint64_t journal_add(struct journal *j, struct weir_decision d)
{
	d.at_ns = clock_now_ns();
	d.wall_ns = clock_wall_ns();
	lock_take(&j->lock);
	d.id = ++j->total;
	j->ring[d.id % JOURNAL_SIZE] = d;
	lock_release(&j->lock);
	probe_decision(d.stage, d.actor, d.action, d.from, d.to);
	return d.id;
}

void journal_outcome(struct journal *j, uint64_t id, enum journal_outcome when, const char *word)
{
	struct weir_decision *d = &j->ring[id % JOURNAL_SIZE];

	lock_take(&j->lock);
	if (d->id == id)
		snprintf(when == JOURNAL_5S ? d->outcome_5s : d->outcome_30s, sizeof(d->outcome_5s),
		    "%s", word);
	lock_release(&j->lock);
}

int journal_read(struct journal *j, struct weir_decision *out, int n)
{
	int i = 0;

	lock_take(&j->lock);
	for (; i < n && i < JOURNAL_SIZE && (uint64_t)i < j->total; i++)
		out[i] = j->ring[(j->total - (uint64_t)i) % JOURNAL_SIZE];
	lock_release(&j->lock);
	return i;
}

void journal_remember(struct journal *j, struct weir_decision d)
{
	d.at_ns = 0;
	lock_take(&j->lock);
	d.id = ++j->total;
	j->ring[d.id % JOURNAL_SIZE] = d;
	lock_release(&j->lock);
}

void journal_copy(struct journal *to, struct journal *from)
{
	lock_take(&from->lock);
	to->total = from->total;
	memcpy(to->ring, from->ring, sizeof(to->ring));
	lock_release(&from->lock);
}

uint64_t journal_total(struct journal *j)
{
	lock_take(&j->lock);
	uint64_t total = j->total;
	lock_release(&j->lock);
	return total;
}
