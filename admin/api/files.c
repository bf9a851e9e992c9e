/* SPDX-License-Identifier: MIT */
/* Answers with an embedded file; see files.h. */
#include "files.h"

#include "admin/request/assets.h"
#include "admin/request/coding.h"

void answer_asset(const struct call *c, struct reply *r)
{
	const struct asset *a = asset_find(c->path); /* not NULL: find_route has checked it */

	bool zip = a->zipped && coding_takes_gzip(c->request->accept_encoding);

	if (zip)
		reply_static(r, 200, a->type, a->zipped, (size_t)(a->zipped_end - a->zipped));
	else
		reply_static(r, 200, a->type, a->begin, (size_t)(a->end - a->begin));
	r->coding = zip ? "gzip" : NULL;
	r->varies = a->zipped != NULL;
}
