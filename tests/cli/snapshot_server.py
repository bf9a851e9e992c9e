# SPDX-License-Identifier: MIT
"""A fake admin endpoint in which every text is markup, for tests of `weir snapshot`.

snapshot_server.py PORT_FILE
"""
import http.server
import json
import os
import sys
import urllib.parse

EVIL = "</pre><script>alert(1)</script><img src=x onerror=alert(2)>\"'&\u202e"
STAGE = {"name": EVIL, "use": EVIL, "state": EVIL, "queue": {"length": 3, "limit": 9}, "threads": {"busy": 1, "now": 2, "min": 1, "max": 4},
         "admission": {"policy": EVIL, "why": EVIL}}
AT = list(range(1700000000, 1700000900))
YAML = f"""# {EVIL}
weir: 1
stages:
  a: {{ use: b, with: {{ password: hunter1, other: kept-a }} }}
  b:
    api_key: "hunter2"
    secret: |
      hunter3
        hunter4

      hunter5
    kept_b: yes
    token_file: /kept/c
    upstream: https://joe:hunter6@host/kept-d
    AuthToken: hunter7  # and more
    # the old Password was hunter8
    list_of_secrets:
      - hunter9
  kept_e: {{}}
"""
ANSWERS = {
    "/api/v1": {"version": EVIL, "routes": []},
    "/api/v1/stages": {"time": 1700000900.5, "uptime_seconds": 12.5, "name": EVIL, "stages": [STAGE],
                       "bottleneck": {"limits": True, "text": EVIL, "formula": EVIL, "law": EVIL}},
    "/api/v1/graph": {"name": EVIL, "ready": True, "classes": [EVIL]},
    "/api/v1/overload": {"mode": EVIL},
    "/api/v1/alerts": {"active": [{"level": "bad", "text": EVIL}], "past": []},
    "/api/v1/history": {"from": AT[0], "to": AT[-1], "step": 1, "at": AT, "classes": [EVIL], "stages": {
        EVIL: {f: [None if i % 100 == 0 else i % 60 for i in range(900)] for f in ("in", "done", "shed", "queue", "wait_p99", "busy")},
        **{f"s{n}": {"in": [1] * 900} for n in range(12)}}},
    "/api/v1/decisions": {"decisions": [{"time": 1700000000.1, "stage": EVIL, "actor": EVIL, "action": EVIL, "from": 1, "to": 2,
                                         "rule": EVIL, "limit": EVIL, "inputs": EVIL}], "next": None},
    "/api/v1/changes": {"changes": [{"at": 1700000000.1, "actor": EVIL, "what": EVIL, "target": EVIL, "from": EVIL, "to": EVIL, "undone": True},
                              {"at": 1700000000.1, "target": "b.with.api_key", "from": "hunter10", "to": "hunter11"}], "next": None},
    "/api/v1/config": {"files": [{"file": EVIL, "text": YAML}], "lines": []},
}


class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        answer = ANSWERS.get(urllib.parse.urlsplit(self.path).path)
        body = json.dumps(answer if answer is not None else {}).encode()
        self.send_response(200 if answer is not None else 404)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
with open(sys.argv[1] + ".new", "w", encoding="ascii") as f:
    f.write(str(server.server_port))

os.rename(sys.argv[1] + ".new", sys.argv[1])
server.serve_forever()
