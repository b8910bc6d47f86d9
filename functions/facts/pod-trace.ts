import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { TcpTrace, Untranslated } from "./tcp-trace.ts";

const PodTrace = z.object({ untranslated: z.array(Untranslated) });

/** What `packet-trace` says of a trace in a pod's own namespace, as far as it does not matter by which interface packets came. */
export const podTrace = defineFact({
  id: "pod-trace",
  title: "Packets that came to a pod untranslated and were reset, seen with tcpdump in the pod (pasted only)",
  commands: [],
  elsewhere: true,
  recognize(argv): View | undefined {
    return argv[0] === "tcpdump" ? { format: "text", complete: true, scope: argv.slice(1).join(" ").slice(0, 200), rank: 1 } : undefined;
  },
  schema: PodTrace,
  parse({ text, argv }) {
    const tcp = new TcpTrace(argv);
    for (const { line, text: content } of lines(text)) if (content.length <= 600) tcp.add(line, content);
    return new UnparsedLines().with({ untranslated: tcp.untranslated });
  },
});
