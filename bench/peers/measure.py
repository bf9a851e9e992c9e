# SPDX-License-Identifier: MIT
"""Servers under load, for bench/peers/run and bench/scenes/run.

A Server is a foreground process on core 0. It is ended by its pid, whatever happens in this program;
if this program is killed, the kernel ends it (setpriv --pdeathsig). load() runs `weir bench` on the
other cores and reads its run file (bench/RUNFILE.md).
"""
import atexit
import contextlib
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl
import subprocess
import sys
import time

TOP = pathlib.Path(__file__).resolve().parents[2]
START_S = 20  # a server that does not answer within this time is broken
STOP_S = 15
FOREIGN_CORES = 0.15  # a point with more CPU use by other processes counts as disturbed; a guess
TICKS = os.sysconf("SC_CLK_TCK")


class Trouble(Exception):
    """An error whose text the user should see instead of a traceback."""


def exit_on_signals():
    """Makes SIGTERM and SIGHUP unwind like Ctrl-C, so that every server is ended."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: sys.exit(128 + signal.SIGTERM))


_nice = None  # for the sessions of servers


def set_group_nice(pid, nice):
    """Sets the nice value of the session of `pid`.

    Where the kernel shares cores between sessions (autogroup), the nice value of a process has no
    effect on other sessions.
    """
    with contextlib.suppress(OSError):
        pathlib.Path(f"/proc/{pid}/autogroup").write_text(str(nice))


def prefer(nice):
    """Sets the nice value of this session, until the program ends, and of servers started from now on.

    For a machine with other work.
    """
    global _nice
    _nice = nice
    set_group_nice("self", nice)
    atexit.register(set_group_nice, "self", 0)


def seconds(text):
    """"500ms", "10s" or "1m" in seconds; raises ValueError."""
    m = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)(ms|s|m)", text)
    if not m:
        raise ValueError(f"'{text}' is not a time: write 500ms, 10s or 1m")
    return float(m[1]) * {"ms": 0.001, "s": 1, "m": 60}[m[2]]


def free_port():
    with contextlib.closing(socket.socket()) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def cores():
    """(core of the server, cores of the generator); the same core when there is only one."""
    usable = sorted(os.sched_getaffinity(0))
    return usable[0], usable[1:] or usable


def check_build(build):
    """The path of weir; raises Trouble when it is missing or the build is not a release build."""
    weir = build / "weir"
    cache = build / "CMakeCache.txt"
    if not weir.exists():
        raise Trouble(f"{weir} is missing: cmake --preset release && cmake --build --preset release")
    if cache.exists() and "CMAKE_BUILD_TYPE:STRING=Release" not in cache.read_text():
        raise Trouble(f"{build} is not a release build")
    return weir


def stat_of(pid):
    """(parent, CPU ticks of the process and of children it has waited for); None if it has ended."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return None
    field = text.rsplit(")", 1)[1].split()
    return int(field[1]), sum(int(x) for x in field[11:15])


def busy_s():
    """CPU seconds that all cores have spent on any work, including stolen time."""
    field = pathlib.Path("/proc/stat").read_text().splitlines()[0].split()
    user, nice, system, _idle, _iowait, irq, softirq, steal = map(int, field[1:9])
    return (user + nice + system + irq + softirq + steal) / TICKS


def family(pid):
    """`pid` and all its descendants."""
    parents = {}
    for entry in os.listdir("/proc"):
        stat = stat_of(entry) if entry.isdigit() else None
        if stat:
            parents.setdefault(stat[0], []).append(int(entry))
    found, todo = [], [pid]
    while todo:
        found.append(todo.pop())
        todo += parents.get(found[-1], [])
    return found


class Server:
    """One running server; a context manager. `argv` stays in the foreground and listens on `port`."""

    def __init__(self, name, argv, port, folder, env=None, core=None, tls=False, path="/"):
        self.name, self.port, self.log = name, port, folder / f"{name}.log"
        self.tls, self.path = tls, path
        self.tls_version = None  # the version negotiated with this OpenSSL
        core = cores()[0] if core is None else core
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["setpriv", "--pdeathsig", "TERM", "taskset", "-c", str(core), *map(str, argv)],
                stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True,
                env={**os.environ, **(env or {})})
        if _nice is not None:
            set_group_nice(self.process.pid, _nice)
        try:
            self.await_answer()
        except BaseException:
            self.stop()
            raise

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.stop()

    def await_answer(self):
        until = time.monotonic() + START_S
        while time.monotonic() < until:
            if self.process.poll() is not None:
                break
            try:
                if self.get() == 200:
                    return
            except (OSError, http.client.HTTPException):
                pass
            time.sleep(0.01)
        raise Trouble(f"{self.name} did not start:\n{self.log.read_text(errors='replace')[-2000:]}")

    def connection(self):
        if not self.tls:
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
        context = ssl.create_default_context()
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE  # self-signed
        return http.client.HTTPSConnection("127.0.0.1", self.port, timeout=2, context=context)

    def get(self, path=None):
        """Sends one GET and returns the status."""
        with contextlib.closing(self.connection()) as c:
            c.request("GET", path or self.path)
            if self.tls:
                self.tls_version = c.sock.version()
            answer = c.getresponse()
            answer.read()
            return answer.status

    def cpu_s(self):
        stats = [stat_of(pid) for pid in family(self.process.pid)]
        return sum(s[1] for s in stats if s) / TICKS

    def stop(self):
        """Sends SIGTERM and kills what is left of the session after STOP_S. Uses only the pid."""
        if self.process.poll() is None:
            self.process.terminate()
        try:
            self.process.wait(STOP_S)
        except subprocess.TimeoutExpired:
            pass
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Point:
    """The result of one load on one server; durations in seconds, rates per second."""

    def __init__(self, run, cpu_s, busy):
        self.void = run["void"]
        phases = [p for p in run["phases"] if not p["warmup"]]
        self.took_s = sum(p["took_s"] for p in phases) or 1
        self.offered = self.total(phases, "offered") / self.took_s
        outcomes = {}
        for phase in phases:
            for cls in phase["classes"]:
                for name, n in cls["outcomes"].items():
                    outcomes[name] = outcomes.get(name, 0) + n
        self.good = (outcomes.get("ok", 0) + outcomes.get("degraded", 0)) / self.took_s
        self.requests, self.cpu_s = sum(outcomes.values()), cpu_s
        whole = self.requests or 1
        self.shed = outcomes.get("shed", 0) / whole
        self.failed = (outcomes.get("error", 0) + outcomes.get("gone", 0)) / whole
        self.late = outcomes.get("timeout", 0) / whole
        ok = [c["latency"]["ok"] for p in phases for c in p["classes"] if "ok" in c["latency"]]
        self.p50_s = max((x["p50_s"] for x in ok), default=None)
        self.p99_s = max((x["p99_s"] for x in ok), default=None)
        whole_s = max(run["took_s"], 0.001)
        self.cpu = cpu_s / whole_s
        # Cores used neither by the server nor by the generator, but by other processes, which
        # distort the figures.
        ours_s = cpu_s + run["generator"]["cpu_user_s"] + run["generator"]["cpu_system_s"]
        self.foreign = max(0.0, (busy - ours_s) / whole_s)

    @property
    def is_clean(self):
        """True if the generator was not late and the machine had no other work."""
        return not self.void and self.foreign <= FOREIGN_CORES

    @staticmethod
    def total(phases, member):
        return sum(c[member] for p in phases for c in p["classes"])


def load(weir, servers, out, rate=None, for_s=10, warmup_s=1, timeout_s=1, connections=2048,
         seed=1, closed=False, label="", path="/", extra=()):
    """Drives servers[0] with `weir bench`. Returns a Point, whose CPU is that of all `servers`."""
    argv = ["taskset", "-c", ",".join(map(str, cores()[1])), weir, "bench",
            f"http://127.0.0.1:{servers[0].port}{path}", "--for", f"{for_s:g}s",
            "--warmup", f"{warmup_s:g}s", "-c", connections, "--timeout", f"{timeout_s * 1000:g}ms",
            "--seed", seed, "--label", label, "--quiet", "-o", out, *extra]
    argv += ["--closed"] if closed else ["--rate", f"{rate:.0f}"]
    pathlib.Path(out).unlink(missing_ok=True)
    before, busy_before = sum(s.cpu_s() for s in servers), busy_s()
    done = subprocess.run(["setpriv", "--pdeathsig", "TERM", *map(str, argv)], capture_output=True,
                          text=True, timeout=60 + 4 * (for_s + warmup_s + timeout_s))
    cpu_s, busy = sum(s.cpu_s() for s in servers) - before, busy_s() - busy_before
    try:
        run = json.loads(pathlib.Path(out).read_text())
    except (OSError, ValueError) as why:
        raise Trouble(f"{' '.join(map(str, argv))}\n{done.stderr[-2000:]}{why}") from None
    return Point(run, cpu_s, busy)
