import { commandLine } from "../facts/command.ts";
import { isNamedAlike } from "../facts/node-name.ts";
import { peerEntry } from "../facts/peer-entry.ts";
import type { Machine } from "./machines.ts";

/**
 * Somebody looked at two nodes alike, and each of them is read by itself. To which hardware address the one sends tells of the other one's tunnel, as if it had been
 * asked from there: `ssh wk-1 ip neigh`.
 */

interface Shown {
  readonly command: string;
  readonly machine?: Machine | undefined;
}

/** An address of the machine itself: below an interface, or where its tunnel begins. */
const OWN = /(?:\binet (?:addr:)?|\blocal )((?:\d{1,3}\.){3}\d{1,3})\b/g;

/**
 * The tables of the other machines of a text that have an address of this one, with the command that would have asked for them from here. Only of machines that are
 * named alike: nodes of one cluster.
 * @param name the machine's own
 * @param own what is read of it
 * @param all the outputs of all machines of the text
 * @param textOf what an output printed
 */
export function tablesOfOthers<T extends Shown>(name: string, own: readonly T[], all: readonly T[], textOf: (output: T) => string): T[] {
  const shown = all.filter(({ command, machine }) => isTable(command) && machine?.name !== undefined && isNamedAlike([name], machine.name));
  // asked again, a table may have been put right
  const tables = [...new Map(shown.map((output) => [`${output.machine?.name} ${output.command}`, output])).values()];
  if (tables.length === 0) return [];
  const addresses = new Set(own.flatMap((output) => [...textOf(output).matchAll(OWN)].map(([, address = ""]) => address)));
  // the first address of a range of pods is the tunnel's, and clusters choose the same ranges
  const underlay = [...addresses].filter((address) => !/\.0$|^127\./.test(address));
  const knows = new Set(
    tables.flatMap((output) => {
      const words = new Set(textOf(output).split(/[\s()]+/));
      return underlay.some((address) => words.has(address)) ? [output.machine?.name] : [];
    }),
  );
  return tables.filter(({ machine }) => knows.has(machine?.name)).map((output) => ({ ...output, command: `ssh ${output.machine?.name} ${output.command}` }));
}

/** Asked of the machine itself, not from elsewhere: `arp -n`, `sudo bridge fdb show dev flannel.1`. */
function isTable(command: string): boolean {
  if (!/^(?:sudo )?(?:ip|arp|bridge) /.test(command)) return false;
  const { argv, foreign } = commandLine(command);
  return !foreign && peerEntry.recognize(argv) !== undefined;
}
