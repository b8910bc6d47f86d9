import { commandLine } from "../facts/command.ts";

/**
 * Files that say what is to be set when the machine starts. What they hold looks like a listing of what is set, and is none: somebody may have set something else
 * since, or another file may come after it.
 *
 *     # cat /etc/sysctl.d/60-cis.conf
 *     net.ipv4.ip_forward = 0
 */
const FOLDER = String.raw`(?:\/host)?\/(?:etc|(?:usr\/(?:local\/)?)?lib\/sysctl\.d|run\/sysctl\.d|var\/lib\/(?:ip6?tables|nftables|ipset))(?=\/)`;
const PATH = new RegExp(`^["']?${FOLDER}`);

/** What its lines may be taken for, by its path. */
const LOOKS_LIKE: readonly (readonly [RegExp, RegExp])[] = [
  [/\/sysctl(?:\.conf|\.d(?:\/|$))/, /^sysctl /],
  [/ip6?tables|\/ufw\/|rules\.v[46]/, /^ip6?tables/],
  [/nftables|\.nft$/, /^nft /],
  [/ipset/, /^ipset /],
  [/ebtables/, /^ebtables/],
];

/** Whatever folder they are in. */
const FILE = /^(?:\S{0,200}\/)?(?:sysctl\.conf|nftables\.conf|rules\.v[46])$/;
/** Names and folders of what somebody kept of another time: `routes.old`, `~/backup/nft.txt`, `/root/iptables.before-upgrade`. Of a pair, `nstat.before` and `nstat.after`, both count. */
const KEPT = /(?:^|[/._-])(?:old|bak|backups?|orig|prev|previous|yesterday|before[._-][a-z]{2,20})(?:[/._\d-]|$)/i;
/** What shows a file as it is. */
const SHOWS = /^(?:cat|less|more|head|tail|[ef]?grep|zcat|zgrep|bat)$/;

/** What follows is what it is given. */
const HERE = /<<-?\s{0,4}['"]?\w/;

/** True for a command that prints such a file or writes one: `cat /etc/sysctl.d/60-cis.conf`, `grep -r forward /etc/sysctl.d`, `cat <<EOF > /tmp/60-cis.conf`; and of a file that was kept of another time. */
export function printsConfiguration(command: string): boolean {
  const { argv } = commandLine(command);
  const shown = SHOWS.test(argv[0] ?? "") ? argv.slice(1).filter((word) => !word.startsWith("-")) : [];
  return HERE.test(command) || argv.some((word, i) => i > 0 && (PATH.test(word) || FILE.test(word))) || shown.some((word) => KEPT.test(word));
}

/** Signs that people put around a path, none of which a path has. */
const NAMED = new RegExp(String.raw`^[\s=#*>+~\[(\x60"'•-]{0,60}((?:cat )?${FOLDER}\/[\w.@/*-]{1,200}[\w*])[\s=#*<~\])\x60"':-]{0,60}$`);
const INSIDE = new RegExp(String.raw`(?:^|[\s\x60"'(])(${FOLDER}\/[\w.@/*-]{1,200}[\w*])`, "g");

/** `cat /root/iptables.before-upgrade`, in signs or in a sentence. */
const SHOWN = /(?:^|[\s\x60"'([=#*>+~•-])((?:cat|less|more|head|tail)(?: -\S{1,12}){0,3} [\w.@/~-]{1,200})(?=$|[\s\x60"')\]=#*<~:,])/g;

/** The command of a line that shows a file which was kept of another time. */
function keptIn(line: string): string | undefined {
  const shown = line.length > 2000 ? [] : [...line.matchAll(SHOWN)].map(([, command = ""]) => command);
  return shown.find((command) => KEPT.test(command.slice(command.lastIndexOf(" "))));
}

/** The command that prints the file which a heading names, if what its lines look like is known: `=== /etc/sysctl.conf ===`. */
export function configurationOf(line: string): string | undefined {
  const path = line.length > 400 ? undefined : NAMED.exec(line)?.[1]?.replace(/^cat /, "");
  if (path !== undefined && LOOKS_LIKE.some(([name]) => name.test(path))) return `cat ${path}`;
  const kept = line.length > 400 ? undefined : keptIn(line);
  return kept !== undefined && line.replace(kept, "").trim().length <= 60 && !/\w/.test(line.replace(kept, "")) ? kept : undefined;
}

/** The same of a sentence above a block whose lines look like such a file: `sign` is what they would be taken for (`sysctl -a`). */
export function announcedConfiguration(sentence: string, sign: string | undefined): string | undefined {
  if (sign === undefined || sentence.length > 2000) return undefined;
  const paths = [...sentence.matchAll(INSIDE)].map(([, path = ""]) => path);
  const path = paths.findLast((each) => LOOKS_LIKE.some(([name, like]) => name.test(each) && like.test(sign)));
  return path === undefined ? keptIn(sentence) : `cat ${path}`;
}
