# SPDX-License-Identifier: MIT
"""The table of bench/peers/run as markdown and for the terminal, from the same rows."""
import json
import pathlib
import statistics
import subprocess

SHOWN = (1.0, 2.0, 5.0)


def machine(top):
    cpu = next((line.split(":", 1)[1].strip() for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines()
                if line.startswith("model name")), "unknown")
    n = sum(line.startswith("processor") for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines())
    kernel = pathlib.Path("/proc/sys/kernel/osrelease").read_text().strip()
    git = subprocess.run(["git", "-C", str(top), "rev-parse", "--short", "HEAD"], capture_output=True, text=True)
    return {"cpu": cpu, "cores": n, "kernel": kernel, "commit": git.stdout.strip() or "unknown"}


def save(folder, text, found):
    """Writes the table and the figures that it was made from."""
    (folder / "table.md").write_text(text)
    (folder / "rows.json").write_text(json.dumps(found, indent=1))


def median(values):
    return statistics.median(values)


def spread(values, digits=2):
    return f"{median(values):.{digits}f} ({min(values):.{digits}f}..{max(values):.{digits}f})"


def ratios(row, name, base, figure):
    """Ratios of `name` to `base`, round by round; None without `base`."""
    if base not in row:
        return None
    return [x[figure] / y[figure] for x, y in zip(row[name], row[base]) if y[figure]]


def milliseconds(seconds):
    return "-" if seconds is None else f"{seconds * 1000:.3g}"


def share(x):
    return "0" if x == 0 else "<1 %" if x < 0.01 else f"{x * 100:.0f} %"


def at(row, multiple):
    return next((p for p in row["curve"] if p["multiple"] == multiple), None)


def best_first(summary):
    """The peers, ordered by goodput at the highest shown load that each of them has.

    If points are void or disturbed, the order would depend on the machine, so it is by name instead.
    """
    points = [p for row in summary["peers"] for p in row["curve"]]
    if any(p["void"] or p["foreign"] > summary["foreign_limit"] for p in points):
        return sorted(summary["peers"], key=lambda row: row["name"])

    def key(row):
        shown = [at(row, m) for m in reversed(SHOWN)]
        return -next((p["good"] for p in shown if p), row["capacity_per_s"])
    return sorted(summary["peers"], key=key)


def columns(summary):
    """Column heads with their units, and a list of cells per peer."""
    shown = [m for m in SHOWN if any(at(r, m) for r in summary["peers"])]
    heads = ["server", "best static setting", "capacity /s"]
    heads += [f"goodput at {m:g}x, /s (of capacity)" for m in shown]
    heads += [f"p99 of ok at {m:g}x, ms" for m in shown]
    heads += [f"{what} at {m:g}x" for m in shown if m > 1 for what in ("shed", "late", "errors")]
    heads += ["CPU at 1x, cores"]
    rows = []
    for row in best_first(summary):
        points = {m: at(row, m) for m in shown}
        cells = [row["name"], row["setting"], f"{row['capacity_per_s']:.0f}"]
        cells += [goodput(points[m], row) for m in shown]
        cells += [milliseconds(points[m]["p99_s"]) if points[m] else "-" for m in shown]
        cells += [share(points[m][k]) if points[m] else "-" for m in shown if m > 1
                  for k in ("shed", "late", "failed")]
        cells += [f"{points[shown[0]]['cpu']:.2f}" if shown and points[shown[0]] else "-"]
        rows.append(cells)
    return heads, rows


def goodput(point, row):
    if not point:
        return "-"
    mark = " void" if point["void"] else ""
    return f"{point['good']:.0f} ({point['good'] / row['capacity_per_s'] * 100:.0f} %){mark}"


def preface(summary):
    m = summary["machine"]
    lines = [f"Work {summary['work']}" + (f" {summary['time']}" if summary["time"] else "")
             + f" ({summary['dist']}), objective and time-out {summary['slo_s'] * 1000:g} ms, "
             f"{summary['rounds']} round(s) of {summary['for_s']:g} s a point; server (and origin) on one core, "
             "generator on the others.",
             f"Commit {m['commit']}, {m['cpu']}, {m['cores']} cores, kernel {m['kernel']}."]
    lines += [f"Left out: {name}: {why}." for name, why in summary["left_out"].items()]
    for row in summary["peers"]:
        void = [p for p in row["curve"] if p["void"]]
        if void:
            where = ", ".join(f"{p['multiple']:g}x" for p in void)
            lines.append(f"Void: {row['name']} at {where}: {void[-1]['void']}.")
    seen = [p["foreign"] for row in summary["peers"] for p in row["curve"] + row["tuned"]]
    disturbed = sum(f > summary["foreign_limit"] for f in seen)
    if disturbed:
        lines.append(f"Disturbed: in {disturbed} of {len(seen)} points other processes used more than "
                     f"{summary['foreign_limit']:g} cores, {max(seen):.2f} at most; capacities and shares of such a run "
                     "compare the noise of the machine, so repeat it when the machine is quiet.")
    return lines


def pipes(cells):
    return "| " + " | ".join(c.replace("|", "\\|") for c in cells) + " |"


def curve_table(summary):
    """All points of all curves: goodput as a share of the peer's own capacity."""
    found = sorted({p["multiple"] for r in summary["peers"] for p in r["curve"]})
    lines = [pipes(["goodput / capacity"] + [f"{m:g}x" for m in found]), pipes(["---"] * (len(found) + 1))]
    for row in best_first(summary):
        lines.append(pipes([row["name"]] + [
            f"{at(row, m)['good'] / row['capacity_per_s']:.2f}" if at(row, m) else "-" for m in found]))
    return lines


def tuning_table(summary):
    lines = [pipes(["server", "setting", "offered / closed-loop rate", "goodput, /s", "shed", "late", "p99 of ok, ms"]),
             pipes(["---"] * 7)]
    for row in summary["peers"]:
        for t in row["tuned"]:
            chosen = " (chosen)" if t["setting"] == row["setting"] else ""
            lines.append(pipes([row["name"], t["setting"] + chosen, f"{t['multiple']:g}", f"{t['good']:.0f}",
                                share(t["shed"]), share(t["late"]), milliseconds(t["p99_s"])]))
    return lines


def markdown(summary):
    heads, rows = columns(summary)
    said = {r["name"]: r["cannot"] for r in summary["peers"]}
    lines = ["# weir and its peers under overload", "", *preface(summary), "",
             pipes(heads + ["cannot"]), pipes(["---"] * (len(heads) + 1))]
    lines += [pipes(cells + [said[cells[0]]]) for cells in rows]
    lines += ["", "## Curves", "", *curve_table(summary), "", "## Settings tried", "", *tuning_table(summary), "",
              "## Versions", "", *[f"- {r['name']}: {r['version']}" for r in summary["peers"]], ""]
    return "\n".join(lines)


def terminal(summary):
    heads, rows = columns(summary)
    # Long headings would make the table too wide, so they are broken at the comma and before "at".
    tall = [h.replace(", ", "\n").replace(" at ", "\nat ", 1).split("\n") for h in heads]
    depth = max(len(h) for h in tall)
    grid = [[h[i] if i < len(h) else "" for h in tall] for i in range(depth)] + rows
    width = [max(len(line[i]) for line in grid) for i in range(len(heads))]
    lines = preface(summary) + [""]
    for line in grid:
        lines.append("  ".join(c.ljust(w) if i < 2 else c.rjust(w)
                               for i, (c, w) in enumerate(zip(line, width))).rstrip())
    lines += ["", "cannot:"] + [f"  {r['name']:14} {r['cannot']}" for r in best_first(summary)]
    return "\n".join(lines)
