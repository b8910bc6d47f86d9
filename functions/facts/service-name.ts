/**
 * Names that listings print for ports (`iptables -L` without `-n`, `nft -S`), as /etc/services of Debian, Red Hat and Alpine has them, of the ports that Kubernetes nodes
 * and their firewalls use.
 */
const PORTS: ReadonlyMap<string, number> = new Map(
  Object.entries({
    ssh: 22,
    smtp: 25,
    domain: 53,
    bootps: 67,
    bootpc: 68,
    http: 80,
    www: 80,
    sunrpc: 111,
    ntp: 123,
    snmp: 161,
    bgp: 179,
    https: 443,
    isakmp: 500,
    syslog: 514,
    nfs: 2049,
    "etcd-client": 2379,
    "etcd-server": 2380,
    mysql: 3306,
    "dhcpv6-client": 546,
    "dhcpv6-server": 547,
    "ipsec-nat-t": 4500,
    vxlan: 4789,
    mdns: 5353,
    postgresql: 5432,
    geneve: 6081,
    redis: 6379,
    "sun-sr-https": 6443,
    "http-alt": 8080,
    webcache: 8080,
    "pcsync-https": 8443,
    otv: 8472,
  }),
);

/** The port behind its name; undefined if the name is not known. */
export const portNamed = (name: string): number | undefined => PORTS.get(name);

/** Ports as a rule lists them (`domain`, `http,https`, `1024:nfs`), with numbers for the names that are known. */
export const numbered = (ports: string): string =>
  /^[\d,:-]*$/.test(ports) ? ports : ports.replace(/[A-Za-z][\w.+-]{0,63}/g, (name) => String(portNamed(name) ?? name));
