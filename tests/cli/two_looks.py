# SPDX-License-Identifier: MIT
"""Two samples of a server with a reload between them, for tests of `weir why`.

two_looks.py STAGES_URL PORT_FILE

The first response to /api/v1/stages is the one of the server at STAGES_URL. The second response is
that of a second later, after a reload that reversed the order of the stages and added one. In
between, `hello` was offered 46,840 events.
"""
import copy
import json
import sys
import urllib.request

from answers import serve

first = json.load(urllib.request.urlopen(sys.argv[1], timeout=20))
second = copy.deepcopy(first)
second["uptime_seconds"] += 1
second["stages"].reverse()
for stage in second["stages"]:
    if stage["name"] == "hello":
        stage["classes"][0]["offered_total"] += 46840
added = copy.deepcopy(next(s for s in second["stages"] if s["name"] == "hello"))
added["name"] = "added"
added["classes"][0]["offered_total"] = 7777
second["stages"].insert(0, added)
answers = [first, second]


serve(lambda path: answers.pop(0) if len(answers) > 1 else answers[0], sys.argv[2])
