/** Listings of any length, the same for the same number: what commands print on a node with very many rules, routes or neighbours. */

const ip = (net: number, n: number): string => `10.${(net + Math.floor(n / 65_536)) % 256}.${Math.floor(n / 256) % 256}.${n % 256}`;

/** `iptables -nvL`: `lines` rules in chains of 50. */
export function iptablesList(lines: number): string {
  const parts: string[] = [];
  for (let n = 0; n < lines; n += 1) {
    if (n % 50 === 0)
      parts.push(
        `${n === 0 ? "" : "\n"}Chain KUBE-SVC-${String(n / 50).padStart(8, "A")} (1 references)`,
        " pkts bytes target     prot opt in     out     source               destination         ",
      );
    parts.push(
      ` ${String(n % 1000).padStart(4)} ${String((n * 60) % 100_000).padStart(5)} ACCEPT     tcp  --  *      *       ${ip(244, n).padEnd(20)} ${ip(96, n).padEnd(20)} /* shop/backend-${n} */ tcp dpt:${1024 + (n % 60_000)}`,
    );
  }
  return `${parts.join("\n")}\n`;
}

/** `route -n` */
export function routeTable(lines: number): string {
  const parts = ["Kernel IP routing table", "Destination     Gateway         Genmask         Flags Metric Ref    Use Iface"];
  for (let n = 0; n < lines; n += 1)
    parts.push(`${ip(100, n).padEnd(15)} ${ip(10, n % 250).padEnd(15)} 255.255.255.255 UGH   ${String(n % 100).padEnd(6)} 0        0 eth${n % 4}`);
  return `${parts.join("\n")}\n`;
}

/** `ip route`, which jc 1.22.5 does not read. */
export function ipRoute(lines: number): string {
  const parts: string[] = [];
  for (let n = 0; n < lines; n += 1) parts.push(`${ip(100, n)} via ${ip(10, n % 250)} dev eth${n % 4} proto bird metric ${n % 100} `);
  return `${parts.join("\n")}\n`;
}
