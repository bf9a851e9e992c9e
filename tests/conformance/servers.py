# SPDX-License-Identifier: MIT
"""Servers for the conformance tests: weir and, from Debian, nginx, HAProxy and lighttpd.

Each listens on a free port of 127.0.0.1. Configuration, logs and temporary files are in one folder,
which is removed at the end.

The three peers are proxies in front of a small nginx that answers every request with 200 at once.
They are configured to read a whole body before they pass it on, so every refusal is their own, also
of a body.
"""
import os
import re
import shutil
import signal
import socket
import subprocess
import tempfile
import time

START_S = 20
APACHE_MODULES = "/usr/lib/apache2/modules"  # of Debian's apache2-bin

HEAD = """weir: 1
name: conformance
admin: { listen: "127.0.0.1:0" }
stages:
"""
WEIR = HEAD.replace("{ ", "{{ ").replace(" }", " }}") + """  web:
    use: http.server
    with: {{ listen: "127.0.0.1:{port}"{knobs} }}
    to: {{ request: answer }}
  answer: {{ {answer}, threads: inline }}
"""
ECHO = "use: echo"

PROXY = """  web_{name}:
    use: http.server
    with: {{ listen: "127.0.0.1:{port}", stream: 1KiB, max_body: 1MiB }}
    to: {{ request: {name} }}
  {name}:
    use: http.client
    threads: inline
    width: {{ min: 64, max: 64 }}
    queue: {{ limit: 10000 }}
    with: {{ origins: ["127.0.0.1:{origin}"], upgrades: 16 }}
"""

NGINX = """daemon off;
worker_processes 1;
pid {folder}/{name}.pid;
error_log {folder}/{name}.log crit;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  keepalive_requests 100000;
  client_body_temp_path {folder}/{name}-body;
  proxy_temp_path {folder}/{name}-proxy;
  fastcgi_temp_path {folder}/{name}-fastcgi;
  uwsgi_temp_path {folder}/{name}-uwsgi;
  scgi_temp_path {folder}/{name}-scgi;
  proxy_ignore_client_abort on;
  large_client_header_buffers 4 64k;
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ {what} }} }}
}}
"""

HAPROXY = """global
  maxconn 4096
defaults
  mode http
  timeout connect 5s
  timeout client 20s
  timeout server 20s
  option http-buffer-request
frontend web
  bind 127.0.0.1:{port}
  default_backend origin
backend origin
  server s 127.0.0.1:{origin}
"""

# Origins that show what they saw: each logs a line "METHOD TARGET STATUS for=X-FORWARDED-FOR" and redirects to /seen and
# the target. All but nginx are as lenient as they can be.
NGINX_ECHO = """daemon off;
worker_processes 1;
pid {folder}/{name}.pid;
error_log {folder}/{name}.err crit;
events {{ worker_connections 4096; }}
http {{
  log_format seen escape=json '$request_method $request_uri $status for=$http_x_forwarded_for';
  access_log {folder}/{name}.seen seen;
  keepalive_requests 1000000;
  ignore_invalid_headers off;
  underscores_in_headers on;
  merge_slashes off;
  large_client_header_buffers 4 64k;
  client_body_temp_path {folder}/{name}-body;
  proxy_temp_path {folder}/{name}-proxy;
  fastcgi_temp_path {folder}/{name}-fastcgi;
  uwsgi_temp_path {folder}/{name}-uwsgi;
  scgi_temp_path {folder}/{name}-scgi;
  server {{ listen 127.0.0.1:{port} backlog=4096; location / {{ return 302 /seen$request_uri; }} }}
}}
"""

APACHE_ECHO = """ServerRoot {folder}
ServerName t
Listen 127.0.0.1:{port}
PidFile {folder}/{name}.pid
ErrorLog {folder}/{name}.err
LogLevel crit
LoadModule mpm_event_module {modules}/mod_mpm_event.so
LoadModule authz_core_module {modules}/mod_authz_core.so
LoadModule rewrite_module {modules}/mod_rewrite.so
HttpProtocolOptions Unsafe
AllowEncodedSlashes NoDecode
MergeSlashes Off
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 60
ServerLimit 1
ThreadsPerChild 200
ThreadLimit 200
MaxRequestWorkers 200
DocumentRoot {folder}
LogFormat "%m %U%q %>s for=%{{X-Forwarded-For}}i" seen
CustomLog {folder}/{name}.seen seen
RewriteEngine On
RewriteRule ^ /seen%{{REQUEST_URI}} [R=302,L,NE]
"""

LIGHTTPD_ECHO = """server.document-root = "{folder}"
server.bind = "127.0.0.1"
server.port = {port}
server.modules = ( "mod_redirect", "mod_accesslog" )
server.errorlog = "{folder}/{name}.err"
server.upload-dirs = ( "{folder}" )
server.max-keep-alive-requests = 1000000
server.max-keep-alive-idle = 60
server.max-fds = 4096
server.http-parseopts = ( "header-strict" => "disable", "host-strict" => "disable", "host-normalize" => "disable",
  "url-normalize" => "disable", "method-get-body" => "enable" )
accesslog.filename = "{folder}/{name}.seen"
accesslog.format = "%m %U%q %s for=%{{X-Forwarded-For}}i"
url.redirect-code = 302
url.redirect = ( "^(.*)$" => "/seen$1" )
"""

LIGHTTPD = """server.document-root = "{folder}"
server.bind = "127.0.0.1"
server.port = {port}
server.modules = ( "mod_proxy" )
server.errorlog = "{folder}/lighttpd.log"
server.upload-dirs = ( "{folder}" )
server.max-keep-alive-requests = 1000
server.max-fds = 4096
proxy.server = ( "" => ( ( "host" => "127.0.0.1", "port" => {origin} ) ) )
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def find(program):
    path = shutil.which(program, path=os.environ.get("PATH", "") + ":/usr/sbin:/usr/local/sbin")
    if not path:
        raise SystemExit("%s is not installed: scripts/test installs it" % program)
    return path


class Servers:
    """Use as `with Servers(weir) as servers:`. Then servers.port["weir"] and servers.log(name) work."""

    def __init__(self, weir):
        self.weir = os.path.abspath(weir)
        self.folder = tempfile.mkdtemp(prefix="weir-conformance-")
        os.chmod(self.folder, 0o755)
        self.port = {}
        self.processes = {}

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes.values():
            process.send_signal(signal.SIGTERM)
        for process in self.processes.values():
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def log(self, name):
        with open(os.path.join(self.folder, name + ".out"), errors="replace") as f:
            return f.read()

    def start(self, name, command, text, port):
        path = os.path.join(self.folder, name + ".conf")
        with open(path, "w") as f:
            f.write(text)
        with open(os.path.join(self.folder, name + ".out"), "w") as out:
            self.processes[name] = subprocess.Popen(
                [part.replace("CONF", path) for part in command], stdin=subprocess.DEVNULL,
                stdout=out, stderr=out, cwd=self.folder)
        self.port[name] = port
        self.await_port(name)

    def await_port(self, name):
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.processes[name].poll() is None:
            try:
                socket.create_connection(("127.0.0.1", self.port[name]), 1).close()
                return
            except OSError:
                time.sleep(0.02)
        raise SystemExit("%s does not listen:\n%s" % (name, self.log(name)))

    def await_said(self, name, pattern):
        """Waits until server `name` has printed a match of `pattern`, and returns the match.

        A server may print after it has begun to listen.
        """
        end = time.monotonic() + START_S
        while time.monotonic() < end and self.processes[name].poll() is None:
            if found := re.search(pattern, self.log(name)):
                return found
            time.sleep(0.02)
        raise SystemExit("%s did not print %s:\n%s" % (name, pattern, self.log(name)))

    def start_weir(self, knobs="", answer=ECHO):
        port = free_port()
        self.start("weir", [self.weir, "run", "CONF"], WEIR.format(port=port, knobs=knobs, answer=answer), port)

    def start_nginx(self, name, what):
        port = free_port()
        self.start(name, [find("nginx"), "-p", self.folder, "-c", "CONF"],
                   NGINX.format(folder=self.folder, name=name, port=port, what=what), port)

    def start_peers(self):
        self.start_nginx("origin", 'return 200 "seen\\n$request_method $request_uri\\n";')
        origin, port = self.port["origin"], free_port()
        self.start_nginx("nginx", "proxy_pass http://127.0.0.1:%d;" % origin)
        self.start("haproxy", [find("haproxy"), "-db", "-f", "CONF"],
                   HAPROXY.format(port=port, origin=origin), port)
        port = free_port()
        self.start("lighttpd", [find("lighttpd"), "-D", "-f", "CONF"],
                   LIGHTTPD.format(folder=self.folder, port=port, origin=origin), port)

    def start_echo_origins(self):
        port = free_port()
        self.start("nginx", [find("nginx"), "-p", self.folder, "-c", "CONF"],
                   NGINX_ECHO.format(folder=self.folder, name="nginx", port=port), port)
        port = free_port()
        self.start("apache", [find("apache2"), "-X", "-f", "CONF"],
                   APACHE_ECHO.format(folder=self.folder, name="apache", port=port, modules=APACHE_MODULES), port)
        port = free_port()
        self.start("lighttpd", [find("lighttpd"), "-D", "-f", "CONF"],
                   LIGHTTPD_ECHO.format(folder=self.folder, name="lighttpd", port=port), port)
        port = free_port()
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "echo_origin.mjs")
        self.start("node", [find("node"), "--insecure-http-parser", script, str(port)], "", port)

    def origin_log(self, name):
        """What an origin of start_echo_origins has logged, all of it."""
        if name == "node":
            return self.log(name)
        if name == "lighttpd":  # it buffers its log
            self.processes[name].send_signal(signal.SIGTERM)
            self.processes[name].wait(10)
        with open(os.path.join(self.folder, name + ".seen"), errors="replace") as f:
            return f.read()

    def start_weir_proxy(self, origins):
        """Starts weir with a server for each of `origins`, {name: port}. Returns {name: weir's port}."""
        ports = {name: free_port() for name in origins}
        text = HEAD + "".join(PROXY.format(name=name, port=ports[name], origin=origin)
                              for name, origin in origins.items())
        self.start("weir", [self.weir, "run", "CONF"], text, next(iter(ports.values())))
        for self.port["weir"] in ports.values():
            self.await_port("weir")
        return ports
