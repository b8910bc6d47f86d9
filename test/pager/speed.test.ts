import { afterEach, expect, test } from "vitest";
import { PageBench, pagesConfig } from "../triage/page-bench.ts";
import { door, requestOf, SOURCES, sample } from "./requests.ts";

/**
 * From a signed request to the first message in the channel, and to what was found: through the real door, engine, workflow, store and templates; Slack and the
 * node answer at once. In production the start of a Lambda comes on top, and Slack's own 100 to 300 ms.
 */

let bench: PageBench | undefined;
afterEach(async () => bench?.close());

const FIRST = { pagerduty: "triggered", alertmanager: "firing-group", grafana: "firing", cloudwatch: "alarm", opsgenie: "create", generic: "page" } as const;

test("the first message is there within a second, whichever system sends", async () => {
  const taken: Record<string, number[]> = {};
  for (const source of SOURCES) {
    const at: number[] = [];
    let tell: (() => void) | undefined;
    bench = new PageBench();
    bench.config = pagesConfig({
      routes: [
        { match: { labels: { cluster: "harbour-eu" } }, cluster: "lab" },
        { match: { source: "pagerduty" }, targets: [{ label: "title", regex: "(node) web" }] },
      ],
    });
    const told = new Promise<void>((resolve) => {
      tell = resolve;
    });
    bench.chat.trouble = (call) => {
      if (call !== "post") return;
      at.push(performance.now());
      tell?.();
    };
    const { handle } = door({ work: bench.ports.work });
    const request = requestOf(source, sample(source, FIRST[source]));
    const started = performance.now();
    expect(await handle(request)).toMatchObject({ statusCode: 202 });
    const answered = performance.now() - started;
    await told;
    taken[source] = [answered, (at[0] ?? Number.POSITIVE_INFINITY) - started].map((ms) => Math.round(ms * 10) / 10);
    expect(taken[source]?.[1], `${source}: ${JSON.stringify(taken)}`).toBeLessThan(1000);
    await bench.pass(1);
    await bench.close();
    bench = undefined;
  }
  if (process.env["SHOW_TIMES"] === "1") process.stdout.write(`${JSON.stringify(taken)}\n`);
});
