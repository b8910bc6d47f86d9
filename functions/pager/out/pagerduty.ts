import { PAGE_MARK, type PagerCall } from "../../triage/ports.ts";
import { type Call, call, firstLine, hasStatus, record, records, text } from "./call.ts";

export interface PagerDutyOptions {
  /** Of the REST API: "https://api.pagerduty.com", or api.eu. */
  readonly api: string;
  /** Of the Events API, version 2: "https://events.pagerduty.com", or events.eu. */
  readonly events: string;
  /** A REST API key. */
  readonly token: () => Promise<string>;
  /** E-mail address of the user in whose name notes are left: PagerDuty wants one where the key is the account's. */
  readonly from: string;
  /** Integration key of the service that calls somebody where nobody takes an alert on; absent: nobody can be called. */
  readonly routingKey?: () => Promise<string>;
}

/** An id as PagerDuty makes them: nothing else gets into an address. */
const ID = /^[A-Z0-9]{3,40}$/;
/** Characters of a summary: PagerDuty's own limit. */
const MAX_SUMMARY = 1024;

/** PagerDuty: notes on incidents and who is on call (REST API), and calls (Events API, version 2). */
export function pagerDuty({ api, events, token, from, routingKey }: PagerDutyOptions) {
  const rest = async (what: string, method: Call["method"], path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> =>
    record(
      await call({
        service: "pagerduty",
        what,
        method,
        url: `${api}${path}`,
        headers: { authorization: `Token token=${await token()}`, accept: "application/vnd.pagerduty+json;version=2", from },
        ...(body === undefined ? {} : { body }),
        key: "The REST API key (pagers.pagerduty.tokenSecret) must be valid, and its user may write notes",
      }),
    );

  const send = async (what: string, body: Readonly<Record<string, unknown>>): Promise<void> => {
    if (routingKey === undefined) throw new Error("pagerduty: nobody can be called: netcheck.yaml names no pagers.pagerduty.routingKeySecret");
    await call({
      service: "pagerduty",
      what,
      method: "POST",
      url: `${events}/v2/enqueue`,
      headers: {},
      body: { routing_key: await routingKey(), ...body },
      key: "The integration key (pagers.pagerduty.routingKeySecret) must be of an integration “Events API v2”",
    });
  };

  return {
    /** Leaves a note on an incident, unless there is one with the same first line. */
    async note(incident: string, note: string): Promise<void> {
      if (!ID.test(incident)) throw new Error(`pagerduty: could not leave a note: ${JSON.stringify(incident.slice(0, 60))} is no id of an incident`);
      const path = `/incidents/${incident}/notes`;
      const what = `leave a note on incident ${incident}`;
      // a repeated step must not leave it twice, and PagerDuty has no key for that
      const { notes } = await rest(what, "GET", path);
      if (records(notes).some(({ content }) => firstLine(text(content)) === firstLine(note))) return;
      await rest(what, "POST", path, { note: { content: note } });
    },

    async call({ id, summary, severity, details, url }: PagerCall): Promise<void> {
      await send("call somebody", {
        event_action: "trigger",
        dedup_key: `${PAGE_MARK}${id}`,
        client: "netcheck",
        ...(url === undefined ? {} : { client_url: url, links: [{ href: url, text: "Thread in Slack" }] }),
        payload: { summary: `${PAGE_MARK} ${summary}`.slice(0, MAX_SUMMARY), source: "netcheck", severity, custom_details: details },
      });
    },

    /** PagerDuty takes the end of a call that never was without a word. */
    async standDown(id: string): Promise<void> {
      if (routingKey !== undefined) await send("end a call", { event_action: "resolve", dedup_key: `${PAGE_MARK}${id}` });
    },

    /** Name and e-mail address of who is on call by a schedule now; the lowest level first. */
    async onCall(schedule: string): Promise<{ readonly name: string; readonly email: string } | undefined> {
      if (!ID.test(schedule)) throw new Error(`pagerduty: ${JSON.stringify(schedule.slice(0, 60))} is no id of a schedule`);
      const query = new URLSearchParams([
        ["schedule_ids[]", schedule],
        ["include[]", "users"],
        ["earliest", "true"],
        ["limit", "20"],
      ]);
      const { oncalls } = await rest(`ask who is on call by schedule ${schedule}`, "GET", `/oncalls?${query}`).catch((error: unknown) => {
        if (hasStatus(error, 404)) throw new Error(`pagerduty: there is no schedule ${schedule} (onCall in netcheck.yaml)`, { cause: error });
        throw error;
      });
      const found = [...records(oncalls)].sort((a, b) => Number(a["escalation_level"]) - Number(b["escalation_level"]))[0];
      if (found === undefined) return undefined;
      const user = record(found["user"]);
      return { name: text(user["name"]) || text(user["summary"]), email: text(user["email"]) };
    },
  };
}
