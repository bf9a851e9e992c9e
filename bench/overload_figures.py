# SPDX-License-Identifier: MIT
"""The figures of bench/overload, computed from run files of `weir bench` (RUNFILE.md).

Pure functions, tested by tests/bench/overload_figures.py. A phase is a phase of the run file, a
snapshot is a body of /api/v1/stages. Times are in seconds.
"""

GOOD = ("ok", "degraded")


def bucket_s(b):
    """Upper bound of bucket `b` of a histogram in a run file."""
    if b <= 0:
        return 1024e-9
    e, m = divmod(b, 64)
    return 2 ** (10 + e) * (1 + m / 64) * 1e-9


def good(cls):
    return sum(cls["outcomes"][o] for o in GOOD)


def quantile(phases, q, outcomes=("ok", "degraded", "timeout")):
    """Latency at quantile `q` of all requests that were not refused, over all classes and phases.

    None if there are no such requests. A request that timed out counts with the time after which the
    client gave up. A result at or above the time-out is therefore only a lower bound.
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
    """The name and the numbers of offered and good requests of each class, over all phases."""
    out = {}
    for phase in phases:
        for c in phase["classes"]:
            had = out.setdefault(c["name"], {"name": c["name"], "offered": 0, "good": 0})
            had["offered"] += c["offered"]
            had["good"] += good(c)
    return list(out.values())


def refused(phases):
    """Share of the offered requests that were refused in the end."""
    offered = sum(c["offered"] for p in phases for c in p["classes"])
    shed = sum(c["outcomes"]["shed"] for p in phases for c in p["classes"])
    return shed / offered if offered else 0.0


def series(phases, capacity, names=None):
    """Offered and good requests relative to the capacity, one value per phase.

    A request belongs to the phase in which it was due. `names`: only these classes.
    """
    def part(p, count):
        return round(sum(count(c) for c in p["classes"] if not names or c["name"] in names) / (p["took_s"] * capacity), 4)

    phases = [p for p in phases if p["took_s"] > 0]
    return {"bin_s": phases[0]["for_s"], "offered": [part(p, lambda c: c["offered"]) for p in phases], "good": [part(p, good) for p in phases]}


def jain(values):
    """Jain's fairness index: 1 when all values are equal, 1/n when one has everything."""
    squares = sum(v * v for v in values)
    return sum(values) ** 2 / (len(values) * squares) if squares else 0.0


def stage_use(start, end):
    """{stage: (seconds in handlers, events handled)} between two snapshots."""
    def of(snapshot):
        return {s["name"]: (s["busy_seconds_total"], sum(c["completed_total"] + c["failed_total"] for c in s["classes"])) for s in snapshot["stages"]}

    a, b = of(start), of(end)
    return {name: (b[name][0] - a.get(name, (0, 0))[0], b[name][1] - a.get(name, (0, 0))[1]) for name in b}


def wasted(use, served):
    """Share of the handlers' time spent on requests that were not answered in time.

    `served` maps each stage that counts to the number of requests answered in time that visited it.
    Each request is assumed to take the mean time of the stage.
    """
    busy = sum(use[s][0] for s in served)
    useful = sum(use[s][0] / use[s][1] * n for s, n in served.items() if use[s][1] > 0)
    return max(0.0, 1 - useful / busy) if busy > 0 else 0.0


def refusal_cpu(io_s, served, refusals, gave_up):
    """CPU seconds per refusal on a kept connection: reading, decision and answer.

    Computed as the I/O threads' CPU time per answered request. A served request costs them at least as
    much as a refusal, so the result is an upper bound. None if too few requests were refused to measure
    it, or if too many clients gave up, which also uses CPU time of the I/O threads.
    """
    if refusals < 100 or gave_up > 0.02 * refusals:
        return None
    return io_s / (served + refusals)


def threads_at(stage, server):
    """[[time in the run, threads]] of a stage: the start, each change by a decision, and the end."""
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
    """Whether more than 1 % of all requests were sent late.

    `weir bench` checks the lag of each phase by itself. A phase of 50 ms has so few requests that a
    single late one would make it void. This function therefore estimates the number of late requests
    of the whole run: all requests of a phase with a late median, and 1 %, but at least one, of a phase
    with a late 99th percentile.
    """
    late = total = 0
    for p in phases:
        lag, n = p["lag"], p["lag"]["count"]
        total += n
        if lag["p99_s"] > limit_s:
            late += n if lag["p50_s"] > limit_s else max(1, 0.0101 * n)
    return late > 0.01 * total
