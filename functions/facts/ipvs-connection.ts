import { z } from "zod";
import { hasLetter, hasOption, isPromptLine } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { unbracketed } from "./ip-address.ts";

/**
 * Connections that IPVS keeps, as people paste them. netcheck itself does not list them: a busy node has hundreds of thousands.
 *
 *     IPVS connection entries
 *     pro expire state       source             virtual            destination
 *     TCP 00:57  SYN_RECV    192.0.2.7:38811    10.96.44.7:80      10.244.9.31:80
 */
const Connection = z.object({
  line: z.int(),
  /** "tcp", "udp", "sctp"; "ip" of templates of session affinity. */
  protocol: z.string(),
  /** "ESTABLISHED", "SYN_RECV", "TIME_WAIT", "NONE", "UDP", … */
  state: z.string(),
  /** Address of the client. */
  source: z.string(),
  serviceAddress: z.string(),
  servicePort: z.int(),
  /** Of the real server. */
  address: z.string(),
  port: z.int(),
});
const Connections = z.object({ rows: z.array(Connection) });

/** More rows are left away: they prove no more. */
const MAX_ROWS = 20_000;
const FRAME = /^(?:IPVS connection entries|pro\s{1,8}expire\s{1,8}state\s.{1,120})$/;
// the minutes of an expiry may have any number of digits; behind the destination persistence engines put their data
const ROW =
  /^(TCP|UDP|SCTP|IP) {1,8}\d{1,6}:\d{2} {1,12}([A-Z_]{1,16}) {1,16}(\S{1,64}):(\d{1,5}) {1,40}(\S{1,64}):(\d{1,5}) {1,40}(\S{1,64}):(\d{1,5})(?: .{0,200})?$/;

export const ipvsConnection = defineFact({
  id: "ipvs-connection",
  title: "Connections that IPVS keeps (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    if (argv[0] !== "ipvsadm" || !(hasLetter(argv, "c") || hasOption(argv, "--connection"))) return undefined;
    const lists = hasLetter(argv, "L") || hasLetter(argv, "l") || hasOption(argv, "--list");
    return lists ? { format: "list", complete: true, scope: "", rank: 1 } : undefined;
  },
  schema: Connections,
  parse({ text }) {
    const unparsed = new UnparsedLines();
    const rows: z.infer<typeof Connection>[] = [];
    for (const { line, text: raw } of lines(text)) {
      const content = raw.trimStart().replaceAll("\t", " ");
      const match = content.length > 600 ? null : ROW.exec(content);
      if (match === null) {
        if (!FRAME.test(content) && !isPromptLine(raw)) unparsed.add(line, raw);
      } else if (rows.length < MAX_ROWS) {
        const [, protocol, state, source, , service, servicePort, address, port] = match as unknown as string[] & { length: 9 };
        rows.push({
          line,
          protocol: (protocol as string).toLowerCase(),
          state: state as string,
          source: unbracketed(source as string),
          serviceAddress: unbracketed(service as string),
          servicePort: Number(servicePort),
          address: unbracketed(address as string),
          port: Number(port),
        });
      }
    }
    return unparsed.with({ rows });
  },
});
