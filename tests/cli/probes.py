#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""USDT probes: probes.py PROGRAM SOURCE_DIR

The program contains every probe of framework/base/probe.h with the arguments that the header
lists. The scripts in contrib/bpftrace use only these probes, and each probe is used by a script.
Where bpftrace is installed, the scripts must compile. Skipped (77) when the program was built
without probes or readelf is missing.
"""
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile

PROGRAM, TOP = sys.argv[1:3]
failures = []


def check(good, what):
    if not good:
        failures.append(what)
        print("FAILED:", what, file=sys.stderr)


def described():
    """{probe: number of its arguments}, from the comment in the header."""
    with open(os.path.join(TOP, "framework/base/probe.h")) as f:
        head = f.read().split("*/")[1]
    rows = re.findall(r"^ \*   (\w+) {1,}\S.*? {2,}(\S.*)$", head, re.M)
    return {name: len(re.sub(r"\([^)]*\)", "", arguments).split(", ")) for name, arguments in rows}


def built():
    """{probe: set of the argument counts at its sites}, from the notes in the program."""
    notes = subprocess.run(["readelf", "-n", "--wide", PROGRAM], capture_output=True, text=True, check=True).stdout
    found = {}
    for name, semaphore, arguments in re.findall(
            r"Provider: weir\n\s+Name: (\w+)\n.*Semaphore: (\w+)\n\s+Arguments: (.*)", notes):
        # "8@-176(%rbp) -4@%ecx": blanks appear only between arguments.
        found.setdefault(name, set()).add(len(arguments.split()))
        check(int(semaphore, 16) == 0, f"{name} has a semaphore")
    return found


def compiles(script, text):
    with tempfile.NamedTemporaryFile("w", suffix=".bt") as f:
        f.write(text.replace("usdt:weir:", f"usdt:{PROGRAM}:"))
        f.flush()
        run = subprocess.run(["bpftrace", "-d", f.name, "100"], capture_output=True, text=True, timeout=60,
                             stdin=subprocess.DEVNULL)
    check(run.returncode == 0, f"{script} does not compile: {run.stderr.strip()[-400:]}")


def main():
    if not shutil.which("readelf"):
        print("skipped: readelf is not installed")
        sys.exit(77)
    places, told = built(), described()
    if not places:
        print("skipped: this weir was built without probes")
        sys.exit(77)
    check(len(told) >= 8, f"the header lists only {sorted(told)}")
    for name, n in told.items():
        check(places.get(name) == {n}, f"{name}: {n} arguments in the header, {places.get(name)} in the program")
    check(set(places) == set(told), f"in the program: {sorted(places)}, in the header: {sorted(told)}")
    bpftrace = shutil.which("bpftrace") and os.geteuid() == 0
    used = set()
    scripts = sorted(glob.glob(os.path.join(TOP, "contrib/bpftrace/*.bt")))
    for script in scripts:
        with open(script) as f:
            text = f.read()
        code = re.sub(r"//.*", "", text)
        names = re.findall(r"^usdt:weir:weir:(\w+)", code, re.M)
        check(len(names) == 1, f"{script} must use one probe, not {names}")
        for name in names:
            used.add(name)
            check(name in places, f"{script} uses the probe '{name}', which does not exist")
            most = max(int(n) for n in re.findall(r"\barg(\d)", code))
            check(most < told.get(name, 0), f"{script} reads arg{most} of {name}, which has {told.get(name)}")
            check(f"// Arguments of the probe {name}: " in text, f"{script} does not describe {name}")
        if bpftrace:
            compiles(script, text)
    check(used == set(told), f"no script for {sorted(set(told) - used)}")
    print(f"{len(told)} probes, {len(scripts)} scripts{'' if bpftrace else ', not compiled: no bpftrace, or not root'}")
    sys.exit(bool(failures))


main()
