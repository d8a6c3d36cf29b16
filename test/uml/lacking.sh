#!/bin/bash
# The first and only program of a user-mode kernel that lacks what a mode needs: runs the daemon on it and prints what
# came of it. ROOT, from the kernel's command line, is this repository.
. "${0%/*}/start.sh" ipv6 nf_conntrack_netlink nf_tables

daemon() { # MODE
  cat >/run/config.json <<CONFIG
{ "apiVersion": "kubeproxy.config.k8s.io/v1alpha1", "kind": "KubeProxyConfiguration", "mode": "$1",
  "hostnameOverride": "node-a", "conntrack": { "maxPerCore": 0 },
  "iptables": { "syncPeriod": "2s", "minSyncPeriod": "10ms" } }
CONFIG
  exec "$ROOT/bin/turnout" run --source="files:$ROOT/test/uml/lacking.yaml" --config=/run/config.json
}

# A module replaced by /dev/null cannot be loaded.
hide() { for file in $(find /lib/modules/ -name "$1.ko"); do mount --bind /dev/null "$file"; done; }
show() { for file in $(find /lib/modules/ -name "$1.ko"); do umount "$file"; done; }

ask() { # PORT PATH
  exec 3<>"/dev/tcp/127.0.0.1/$1" || return
  printf 'GET %s HTTP/1.0\r\n\r\n' "$2" >&3
  cat <&3
  exec 3>&-
}

lacking() { # MODULE METRIC-TO-WAIT-FOR HEALTH-TO-WAIT-FOR
  echo "== iptables without $1"
  hide "$1"
  daemon iptables >/run/log 2>&1 &
  for _ in {1..120}; do
    ask 10249 /metrics 2>/dev/null | grep -Eq "$2" && break
    sleep 0.5
  done
  # Health allows two periods for what waits.
  for _ in {1..120}; do
    ask 10256 /healthz >/run/health
    tr -d '\r\n' </run/health | grep -q "$3" && break
    sleep 0.5
  done
  cat /run/health
  echo
  ask 10249 /metrics | grep -E '^(kubeproxy_sync_proxy_rules_iptables_restore_failures_total|turnout_refused_objects)'
  iptables-save -t nat | grep 172.30.
  grep '^E' /run/log
  kill %1
  wait %1
  show "$1"
}

echo "== nftables"
(daemon nftables) 2>&1
echo "exit code $?"
lacking xt_comment 'iptables_restore_failures_total.ip_family="IPv6". ([2-9]|[1-9][0-9])' '503.*"failing","family":"IPv4"'
lacking xt_recent 'last_timestamp_seconds.ip_family="IPv6"' '200.*"refused","family":"IPv4"'
echo "== end"
