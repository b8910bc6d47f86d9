import { afterEach, beforeEach, expect, test } from "vitest";
import { sha256 } from "../../functions/triage/audit.ts";
import type { Page } from "../../functions/triage/ports.ts";
import { Bench, configOf } from "./harness.ts";

/** A page starts the triages by itself. */

let bench: Bench;
beforeEach(() => {
  bench = new Bench();
  bench.config = { ...configOf(), pages: { channel: "C_PAGES" } };
});
afterEach(async () => bench.close());

const incidentOf = (target: string): string => `inc-${sha256(`generic\nalert-1\n${target}`).slice(0, 12)}`;
async function send(page: Partial<Page> = {}): Promise<void> {
  bench.engine.execute("page-1", { kind: "page", page: { source: "generic", id: "alert-1", title: "NodeNotReady <!channel>", targets: ["node2"], ...page } });
  await bench.pass(60);
}

test("each node is examined in the channel for pages; what the page said stands in the thread, harmless", async () => {
  await send();
  const id = incidentOf("node2");
  expect(bench.outcome("page-1")).toBe("started");
  expect(bench.chat.posts.get(`${id}/root`)?.place).toEqual({ channel: "C_PAGES" });
  expect(bench.chat.drawn(`${id}/because`)).toContain("A page asked for it: NodeNotReady &lt;!channel&gt;");
  expect(await bench.incident(id)).toMatchObject({ requester: { id: "pager" }, state: "awaiting-approval" });
});

test("a name that is no target is told to the channel: a page has nobody to whisper to", async () => {
  await send({ targets: ["node9"] });
  expect(bench.chat.drawn(`${incidentOf("node9")}/unknown`)).toContain("node9");
});

test("of many nodes the first five are examined, and the thread says so", async () => {
  await send({ targets: ["node2", "a", "b", "c", "d", "e", "f"] });
  expect(bench.chat.drawn(`${incidentOf("node2")}/because`)).toContain("7 nodes; the first 5 are examined");
  expect(bench.execution(incidentOf("d"))).toBeDefined();
  expect(bench.execution(incidentOf("e"))).toBeUndefined();
});

test("without a channel for pages nothing is started, and the log says what is missing", async () => {
  bench.config = configOf();
  await send();
  expect(bench.outcome("page-1")).toBe("no-channel");
  expect(bench.logged.join("\n")).toContain("pages.channel");
});
