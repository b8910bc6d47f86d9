#!/bin/sh
# The last step of the image. On a node without a shell the node's /etc, /var and /run are mounted over the image's, so nothing that the tools need may be there.
set -eu
# Debian's alternatives are links through /etc: iptables, awk, arptables, …
for link in /bin/* /sbin/* /usr/bin/* /usr/sbin/* /usr/lib/*; do
  case $(readlink "$link" 2>/dev/null) in
    /etc/alternatives/*) ln -sfn "$(readlink -f "$link")" "$link" ;;
  esac
done
# the dynamic linker finds libraries in their usual places without its cache in /etc
for tool in ip iptables-save nft conntrack bpftool ethtool ss; do
  command -v "$tool" >/dev/null || { echo "the image has no $tool" >&2; exit 1; }
done
rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/*
