#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes the tables of OVERLOAD.md from rows of overload_sim --json and of bench/overload --report.

  bench/overload_markdown.py --report build/release/bench/overload_report [--sim ROWS] [--server ROWS]...

Each part of OVERLOAD.md between <!-- begin: sim --> and <!-- end: sim --> is replaced, and likewise
for server. The text around these parts is written by hand. The table of targets comes from
overload_report, so only one program judges them.
"""
import argparse
import html.parser
import json
import os
import statistics
import subprocess
import sys
import tempfile

here = os.path.dirname(os.path.abspath(__file__))


class Targets(html.parser.HTMLParser):
    """The cells of the first table with the caption "Targets of the evaluation protocol"."""

    def __init__(self):
        super().__init__()
        self.rows, self.inside, self.caption, self.cell = [], False, False, None

    def end_cell(self):
        if self.cell is not None:
            self.rows[-1].append(" ".join("".join(self.cell).split()))
        self.cell = None

    def handle_starttag(self, tag, attrs):
        if tag == "caption":
            self.caption = True
        elif self.inside and tag == "tr":
            self.end_cell()
            self.rows.append([])
        elif self.inside and tag in ("td", "th"):
            self.end_cell()
            self.cell = []

    def handle_endtag(self, tag):
        if tag == "caption":
            self.caption = False
        elif tag in ("table", "thead") and self.inside:
            self.end_cell()
            self.inside = tag != "table"

    def handle_data(self, data):
        if self.caption and data == "Targets of the evaluation protocol" and not self.rows:
            self.inside = True
        elif self.cell is not None:
            self.cell.append(data)


def targets(program, paths):
    with tempfile.TemporaryDirectory() as folder:
        page = os.path.join(folder, "page.html")
        subprocess.run([program, "-o", page, *paths], check=True, stdout=subprocess.DEVNULL)
        with open(page, encoding="utf-8") as f:
            parser = Targets()
            parser.feed(f.read())
    rows = parser.rows
    if not rows:
        sys.exit("overload_markdown: the report has no table of targets")
    width = len(rows[0])
    lines = ["| " + " | ".join(rows[0]) + " |", "|" + "---|" * width]
    lines += ["| " + " | ".join(r + [""] * (width - len(r))) + " |" for r in rows[1:]]
    return lines


def ordered(values):
    return list(dict.fromkeys(values))


def goodput(r):
    return r["goodput"]


def p99(r):
    return r.get("p99")


def success(r):
    return r["classes"][0]["good"] / max(1, r["classes"][0]["offered"])


FIGURES = (("Goodput", goodput), ("p99 of admitted requests / objective", p99), ("Success of the first class", success))


def cell(runs, figure):
    """The median over the rounds that count; marked with "!" if none does."""
    valid = [r for r in runs if not r.get("void")]
    values = [v for v in map(figure, valid or runs) if v is not None]
    if not values:
        return "–"
    return f"{statistics.median(values):.2f}" + ("" if valid else "!")


def workloads(runs):
    """A table of the workloads, then a table for each figure, with a row for each workload and policy."""
    names, loads = ordered(r["workload"] for r in runs), sorted({r["load"] for r in runs})
    lines = ["", "| workload | description | capacity per s | objective, ms |", "|---|---|---:|---:|"]
    for w in names:
        mine = [r for r in runs if r["workload"] == w]
        capacity = statistics.median(r["capacity_per_s"] for r in mine)
        lines.append(f"| {w} | {mine[0]['what']} | {capacity:.0f} | {mine[0]['slo_s'] * 1e3:.0f} |")
    for title, figure in FIGURES:
        lines += ["", title + ":", "", "| workload | policy | " + " | ".join(f"{x:g}x" for x in loads) + " |"]
        lines.append("|---|---|" + "---:|" * len(loads))
        for w in names:
            mine = [r for r in runs if r["workload"] == w]
            for p in ordered(r["policy"] for r in mine):
                cells = [cell([r for r in mine if r["policy"] == p and r["load"] == x], figure) for x in loads]
                lines.append(f"| {w} | {p} | " + " | ".join(cells) + " |")
    return lines


def read(paths):
    rows = []
    for path in paths:
        with open(path, encoding="utf-8") as f:
            rows += [json.loads(line) for line in f if line.strip()]
    return [r for r in rows if r["row"] == "run"]


def part(text, name, lines):
    begin, end = f"<!-- begin: {name} -->\n", f"<!-- end: {name} -->"
    if text.count(begin) != 1 or text.count(end) != 1:
        sys.exit(f"overload_markdown: OVERLOAD.md must have exactly one part '{name}'")
    head, rest = text.split(begin)
    tail = rest.split(end)[1]
    return head + begin + "\n".join(lines) + "\n" + end + tail


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--report", required=True)
    parser.add_argument("--sim", action="append", default=[])
    parser.add_argument("--server", action="append", default=[])
    args = parser.parse_args()
    path = os.path.join(here, "OVERLOAD.md")
    with open(path, encoding="utf-8") as f:
        text = f.read()
    for name, paths in (("sim", args.sim), ("server", args.server)):
        if not paths:
            continue
        runs = read(paths)
        void = sum(bool(r.get("void")) for r in runs)
        lines = targets(args.report, paths)
        lines += ["", f"{len(runs)} runs" + (f", {void} of them void" if void else "") + "."]
        text = part(text, name, lines + workloads(runs))
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)


main()
