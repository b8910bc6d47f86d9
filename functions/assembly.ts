import { randomBytes } from "node:crypto";
import { pagersOut } from "./pager/out/pagers.ts";
import { personByEmail } from "./slack/by-email.ts";
import { type ChatOptions, slackChat } from "./slack/chat.ts";
import { membersOf } from "./slack/members.ts";
import type { Config } from "./triage/config.ts";
import type { Ports, Transport } from "./triage/ports.ts";
import { configuredTargets } from "./triage/targets.ts";

export interface AssemblyParts extends ChatOptions {
  readonly log: Ports["log"];
  /** Reads the configuration as it is now. */
  readonly config: () => Promise<Config>;
  /** By name. */
  readonly transports: Readonly<Record<string, Transport>>;
  /** Behind "the transport "x" is not available": where, and what to use instead. */
  readonly unavailable: string;
  /** The value of a secret that the configuration names. */
  readonly secret: (name: string) => Promise<string>;
}

/** The ports that are plugged in alike on AWS (aws/assembly.ts) and in local mode (local/assembly.ts): what hangs on the configuration and on Slack. */
export function assembly({ config, transports, unavailable, secret, ...chat }: AssemblyParts) {
  const { client, log } = chat;
  return {
    targets: configuredTargets(
      config,
      async (transport, cluster, nameTag, labels) => (await transports[transport]?.discover?.(cluster, nameTag, labels)) ?? [],
    ),
    transport(name) {
      const transport = transports[name];
      if (transport === undefined) throw new Error(`the transport "${name}" is not available ${unavailable}`);
      return transport;
    },
    chat: slackChat(chat),
    pagers: pagersOut({ settings: async () => (await config()).pagers, secret, personOf: personByEmail(client) }),
    members: membersOf(client),
    config,
    now: () => new Date(),
    random: (digits) =>
      randomBytes(Math.ceil(digits / 2))
        .toString("hex")
        .slice(0, digits),
    log,
  } satisfies Partial<Ports>;
}
