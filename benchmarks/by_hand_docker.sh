#!/bin/sh
# What an engineer would type instead of the lab: a testbed's networks and containers by the engine's command line.
#
#   by_hand_docker.sh up|down NAME IMAGE FOLDER [CLIENT-IMAGE SERVER-IMAGE]
#
# The same containers with the same options, side containers included, and as quick as the command line allows: each
# starts as soon as what it needs is there. The nodes sleep: no routes, no names, no offloads, and nothing waits for an
# answer, or removes what is left after a crash.
set -eu
name=$2 image=$3 folder=$4 client_image=${5-} server_image=${6-}

# Waits for what was started in the background, and fails where one of it failed.
each() { for job in "$@"; do wait "$job"; done; }

network() { # SIDE
  docker network create --ipv6 --subnet "fd00:$(od -An -N6 -tx2 /dev/urandom | sed 's/^ //; y/ /:/')::/64" \
    --label dev.blackhole-lab.by-hand=1 "$name-$1"
}

# Options without which a side container is another one.
common="-d --label dev.blackhole-lab.by-hand=1 --mount type=bind,source=$folder,target=/run/lab --entrypoint sleep"

node() { # NODE SIDE SYSCTL...
  node=$1 side=$2
  shift 2
  for setting in net.ipv4.ip_unprivileged_port_start=0 net.ipv4.conf.all.rp_filter=0 \
    net.ipv4.conf.all.accept_redirects=0 net.ipv4.conf.default.accept_redirects=0 \
    net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.accept_ra=0 net.ipv6.conf.default.autoconf=0 \
    net.ipv6.conf.default.router_solicitations=0 net.ipv6.conf.default.accept_redirects=0; do
    set -- "$@" --sysctl "$setting"
  done
  docker run $common --name "$name-$node" --hostname "$node" --network "$name-$side" \
    --mount "type=bind,source=$PWD,target=$PWD,readonly" \
    --cap-add NET_ADMIN --cap-add NET_RAW --cap-add SYS_PTRACE --cap-add SYS_NICE "$@" "$image" infinity
}

end() { # NODE SIDE PROGRAM-IMAGE
  node "$1" "$2" --sysctl net.ipv4.ip_forward=0 --sysctl net.ipv6.conf.all.forwarding=0
  [ -n "$3" ] || return 0
  docker run -d -i --label dev.blackhole-lab.by-hand=1 --name "$name-$1-program" --network "container:$name-$1" \
    --entrypoint sleep "$3" infinity
  # What reads the options of the program's sockets for the lab.
  docker run $common --name "$name-$1-inspector" --network "container:$name-$1" --pid "container:$name-$1-program" \
    --cap-drop ALL --cap-add SYS_PTRACE --cap-add DAC_READ_SEARCH "$image" infinity
}

up() {
  network left & left=$!
  network right & right=$!
  wait "$left"
  end client left "$client_image" & client=$!
  node router left --sysctl net.ipv4.ip_forward=1 --sysctl net.ipv6.conf.all.forwarding=1 \
    --sysctl net.ipv4.conf.all.send_redirects=0 --sysctl net.ipv4.conf.default.send_redirects=0 & router=$!
  wait "$right"
  end server right "$server_image" & server=$!
  wait "$router"
  docker network connect "$name-right" "$name-router"
  each "$client" "$server"
}

down() {
  jobs=
  for node in client router server ${client_image:+client-program client-inspector} \
    ${server_image:+server-program server-inspector}; do
    docker rm --force --volumes "$name-$node" & jobs="$jobs $!"
  done
  each $jobs
  docker network rm "$name-left" "$name-right"
}

"$1" >/dev/null
