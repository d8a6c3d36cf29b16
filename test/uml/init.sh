#!/bin/bash
# The first and only program of a user-mode kernel with IPVS: runs tests. NODE, BUNDLE and FOLDER come from the kernel's
# command line.
. "${0%/*}/start.sh" ipv6 ip_vs nf_conntrack_netlink br_netfilter
PATH=$PATH:${NODE%/*}
cd "$FOLDER" && "$NODE" "$BUNDLE"
