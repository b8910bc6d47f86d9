import { createHash } from "node:crypto";
import type { Script } from "../triage/ports.ts";

/** Name of the document's only step; part of the path of its outputs in the bucket. */
export const STEP = "run";

/** What a node answers whose agent would not pass parameters as environment variables; with exit code 78, before anything has run. */
export const OLD_AGENT = "netcheck: this node's SSM agent is older than 3.3.2746.0 and cannot pass parameters as environment variables";

/** The document that a script is registered as. */
export const documentName = (script: Script): string => `netcheck-${script.name}`;

/** Of a script's content: 12 hex digits. */
export const contentOf = (script: Script): string =>
  createHash("sha256")
    .update(JSON.stringify([script.text, Object.entries(script.parameters)]))
    .digest("hex")
    .slice(0, 12);

/**
 * A script as the Command document that is registered beforehand, so that whoever may run it can run nothing else. Parameters reach the script as
 * environment variables, never by text substitution; an agent too old for that refuses. The parameter `content` must be the hash of the script that the sender
 * means: a document that an upgrade changed after an approval is refused by the service instead of running something else. Throws if the script cannot be a document.
 */
export function ssmDocument(script: Script): { name: string; content: string } {
  const names = Object.keys(script.parameters);
  const bad = names.find((name) => !/^[A-Za-z0-9]+$/.test(name));
  if (names.includes("content")) throw new Error(`ssm: could not make a document of ${script.name}: the parameter "content" is the document's own`);
  if (bad !== undefined) throw new Error(`ssm: could not make a document of ${script.name}: parameter ${bad} is not letters and digits`);
  if (script.text.includes("{{")) throw new Error(`ssm: could not make a document of ${script.name}: "{{" is the agent's own syntax`);
  const adopt = names.map((name) => `export NETCHECK_${name}="\${SSM_${name}-}"`);
  const content = {
    schemaVersion: "2.2",
    description: `netcheck: ${script.name}`,
    parameters: Object.fromEntries(
      [
        ...Object.entries(script.parameters),
        ["content", { pattern: `^${contentOf(script)}$`, description: "Which content of this document the sender means" }] as const,
      ].map(([name, { pattern, description }]) => [name, { type: "String", description, allowedPattern: pattern, interpolationType: "ENV_VAR" }]),
    ),
    mainSteps: [
      {
        action: "aws:runShellScript",
        name: STEP,
        precondition: { StringEquals: ["platformType", "Linux"] },
        inputs: {
          timeoutSeconds: String(script.timeoutSeconds),
          runCommand: ["#!/bin/sh", `if [ -z "\${SSM_nonce-}" ]; then echo "${OLD_AGENT}" >&2; exit 78; fi`, ...adopt, ...script.text.split("\n")],
        },
      },
    ],
  };
  return { name: documentName(script), content: JSON.stringify(content) };
}
