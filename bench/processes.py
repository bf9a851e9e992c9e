# SPDX-License-Identifier: MIT
"""Servers for the benchmarks in this folder: ports, start and end, CPU time by thread."""
import os, socket, subprocess, sys, time


def free_ports(n):
    socks = [socket.socket() for _ in range(n)]
    for s in socks:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in socks]
    for s in socks:
        s.close()
    return ports


class Process:
    """Runs `command` on core 0 until the end of a `with`. Ready when it accepts on all `ports`."""

    def __init__(self, command, log, ports):
        self.log = open(log, "w")
        self.process = subprocess.Popen(["taskset", "-c", "0", *command], stdout=self.log, stderr=self.log)
        for port in ports:
            self.wait(port)

    def wait(self, port):
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                if self.process.poll() is not None:
                    sys.exit("bench: the server did not start: " + open(self.log.name).read())
                time.sleep(0.02)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.terminate()
        self.process.wait()
        self.log.close()

    def cpu(self):
        """CPU seconds so far, keyed by the part of the thread's name before "/".

        The handlers' busy time cannot be used instead: it includes time in which other threads had the
        core.
        """
        total, tasks = {}, f"/proc/{self.process.pid}/task"
        for t in os.listdir(tasks):
            try:
                name, ns = open(f"{tasks}/{t}/comm").read().strip(), open(f"{tasks}/{t}/schedstat").read().split()[0]
            except OSError:
                continue  # the thread has exited
            name = name.split("/")[0]
            total[name] = total.get(name, 0) + int(ns) * 1e-9
        return total
