#!/bin/bash
# The first and only program of a user-mode kernel: makes the kernel ready and runs tests; the file system is the host's,
# read-only. Runs as PID 1; NODE, BUNDLE and FOLDER come from the kernel's command line.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin:${NODE%/*} HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
# Nothing is laid over /tmp: the repository may be there.
mount -t tmpfs tmpfs /run
mkdir /run/tmp
export TMPDIR=/run/tmp
mount --bind /usr/lib/uml/modules /lib/modules
trap 'busybox poweroff -f' EXIT
# What the kernel has to say would stand between the lines of the tests.
echo 1 > /proc/sys/kernel/printk
modprobe -a ipv6 ip_vs nf_conntrack_netlink br_netfilter
ip link set lo up
# This kernel has no nf_tables: iptables must speak to the old tables.
mkdir /run/bin
for tool in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
  ln -s "$(command -v xtables-legacy-multi)" /run/bin/$tool
done
export PATH=/run/bin:$PATH
cd "$FOLDER" && "$NODE" "$BUNDLE"
