import type { Actor, OnCall, OnCallSource, Pagers } from "../../triage/ports.ts";
import { grafana } from "./grafana.ts";
import { opsgenie } from "./opsgenie.ts";
import { pagerDuty } from "./pagerduty.ts";

/** `pagers` of netcheck.yaml. Secrets are named, never held. */
export interface PagersSettings {
  readonly pagerduty?:
    | { readonly tokenSecret: string; readonly from: string; readonly region: "us" | "eu"; readonly routingKeySecret?: string | undefined }
    | undefined;
  readonly opsgenie?: { readonly tokenSecret: string; readonly region: "us" | "eu" } | undefined;
  readonly grafana?: { readonly url: string; readonly tokenSecret: string } | undefined;
  /** E-mail address → id in the chat. */
  readonly people?: Readonly<Record<string, string>> | undefined;
}

export interface PagersOptions {
  /** Read afresh each time. */
  readonly settings: () => Promise<PagersSettings | undefined>;
  /** The value of a secret by its name in the configuration. */
  readonly secret: (name: string) => Promise<string>;
  /** Who has this e-mail address in the chat; undefined: nobody, or it may not be asked. */
  readonly personOf: (email: string) => Promise<Actor | undefined>;
  /** Other addresses, for tests and proxies. */
  readonly addresses?: Partial<Record<"pagerduty" | "events" | "opsgenie", string>>;
}

const ADDRESSES = {
  pagerduty: { us: "https://api.pagerduty.com", eu: "https://api.eu.pagerduty.com" },
  events: { us: "https://events.pagerduty.com", eu: "https://events.eu.pagerduty.com" },
  opsgenie: { us: "https://api.opsgenie.com", eu: "https://api.eu.opsgenie.com" },
} as const;

/** The Pagers port: PagerDuty, Opsgenie and Grafana over HTTP, as netcheck.yaml has them at the moment. */
export function pagersOut({ settings, secret, personOf, addresses = {} }: PagersOptions): Pagers {
  const duty = async () => {
    const named = (await settings())?.pagerduty;
    if (named === undefined) return undefined;
    const { tokenSecret, from, region, routingKeySecret } = named;
    return pagerDuty({
      api: addresses.pagerduty ?? ADDRESSES.pagerduty[region],
      events: addresses.events ?? ADDRESSES.events[region],
      token: () => secret(tokenSecret),
      from,
      ...(routingKeySecret === undefined ? {} : { routingKey: () => secret(routingKeySecret) }),
    });
  };
  const genie = async () => {
    const named = (await settings())?.opsgenie;
    return named === undefined ? undefined : opsgenie({ api: addresses.opsgenie ?? ADDRESSES.opsgenie[named.region], token: () => secret(named.tokenSecret) });
  };
  const dashboards = async () => {
    const named = (await settings())?.grafana;
    return named === undefined ? undefined : grafana({ api: named.url.replace(/\/+$/, ""), token: () => secret(named.tokenSecret) });
  };

  async function inChat(name: string, email: string): Promise<OnCall> {
    const people = (await settings())?.people ?? {};
    const known = Object.entries(people).find(([address]) => address.toLowerCase() === email.toLowerCase())?.[1];
    const actor = known === undefined ? (email === "" ? undefined : await personOf(email)) : { id: known, team: "" };
    return { name, ...(actor === undefined ? {} : { actor }) };
  }

  return {
    async note(source, ref, text) {
      if (source === "pagerduty" || source === "opsgenie") {
        const system = await (source === "pagerduty" ? duty() : genie());
        if (system === undefined || ref === undefined) return false;
        await system.note(ref, text);
        return true;
      }
      const beside = await dashboards();
      if (beside === undefined) return false;
      await beside.note(source === "grafana" ? ref : undefined, text);
      return true;
    },

    async escalate(call) {
      const system = await duty();
      if (system === undefined) throw new Error("nobody can be called: netcheck.yaml has no pagers.pagerduty");
      await system.call(call);
    },

    async standDown(id) {
      await (await duty())?.standDown(id);
    },

    async onCall({ by, schedule }: OnCallSource) {
      if (by === "slack") return { name: schedule, actor: { id: schedule, team: "" } };
      const system = await (by === "pagerduty" ? duty() : genie());
      if (system === undefined) throw new Error(`netcheck.yaml has no pagers.${by}, so nobody can be asked who is on call`);
      const found = await system.onCall(schedule);
      return found === undefined ? undefined : inChat(found.name, found.email);
    },
  };
}
