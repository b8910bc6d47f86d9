/**
 * Names that the kernel, systemd and firmware give to network cards (eth0, eno1, ens5, enp3s0, enP2p1s0, end0, em1, p2p1), as the source of a regular expression.
 * The veths of the VPC CNI begin with "eni", which is none of them. Source: systemd.net-naming-scheme(7), biosdevname(1).
 */
export const CARD = String.raw`eth\d|en(?:[opsxP]|d\d)|em\d|p\d{1,3}p\d`;
