#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""h2load, wrk, hey, ab and siege against weir: a short run of each, in which the tool reports no error.

usage: load.py WEIR
"""
import re
import subprocess
import sys

sys.dont_write_bytecode = True
import servers  # noqa: E402

# program: (arguments, required output, forbidden output)
RUNS = [
    ("h2load", ["--h1", "-n", "5000", "-c", "16", "-m", "4", "URL"],
     [r"requests: 5000 total, 5000 started, 5000 done, 5000 succeeded, 0 failed, 0 errored, 0 timeout", r"status codes: 5000 2xx"], []),
    ("wrk", ["-t1", "-c32", "-d1s", "URL"], [r"[1-9]\d* requests in"], [r"Socket errors", r"Non-2xx"]),
    ("hey", ["-n", "2000", "-c", "20", "-m", "POST", "-d", "hello", "URL"], [r"\[200\]\s+2000 responses"], [r"Error distribution"]),
    ("hey", ["-n", "500", "-c", "20", "-disable-keepalive", "URL"], [r"\[200\]\s+500 responses"], [r"Error distribution"]),
    ("ab", ["-q", "-n", "2000", "-c", "16", "URL"], [r"Complete requests:\s+2000\b", r"Failed requests:\s+0\b"], [r"Non-2xx", r"Write errors:\s+[1-9]"]),
    ("ab", ["-q", "-k", "-n", "5000", "-c", "16", "URL"],
     [r"Complete requests:\s+5000\b", r"Failed requests:\s+0\b", r"Keep-Alive requests:\s+5000\b"], [r"Non-2xx"]),
    ("siege", ["-b", "-c", "10", "-r", "50", "URL"], [r'"?(Availability|availability)"?:\s+100\.00', r'"?(Failed|failed)_? ?transactions"?:\s+0\b'], []),
]

HELLO = 'use: respond, with: { body: "hello\\n" }'


def run(folder, url, program, arguments, must, must_not):
    done = subprocess.run([servers.find(program)] + [url if a == "URL" else a for a in arguments], cwd=folder,
                          env={"HOME": folder, "PATH": "/usr/bin:/bin"}, capture_output=True, text=True,
                          stdin=subprocess.DEVNULL, timeout=60, check=False)
    said = done.stdout + done.stderr
    wrong = [m for m in must if not re.search(m, said)] + ["not " + m for m in must_not if re.search(m, said)]
    if done.returncode != 0:
        wrong.append("exit status %d" % done.returncode)
    print("%s %s: %s" % (program, " ".join(arguments), "; ".join(wrong) if wrong else "no error"))
    if wrong:
        print(said[-3000:])
    return bool(wrong)


def main():
    with servers.Servers(sys.argv[1]) as s:
        # Not echo: its body contains the number of the connection, and ab counts a response with
        # another length as failed.
        s.start_weir(answer=HELLO)
        url = "http://127.0.0.1:%d/" % s.port["weir"]
        bad = [run(s.folder, url, *row) for row in RUNS]
    sys.exit(1 if any(bad) else 0)


if __name__ == "__main__":
    main()
