import { Config } from "../../functions/triage/config.ts";
import type { Page, PageAlert } from "../../functions/triage/ports.ts";
import { Bench } from "./harness.ts";

export const PAGES = "C0PAGES";

/** Nodes node2 … node9 of the cluster lab, edge1 of the cluster edge, and web of both. */
export const pagesConfig = (pages: Record<string, unknown> = {}): Config =>
  Config.parse({
    clusters: {
      lab: {
        transport: "replay",
        targets: { ...Object.fromEntries([2, 3, 4, 5, 6, 7, 8, 9].map((n) => [`node${n}`, {}])), node2: { address: "i-2" }, web: {} },
      },
      edge: { transport: "replay", targets: { edge1: {}, web: {} } },
    },
    policy: [{ id: "sre", effect: "allow", approvers: ["S_SRE"], expires: "60m" }],
    pages: { channel: PAGES, ...pages },
  });

export const alertOf = (change: Partial<PageAlert> = {}): PageAlert => ({
  key: "a1",
  status: "firing",
  severity: "warning",
  title: "NodeNotReady <!channel>",
  labels: { node: "node2" },
  at: "2026-01-01T00:00:00.000Z",
  ...change,
});

/** The whole workflow, and deliveries to it. */
export class PageBench extends Bench {
  #deliveries = 0;

  /** A delivery, and all that comes of it within a minute. Returns the name of its execution. */
  async deliver(alerts: readonly PageAlert[], change: Partial<Page> = {}, seconds = 60): Promise<string> {
    const name = this.send(alerts, change);
    await this.pass(seconds);
    return name;
  }

  /** The same, and nobody waits. */
  send(alerts: readonly PageAlert[], change: Partial<Page> = {}): string {
    const id = change.id ?? `delivery-${++this.#deliveries}`;
    const name = `page-of-${id}`;
    this.engine.execute(name, { kind: "page", page: { source: "generic", id, alerts, more: 0, ...change } });
    return name;
  }

  /** Keys of the messages of pages, in order. */
  roots(): string[] {
    return [...this.chat.posts.keys()].filter((key) => /^page-[0-9a-f]{12}\/root$/.test(key));
  }

  /** The words of the only message of a page. */
  root(): string {
    const [only, ...others] = this.roots();
    if (only === undefined || others.length > 0) throw new Error(`${this.roots().length} messages of pages; posted: ${[...this.chat.posts.keys()].join(", ")}`);
    return this.chat.drawn(only);
  }

  /** Ids of the incidents that pages asked for, with their nodes. */
  async triages(): Promise<Record<string, string>> {
    const incidents = (await this.store.incidents(200)).filter(({ requester }) => requester.id === "pager");
    return Object.fromEntries(incidents.map(({ id, target, cluster }) => [`${cluster}/${target}`, id]));
  }
}
