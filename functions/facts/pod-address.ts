import { z } from "zod";
import { address } from "./address.ts";
import { isNetnsOption } from "./command.ts";
import { defineFact, UnparsedLines, type View } from "./fact.ts";
import { link } from "./link.ts";
import { placed } from "./placed.ts";
import { present } from "./present.ts";

/**
 * Addresses that a pod shows of its own interfaces, with their hardware addresses: what its node must have in the neighbour table for it. netcheck itself looks
 * into no pod.
 *
 *     2: eth0@if5: <BROADCAST,MULTICAST,UP,LOWER_UP> mtu 1500 …          (`nsenter -t 30412 -n ip addr show eth0`)
 *         link/ether f2:ce:dc:6e:f6:97 brd ff:ff:ff:ff:ff:ff link-netnsid 0
 *         inet 10.244.2.31/24 scope global eth0
 */
const PodAddress = z.object({
  line: z.int(),
  /** Without prefix length. */
  address: z.string(),
  /** The pod's own name of it: "eth0". */
  interface: z.string(),
  /** Lower case, colons. */
  mac: z.string(),
  /** Its number in the pod, and that of its other end on the node: 2 and 5 of `2: eth0@if5:`. */
  index: z.int().optional(),
  peerIndex: z.int().optional(),
});
export type PodAddress = z.infer<typeof PodAddress>;
const PodAddresses = z.object({ rows: z.array(PodAddress) });

export const podAddress = defineFact({
  id: "pod-address",
  title: "Addresses of pods with their hardware addresses, as the pods show them (pasted only)",
  commands: [],
  elsewhere: true,
  recognize(argv): View | undefined {
    const view = address.recognize(asked(argv));
    // brief listings and those of /proc tell no hardware addresses
    if (view === undefined || !/^(?:text|json|ifconfig)$/.test(view.format)) return undefined;
    return { ...view, scope: argv.join(" ").slice(0, 400), complete: false };
  },
  schema: PodAddresses,
  parse(input) {
    const argv = asked(input.argv);
    const view = address.recognize(argv);
    const linkView = link.recognize(argv);
    if (view === undefined || linkView === undefined) return new UnparsedLines().with({ rows: [] });
    const links = new Map(link.parse({ ...input, argv, view: linkView }).value.rows.map((row) => [row.interface, row]));
    const rows = address.parse({ ...input, argv, view }).value.rows.flatMap((row) => {
      const { mac, index, peer } = links.get(row.interface) ?? {};
      if (mac === undefined || row.interface === "lo") return [];
      const [, far] = /^if(\d{1,9})$/.exec(peer ?? "") ?? [];
      const ends = far === undefined ? {} : { index, peerIndex: Number(far) };
      return [{ ...placed(row), address: row.address, interface: row.interface, mac, ...present(ends) }];
    });
    return new UnparsedLines().with({ rows });
  },
  merge: (parts) => ({ rows: parts.flatMap((part) => part.value.rows) }),
});

/** What was asked inside: `ip -n cni-3c1d7f5e addr` without the namespace. */
const asked = (argv: readonly string[]): readonly string[] => (isNetnsOption(argv[1]) ? [argv[0] as string, ...argv.slice(3)] : argv);
