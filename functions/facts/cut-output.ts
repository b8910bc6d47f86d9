import type { Capture, Output } from "./capture.ts";
import { commandLine } from "./command.ts";
import { isPrompt } from "./paste.ts";

/** These end every line that they print. (A file that `cat` shows, or what `curl` gets, may end without.) */
const LINE_BY_LINE =
  /^(?:ip|ss|[ez]?grep|bridge|tc|route|arp|netstat|ifconfig|brctl|conntrack|ipset|ipvsadm(?:-save)?|(?:ip6?|eb|arp)tables(?:-legacy|-nft)?(?:-save)?|nft|sysctl|lsmod|dmesg|nstat|ps|ethtool|bpftool|ls|tcpdump|timedatectl|chronyc|ntpq)$/;
/** So many other outputs must have kept the newline at their end: then whoever made the capture did not trim them. */
const OTHERS = 2;

/**
 * The outputs of a capture that end in the middle of a line and are not marked as cut, by index: a connection that broke, a paste that stopped short. JSON
 * knows by itself whether it was closed.
 */
export function cutInside(capture: Capture): ReadonlySet<number> {
  const kept = capture.outputs.filter(({ text }) => text.endsWith("\n")).length;
  const found = new Set<number>();
  if (kept < OTHERS) return found;
  for (const [i, output] of capture.outputs.entries()) {
    const { text } = output;
    if (text !== "" && !text.endsWith("\n") && !/^\s{0,400}[[{]/.test(text) && isLineByLine(output) && !endsInPrompt(text)) found.add(i);
  }
  return found;
}

/** The terminal's next prompt, with nothing behind it: the output before it has ended. A sign alone may be the half of a comment. */
function endsInPrompt(text: string): boolean {
  const last = text.slice(text.lastIndexOf("\n") + 1);
  return last.length < 200 && /[@\]:~].{0,120}[#$%❯➜] ?$/.test(last) && isPrompt(last);
}

function isLineByLine({ argv, command }: Output): boolean {
  return LINE_BY_LINE.test(commandLine(argv ?? command).argv[0] ?? "");
}
