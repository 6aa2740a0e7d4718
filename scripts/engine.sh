#!/usr/bin/env bash
# A Docker engine for CI: the one that answers, else one of this script's own.
#
#   scripts/engine.sh start FOLDER   installs what is missing (Debian's docker.io and docker-compose, as root), starts
#                                    dockerd if no engine answers; its output is FOLDER/dockerd.log
#   scripts/engine.sh stop FOLDER    ends the engine that `start` started; one that was there before goes on
#
# ENGINE_RUN is the folder of the engine's socket and pid file (/var/run); ENGINE_OPTIONS are more options for dockerd.
set -euo pipefail

readonly run=${ENGINE_RUN:-/var/run}
readonly address=unix://$run/docker.sock containerd_pid=$run/docker/containerd/containerd.pid
readonly start_deadline_s=60 stop_deadline_s=30

usage() { echo "usage: scripts/engine.sh start|stop FOLDER" >&2 && exit 2; }
[ $# -eq 2 ] || usage
readonly verb=$1 folder=$2
readonly started=$folder/dockerd.started log=$folder/dockerd.log

say() { printf 'engine: %s\n' "$*" >&2; }
die() { say "$*" && exit 5; }

# Asks the socket itself: the docker command may not be installed yet.
answers() {
  python3 - "${DOCKER_HOST:-$address}" <<'PYTHON' 2>/dev/null
import http.client, socket, sys, urllib.parse
place = urllib.parse.urlsplit(sys.argv[1])
if place.scheme == "unix":
    connection = http.client.HTTPConnection("docker", timeout=5)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(5)
    connection.sock.connect(place.path)
else:
    connection = http.client.HTTPConnection(place.netloc, timeout=5)
connection.request("GET", "/_ping")
sys.exit(connection.getresponse().status != 200)
PYTHON
}

# Name, state and start time of a process: proc_pid_stat(5). The name is in brackets and may hold blanks.
stat_of() { cat "/proc/$1/stat" 2>/dev/null || true; }
state_of() { stat_of "$1" | sed 's/.*) //' | cut -d' ' -f1; }
start_of() { stat_of "$1" | sed 's/.*) //' | cut -d' ' -f20; }

is_alive() { [ -d "/proc/$1" ] && [[ $(state_of "$1") != [ZX] ]]; }

# Whether a pid file names a living process of this name. A killed engine's pid may be another process's by now, or that
# of a zombie, and both keep dockerd from starting.
is_running() {
  local pid
  pid=$(cat "$2" 2>/dev/null) && [[ $pid =~ ^[0-9]+$ ]] || return 1
  [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = "$1" ] && is_alive "$pid"
}

# Run a command until it succeeds: seconds, the process without which there is no hope (or none), the command.
wait_for() {
  local deadline=$((SECONDS + $1)) pid=$2
  shift 2
  until "$@"; do
    [ $SECONDS -lt $deadline ] || return 1
    [ -z "$pid" ] || is_alive "$pid" || return 1
    sleep 0.2
  done
}

install_missing() {
  local packages=()
  command -v dockerd >/dev/null || answers || packages+=(docker.io iptables)
  command -v docker-compose >/dev/null || docker compose version >/dev/null 2>&1 || packages+=(docker-compose)
  [ ${#packages[@]} -gt 0 ] || return 0
  say "installing ${packages[*]}"
  # RUNLEVEL=1: the package starts no service of its own where there is no systemd.
  RUNLEVEL=1 DEBIAN_FRONTEND=noninteractive apt-get -q -o DPkg::Lock::Timeout=120 install -y --no-install-recommends \
    "${packages[@]}" >&2 || die "apt-get could not install ${packages[*]}"
}

remove_stale() {
  if is_running dockerd "$run/docker.pid"; then
    say "a dockerd runs that does not answer yet: process $(cat "$run/docker.pid")"
    wait_for $start_deadline_s "" answers ||
      die "it does not answer within $start_deadline_s s; end it, or mend it"
    return 1
  fi
  is_running containerd "$containerd_pid" || rm -f "$containerd_pid"
  rm -f "$run/docker.pid" "$run/docker.sock"
}

start() {
  mkdir -p "$folder"
  install_missing
  if answers; then
    say "one answers at ${DOCKER_HOST:-$address}"
    return
  fi
  [ -z "${DOCKER_HOST:-}" ] || [ "$DOCKER_HOST" = "$address" ] || die "none answers at DOCKER_HOST=$DOCKER_HOST"
  [ "$(id -u)" -eq 0 ] || die "none answers at $address, and only root can start one"
  remove_stale || return 0
  local options=()
  [ "$run" = /var/run ] || options+=(--host "$address" --pidfile "$run/docker.pid" --exec-root "$run/docker")
  # shellcheck disable=SC2206 # options are words
  options+=(${ENGINE_OPTIONS:-})
  setsid dockerd "${options[@]}" >"$log" 2>&1 </dev/null &
  local pid=$!
  echo "$pid $(start_of $pid)" >"$started"
  if ! wait_for $start_deadline_s $pid answers; then
    tail -n 15 "$log" >&2
    stop
    die "dockerd did not answer within $start_deadline_s s, or ended; its last words are above"
  fi
  say "started dockerd, process $pid"
}

has_ended() { [ "$(start_of "$1")" != "$2" ] || ! is_alive "$1"; }

stop() {
  [ -f "$started" ] || return 0
  local pid since
  read -r pid since <"$started"
  rm -f "$started"
  if ! has_ended "$pid" "$since"; then
    kill -TERM "$pid"
    # It stops its containers, then its containerd.
    if ! wait_for $stop_deadline_s "" has_ended "$pid" "$since"; then
      say "dockerd does not end by itself; killing it"
      kill -KILL "$pid" 2>/dev/null || true
      wait_for $stop_deadline_s "" has_ended "$pid" "$since" || true
    fi
  fi
  # The containerd of an engine that was killed goes on by itself.
  if ! is_running dockerd "$run/docker.pid" && is_running containerd "$containerd_pid"; then
    kill -TERM "$(cat "$containerd_pid")" 2>/dev/null || true
  fi
}

case $verb in
  start) start ;;
  stop) stop ;;
  *) usage ;;
esac
