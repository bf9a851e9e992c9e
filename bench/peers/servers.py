# SPDX-License-Identifier: MIT
"""The servers of ./requests: the best configuration of each, with one thread or worker, and its start.

Every server keeps connections open, writes no access log and listens on 127.0.0.1. `row` is a row of
./requests.
"""
import pathlib
import shutil
import subprocess

import measure

BYTES = {"1k": 1024, "16k": 16384, "64k": 1 << 16, "256k": 1 << 18, "1m": 1 << 20}
# All servers use the same version of TLS, since in TLS 1.2 a client's first request must wait for
# the server's last handshake message, but not in 1.3. nginx enables 1.3 by default only since
# 1.23.4.
TLS_VERSION = "TLSv1.3"
MODULES = "/usr/lib/apache2/modules"


def what(row):
    return row.rsplit("-", 1)[0]


def is_file(row):
    return what(row) in BYTES


def write(path, text):
    path.write_text(text)
    return path


def nginx(row, port, d, build, extra=""):
    tls = f"ssl_protocols TLSv1.2 TLSv1.3; ssl_certificate {d}/cert.pem; ssl_certificate_key {d}/key.pem;" if what(row) == "tls" else ""
    answer = f"root {d}/www; try_files /file =404;" if is_file(row) else 'return 200 "hello\\n";'
    (d / "tmp").mkdir(exist_ok=True)
    (d / "tmp").chmod(0o777)
    temp = " ".join(f"{x}_temp_path {d}/tmp;" for x in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi"))
    conf = write(d / "nginx.conf", f"""
worker_processes 1; daemon off; pid {d}/nginx.pid; error_log {d}/nginx.log crit; worker_rlimit_nofile 20000;
events {{ worker_connections 15000; multi_accept on; }}
http {{
  access_log off; keepalive_requests 100000000; keepalive_timeout 600s; tcp_nodelay on; sendfile on;
  default_type text/plain; {extra} {temp}
  server {{ listen 127.0.0.1:{port} {'ssl' if tls else ''} backlog=4096; {tls} location / {{ {answer} }} }}
}}
""")
    return ["nginx", "-e", d / "nginx.log", "-c", conf]


def nginx_cache(row, port, d, build):
    return nginx(row, port, d, build, "open_file_cache max=100 inactive=600s; open_file_cache_valid 600s;")


def haproxy(row, port, d, build):
    answer = f"file {d}/www/file" if is_file(row) else 'string "hello\\n"'
    tls = f" ssl crt {d}/both.pem" if what(row) == "tls" else ""
    conf = write(d / "haproxy.cfg", f"""
global
  nbthread 1
  maxconn 9900
  tune.bufsize {max(16384, BYTES.get(what(row), 0) + 4096)}
defaults
  mode http
  timeout client 600s
  timeout server 600s
  timeout connect 5s
  timeout http-keep-alive 600s
frontend door
  bind 127.0.0.1:{port} backlog 4096{tls}
  http-request return status 200 content-type text/plain {answer}
""")
    return ["haproxy", "-db", "-q", "-f", conf]


def h2o(row, port, d, build):
    tls = f"\n  ssl:\n    certificate-file: {d}/cert.pem\n    key-file: {d}/key.pem" if what(row) == "tls" else ""
    name = "file" if is_file(row) else "hello"
    conf = write(d / "h2o.conf", f"""
num-threads: 1
max-connections: 15000
http1-request-timeout: 600
listen:
  host: 127.0.0.1
  port: {port}{tls}
hosts:
  default:
    paths:
      "/":
        file.file: {d}/www/{name}
      "/file":
        file.file: {d}/www/{name}
""")
    return ["h2o", "-c", conf]


def lighttpd(row, port, d, build):
    name = "/file" if is_file(row) else "/hello"
    tls = f'ssl.engine = "enable"\nssl.pemfile = "{d}/both.pem"' if what(row) == "tls" else ""
    conf = write(d / "lighttpd.conf", f"""
server.modules = ( "mod_rewrite"{', "mod_openssl"' if tls else ''} )
server.document-root = "{d}/www"
server.bind = "127.0.0.1"
server.port = {port}
server.listen-backlog = 4096
server.max-fds = 20000
server.max-connections = 15000
server.max-keep-alive-requests = 100000000
server.max-keep-alive-idle = 600
server.errorlog = "{d}/lighttpd.log"
mimetype.assign = ( "" => "text/plain" )
url.rewrite-once = ( "" => "{name}" )
{tls}
""")
    return ["lighttpd", "-D", "-f", conf]


def apache(row, port, d, build):
    name = "file" if is_file(row) else "hello"
    tls = f"SSLEngine on\nSSLCertificateFile {d}/cert.pem\nSSLCertificateKeyFile {d}/key.pem" if what(row) == "tls" else ""
    ssl = f"LoadModule ssl_module {MODULES}/mod_ssl.so" if tls else ""
    conf = write(d / "apache.conf", f"""
LoadModule mpm_event_module {MODULES}/mod_mpm_event.so
LoadModule authz_core_module {MODULES}/mod_authz_core.so
LoadModule alias_module {MODULES}/mod_alias.so
{ssl}
User www-data
Group www-data
ServerName localhost
ServerRoot {d}
DefaultRuntimeDir {d}
PidFile {d}/apache.pid
Mutex pthread
ErrorLog {d}/apache.log
LogLevel crit
Listen 127.0.0.1:{port}
ListenBacklog 4096
ServerLimit 1
StartServers 1
ThreadLimit 128
ThreadsPerChild 128
MaxRequestWorkers 128
MinSpareThreads 1
MaxSpareThreads 128
AsyncRequestWorkerFactor 200
MaxConnectionsPerChild 0
KeepAlive On
MaxKeepAliveRequests 0
KeepAliveTimeout 600
DocumentRoot {d}/www
AliasMatch ^/ {d}/www/{name}
{tls}
""")
    return ["apache2", "-f", conf, "-DFOREGROUND"]


def bare(program):
    def argv(row, port, d, build):
        size = BYTES.get(what(row), 6)
        from_disk = is_file(row) and program != "bare_epoll"
        fresh = ["close"] if what(row) == "fresh" and program == "bare_epoll" else []
        return [build / "bench" / program, str(port), str(d / "www/file") if from_disk else str(size), *fresh]
    return argv


def weir(pool, grouped=False):
    """`pool`: number of threads of the stage that answers; None: it runs in the I/O thread. `grouped`:
    all stages are in a core group of one core, the source too."""
    where = "group: core" if grouped else f"threads: {{ min: {pool}, max: {pool} }}" if pool else "threads: inline"

    def argv(row, port, d, build):
        tls = f", tls: {{ cert: {d}/cert.pem, key: {d}/key.pem }}" if what(row) == "tls" else ""
        shake = ", handshake: shake" if tls else ""
        stages = (f"""
  cache: {{ use: file.cache, with: {{ root: {d}/www }}, {where}, to: {{ miss: disk }} }}
  disk: {{ use: file.read, with: {{ root: {d}/www }}, threads: {{ min: 1, max: 4 }} }}""" if is_file(row) else f"""
  answer: {{ use: respond, with: {{ body: "hello\\n" }}, {where} }}""")
        if tls:
            stages += "\n  shake: { use: tls.handshake, threads: { min: 1, max: 1 } }"
        conf = write(d / "weir.yaml", f"""weir: 1
name: peer
admin: {{ listen: "" }}
{'groups: { core: { schedule: fifo, cores: 1 } }' if grouped else ''}
stages:
  web: {{ use: http.server, {'group: core,' if grouped else ''} with: {{ listen: "127.0.0.1:{port}", {'' if grouped else 'threads: 1,'} max_connections: 15k, max_per_address: 0, backlog: 4096,
    idle_timeout: 10m{tls} }}, to: {{ request: {'cache' if is_file(row) else 'answer'}{shake} }} }}{stages}
""")
        return [build / "weir", "run", conf]
    return argv


# name: (program, Debian packages, function that builds the command, kinds of rows that it cannot
# serve)
ALL = {
    "bare": (None, [], bare("bare_epoll"), ["tls"]),
    "weir_inline": (None, [], weir(None), []),
    "weir_group": (None, [], weir(None, grouped=True), []),
    "weir": (None, [], weir(1), []),
    "nginx": ("nginx", ["nginx-light"], nginx, []),
    "nginx_cache": ("nginx", ["nginx-light"], nginx_cache, ["hello", "fresh", "tls", "idle"]),
    "haproxy": ("haproxy", ["haproxy"], haproxy, ["1m"]),
    "h2o": ("h2o", ["h2o"], h2o, []),
    "lighttpd": ("lighttpd", ["lighttpd", "lighttpd-mod-openssl"], lighttpd, []),
    "apache": ("apache2", ["apache2-bin"], apache, []),
    "microhttpd": (None, ["libmicrohttpd-dev"], bare("bare_mhd"), ["tls"]),
    "libevent": (None, ["libevent-dev"], bare("bare_event"), ["tls"]),
}
OWN = {"bare": "bare_epoll", "microhttpd": "bare_mhd", "libevent": "bare_event"}


def serves(name, row):
    return what(row) not in ALL[name][3]


def installed(known, names):
    """(names whose program is installed, {name: reason} for the others). `known` maps each name to
    (program, Debian packages, ...)."""
    there, not_there = [], {}
    for name in names:
        if name not in known:
            raise measure.Trouble(f"no server '{name}': " + ", ".join(known))
        program, packages = known[name][:2]
        if program and not shutil.which(program, path="/usr/sbin:/usr/bin:/sbin:/bin"):
            not_there[name] = f"apt-get install --no-install-recommends {' '.join(packages)}"
        else:
            there.append(name)
    return there, not_there


def available(names, build):
    """(names that can run, {name: reason} for the others)."""
    there, not_there = installed(ALL, names)
    for name in list(there):
        if name in OWN and not (build / "bench" / OWN[name]).exists():
            packages = ALL[name][1]
            not_there[name] = f"{OWN[name]} was not built" + (f": {' '.join(packages)}" if packages else "")
            there.remove(name)
    return there, not_there


def version(name, build):
    return version_of(ALL[name][0], name, build)


def version_of(program, name, build):
    if name.startswith("weir"):
        argv = [build / "weir", "--version"]
    elif program:
        argv = [program, "-V" if program == "lighttpd" else "-v"]
    else:
        package = {"microhttpd": "libmicrohttpd-dev", "libevent": "libevent-dev"}.get(name)
        if not package:
            return "epoll, recv and send"
        argv = ["dpkg-query", "-W", "-f", "${Package} ${Version}", package]
    done = subprocess.run(list(map(str, argv)), capture_output=True, text=True, check=False)
    return ((done.stdout + done.stderr).strip().splitlines() or ["unknown"])[0]


def make_certificate(d):
    if (d / "cert.pem").exists():
        return
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-days", "2", "-subj", "/CN=localhost", "-keyout", d / "key.pem", "-out", d / "cert.pem"],
                   check=True, capture_output=True)
    (d / "both.pem").write_text((d / "cert.pem").read_text() + (d / "key.pem").read_text())


def start(name, row, build, folder):
    """Starts server `name` for `row`; returns the measure.Server."""
    www = folder / "www"
    www.mkdir(exist_ok=True)
    www.chmod(0o755)
    (www / "hello").write_bytes(b"hello\n")
    (www / "file").write_bytes(b"x" * BYTES.get(what(row), 6))
    tls = what(row) == "tls"
    if tls:
        make_certificate(folder)
    port = measure.free_port()
    path = "/file" if is_file(row) else "/"
    server = measure.Server(name, ALL[name][2](row, port, folder, build), port, folder, tls=tls, path=path)
    if tls and server.tls_version != TLS_VERSION:
        server.stop()
        raise measure.Trouble(f"{name} uses {server.tls_version}; the comparison needs {TLS_VERSION}")
    return server
