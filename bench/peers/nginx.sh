# SPDX-License-Identifier: MIT
# shellcheck shell=bash disable=SC2034,SC2154
# Functions shared by the three nginx peers: one worker and one configuration, into which each peer
# inserts its limits. Every path to which nginx can write is in the scratch folder.
# shellcheck source=bench/peers/lib.sh
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
packages=(nginx-light) program=nginx proxy=yes
version() { nginx -v; }

location() {
	case $work in
	hello) printf '%s\n' 'return 200 "hello\n";' ;;
	file) echo "root $dir/www; try_files /file =404;" ;;
	*) echo 'proxy_pass http://origin; proxy_http_version 1.1; proxy_set_header Connection "";' ;;
	esac
}

# nginx_config ZONE USE: directives of the http block and of the location.
nginx_config() {
	make_files
	mkdir -p "$dir/tmp"
	chmod 777 "$dir/tmp"
	cat >"$dir/nginx.conf" <<-END
		worker_processes 1; daemon off; pid $dir/nginx.pid; error_log $dir/nginx.log crit; worker_rlimit_nofile 20000;
		events { worker_connections 9000; multi_accept on; }
		http {
		  access_log off; keepalive_requests 100000000; keepalive_timeout 60s; tcp_nodelay on; sendfile on; default_type text/plain;
		  open_file_cache max=100 inactive=60s;
		  client_body_temp_path $dir/tmp; proxy_temp_path $dir/tmp; fastcgi_temp_path $dir/tmp; uwsgi_temp_path $dir/tmp; scgi_temp_path $dir/tmp;
		  upstream origin { server 127.0.0.1:${origin_port:-9} max_fails=0 max_conns=${set[conns]:-0}; keepalive 512; keepalive_requests 100000000; }
		  $1
		  server {
		    listen 127.0.0.1:$port backlog=4096;
		    error_page 502 504 =503 /refused;
		    location = /refused { internal; return 503; }
		    location / { $2 $(location) }
		  }
		}
	END
}
serve() { exec nginx -e "$dir/nginx.log" -c "$dir/nginx.conf"; }
