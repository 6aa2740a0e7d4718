#!/bin/sh
# What an engineer would type instead of the lab: client, router and server as named namespaces, two links between them.
#
#   by_hand.sh up|down      inside a mount namespace with a /run of its own, and root there
#
# Kept as quick as iproute2 allows: one process per batch, one process for all sysctls of a namespace.
set -eu

every_node="net.ipv4.ip_unprivileged_port_start=0
  net.ipv4.conf.all.rp_filter=0 net.ipv4.conf.default.rp_filter=0
  net.ipv4.conf.all.accept_redirects=0 net.ipv4.conf.default.accept_redirects=0
  net.ipv6.conf.all.disable_ipv6=0 net.ipv6.conf.default.disable_ipv6=0
  net.ipv6.conf.default.accept_dad=0 net.ipv6.conf.default.dad_transmits=0
  net.ipv6.conf.default.accept_ra=0 net.ipv6.conf.default.autoconf=0
  net.ipv6.conf.default.router_solicitations=0 net.ipv6.conf.default.accept_redirects=0"
forwarding="net.ipv4.ip_forward=1
  net.ipv4.conf.all.send_redirects=0 net.ipv4.conf.default.send_redirects=0
  net.ipv6.conf.all.forwarding=1"

if [ "$1" = down ]; then
  exec ip -batch - <<EOF
netns del client
netns del router
netns del server
EOF
fi

ip -batch - <<EOF
netns add client
netns add router
netns add server
EOF
# "default" is what interfaces that come later start with.
ip netns exec client sysctl -q -w $every_node
ip netns exec router sysctl -q -w $every_node $forwarding
ip netns exec server sysctl -q -w $every_node
ip -n router -batch - <<EOF
link add left type veth peer name left netns client
link add right type veth peer name right netns server
EOF
ip netns exec client ethtool -K left tso off gso off gro off
ip netns exec router sh -c 'ethtool -K left tso off gso off gro off; ethtool -K right tso off gso off gro off'
ip netns exec server ethtool -K right tso off gso off gro off
ip -n router -batch - <<EOF
link set lo up
addr add 192.0.2.1/24 dev left
addr add 2001:db8:1::1/64 dev left nodad
link set left up
addr add 198.51.100.1/24 dev right
addr add 2001:db8:2::1/64 dev right nodad
link set right up
EOF
ip -n client -batch - <<EOF
link set lo up
addr add 192.0.2.10/24 dev left
addr add 2001:db8:1::10/64 dev left nodad
link set left up
route add default via 192.0.2.1
route add default via 2001:db8:1::1
EOF
ip -n server -batch - <<EOF
link set lo up
addr add 198.51.100.20/24 dev right
addr add 2001:db8:2::20/64 dev right nodad
link set right up
route add default via 198.51.100.1
route add default via 2001:db8:2::1
EOF
