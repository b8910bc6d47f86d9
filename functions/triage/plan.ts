import { facts } from "../facts/index.ts";
import { sourcesOf } from "../rules/compile.ts";
import type { FixParameters } from "../rules/diagnosis.ts";
import { bind, encode, patternOf } from "../rules/fix.ts";
import type { Catalogue, Fix } from "../rules/load.ts";
import type { Command, FixPlan, Plan } from "./ports.ts";

/** What a collection runs: the union of what its rules need, each command once, in the order of the fact list. Throws for an unknown runbook. */
export function collectionPlan(catalogue: Pick<Catalogue, "rules" | "runbooks">, name: string): Plan {
  const runbook = catalogue.runbooks.get(name);
  if (runbook === undefined) throw new Error(`there is no runbook "${name}"; runbooks are ${[...catalogue.runbooks.keys()].join(", ")}`);
  const rules = runbook.rules === "all" ? [...catalogue.rules.values()] : runbook.rules.flatMap((id) => catalogue.rules.get(id) ?? []);
  const inPod = runbook.namespace === "pod";
  const wanted = new Set([...(inPod ? [] : rules.flatMap((rule) => [...rule.collects])), ...sourcesOf(runbook.facts)]);
  const commands = new Map(
    facts
      .filter((fact) => wanted.has(fact.id))
      .flatMap((fact) => (inPod ? podCommands(fact) : fact.commands))
      .map((command) => [command.argv.join(" "), command] as const),
  );
  const { timeoutSeconds, maxBytes, intervalSeconds, budgetSeconds, redact } = runbook;
  const limits = { timeoutSeconds, maxBytes, intervalSeconds, budgetSeconds };
  return { runbook: name, commands: [...commands.values()], ...limits, ...(redact.length === 0 ? {} : { redact }), ...(inPod ? { inPod } : {}) };
}

/** Programs that tell of the network namespace they run in, whatever file system they see. */
const IN_NAMESPACE = new Set(["ip", "ss", "nstat", "sysctl", "bridge", "tc"]);
/** What the script replaces by the pod's own file. */
const POD_RESOLV_CONF: Command = { argv: ["cat", "/etc/resolv.conf"] };

/** The commands of a fact that say something of a pod when they run in its network namespace with the node's files. */
function podCommands({ id, commands }: (typeof facts)[number]): readonly Command[] {
  if (id === "resolv-conf") return [POD_RESOLV_CONF];
  return commands.filter(({ argv: [program = "", ...files], each }) => {
    const own = program === "cat" && files.every((file) => file.startsWith("/proc/net/"));
    return each === undefined && (own || IN_NAMESPACE.has(program));
  });
}

/** A fix, or the way back, as the transports run it. */
export function fixPlan({ file }: Fix, direction: "fix" | "rollback" = "fix"): FixPlan {
  return {
    name: `${direction}-${file.id}`,
    parameters: Object.fromEntries(
      Object.entries(file.parameters).map(([name, parameter]) => [
        name,
        { pattern: patternOf(parameter), description: `${parameter.list ? "list of " : ""}${parameter.type}` },
      ]),
    ),
    check: direction === "fix" ? file.check : "true",
    ...(direction === "rollback" ? { goOn: true as const } : {}),
    steps: direction === "fix" ? file.apply : file.rollback,
  };
}

/** Parameters as they reach the script; throws if one does not fit its type, whoever made it. Each value of a list is looked at on its own. */
export function scriptParameters(fix: Fix, parameters: FixParameters): Record<string, string> {
  const binding = bind(fix.file, parameters);
  if (!binding.ok) throw new Error(binding.problem);
  return encode(fix.file, binding.parameters);
}
