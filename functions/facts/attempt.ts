import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { addressFamily } from "./ip-address.ts";
import { eachOnItsOwn } from "./parts.ts";
import { present } from "./present.ts";

/**
 * Whether a request that somebody made on the node or in a pod was answered. netcheck itself makes none.
 *
 *     ;; connection timed out; no servers could be reached
 *     curl: (28) Operation timed out after 10001 milliseconds with 0 bytes received
 */
const Attempt = z.object({
  line: z.int(),
  /** As it was given, without wrappers. */
  command: z.string(),
  /** False: nobody answered in time. An answer that says no is an answer. */
  answered: z.boolean(),
  /** The name server that refused: nobody listens there. */
  refusedBy: z.string().optional(),
  /** True if the connection was made, the client began its TLS handshake, and nothing came back: a certificate fills whole packets. */
  handshake: z.boolean().optional(),
});
/**
 * The kernel had no room: for the packet in the queue of its interface, or for an entry of the neighbour table.
 *
 *     ping: connect: No buffer space available
 */
const Refusal = z.object({ line: z.int(), family: z.enum(["ipv4", "ipv6"]) });
const Attempts = z.object({ rows: z.array(Attempt), refusals: z.array(Refusal).optional() });

const PROGRAMS = /^(?:nslookup|dig|host|curl|wget|nc|ncat)$/;
/** Of what became of a ping, the fact of that name tells the rest; `ip neigh add` only makes an entry. */
const SENDERS = /^(?:ping[46]? .|ip (?:-\w{1,6} ){0,2}n(?:eigh(?:bou?r)?)? (?:add|replace) .)/;
const NO_ROOM = /(?:^|: )No buffer space available$/;
const NOTHING = /timed? ?out|no servers could be reached|no route to host|communications error|can't resolve|Name or service not known|Could not resolve host/i;
/** curl -v, openssl: the first message of the client's, and of the server's */
const HELLO = /TLS handshake, Client hello|Client hello \(1\)/i;
const HELLO_BACK = /Server hello|SSL connection using|SSL certificate/i;
/** `time curl -s -o /dev/null …` prints nothing else: half a minute and more is what lost packets are sent again for. */
const TOOK = /^real\s{1,8}(\d{1,3})m(\d{1,2})(?:[.,]\d{1,3})?s$/;
/** dig */
const REFUSED = /communications error to ([0-9a-f.:]{3,45})#53: connection refused/;
const ANSWER =
  /^(?:Name:\s|Address:\s*\d|;; ANSWER SECTION|.{1,253} has address |HTTP\/[\d.]{1,3} \d{3}|< HTTP\/|<!DOCTYPE|<html|\{|Connection to .{1,255} succeeded|Ncat: Connected|.{0,80} saved \[)/i;

/** What a client that was told to say little prints of an answer: `dig +short` an address or a name, `curl -w '%{http_code}'` a number, `nc -z` that the port is open. */
const SHORT: readonly (readonly [RegExp, RegExp])[] = [
  [/^dig .{0,400}\+short\b/, /^(?:[\d.]{7,15}|[0-9a-fA-F:]{2,39}|[\w.-]{1,253}\.)$/],
  // the other variables are whole numbers, too, but for the times; lines of -v, of the progress and of errors have numbers of their own
  [
    /^curl (?!.{0,400}%\{(?!http_code|response_code|time_\w{1,20})\w{1,40}\}).{0,400}%\{(?:http|response)_code\}/,
    /^(?![*<>{}] |curl: |command terminated|.{0,100}--:--)(?:.{0,80}[^\d.:])?[1-5]\d\d(?:[^\d.:].{0,80})?$/,
  ],
  [/^(?:nc|ncat) /, /^.{1,300} open$/],
];

export const attempt = defineFact({
  id: "attempt",
  title: "Requests that somebody made, and whether they were answered (pasted only)",
  commands: [],
  anywhere: true,
  recognize(argv): View | undefined {
    // the image may be the program: `docker run --rm curlimages/curl -v https://…`
    const contained = /^(?:docker|podman|nerdctl)$/.test(argv[0] ?? "") && argv[1] === "run" && argv.some((word) => /(?:^|\/)(?:curl|wget)$/.test(word));
    const sends = SENDERS.test(argv.join(" ").slice(0, 400));
    return ((PROGRAMS.test(argv[0] ?? "") || contained) && argv.length > 1) || sends
      ? { format: sends ? "packet" : "text", complete: true, scope: argv.join(" ").slice(0, 400), rank: 1 }
      : undefined;
  },
  schema: Attempts,
  answered: () => true,
  parse({ text, stderr, argv, view }) {
    const refusals = refusalsOf(text, stderr, argv);
    if (view.format === "packet") return new UnparsedLines().with({ rows: [], ...refusals });
    let found: z.infer<typeof Attempt> | undefined;
    const command = argv.join(" ").slice(0, 400);
    const short = SHORT.find(([asked]) => asked.test(command))?.[1];
    for (const { line, text: content } of lines(text.slice(0, 20_000))) {
      if (ANSWER.test(content.trim()) || short?.test(content.trim()) === true) found = { line, command, answered: true };
      else if (found === undefined && /^(?:curl|wget)$/.test(argv[0] ?? "")) found = tookOf(line, content.trim(), command);
      if (found === undefined && NOTHING.test(content)) found = { line, command, answered: false, ...present({ refusedBy: REFUSED.exec(content)?.[1] }) };
    }
    if (found?.answered === false && HELLO.test(text) && !HELLO_BACK.test(text)) found = { ...found, handshake: true };
    return new UnparsedLines().with({ rows: found === undefined ? [] : [found], ...refusals });
  },
  // one command may have been run before and after a change
  ...eachOnItsOwn,
});

/** The first time the kernel had no room: the others say nothing more. On standard error where the two were kept apart. */
function refusalsOf(text: string, stderr: string, argv: readonly string[]): { refusals?: z.infer<typeof Refusal>[] } {
  const family = argv.some((word) => word === "ping6" || word === "-6" || addressFamily(word) === "ipv6") ? "ipv6" : "ipv4";
  for (const { line, text: content } of lines(text.slice(0, 20_000))) if (NO_ROOM.test(content.trim())) return { refusals: [{ line, family }] };
  for (const { text: content } of lines(stderr.slice(0, 2000)))
    if (NO_ROOM.test(content.trim())) return { refusals: [Object.assign({ line: 1, family } as const, { text: content.trim() })] };
  return {};
}

/** A request of which nothing but its time is known. In between nobody can tell. */
function tookOf(line: number, text: string, command: string): z.infer<typeof Attempt> | undefined {
  const [, minutes, seconds] = TOOK.exec(text) ?? [];
  const took = minutes === undefined ? 15 : Number(minutes) * 60 + Number(seconds);
  return took >= 30 ? { line, command, answered: false } : took < 2 ? { line, command, answered: true } : undefined;
}
