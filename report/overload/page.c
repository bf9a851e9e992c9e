/* SPDX-License-Identifier: MIT */
/*
 * Writes the page: first the verdict on the targets, then each workload with its charts and tables.
 * Results measured on the server come before results simulated in virtual time. They are in
 * separate parts, since their figures cannot be compared.
 */
#include "report/overload/page.h"

#include <string.h>

#include "report/html_parts.h"
#include "report/overload/parts.h"

/* Added to the style of load reports. It emphasises the policy that the report is about, and keeps
 * the table of targets readable. */
static const char page_style[] =
    ".s0>svg path{stroke-width:3.4}.targets td,.targets th{white-space:normal}.targets tbody "
    "th{min-width:210px}"
    ".targets td:nth-child(-n+4){white-space:nowrap}.targets "
    "td:nth-child(3){font-weight:650}.targets td.off{color:var(--bad)}"
    ".part{margin-top:44px;padding-top:6px;border-top:3px solid var(--line)}.part "
    "h2{margin-top:18px;font-size:24px}"
    ".work{margin-top:34px}.work>.grid,.work>.soft{margin-bottom:14px}.work>h3{font-size:18px}td "
    "small{font-size:11.5px}"
    "nav{display:flex;flex-wrap:wrap;gap:4px 14px;font-size:13.5px;margin:10px 0}nav "
    "a{color:var(--c0)}\n";

struct page {
	struct html_page to;
	const struct over_rows *rows;
	struct over_points points;
};

static const struct part {
	const char *where, *title, *about;
} parts[] = {
    {"server", "On the server",
	"The real server on one core, the generator on another core of the same machine. Refusals, "
	"connections and thread switches have their real cost."},
    {"sim", "In virtual time",
	"The server's own policies in a simulator. The results do not depend on a machine and can "
	"be repeated exactly, but refusals cost nothing. DAGOR and Gradient2 are ports with the "
	"constants of their authors, not the original systems."},
};

#define N_PARTS (int)(sizeof(parts) / sizeof(parts[0]))

static void page_verdict(struct page *p, const struct part *part)
{
	char text[640];
	const char *level;
	int voids = 0;

	for (int i = 0; i < p->points.n; i++)
		if (strcmp(p->points.point[i].first->where, part->where) == 0)
			voids += p->points.point[i].voids;
	over_verdict(&p->points, part->where, text, sizeof(text), &level);
	markup(p->to.out, "<p class='verdict %s'><span><b>%s:</b> %s", level, part->title, text);
	if (voids > 0)
		markup(p->to.out, " <b>%d void run%s</b> (the generator was late) count%s nowhere.",
		    voids, voids == 1 ? "" : "s", voids == 1 ? "s" : "");
	fputs("</span></p>\n", p->to.out);
}

/* The loads of a workload at which charts are drawn. */
struct loads {
	const struct over_row *first; /* any row */
	double pool;                  /* load of the targets for a pool; 0 without a pool */
	bool curve;                   /* there are at least two loads, so a curve can be drawn */
};

static struct loads page_loads(struct over_work *w)
{
	struct loads l = {0};
	double lowest = 0;

	for (int i = 0; i < w->points->n; i++) { /* ascending by load */
		const struct over_row *r = w->points->point[i].first;
		if (!over_is_of(w, r))
			continue;
		l.first = l.first ? l.first : r;
		if (w->points->point[i].rounds == 0)
			continue;
		lowest = lowest > 0 ? lowest : r->load;
		w->highest = r->load;
		if (r->n_threads > 0 && (l.pool <= 0 || r->load <= 0.9))
			l.pool = r->load;
	}
	l.curve = w->highest > lowest;
	return l;
}

/* Charts whose x axis is the load. A chart with `workload` is drawn only for that workload, the
 * others for all. */
static const struct {
	const char *workload, *title;
	enum over_metric metric;
} load_charts[] = {
    {NULL, "Goodput against offered load", OVER_GOODPUT},
    {NULL, "p99 of admitted requests / objective", OVER_P99},
    {"W10", "Success of the highest class under the flood", OVER_TOP},
    {"W11", "Jain's index of the equal users", OVER_JAIN},
};

static void page_charts(struct page *p, const struct over_work *w, const struct loads *l)
{
	fputs(l->curve ? "<div class=grid>\n" : "", p->to.out);
	for (int i = 0; l->curve && i < 4; i++)
		if (!load_charts[i].workload || strcmp(load_charts[i].workload, w->workload) == 0)
			html_chart(&p->to,
			    over_chart_load(w, load_charts[i].metric, load_charts[i].title));
	fputs(l->curve ? "</div>\n" : "", p->to.out);
	html_chart(&p->to, over_chart_time(w, l->pool > 0 ? l->pool : w->highest, false));
	if (l->pool > 0)
		html_chart(&p->to, over_chart_time(w, l->pool, true));
}

static void page_workload(struct page *p, const char *where, const char *workload)
{
	struct over_work w = {.rows = p->rows,
	    .points = &p->points,
	    .where = where,
	    .workload = workload,
	    .policy = over_policies(&p->points, where)};
	struct loads l = page_loads(&w);
	char cap[FORMAT_MAX], slo[FORMAT_MAX];

	markup(p->to.out,
	    "<div class=work id='%s-%s'><h3>%s: %s</h3>"
	    "<p class=soft>Capacity %s, objective %s.</p>\n",
	    where, workload, workload, l.first->what, format_rate(cap, l.first->capacity_per_s),
	    format_time(slo, l.first->slo_s));
	page_charts(p, &w, &l);
	over_goodput_table(p->to.out, &w);
	over_class_table(p->to.out, &w);
	over_detail_table(p->to.out, &w);
	fputs("</div>\n", p->to.out);
}

static void page_part(struct page *p, const struct part *part)
{
	struct over_names workload = over_workloads(&p->points, part->where);

	markup(p->to.out, "<section class=part><h2>%s</h2><p class=soft>%s</p>\n", part->title,
	    part->about);
	over_target_table(p->to.out, &p->points, part->where);
	fputs("<p class=soft>The worst point of each policy; times and shares are medians of the "
	      "rounds. Never: not within the run.</p>\n<nav>",
	    p->to.out);
	for (int i = 0; i < workload.n; i++)
		markup(p->to.out, "<a href='#%s-%s'>%s</a>", part->where, workload.name[i],
		    workload.name[i]);
	fputs("</nav>\n", p->to.out);
	for (int i = 0; i < workload.n; i++)
		page_workload(p, part->where, workload.name[i]);
	fputs("</section>\n", p->to.out);
}

static void page_about(FILE *out, const struct over_about *a)
{
	fputs("<div class=card><h3>", out);
	for (int k = 0; k < N_PARTS; k++)
		fputs(strcmp(a->where, parts[k].where) == 0 ? parts[k].title : "", out);
	fputs("</h3><dl>", out);
	html_term(out, "command", a->command);
	html_term(out, "machine", a->machine);
	html_term(out, "version", a->version);
	html_term(out, "how", a->note);
	fputs("</dl></div>\n", out);
}

int over_page(const struct over_rows *rows, FILE *out)
{
	struct page p = {.to = {.out = out}, .rows = rows};
	int rc = over_points_of(rows, &p.points);

	if (rc != 0)
		return rc;
	html_begin(out, "", "overload report", false, page_style);
	fputs("<h1>Overload control by workload and policy</h1>\n", out);
	for (int i = 0; i < N_PARTS; i++)
		if (over_policies(&p.points, parts[i].where).n > 0)
			page_verdict(&p, &parts[i]);
	for (int i = 0; i < N_PARTS; i++)
		if (over_policies(&p.points, parts[i].where).n > 0)
			page_part(&p, &parts[i]);
	fputs("<section class=part><h2>Where this comes from</h2>\n<div class=grid>\n", out);
	for (int i = 0; i < rows->n_abouts; i++)
		page_about(out, &rows->about[i]);
	fputs("</div></section>\n</main></body></html>\n", out);
	over_points_fini(&p.points);
	return p.to.failed ? WEIR_ENOMEM : 0;
}
