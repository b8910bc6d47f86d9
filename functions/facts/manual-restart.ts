import { z } from "zod";
import { operands } from "./command.ts";
import { defineFact, UnparsedLines, type View } from "./fact.ts";
import { eachOnItsOwn } from "./parts.ts";

/**
 * Services that somebody restarted, or told to read their settings again, while the outputs were taken. It prints nothing when it works; the row stands where
 * the command stands among the outputs.
 *
 *     sudo systemctl restart systemd-networkd
 *     netplan apply
 */
const Restarts = z.object({
  rows: z.array(
    z.object({
      line: z.int(),
      /** Without its type: "systemd-networkd". */
      unit: z.string(),
    }),
  ),
});

const VERB = /^(?:(?:try-)?re(?:start|load)|reload-or-(?:try-)?restart|force-reload|condrestart)$/;
const UNIT = /^[\w@.:\\-]{1,200}$/;
/** What is told by a tool of its own. */
const TOOLS: readonly (readonly [string, RegExp])[] = [
  ["netplan", /^apply$/],
  ["networkctl", /^(?:reload|reconfigure)$/],
];

export const manualRestart = defineFact({
  id: "manual-restart",
  title: "Services that somebody restarted between the outputs (pasted only)",
  commands: [],
  recognize(argv): View | undefined {
    const [program = ""] = argv;
    const [verb = "", ...names] = operands(argv);
    const tool = TOOLS.some(([name, pattern]) => name === program && pattern.test(verb));
    const units = tool
      ? ["systemd-networkd"]
      : program === "systemctl" && VERB.test(verb)
        ? names
        : program === "service" && VERB.test(names[0] ?? "")
          ? [verb]
          : [];
    const known = units.length > 0 && units.length <= 20 && units.every((unit) => UNIT.test(unit));
    return known ? { format: "restart", complete: true, scope: units.join(" "), rank: 1 } : undefined;
  },
  schema: Restarts,
  parse({ text, view }) {
    // what does not work says so
    const failed = /\b(?:failed|not (?:found|loaded)|denied|unrecognized|error)\b/i.test(text.slice(0, 2000));
    const units = failed ? [] : view.scope.split(" ");
    return new UnparsedLines().with({ rows: units.map((unit) => ({ line: 1, unit: unit.replace(/\.service$/, "") })) });
  },
  ...eachOnItsOwn,
});
