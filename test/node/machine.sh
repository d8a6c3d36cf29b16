#!/bin/sh
# The first process of a node: gives it a file system and mounts of its own, then runs containerd and the kubelet.
# Runs in new mount, PID and UTS namespaces and in the node's network namespace: machine.sh NAME FOLDER KUBELET
set -eu
name=$1 folder=$2 kubelet=$3

hostname "$name"
mount --make-rprivate /
mkdir -p "$folder/root" "$folder/upper" "$folder/work" "$folder/containerd" "$folder/kubelet"
# What the node writes stays in its folder: the machine's own files are only read.
mount -t overlay overlay -o "lowerdir=/,upperdir=$folder/upper,workdir=$folder/work" "$folder/root"
cd "$folder/root"
mkdir -p var/lib/containerd var/lib/kubelet etc/cni opt/cni etc/containerd node old
mount --rbind /dev dev
mount --rbind /sys sys
mount -t proc proc proc
mount -t tmpfs tmpfs run
mount -t tmpfs tmpfs tmp
mount --bind "$folder" node
# An overlay cannot be the upper folder of another one.
mount --bind "$folder/containerd" var/lib/containerd
mount --bind "$folder/kubelet" var/lib/kubelet
# The kubelet sets these where they differ, for the whole machine. It reads the value it wants, and writes nothing.
printed() { printf '%s\n' "$2" >"$folder/$3" && mount --bind "$folder/$3" "$1"; }
printed proc/sys/vm/overcommit_memory 1 overcommit
printed proc/sys/vm/panic_on_oom 0 oom
printed proc/sys/kernel/panic 10 panic
printed proc/sys/kernel/panic_on_oops 1 oops
printed proc/sys/kernel/keys/root_maxkeys 1000000 maxkeys
printed proc/sys/kernel/keys/root_maxbytes 25000000 maxbytes
pivot_root . old
umount -l /old
mount --make-rshared /

containerd --config=/node/containerd.toml >>/node/containerd.log 2>&1 &
until ctr version >/dev/null 2>&1; do sleep 0.2; done
for image in /node/images/*; do ctr -n k8s.io images import "$image" >>/node/images.log 2>&1; done
# shellcheck disable=SC2046 # one argument per line, none with blanks
"$kubelet" $(cat /node/kubelet.args) >>/node/kubelet.log 2>&1 &
# The first process also collects what containers leave behind.
wait
