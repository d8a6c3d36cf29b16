# Sourced by the first and only program of a user-mode kernel, with the modules it wants: makes the kernel ready. The file
# system is the host's, read-only; nothing is laid over /tmp, since the repository may be there.
export PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t tmpfs tmpfs /run
mkdir /run/bin /run/tmp
export TMPDIR=/run/tmp
mount --bind /usr/lib/uml/modules /lib/modules
trap 'busybox poweroff -f' EXIT
# The kernel's messages would appear between the lines of the tests.
echo 1 > /proc/sys/kernel/printk
modprobe -a "$@"
ip link set lo up
# This kernel has nf_tables for no family: iptables must speak to the old tables.
for tool in iptables iptables-save iptables-restore ip6tables ip6tables-save ip6tables-restore; do
  ln -s "$(command -v xtables-legacy-multi)" /run/bin/$tool
done
PATH=/run/bin:$PATH
