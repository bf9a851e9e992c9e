/* SPDX-License-Identifier: MIT */
/*
 * Writes the page: first the verdict on the targets, then each workload with its charts and tables.
 * Results measured on the server come before results simulated in virtual time. They are in
 * separate parts, since their figures cannot be compared.
 */
#include "report/overload/page.h"

#include <string.h>

#include "report/html_parts.h"
#include "report/overload/charts.h"
#include "report/overload/tables.h"

/* Content security policy: only the page's own style, nothing from elsewhere. */
#define PAGE_POLICY                                                                                \
	"default-src 'none'; style-src 'unsafe-inline'; img-src data:; base-uri 'none'; "          \
	"form-action 'none'"

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
	FILE *out;
	const struct over_rows *rows;
	struct over_points points;
	int figures;
	bool failed;
};

static const struct part {
	const char *where, *title, *about;
} parts[] = {
    {"server", "On the server",
	"The real server on one core, the generator on another of the same machine. Refusals, "
	"connections and thread "
	"switches cost what they cost."},
    {"sim", "In virtual time",
	"The server's own policies in a simulator: repeatable to the bit, with no machine in "
	"between. Refusals cost "
	"nothing there. DAGOR and Gradient2 are ports with the constants of their authors, not "
	"those systems."},
};

#define N_PARTS (int)(sizeof(parts) / sizeof(parts[0]))

static void page_chart(struct page *p, struct chart *c)
{
	char id[16];

	p->failed = p->failed || !c || c->failed;
	if (c && !c->failed && chart_has_values(c)) {
		snprintf(id, sizeof(id), "f%d", ++p->figures);
		svg_chart(p->out, c, id);
	}
	chart_free(c);
}

static void page_head(FILE *out)
{
	fputs("<!DOCTYPE html>\n<html lang=en><head><meta charset=utf-8>\n"
	      "<meta http-equiv=Content-Security-Policy content=\"" PAGE_POLICY "\">\n"
	      "<meta name=viewport content='width=device-width, initial-scale=1'>\n"
	      "<meta name=referrer content=no-referrer>\n<link rel=icon href='data:,'>\n"
	      "<title>weir overload report</title>\n<style>\n",
	    out);
	fputs(html_style, out);
	fputs(page_style, out);
	fputs("</style></head><body>\n", out);
	svg_definitions(out);
	fputs("<header><p class=brand>weir <span>overload report</span></p></header><main>\n"
	      "<h1>Overload control by workload and policy</h1>\n",
	    out);
}

static void page_verdict(struct page *p, const struct part *part)
{
	char text[640];
	const char *level;

	int voids = 0;

	for (int i = 0; i < p->points.n; i++)
		voids += strcmp(p->points.point[i].first->where, part->where) == 0
			     ? p->points.point[i].voids
			     : 0;
	over_verdict(&p->points, part->where, text, sizeof(text), &level);
	fprintf(p->out, "<p class='verdict %s'><span><b>%s:</b> ", level, part->title);
	markup_text(p->out, text);
	if (voids > 0)
		fprintf(p->out, " <b>%d void run%s</b> (the generator was late) count%s nowhere.",
		    voids, voids == 1 ? "" : "s", voids == 1 ? "s" : "");
	fputs("</span></p>\n", p->out);
}

/* Return the load to which the targets for a pool refer; 0 if the workload is not about a pool. */
static double pool_load(const struct over_points *p, const char *where, const char *workload)
{
	double best = 0;

	for (int i = 0; i < p->n; i++) {
		const struct over_row *r = p->point[i].first;
		if (strcmp(r->where, where) == 0 && strcmp(r->workload, workload) == 0 &&
		    p->point[i].rounds > 0 && r->n_threads > 0 && (best <= 0 || r->load <= 0.9))
			best = r->load;
	}
	return best;
}

static const struct over_row *row_of(
    const struct over_points *p, const char *where, const char *workload)
{
	for (int i = 0; i < p->n; i++)
		if (strcmp(p->point[i].first->where, where) == 0 &&
		    strcmp(p->point[i].first->workload, workload) == 0)
			return p->point[i].first;
	return NULL;
}

static void page_time(struct page *p, const char *where, const char *workload)
{
	double highest = over_highest_load(&p->points, where, workload);
	double pool = pool_load(&p->points, where, workload);

	page_chart(
	    p, over_chart_time(&p->points, p->rows, where, workload, pool > 0 ? pool : highest));
	if (pool > 0)
		page_chart(p, over_chart_threads(&p->points, where, workload, pool));
}

/* Whether there are at least two loads, which a curve requires. */
static bool has_curve(const struct over_points *p, const char *where, const char *workload)
{
	double highest = over_highest_load(p, where, workload);

	for (int i = 0; i < p->n; i++)
		if (strcmp(p->point[i].first->where, where) == 0 &&
		    strcmp(p->point[i].first->workload, workload) == 0 && p->point[i].rounds > 0 &&
		    p->point[i].first->load < highest)
			return true;
	return false;
}

static void page_load(struct page *p, const char *where, const char *workload)
{
	const struct over_points *of = &p->points;

	if (!has_curve(of, where, workload))
		return;
	fputs("<div class=grid>\n", p->out);
	page_chart(
	    p, over_chart_load(of, where, workload, OVER_GOODPUT, "Goodput against offered load"));
	page_chart(p, over_chart_load(of, where, workload, OVER_P99,
			  "p99 of what was admitted, over the objective"));
	if (strcmp(workload, "W10") == 0)
		page_chart(p, over_chart_load(of, where, workload, OVER_TOP,
				  "Success of the highest class under the flood"));
	if (strcmp(workload, "W11") == 0)
		page_chart(p, over_chart_load(of, where, workload, OVER_JAIN,
				  "Jain's index of the equal users"));
	fputs("</div>\n", p->out);
}

static void page_workload(struct page *p, const char *where, const char *workload)
{
	const struct over_row *first = row_of(&p->points, where, workload);
	double highest = over_highest_load(&p->points, where, workload);
	char cap[FORMAT_MAX], slo[FORMAT_MAX];

	fprintf(p->out, "<div class=work id='%s-%s'><h3>", where, workload);
	markup_text(p->out, workload);
	fputs(": ", p->out);
	markup_text(p->out, first->what);
	fprintf(p->out, "</h3><p class=soft>Capacity %s, objective %s.</p>\n",
	    format_rate(cap, first->capacity_per_s), format_time(slo, first->slo_s));
	page_load(p, where, workload);
	page_time(p, where, workload);
	over_goodput_table(p->out, &p->points, where, workload);
	over_class_table(p->out, &p->points, p->rows, where, workload, highest);
	over_detail_table(p->out, &p->points, where, workload);
	fputs("</div>\n", p->out);
}

static void page_part(struct page *p, const struct part *part)
{
	struct over_names workload = over_workloads(&p->points, part->where);

	fprintf(p->out, "<section class=part><h2>%s</h2><p class=soft>%s</p>\n", part->title,
	    part->about);
	over_target_table(p->out, &p->points, part->where);
	fputs("<p class=soft>The worst point of each policy; times and shares are medians of the "
	      "rounds. Never: not "
	      "within the run.</p>\n<nav>",
	    p->out);
	for (int i = 0; i < workload.n; i++) {
		fprintf(p->out, "<a href='#%s-", part->where);
		markup_text(p->out, workload.name[i]);
		fputs("'>", p->out);
		markup_text(p->out, workload.name[i]);
		fputs("</a>", p->out);
	}
	fputs("</nav>\n", p->out);
	for (int i = 0; i < workload.n; i++)
		page_workload(p, part->where, workload.name[i]);
	fputs("</section>\n", p->out);
}

static void about_line(FILE *out, const char *name, const char *text)
{
	if (!text[0])
		return;
	fprintf(out, "<dt>%s<dd>", name);
	markup_text(out, text);
}

static void page_origins(struct page *p)
{
	fputs("<section class=part><h2>Where this comes from</h2>\n<div class=grid>\n", p->out);
	for (int i = 0; i < p->rows->n_abouts; i++) {
		const struct over_about *a = &p->rows->about[i];
		fputs("<div class=card><h3>", p->out);
		for (int k = 0; k < N_PARTS; k++)
			fputs(strcmp(a->where, parts[k].where) == 0 ? parts[k].title : "", p->out);
		fputs("</h3><dl>", p->out);
		about_line(p->out, "command", a->command);
		about_line(p->out, "machine", a->machine);
		about_line(p->out, "version", a->version);
		about_line(p->out, "how", a->note);
		fputs("</dl></div>\n", p->out);
	}
	fputs("</div></section>\n", p->out);
}

int over_page(const struct over_rows *rows, FILE *out)
{
	struct page p = {.out = out, .rows = rows};
	int rc = over_points_of(rows, &p.points);

	if (rc != 0)
		return rc;
	page_head(out);
	for (int i = 0; i < N_PARTS; i++)
		if (over_subject(&p.points, parts[i].where))
			page_verdict(&p, &parts[i]);
	for (int i = 0; i < N_PARTS; i++)
		if (over_subject(&p.points, parts[i].where))
			page_part(&p, &parts[i]);
	page_origins(&p);
	fputs("</main></body></html>\n", out);
	over_points_fini(&p.points);
	return p.failed ? WEIR_ENOMEM : 0;
}
