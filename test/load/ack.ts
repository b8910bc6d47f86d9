import { fork } from "node:child_process";
import { once } from "node:events";
import { Agent, request } from "node:http";
import { fileURLToPath } from "node:url";
import { sign } from "../../functions/local/app-link.ts";
import { incidentId } from "../../functions/slack/listeners/netcheck-command.ts";
import { command } from "../slack/requests.ts";

const SECRET = "8f742231b10e8888abcd99yyyzzz85a5";

export interface AckReport {
  readonly sent: number;
  /** Answered with something else than 200, or not at all. */
  readonly refused: number;
  /** What these were answered, and how often; 0: not at all. */
  readonly answers: Readonly<Record<string, number>>;
  /** Answered with 200 and not to be found afterwards. */
  readonly lost: number;
  /** Milliseconds from the moment at which a request was due to the end of its answer. */
  readonly p50: number;
  readonly p99: number;
  readonly max: number;
}

/**
 * So many signed slash commands per second over HTTP, for so many seconds, each at its time whether or not those before it were answered: a slow moment counts
 * for all that had to wait in it.
 */
export async function loadAck(folder: string, perSecond: number, seconds: number): Promise<AckReport> {
  const server = fork(fileURLToPath(new URL("ack-server.ts", import.meta.url)), [folder, SECRET]);
  try {
    const [{ port }] = (await once(server, "message")) as [{ port: number }];
    const agent = new Agent({ keepAlive: true, maxSockets: 200 });
    const send = async (number: number): Promise<number> => {
      const timestamp = Math.floor(Date.now() / 1000);
      const body = new URLSearchParams(command(`node${(number % 5) + 1}`, { trigger_id: triggerOf(number) })).toString();
      const headers = {
        "content-type": "application/x-www-form-urlencoded",
        "content-length": String(Buffer.byteLength(body)),
        "x-slack-request-timestamp": String(timestamp),
        "x-slack-signature": sign(SECRET, timestamp, body),
      };
      return new Promise((resolve) => {
        const sent = request({ host: "127.0.0.1", port, method: "POST", path: "/slack/events", agent, headers }, (response) => {
          response.resume().once("end", () => resolve(response.statusCode ?? 0));
        });
        sent.once("error", () => resolve(0));
        sent.end(body);
      });
    };
    // a machine that has just started reads its code first; that is bench's business (ack: cold start)
    for (let number = 0; number < 50; number++) await send(-1 - number);

    const total = perSecond * seconds;
    const answered: Promise<{ readonly number: number; readonly status: number; readonly ms: number }>[] = [];
    const begin = performance.now();
    const dueAt = (number: number): number => begin + (number * 1000) / perSecond;
    for (let number = 0; number < total; ) {
      for (; number < total && performance.now() >= dueAt(number); number++) {
        const due = dueAt(number);
        const of = number;
        answered.push(send(of).then((status) => ({ number: of, status, ms: performance.now() - due })));
      }
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    const all = await Promise.all(answered);
    agent.destroy();
    const taken = all.filter(({ status }) => status === 200);
    server.send(taken.map(({ number }) => incidentId(triggerOf(number))));
    const [{ missing }] = (await once(server, "message")) as [{ missing: readonly string[] }];
    const times = all.map(({ ms }) => ms).sort((a, b) => a - b);
    const at = (share: number): number => times[Math.min(times.length - 1, Math.floor(times.length * share))] ?? 0;
    const answers: Record<string, number> = {};
    for (const { status } of all) if (status !== 200) answers[status] = (answers[status] ?? 0) + 1;
    return { sent: total, refused: all.length - taken.length, answers, lost: missing.length, p50: at(0.5), p99: at(0.99), max: times.at(-1) ?? 0 };
  } finally {
    server.disconnect();
    await once(server, "exit");
  }
}

const triggerOf = (number: number): string => `13345224609.738474920.${number}`;
