# SPDX-License-Identifier: MIT
"""Figures of bench/overload from run files of `weir bench` (RUNFILE.md). Pure functions; tests/bench/overload_figures.py.

A phase is one of the run file's, a snapshot is the body of /api/v1/stages. Times are seconds.
"""

GOOD = ("ok", "degraded")


def bucket_s(b):
    """Upper end of bucket `b` of a histogram in a run file."""
    if b <= 0:
        return 1024e-9
    e, m = divmod(b, 64)
    return 2 ** (10 + e) * (1 + m / 64) * 1e-9


def good(cls):
    return sum(cls["outcomes"][o] for o in GOOD)


def quantile(phases, q, outcomes=("ok", "degraded", "timeout")):
    """Latency at quantile `q` of what was not refused, all classes and phases together; None without any.

    Who gave up counts with the time at which he did, so a figure beyond the time-out means "at least that".
    """
    count = {}
    for phase in phases:
        for cls in phase["classes"]:
            for o in outcomes:
                for b, n in cls["latency"].get(o, {}).get("buckets", []):
                    count[b] = count.get(b, 0) + n
    left = q * sum(count.values())
    for b in sorted(count):
        left -= count[b]
        if left <= 0:
            return bucket_s(b)
    return None


def classes(phases):
    """name, offered and good of each class over all phases."""
    out = {}
    for phase in phases:
        for c in phase["classes"]:
            had = out.setdefault(c["name"], {"name": c["name"], "offered": 0, "good": 0})
            had["offered"] += c["offered"]
            had["good"] += good(c)
    return list(out.values())


def refused(phases):
    """Share of what was offered that was refused in the end."""
    offered = sum(c["offered"] for p in phases for c in p["classes"])
    shed = sum(c["outcomes"]["shed"] for p in phases for c in p["classes"])
    return shed / offered if offered else 0.0


def series(phases, capacity, names=None):
    """Offered and served in parts of the capacity, a value per phase, by when requests were due. `names`: these classes only."""
    def part(p, count):
        return round(sum(count(c) for c in p["classes"] if not names or c["name"] in names) / (p["took_s"] * capacity), 4)

    phases = [p for p in phases if p["took_s"] > 0]
    return {"bin_s": phases[0]["for_s"], "offered": [part(p, lambda c: c["offered"]) for p in phases], "good": [part(p, good) for p in phases]}


def jain(values):
    """Jain's index of fairness: 1 when all are equal, 1/n when one has all."""
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


def stage_use(start, end):
    """Per stage: seconds in handlers and events handled between two snapshots."""
    def of(snapshot):
        return {s["name"]: (s["busy_seconds_total"], sum(c["completed_total"] + c["failed_total"] for c in s["classes"])) for s in snapshot["stages"]}

    a, b = of(start), of(end)
    return {name: (b[name][0] - a.get(name, (0, 0))[0], b[name][1] - a.get(name, (0, 0))[1]) for name in b}


def wasted(use, served):
    """Share of the handlers' time that went to requests nobody waited for. `served`: requests that were answered in time, by stage that they visit;
    stages not named in it do not count. Each is taken to have cost the mean of its stage."""
    busy = sum(use[s][0] for s in served)
    useful = sum(use[s][0] / use[s][1] * n for s, n in served.items() if use[s][1] > 0)
    return max(0.0, 1 - useful / busy) if busy > 0 else 0.0


def refusal_cpu(cpu_s, base_s, served, refusals, gave_up):
    """CPU seconds of the server per refusal: what of its time beside the work is left when `base_s` for each request served is taken off; None when
    too few were refused to tell, or when those who gave up cost too much of it."""
    if refusals < 100 or gave_up > 0.02 * refusals:
        return None
    return max(0.0, cpu_s - base_s * served) / refusals


def threads_at(stage, server):
    """[[time of the run, threads]] of a stage, where they changed, from its decisions; first and last what they were at both ends."""
    each = server["each"]
    if not each:
        return []
    zero = each[0]["uptime_seconds"] - each[0]["at_s"]
    now = {s["name"]: s["threads"]["target"] for s in each[-1]["stages"]}[stage]
    moves = [(d["uptime_seconds"] - zero, d["from"], d["to"]) for d in reversed(server["decisions"])
             if d["stage"] == stage and d["from"] != d["to"] and d["action"] in ("grow", "shrink", "stall", "undo", "stuck")]
    out = [[0.0, moves[0][1] if moves else now]]
    for at, _, to in moves:
        if at <= 0:
            out[0][1] = to
        else:
            out.append([round(at, 3), to])
    out.append([round(max(each[-1]["at_s"], out[-1][0]), 3), out[-1][1]])
    return out


def is_late(phases, limit_s=1e-3):
    """Were more than 1 % of the requests sent late? `weir bench` asks that of each phase, and a phase of a twentieth of a second has so few requests
    that one late one makes it void. Phases whose 99th percentile is late count with 1 % of their requests, at least one; with all, if half were."""
    late = total = 0
    for p in phases:
        lag, n = p["lag"], p["lag"]["count"]
        total += n
        if lag["p99_s"] > limit_s:
            late += n if lag["p50_s"] > limit_s else max(1, 0.0101 * n)
    return late > 0.01 * total
