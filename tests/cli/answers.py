# SPDX-License-Identifier: MIT
"""Made-up answers of an admin endpoint, for tests of the command."""
import http.server
import json
import os


def serve(answer, port_file):
    """Answer each GET of a path with `answer(path)` as JSON, for ever. The port is written to `port_file`."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            body = json.dumps(answer(self.path)).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args):
            pass

    server = http.server.HTTPServer(("127.0.0.1", 0), Handler)
    with open(port_file + ".new", "w") as out:
        out.write(str(server.server_address[1]))
    os.rename(port_file + ".new", port_file)
    server.serve_forever()
