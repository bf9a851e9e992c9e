# SPDX-License-Identifier: MIT
"""Random configurations of the storm: the same stages and links, in random places."""
import re
import subprocess

TYPES = {"front": "front", "second": "front", "mid": "part", "turn": "turn", "leaf": "part", "wait": "wait", "loop": "loop",
         "tail": "tail"}
LINKS = {"front": "{ part: mid, on: second }", "second": "{ part: turn, on: tail }", "mid": "{ sub: leaf, on: wait }",
         "turn": "{ sub: { stage: turn, loop: true }, on: leaf }", "leaf": "{ on: loop }", "wait": "{ on: loop }", "loop": "", "tail": ""}
REQUESTS = ("front", "second", "tail")
HOLDS = ("wait", "loop")
SCHEDULES = ("fifo", "wavefront", "srpt", "dbr", "mg1", "color")
POLICIES = ("auto", "weir", "none", "threshold", "codel", "rate", "dagor", "gradient2", "seda_rt")
GROUPS = ("pool", "one", "two")
PLUGINS = ", ".join(f"./storm_{t}.so" for t in sorted(set(TYPES.values())))


def number_of_threads(rng):
    return rng.choice(("1", "2", "{ min: 1, max: 3 }", "{ min: 1, max: 4, policy: seda }", "{ min: 2, max: 2, policy: static }"))


def group_line(rng, name):
    if name == "pool":
        return f"  pool: {{ schedule: shared, threads: {rng.choice(('2', '{ min: 1, max: 3 }'))} }}"
    rows = [f"schedule: {rng.choice(SCHEDULES)}", f"cores: {rng.choice(('1', '2', '2', '{ min: 1, max: 2 }'))}"]
    more = [f"gate: {{ {rng.choice(('events: 3', 'events: 64', 'time: 1ms', 'arrived: true', 'cutoff: 1ms'))} }}",
            f"starve: {rng.choice(('0', '1ms', '20ms'))}", "order: newest", "balance: false",
            f"serial: {rng.choice(('key', 'event', 'class'))}", "replicas: 2"]
    return f"  {name}: {{ {', '.join(rows + rng.sample(more, rng.randrange(4)))} }}"


def place(rng, name):
    """The keys of a stage that say where and how it runs, and its knob `alone`."""
    key = "event" if name in REQUESTS else "key"
    rows, alone = [], 0
    where = rng.choice(("inline", "inline", "threads", "threads", "pool", "one", "one", "two"))
    if name == "loop" or where == "threads":
        rows.append(f"threads: {number_of_threads(rng)}" if name != "loop" else "")
    elif where == "inline":
        rows.append("threads: inline")
    else:
        rows.append(f"group: {where}")
    how = rng.randrange(8)
    if how == 0 and name != "loop":
        rows.append("mode: exclusive")
        alone = 1
    elif how == 1 and where != "inline" and name != "loop":
        rows.append(f"mode: partitioned, key: {key}")
        alone = 2 if name not in REQUESTS else 0
    elif how < 4 and where in ("one", "two") and name not in HOLDS:
        rows.append("mode: replicated")
    elif how == 4 and where in ("one", "two"):
        rows.append(f"serial: {rng.choice((key, 'none'))}")
    if where in ("one", "two") and name != "loop":
        if rng.random() < 0.4:
            rows.append(f"local: {rng.choice(('always', 'never', 'auto'))}")
        if rng.random() < 0.3:
            rows.append(f"urgent: {{ {rng.choice(('events: 4', 'wait: 1ms', 'events: 8, wait: 500us'))} }}")
    return [r for r in rows if r], alone


def more_of(rng, name):
    rows = []
    if rng.random() < 0.5:
        policy = rng.choice(POLICIES)
        rate = ", rate: 300" if policy == "rate" else ""
        rows.append(f"admission: {{ policy: {policy}{rate}, mode: {rng.choice(('enforce', 'enforce', 'shadow', 'off'))} }}")
    queue = [f"limit: {rng.choice((2, 16, 64, 1000))}"] if rng.random() < 0.6 else []
    if rng.random() < 0.2 and name not in REQUESTS:
        queue.append("discipline: shortest, by: key")
    if queue:
        rows.append(f"queue: {{ {', '.join(queue)} }}")
    cohort = [c for c in (f"max: {rng.choice((1, 3, 64))}", "linger: 1ms", f"by: {'event' if name in REQUESTS else 'key'}")
              if rng.random() < 0.25]
    if cohort:
        rows.append(f"cohort: {{ {', '.join(cohort)} }}")
    if rng.random() < 0.3:
        rows.append(f"children: {rng.choice((1, 4, 64))}")
    if name in HOLDS and rng.random() < 0.6:
        rows.append(f"width: {rng.choice(('1', '4', '{ min: 1, max: 16 }'))}")
    return rows


def stage_line(rng, name, plain):
    rows, alone = ([], 0) if plain else place(rng, name)
    if not plain:
        rows += more_of(rng, name)
    knobs = [f"kids: {rng.choice((1, 3, 6))}", f"alone: {alone}"]
    if rng.random() < 0.5:
        knobs.append(f"burn: {rng.choice(('1us', '10us', '50us'))}")
    if rng.random() < 0.15 and name not in HOLDS:
        knobs.append("nap: 8ms")
    if rng.random() < 0.3 and name != "loop":
        knobs.append(f"die: {rng.choice((10, 300, 3000))}")
    to = f", to: {LINKS[name]}" if LINKS[name] else ""
    text = f"use: storm_{TYPES[name]}, with: {{ {', '.join(knobs)} }}{to}"
    return f"  {name}: {{ {', '.join([text] + rows)} }}"


def web_line(rng, plain):
    hosted = "" if plain or rng.random() < 0.7 else f", group: {rng.choice(('one', 'two'))}"
    rows = ['listen: "127.0.0.1:0"'] + ([] if hosted else [f"threads: {rng.choice((1, 2))}"])
    rows += rng.sample(["pipeline: 4", "header_timeout: 500ms", "idle_timeout: 300ms", "write_timeout: 500ms", "keep_alive_requests: 5",
                        "deadline: slo", "user: address"], rng.randrange(4))
    return f"  web: {{ use: http.server, with: {{ {', '.join(rows)} }}, to: {{ request: front }}{hosted} }}"


def head_of(rng):
    # Totals of classes are carried over to classes of the same name, so the names stay.
    classes = rng.choice(("classes: { vip: { match: { path: '/vip*' }, slo: 50ms }, rest: { slo: 1s } }",
                          "classes: { vip: { match: { path: '/vip*' } }, rest: {} }"))
    memory = rng.choice(("", "payloads: { memory: 1MiB, family_memory: 16KiB }", "payloads: { family_memory: 2KiB }"))
    return ["weir: 1", "name: storm", f"plugin: [{PLUGINS}]", 'admin: { listen: "127.0.0.1:0" }', "drain: { grace: 60s, old: 60s }",
            classes, memory, "groups:"]


def draw(rng, weir, folder):
    """A random configuration that `weir check` accepts. A line that it refuses is drawn again, and then made plain."""
    head = head_of(rng)
    makers = [lambda plain, g=g: group_line(rng, g) for g in GROUPS]
    makers += [lambda plain: "stages:", lambda plain: web_line(rng, plain)]
    makers += [lambda plain, s=s: stage_line(rng, s, plain) for s in TYPES]
    lines, faults = [m(False) for m in makers], [0] * len(makers)
    path = f"{folder}/drawn.yaml"
    for _ in range(40):
        used = [i for i, line in enumerate(lines) if i >= len(GROUPS) or f"group: {GROUPS[i]}" in "".join(lines[len(GROUPS):])]
        text = "\n".join(head + [lines[i] for i in used]) + "\n"
        if len(used) == len(lines) - len(GROUPS):
            text = text.replace("groups:\n", "")
        with open(path, "w") as f:
            f.write(text)
        p = subprocess.run([weir, "check", path], capture_output=True, text=True)
        if p.returncode == 0:
            return text
        numbers = {int(n) for n in re.findall(r"drawn\.yaml:(\d+):", p.stderr + p.stdout)}
        shift = text.count("\n") - len(used)
        bad = [used[n - 1 - shift] for n in numbers if 0 <= n - 1 - shift < len(used)]
        if not bad:
            raise SystemExit(f"weir check: {p.stderr}{p.stdout}\n{text}")
        for i in bad:
            faults[i] += 1
            lines[i] = makers[i](faults[i] > 4)
    return draw(rng, weir, folder)
