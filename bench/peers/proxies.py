# SPDX-License-Identifier: MIT
"""The proxies of ./proxy: the configuration of each, with one thread or worker, and the origin.

Every proxy keeps its connections to the clients and to the origin open, names the client to the origin
in X-Forwarded-For, and writes no access log. A buffer holds a whole answer.
"""
import measure
import servers

BYTES = {"1k": 1024, "16k": 16384}


def nginx(origin, port, d, build):
    (d / "tmp").mkdir(exist_ok=True)
    (d / "tmp").chmod(0o777)
    temp = " ".join(f"{x}_temp_path {d}/tmp;" for x in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf = servers.write(d / "nginx.conf", f"""
worker_processes 1; daemon off; pid {d}/nginx.pid; error_log {d}/nginx.log crit; worker_rlimit_nofile 20000;
events {{ worker_connections 15000; multi_accept on; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 600s; tcp_nodelay on; {temp}
  upstream app {{ server 127.0.0.1:{origin}; keepalive 2048; keepalive_requests 100000000; keepalive_timeout 600s; }}
  server {{
    listen 127.0.0.1:{port} backlog=4096;
    location / {{
      proxy_pass http://app; proxy_http_version 1.1; proxy_buffer_size 32k; proxy_buffers 8 32k; proxy_busy_buffers_size 64k;
      proxy_set_header Connection ""; proxy_set_header Host $http_host;
      proxy_set_header X-Forwarded-For $proxy_add_x_forwarded_for; proxy_set_header X-Forwarded-Proto $scheme;
    }}
  }}
}}
""")
    return ["nginx", "-e", d / "nginx.log", "-c", conf]


def haproxy(origin, port, d, build):
    conf = servers.write(d / "haproxy.cfg", f"""
global
  nbthread 1
  maxconn 9900
  tune.bufsize 32768
defaults
  mode http
  option forwardfor
  option http-keep-alive
  http-reuse always
  timeout client 600s
  timeout server 600s
  timeout connect 5s
  timeout http-keep-alive 600s
frontend door
  bind 127.0.0.1:{port} backlog 4096
  default_backend app
backend app
  server app 127.0.0.1:{origin} pool-max-conn -1 pool-purge-delay 600s
""")
    return ["haproxy", "-db", "-q", "-f", conf]


def weir(threads):
    def argv(origin, port, d, build):
        conf = servers.write(d / "weir.yaml", f"""weir: 1
name: peer
admin: {{ listen: "" }}
stages:
  web: {{ use: http.server, with: {{ listen: "127.0.0.1:{port}", threads: 1, max_connections: 15k, max_per_address: 0, backlog: 4096,
    idle_timeout: 10m, stream: 64KiB }}, to: {{ request: origin }} }}
  origin: {{ use: http.client, threads: {threads}, width: {{ min: 4, max: 2048 }}, slo: 2s,
    with: {{ origins: ["127.0.0.1:{origin}"], max_connections: 2048, idle: 10m }} }}
""")
        return [build / "weir", "run", conf]
    return argv


# name: (program, Debian packages, function that builds the command)
ALL = {
    "weir": (None, [], weir("inline")),
    "weir_pool": (None, [], weir("{ min: 1, max: 1 }")),
    "nginx": ("nginx", ["nginx-light"], nginx),
    "haproxy": ("haproxy", ["haproxy"], haproxy),
}


BEFORE = {}


def add_before(build):
    """Adds the proxy weir_before, which is weir of another build."""
    BEFORE["weir_before"] = build
    ALL["weir_before"] = ALL["weir"]


def build_of(name, build):
    return BEFORE.get(name, build)


def start_origin(row, build, folder):
    """The server behind the proxies: `bare_epoll`, which sends the same bytes to every request. It shares
    the core of the load."""
    port = measure.free_port()
    argv = [build / "bench/bare_epoll", str(port), str(BYTES[row.rsplit("-", 1)[0]])]
    return measure.Server("origin", argv, port, folder, core=measure.cores()[1][0])


def start(name, origin, build, folder):
    """Starts proxy `name` in front of `origin`; returns the measure.Server."""
    port = measure.free_port()
    return measure.Server(name, ALL[name][2](origin.port, port, folder, build_of(name, build)), port, folder)
