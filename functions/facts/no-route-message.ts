import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { eachOnItsOwn } from "./parts.ts";
import { present } from "./present.ts";

/**
 * Clients to which a router, or the node itself, said that a host is not there (EHOSTUNREACH), as people paste them. The programs may have run in a pod.
 * netcheck itself sends nothing.
 *
 *     curl: (7) Failed to connect to 10.96.44.7 port 80: No route to host
 *     dial tcp 10.96.44.7:80: connect: no route to host
 *     Error from server: Get "https://10.0.0.12:10250/containerLogs/…": dial tcp 10.0.0.12:10250: connect: no route to host
 */
const Message = z.object({
  line: z.int(),
  /** Which was asked: as the line names it, else as the command does. */
  address: z.string(),
  /** Of what was asked, where the line or the command names it. */
  port: z.int().optional(),
});
const Messages = z.object({ rows: z.array(Message) });

const PROGRAMS = /^(?:curl|wget|nc|ncat|netcat|telnet|ab|wrk2?|hey|siege|h2load|fortio|nslookup|dig)$/;
const URL_ARGUMENT = /^(?:https?|tcp|grpc):\/\//;
/** What the API server says of the kubelet that it asks: the pod's own lines are about whatever the pod asks. */
const OF_KUBELET = /^(?:Error from server|error: unable to upgrade connection): /;
const PORT = /(?:\d:| port |\d )(\d{1,5})(?=[\s/:()"']|$)/;
const ADDRESS = /(?:^|[^\d.])((?:\d{1,3}\.){3}\d{1,3})(?![\d.]*\.\d)/;

export const noRouteMessage = defineFact({
  id: "no-route-message",
  title: "Clients that were told that there is no route to a host (pasted only)",
  commands: [],
  anywhere: true,
  recognize(argv): View | undefined {
    // a load generator of somebody's own shows what it asks in its arguments
    const asks = PROGRAMS.test(argv[0] ?? "") || isKubelet(argv) || argv.slice(1).some((word) => URL_ARGUMENT.test(word));
    return asks && argv.length > 1 ? { format: "messages", complete: true, scope: argv.join(" ").slice(0, 400), rank: 1 } : undefined;
  },
  schema: Messages,
  answered: () => true,
  parse({ text, argv }) {
    const command = argv.slice(1).join(" ").slice(0, 1000);
    const asked = ADDRESS.exec(command)?.[1];
    const ofKubelet = isKubelet(argv);
    const rows: z.infer<typeof Message>[] = [];
    // what else such programs print is about other things
    for (const { line, text: content } of lines(text)) {
      if (content.length > 1000 || rows.length >= 100 || !/\bno route to host\b/i.test(content)) continue;
      if (ofKubelet && !OF_KUBELET.test(content)) continue;
      const address = ADDRESS.exec(content)?.[1] ?? asked;
      const port = (PORT.exec(content) ?? PORT.exec(command))?.[1];
      if (address !== undefined) rows.push({ line, address, ...present({ port: port === undefined ? undefined : Number(port) }) });
    }
    return new UnparsedLines().with({ rows });
  },
  ...eachOnItsOwn,
});

/** True of what the API server asks a kubelet for. */
const isKubelet = (argv: readonly string[]): boolean => argv[0] === "kubectl" && /^(?:logs|exec|attach|port-forward|top)$/.test(argv[1] ?? "");
