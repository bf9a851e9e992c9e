#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The .vtc scenarios in this folder, played to weir by varnishtest's raw client.

usage: varnish.py WEIR
"""
import glob
import os
import subprocess
import sys

sys.dont_write_bytecode = True
import servers  # noqa: E402


def main():
    scenarios = sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "*.vtc")))
    bad = 0
    with servers.Servers(sys.argv[1]) as s:
        s.start_weir()
        for path in scenarios:
            done = subprocess.run([servers.find("varnishtest"), "-D", "weir_port=%d" % s.port["weir"], "-t", "30", path],
                                  cwd=s.folder, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=60, check=False)
            said = done.stdout + done.stderr
            # 77 is "skipped", which does not count as passed.
            good = done.returncode == 0 and " passed " in said
            print("varnishtest %s: %s" % (os.path.basename(path), "passed" if good else "FAILED"))
            if not good:
                print(said[-6000:])
            bad += not good
    sys.exit(1 if bad or not scenarios else 0)


if __name__ == "__main__":
    main()
