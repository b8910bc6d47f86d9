import { z } from "zod";
import { answeredByDefault, defineFact, lines, UnparsedLines, type View } from "./fact.ts";

/**
 * Programs to which the kernel said that it has no route (ENETUNREACH), as people paste them. netcheck itself sends nothing.
 *
 *     ping: connect: Network is unreachable
 *     curl: (7) Failed to connect to 198.51.100.7 port 443: Network is unreachable
 *     ping: sendto: Network unreachable          (musl)
 *     unable to select an IP from default routes.          (kubeadm)
 */
const Message = z.object({
  line: z.int(),
  /** "ping", "curl", … */
  program: z.string(),
  /** IPv6 where an address or an option says so; a name alone does not tell. */
  family: z.enum(["ipv4", "ipv6", "unknown"]),
});
const Messages = z.object({ rows: z.array(Message) });
type Message = z.infer<typeof Message>;

const PROGRAMS = /^(?:ping|ping4|curl|wget|nc|ncat|telnet|traceroute|tracepath|ssh|apt|apt-get|yum|dnf|apk|git|docker|podman|crictl|nerdctl|kubeadm)$/;
/** kubeadm chooses the node's address by its default route. */
const SAID = /\bnetwork (?:is )?unreachable\b|\bunable to select an IP from default routes\b/i;
const IPV4 = /(?:^|[^\d.])(?:\d{1,3}\.){3}\d{1,3}(?![\d.]*\.\d)/;
const IPV6 = /(?:^|[\s[(])[0-9a-f]{1,4}:[0-9a-f:]{2,40}/i;

export const unreachableMessage = defineFact({
  id: "unreachable-message",
  title: "Programs to which the kernel said that the network is unreachable (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const program = argv[0] ?? "";
    return PROGRAMS.test(program) ? { format: "messages", complete: true, scope: argv.join(" ").slice(0, 200), rank: 1 } : undefined;
  },
  schema: Messages,
  // a program that has no way out fails, and says so on standard error where the two were kept apart
  answered: (output) => answeredByDefault(output) || SAID.test(output.stderr.slice(0, 2000)),
  parse({ text, stderr, argv }) {
    const rows: Message[] = [];
    const asked = argv.slice(1).join(" ").slice(0, 1000);
    const ipv6Asked = argv.includes("-6") || (IPV6.test(asked) && !IPV4.test(asked));
    const messageOf = ({ line, text: content }: { line: number; text: string }): Message | undefined => {
      if (content.length > 1000 || !SAID.test(content)) return undefined;
      const ipv4 = IPV4.test(content) || (!IPV6.test(content) && IPV4.test(asked));
      const family = ipv4 ? "ipv4" : ipv6Asked || IPV6.test(content) ? "ipv6" : argv.includes("-4") ? "ipv4" : "unknown";
      return { line, program: argv[0] ?? "", family };
    };
    // what else these programs print is about other things
    for (const line of lines(text)) {
      const row = messageOf(line);
      if (row !== undefined) rows.push(row);
    }
    for (const line of lines(rows.length > 0 ? "" : stderr.slice(0, 2000))) {
      const row = messageOf(line);
      if (row !== undefined) rows.push(Object.assign(row, { text: line.text.trim().slice(0, 400) }));
    }
    return new UnparsedLines().with({ rows });
  },
});
