import { isKnown } from "./bundle.ts";

/** Files that people saved at two moments: `ethtool -S eth0.1.txt` and `ethtool -S eth0.2.txt`, `nstat.txt` and `nstat-2.txt`, `conntrack_-S-before.log`. */

/** What stands behind the command; the groups: a number, a word. */
const MARK = /^(.*[^\s._-])[\s._-]{1,2}(?:\(?(?:t|no|nr|run|sample)?[\s._-]?([0-3])\)?|(first|second|before|after))$/;
/** Two states of the node, one before and one after somebody did something, are two captures; only of counters is the second one the first one's sequel. */
const COUNTERS =
  /^(?:ethtool (?:-S|--statistics)|nstat|netstat -\w*s|ip(?: -\w+)* -s(?: -\w+)* link|conntrack -S|cat \/proc\/net\/(?:softnet_stat|dev|snmp|netstat|stat\/))/;
/** Counters of rules, if the files are numbered: the rules before somebody did something and after are two states of the node. */
const RULE_COUNTERS = /^ip6?tables(?:-legacy|-nft)?(?:-save(?: \S+){0,4}? -\w*c| (?:\S+ ){0,4}?-\w*v)/;
/** `ethtool -S bond0.2` is a VLAN. */
const VLAN = /^ethtool.*\.\d$/;
const ORDER = new Map([
  ["first", 1],
  ["before", 1],
  ["second", 2],
  ["after", 2],
]);

/** The name without what stands behind the command, if that may tell which moment it is of. */
export const withoutMark = (name: string): string => MARK.exec(name)?.[1] ?? name;

/** What a file's name tells: the name without the mark, and which moment it is of. */
interface Moment {
  readonly name: string;
  readonly order: number;
}

/**
 * The files among these that hold a command's output of one of two moments, by their name. A number alone may be part of the command, so that the other file must
 * be there, too. `commands`: what a file's name may mean.
 */
export function momentsOf(names: readonly string[], commands: (name: string) => readonly string[]): ReadonlyMap<string, Moment> {
  const found = new Map<string, Moment>();
  const present = new Set(names);
  const moments = names.flatMap((file) => {
    const [, folder = "", bare = "", end = ""] = /^((?:.*\/)?)([^/]+?)((?:\.[a-z]{3,6})?(?:\.(?:gz|xz|zst))?)$/.exec(file) ?? [];
    const [, base, number, word = ""] = MARK.exec(bare) ?? [];
    if (base === undefined) return [];
    const command = commands(base + end).find(isKnown);
    if (command === undefined || VLAN.test(bare) || !(COUNTERS.test(command) || (number !== undefined && RULE_COUNTERS.test(command)))) return [];
    return [{ file, name: folder + base + end, order: number === undefined ? (ORDER.get(word) ?? 1) : Number(number) }];
  });
  for (const { file, name, order } of moments) {
    const others = moments.filter((other) => other.name === name && other.order !== order);
    if (others.length > 0 || present.has(name)) found.set(file, { name, order });
  }
  return found;
}

/** The files in the order in which they were written, as far as their names tell; basenames of equal commands stay where they are. */
export function byMoment(names: readonly string[], moments: ReadonlyMap<string, Moment>): string[] {
  const key = (name: string): string => moments.get(name)?.name ?? name;
  const order = (name: string): number => moments.get(name)?.order ?? 0;
  return [...names].sort((a, b) => (key(a) === key(b) ? order(a) - order(b) : key(a) < key(b) ? -1 : 1));
}
