import { type Call, call, firstLine, record, records, text } from "./call.ts";

export interface OpsgenieOptions {
  /** "https://api.opsgenie.com", or api.eu. */
  readonly api: string;
  /** Key of an API integration. */
  readonly token: () => Promise<string>;
}

const ID = /^[\w-]{3,100}$/;
/** Newest notes among which one is looked for: netcheck leaves two. */
const NOTES = 100;

/** Opsgenie: notes on alerts, and who is on call. */
export function opsgenie({ api, token }: OpsgenieOptions) {
  const rest = async (what: string, method: Call["method"], path: string, body?: unknown): Promise<Readonly<Record<string, unknown>>> =>
    record(
      await call({
        service: "opsgenie",
        what,
        method,
        url: `${api}${path}`,
        headers: { authorization: `GenieKey ${await token()}` },
        ...(body === undefined ? {} : { body }),
        key: "The key (pagers.opsgenie.tokenSecret) must be of an API integration that may read and update alerts",
      }),
    );
  return {
    /** Leaves a note on an alert, unless there is one with the same first line. Opsgenie only says that it will: it works the request off later. */
    async note(alert: string, note: string): Promise<void> {
      if (!ID.test(alert)) throw new Error(`opsgenie: could not leave a note: ${JSON.stringify(alert.slice(0, 60))} is no id of an alert`);
      const path = `/v2/alerts/${alert}/notes?identifierType=id`;
      const what = `leave a note on alert ${alert}`;
      const { data } = await rest(what, "GET", `${path}&order=desc&limit=${NOTES}`);
      if (records(data).some((one) => firstLine(text(one["note"])) === firstLine(note))) return;
      await rest(what, "POST", path, { user: "netcheck", source: "netcheck", note });
    },

    /** E-mail address of who is on call by a schedule now. */
    async onCall(schedule: string): Promise<{ readonly name: string; readonly email: string } | undefined> {
      if (!ID.test(schedule)) throw new Error(`opsgenie: ${JSON.stringify(schedule.slice(0, 60))} is no id of a schedule`);
      const { data } = await rest(
        `ask who is on call by schedule ${schedule}`,
        "GET",
        `/v2/schedules/${schedule}/on-calls?scheduleIdentifierType=id&flat=true`,
      );
      const recipients = record(data)["onCallRecipients"];
      const email = Array.isArray(recipients) ? text(recipients[0]) : "";
      return email === "" ? undefined : { name: email, email };
    },
  };
}
