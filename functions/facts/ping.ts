import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily } from "./ip-address.ts";
import { eachOnItsOwn } from "./parts.ts";
import { isPrompt } from "./paste.ts";

/**
 * What became of pings that somebody sent, from the node or from a pod. netcheck itself sends none. A row per run.
 *
 *     PING 10.244.0.9 (10.244.0.9) 1372(1400) bytes of data.
 *     2 packets transmitted, 0 received, 100% packet loss, time 1009ms
 */
const Run = z.object({
  line: z.int(),
  /** Address that was pinged. */
  target: z.string(),
  /** Bytes behind the ICMP header; the packet has 28 more, of IPv6 48. */
  size: z.int(),
  /** The packets may not be cut into fragments (-M do). */
  whole: z.boolean(),
  sent: z.int(),
  received: z.int(),
  /** Lines that say that a packet is too large for an interface on the way: "Message too long", "Frag needed". */
  tooLarge: z.int(),
  /** Errors in place of answers (`+2 errors`), where there were some; their lines may be missing, for ping writes its own to the other output. */
  errors: z.int().optional(),
  /** Lines "Destination Host Unreachable", where there were some: whoever is next to the target got no answer to ARP. */
  unreachable: z.int().optional(),
  /** True if only the count of answers was kept (`| grep -o '[0-9]* received'`): whether somebody said why there were none is not known. */
  counted: z.boolean().optional(),
});
const Runs = z.object({ rows: z.array(Run) });
type Run = z.infer<typeof Run>;

// iputils; with -I an interface and an address stand in between; BusyBox, and iputils for IPv6, print the size alone
const HEADER =
  /^PING \S{1,255} ?\(([^()\s]{2,45})\)(?:(?: from \S{1,60}(?: \S{1,20})?)?:? )(\d{1,5})(?:\(\d{1,5}\) bytes of data\.?|(?: data)? bytes(?: of data)?\.?)/;
const HEADER_NAMELESS = /^PING ([0-9a-fA-F:.]{2,45}) (\d{1,5})\(\d{1,5}\) bytes of data/;
const RESULT = /^(\d{1,9}) packets transmitted, (\d{1,9}) (?:packets )?received(?:, \+\d{1,9} duplicates)?(?:, \+(\d{1,9}) errors)?/;
const UNREACHABLE = /^From \S.{0,300}[ :]Destination Host Unreachable$/;
const TOO_LARGE = /message too (?:long|large)|frag(?:mentation)? needed|packet too big/i;
/** Answers, remarks and statistics: what else ping prints. */
const FRAME =
  /^(?:\d{1,6} bytes from |From \S|64 bytes|--- .{1,260} ---$|(?:rtt|round-trip) min|pipe \d|\^C|ping: |ping6: |connect: |sendmsg: |RTNETLINK |Warning: |no answer yet for |command terminated with exit code \d|.{0,80}: icmp_seq)/;

/** The address and the size that were asked for. Undefined if it was a name. */
function asked(argv: readonly string[]): { target: string; size: number } | undefined {
  const target = argv.findLast((word, i) => i > 0 && addressFamily(word) !== undefined && argv[i - 1] !== "-I");
  const size = /^-s(\d{1,5})$/.exec(argv.find((word) => /^-s\d/.test(word)) ?? `-s${argv[argv.indexOf("-s") + 1]}`)?.[1];
  return target === undefined || (argv.includes("-s") && size === undefined) ? undefined : { target, size: Number(size ?? 56) };
}

/** What a search left of the result: `0 received`, `100% packet loss`. */
const COUNTED = /^(?:(\d{1,9}) (?:packets )?received|(\d{1,3}(?:\.\d{1,6})?)% packet loss),?$/;

/** A run of which only that is known. Undefined where the command does not tell the rest. */
function countedRun(line: number, text: string, argv: readonly string[], whole: boolean): Run | undefined {
  const [, received, loss] = COUNTED.exec(text) ?? [];
  const sent = Number(/(?:^| )-c ?(\d{1,4})(?: |$)/.exec(argv.join(" "))?.[1] ?? 0);
  const run = received === undefined && loss === undefined ? undefined : asked(argv);
  if (run === undefined || sent === 0) return undefined;
  return {
    ...run,
    line,
    whole,
    tooLarge: 0,
    sent,
    received: received === undefined ? Math.round(sent * (1 - Number(loss) / 100)) : Number(received),
    counted: true,
  };
}

/** What a loop over sizes says before each ping: `== 1372`, `--- size 1372 ---`, `1372:`. */
const HEADING = /^[=#*>-]{0,10} ?(?:size:? ?)?\d{2,5} ?[=#*:-]{0,10}$/i;

export const ping = defineFact({
  id: "ping",
  title: "Pings that somebody sent, by size (pasted only)",
  commands: [],
  anywhere: true,
  recognize(argv): View | undefined {
    if (!/^ping[46]?$/.test(argv[0] ?? "") || argv.length < 2) return undefined;
    const whole = argv.some((word, i) => word === "-Mdo" || (word === "-M" && argv[i + 1] === "do"));
    return { format: whole ? "whole" : "any", complete: true, scope: argv.slice(1).join(" ").slice(0, 200), rank: 1 };
  },
  schema: Runs,
  parse({ text, argv, view }) {
    const unparsed = new UnparsedLines();
    const rows: Run[] = [];
    let current: Run | undefined;
    for (const { line, text: content } of lines(text)) {
      const bare = content.trim();
      const header = HEADER.exec(bare) ?? HEADER_NAMELESS.exec(bare);
      const result = header === null ? RESULT.exec(bare) : null;
      if (header !== null && addressFamily(header[1] as string) !== undefined) {
        current = { line, target: header[1] as string, size: Number(header[2]), whole: view.format === "whole", sent: 0, received: 0, tooLarge: 0 };
      } else if (result !== null && (current ?? asked(argv)) !== undefined) {
        const errors = result[3] === undefined ? {} : { errors: Number(result[3]) };
        // the head was cut off (`| tail -2`)
        const run = current ?? { ...(asked(argv) as { target: string; size: number }), line, whole: view.format === "whole", tooLarge: 0 };
        rows.push({ ...run, sent: Number(result[1]), received: Number(result[2]), ...errors });
        current = undefined;
      } else if (current === undefined && COUNTED.test(bare)) {
        const run = countedRun(line, bare, argv, view.format === "whole");
        if (run === undefined) unparsed.add(line, content);
        else rows.push(run);
      } else if (TOO_LARGE.test(bare)) {
        if (current !== undefined) current.tooLarge++;
      } else if (UNREACHABLE.test(bare)) {
        if (current !== undefined) current.unreachable = (current.unreachable ?? 0) + 1;
      } else if (!FRAME.test(bare) && !(current === undefined && HEADING.test(bare)) && !isPrompt(content)) unparsed.add(line, content);
    }
    return unparsed.with({ rows });
  },
  // the same run may have been pasted for each size
  ...eachOnItsOwn,
});
