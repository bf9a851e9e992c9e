#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""nikto (from Debian's non-free section) against the admin endpoint and a site.

usage: nikto.py WEIR

Four scans, of which the site's runs in parallel to the others: the endpoint as it is on the loopback
interface, an endpoint with tokens scanned without one, the same with a session of the dashboard, and
http.server with file.cache and file.read.

Every finding of nikto fails the test unless a pattern in ADMIN or SITE explains it. The texts in the
lists ..._SAID must be reported, since a scan that saw nothing proves nothing. For the same reason
the server must have counted the requests.

nikto contacts no other host: no updates, no name lookups, and the address that it tries to make a
server include is one where nothing listens. Without nikto (scripts/test provides it) the test is
skipped (77).
"""
import concurrent.futures
import os
import re
import secrets
import shutil
import subprocess
import sys
import urllib.request

sys.dont_write_bytecode = True
import servers  # noqa: E402

SCAN_S = 50
ANSWERS_MIN = 2000  # nikto 2.1.5 checks 6,544 items with fewer requests

CONFIG = """SKIPPORTS=
USERAGENT=nikto/@VERSION (@TESTID)
RFIURL=http://127.0.0.1:9/rfi.txt?
NIKTODTD={root}/usr/share/doc/nikto/nikto.dtd
DEFAULTHTTPVER=1.1
UPDATES=no
PROMPTS=no
MAX_WARN=1000
CIRT=127.0.0.1
CHECKMETHODS=HEAD GET
EXECDIR={root}/var/lib/nikto
PLUGINDIR={root}/var/lib/nikto/plugins
DBDIR={root}/var/lib/nikto/databases
TEMPLATEDIR={root}/var/lib/nikto/templates
DOCDIR={root}/usr/share/doc/nikto
@@MUTATE=dictionary;subdomain
@@DEFAULT=@@ALL;-@@MUTATE;tests(report:500)
"""

SERVER = """weir: 1
name: nikto
admin: {{ listen: "127.0.0.1:0"{tokens} }}
stages:
  web:
    use: http.server
    with: {{ listen: "127.0.0.1:{port}" }}
    to: {{ request: cache }}
  cache: {{ use: file.cache, with: {{ root: site }}, threads: inline, to: {{ miss: disk }} }}
  disk: {{ use: file.read, with: {{ root: site, index: index.html }}, threads: {{ max: 2 }} }}
"""

# Findings that are not faults, with the reason. Each pattern matches the whole sentence.
BOTH = [
    # nikto takes one or two hexadecimal numbers for an inode. The site's tag is a hash of time, size
    # and inode; the endpoint's is a hash of the page, and its length.
    r"Server leaks inodes via ETags, header found with file /, fields: 0x[0-9a-f]{1,16} (0x[0-9a-f]+ )?",
    # nikto 2.1.5 (2012) does not know this header.
    r"Uncommon header 'x-content-type-options' found, with contents: nosniff",
]
ADMIN = BOTH + [
    # Also unknown to it, and required: see ADMIN_SAID.
    r"Uncommon header 'permissions-policy' found, with contents: camera=\(\), geolocation=\(\), microphone=\(\)",
    r"Uncommon header 'referrer-policy' found, with contents: no-referrer",
    r"Uncommon header 'x-frame-options' found, with contents: DENY",
    r"Uncommon header 'content-security-policy' found, with contents: default-src 'none'; [a-z0-9'; -]*",
    r"Uncommon header 'cross-origin-(opener|resource)-policy' found, with contents: same-origin",
    r"Allowed HTTP Methods: GET, HEAD ",
]
SITE = BOTH + [
    # Framing is the site's decision: a default would break sites that need it.
    r"The anti-clickjacking X-Frame-Options header is not present\.",
    r"Allowed HTTP Methods: GET, HEAD, OPTIONS ",
]
ADMIN_SAID = ["content-security-policy", "x-frame-options", "x-content-type-options", "referrer-policy",
              "permissions-policy", "cross-origin-opener-policy", "cross-origin-resource-policy"]
PLAIN_SAID = ADMIN_SAID + ["Allowed HTTP Methods: GET, HEAD "]  # with tokens OPTIONS is refused
SITE_SAID = ["x-content-type-options", "Allowed HTTP Methods: GET, HEAD, OPTIONS "]


def find_nikto():
    """The program and the root folder of its package; SystemExit 77 when it is missing."""
    here = os.path.dirname(os.path.abspath(__file__))
    unpacked = os.path.join(here, "..", "..", "build", "deps", "usr", "bin")
    program = shutil.which("nikto", path=os.environ.get("PATH", "") + ":" + unpacked)
    if not program:
        print("skipped: nikto is not installed")
        raise SystemExit(77)
    program = os.path.realpath(program)
    return program, os.path.dirname(os.path.dirname(os.path.dirname(program))).rstrip("/")


def scan(folder, name, port, cookie=None):
    """nikto's findings at `port` as (METHOD PATH, sentence) pairs, and its output."""
    program, root = find_nikto()
    config, report = os.path.join(folder, name + ".nikto"), os.path.join(folder, name + ".csv")
    with open(config, "w") as f:
        f.write(CONFIG.format(root=root) + ('STATIC-COOKIE="%s"="%s"\n' % cookie if cookie else ""))
    said = subprocess.run(
        ["perl", "-I", root + "/usr/share/perl5", program, "-config", config, "-host", "127.0.0.1", "-port", str(port),
         "-nolookup", "-nointeractive", "-nossl", "-ask", "no", "-timeout", "2", "-maxtime", "%ds" % SCAN_S, "-Format", "csv",
         "-output", report], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        timeout=SCAN_S + 20).stdout
    found = []
    with open(report, errors="replace") as f:
        for line in f.read().splitlines():
            row = re.search(r'"OSVDB-\d+","(\w*)","([^"]*)","(.*)"$', line)
            if row:
                found.append((row.group(1) + " " + row.group(2), row.group(3)))
            elif line.count('","') > 6:
                found.append(("?", line))  # not understood, so not explained
    return found, said


def judge(name, found, said, explained, wanted):
    """The faults of a scan, one text each."""
    wrong = ["%s: %s: %s" % (name, where, what) for where, what in found
             if not any(re.fullmatch(pattern, what) for pattern in explained)]
    wrong += ["%s: not reported: %s" % (name, text) for text in wanted if not any(text in what for _, what in found)]
    if not re.search(r"\d+ items checked: 0 error\(s\)", said):
        wrong.append("%s: the scan did not finish:\n%s" % (name, said))
    return wrong


class Server:
    """A weir with a site and an admin endpoint, which requires `token` if that is given."""

    def __init__(self, s, name, token=None):
        self.token, self.s, self.name = token, s, name
        tokens = ""
        if token:
            path = os.path.join(s.folder, "ops.token")
            with open(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_EXCL, 0o600), "w") as f:
                f.write(token + "\n")
            tokens = ", tokens: { ops: { role: operator, file: ops.token } }"
        self.port = servers.free_port()
        s.start(name, [s.weir, "run", "CONF"], SERVER.format(port=self.port, tokens=tokens), self.port)
        self.admin = int(s.await_said(name, r"admin http://[^:]+:(\d+)").group(1))

    def ask(self, path, data=None, cookie=None):
        headers = {"Content-Type": "application/json"} if data is not None else {}
        if cookie:
            headers["Cookie"] = "%s=%s" % cookie
        elif self.token:
            headers["Authorization"] = "Bearer " + self.token
        url = "http://127.0.0.1:%d%s" % (self.admin, path)
        return urllib.request.urlopen(urllib.request.Request(url, data, headers), timeout=10)

    def session(self):
        """Name and value of the session cookie that the dashboard would get."""
        with self.ask("/api/v1/session", b"{}") as answer:
            return tuple(answer.headers["Set-Cookie"].split(";")[0].split("=", 1))

    def metric(self, name):
        with self.ask("/metrics") as answer:
            text = answer.read().decode()
        return sum(float(line.split()[-1]) for line in text.splitlines() if re.match(name + r"[ {]", line))

    def ready(self):
        with self.ask("/readyz") as answer:
            return answer.status == 200


def main():
    find_nikto()
    with servers.Servers(sys.argv[1]) as s:
        site = os.path.join(s.folder, "site")
        os.mkdir(site)
        with open(os.path.join(site, "index.html"), "w") as f:
            f.write("<!doctype html><title>A site</title><p>Hello.")
        plain, guarded = Server(s, "plain"), Server(s, "guarded", secrets.token_urlsafe(32))
        session = guarded.session()
        with concurrent.futures.ThreadPoolExecutor(1) as pool:
            of_site = pool.submit(scan, s.folder, "site", guarded.port)
            rows = [("endpoint", scan(s.folder, "endpoint", plain.admin), ADMIN, PLAIN_SAID),
                    ("no token", scan(s.folder, "no-token", guarded.admin), ADMIN, ADMIN_SAID),
                    ("session", scan(s.folder, "session", guarded.admin, session), ADMIN, ADMIN_SAID),
                    ("site", of_site.result(), SITE, SITE_SAID)]
            guarded.ask("/api/v1/session", cookie=session).close()  # the session must still be valid
        answered = guarded.metric(r"weir_http_responses_\dxx_total")
        wrong = [] if answered >= ANSWERS_MIN else ["the site answered only %d requests" % answered]
        wrong += ["%s is no longer ready" % one.name for one in (plain, guarded) if not one.ready()]
    for name, (found, said), explained, wanted in rows:
        wrong += judge(name, found, said, explained, wanted)
        print("%-9s %2d reports, %s" % (name, len(found), "".join(re.findall(r"\d+ items checked", said))))
    for text in wrong:
        print("FAILED: " + text)
    print("%d responses from the site; %d failed" % (answered, len(wrong)))
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
