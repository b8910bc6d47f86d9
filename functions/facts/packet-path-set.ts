import type { Ipset } from "./ipset.ts";
import { type Answer, all, any, type Flow, inPorts, inRange } from "./packet-path-packet.ts";

/**
 * Is the packet in a set of ipset? `directions`: for each dimension of the set, "src" or "dst". Members that are single addresses are compared with what
 * is known of the packet's: where that is a prefix, a member inside of it leaves it open.
 */
export function inSet(ipset: Ipset | undefined, name: string, directions: readonly string[], flow: Flow): Answer {
  const set = ipset?.sets.find((one) => one.name === name);
  if (ipset === undefined || set?.type === undefined) return `the members of the set ${name} are not known`;
  const dimensions = set.type.slice(set.type.indexOf(":") + 1).split(",");
  if (set.type.startsWith("list:")) {
    const inner = ipset.members.filter((member) => member.set === name);
    // A list of sets cannot hold lists.
    const answers = inner.map(({ entry }) =>
      ipset.sets.find((one) => one.name === entry)?.type?.startsWith("list:") ? false : inSet(ipset, entry, directions, flow),
    );
    const answer = any(answers);
    return answer === false && !set.complete ? `not all members of the set ${name} are known` : answer;
  }
  let answer: Answer = false;
  for (const member of ipset.members) {
    if (member.set !== name) continue;
    const found = memberOf(member.entry, dimensions, directions, flow);
    if (found === false) continue;
    // which of the two is narrower decides
    if (member.nomatch) return `the set ${name} has exceptions`;
    if (found === true) answer = true;
    else if (answer === false) answer = found;
  }
  return answer === false && !set.complete ? `not all members of the set ${name} are known` : answer;
}

function memberOf(entry: string, dimensions: readonly string[], directions: readonly string[], flow: Flow): Answer {
  const parts = entry.split(",");
  return all(
    dimensions.map((dimension, i): Answer => {
      const source = directions[i] === "src";
      const part = parts[i] ?? "";
      if (dimension === "ip" || dimension === "net") return inRange(source ? flow.source : flow.destination, part);
      if (dimension === "port") {
        // a bitmap of ports has no protocols
        const colon = part.indexOf(":");
        const protocol = colon === -1 ? flow.packet.protocol : part.slice(0, colon);
        return protocol === flow.packet.protocol && inPorts(source ? flow.packet.sourcePort : flow.packet.destinationPort, part.slice(colon + 1));
      }
      if (dimension === "iface") return part === (source ? flow.packet.inInterface : flow.packet.outInterface);
      return "the set asks for a mark or a MAC";
    }),
  );
}
