import { join } from "node:path";
import { describe, expect, test } from "vitest";
import type { Diagnosis } from "../../functions/rules/diagnosis.ts";
import { loadReport } from "../../functions/slack/report.ts";
import { canonical, chain, sha256 } from "../../functions/triage/audit.ts";
import type { Actor, AuditEvent, Incident } from "../../functions/triage/ports.ts";
import { type TimelineSource, timelineOf } from "../../functions/triage/timeline.ts";
import { ALICE, BOB } from "../store/drafts.ts";
import { catalogueOf, root } from "./runbooks.ts";

const NETCHECK: Actor = { id: "netcheck", team: "" };
const catalogue = catalogueOf();
const render = loadReport(join(root, "templates/report.md.hbs"));

/** Events of one incident: minutes and seconds after eight, who, which, and what it says. */
function trail(...entries: [time: string, actor: Actor, key: string, data?: Record<string, unknown>][]): AuditEvent[] {
  const events: AuditEvent[] = [];
  for (const [time, actor, key, data = {}] of entries) {
    const draft = { key, at: `2026-11-21T08:${time}.250Z`, actor, type: key.replace(/\/.*$/, ""), data };
    events.push(chain("inc-1", draft, events.at(-1), events.at(-1)));
  }
  return events;
}
const incident: Incident = {
  id: "inc-1",
  target: "node2",
  cluster: "lab",
  requester: ALICE,
  createdAt: "2026-11-21T08:00:00.250Z",
  state: "resolved",
};
const diagnosis: Diagnosis = {
  schema: "netcheck.diagnosis/1",
  capture: "captures/inc-1/collect",
  target: "node2",
  verdict: "cause-found",
  causes: [
    {
      rule: "bridge-netfilter-off",
      title: "Bridged traffic bypasses iptables",
      severity: "critical",
      confidence: 0.95,
      summary: "net.bridge.bridge-nf-call-iptables is 0",
      evidence: [{ command: "sysctl -a", file: "outputs/sysctl.txt", line: 12, text: "net.bridge.bridge-nf-call-iptables = 0" }],
      explains: [],
    },
  ],
  symptoms: [],
  risks: [],
  unchecked: [{ rule: "clock-unsynchronized", reason: "timedatectl was not collected" }],
  unparsed: [],
  unknown: [],
  stats: { bytes: 1, lines: 1, rules: 1, ms: 1 },
};
const [fixId, fix] = [...catalogue.fixes].find(([, { file }]) => Object.keys(file.parameters).length === 0 && file.apply.length > 0) ?? [];
const proposed = { proposal: "inc-1-fix", rule: "bridge-netfilter-off", fix: fixId, version: fix?.version, parameters: {}, target: "node2", cluster: "lab" };
const HASH = "ab".repeat(32);
const events = trail(
  ["00:00", ALICE, "incident-opened", { target: "node2", cluster: "lab", transport: "ssm" }],
  ["00:07", NETCHECK, "collected/collect", { transport: "ssm", outputs: 31 }],
  ["00:08", NETCHECK, "diagnosed", { verdict: "cause-found", capture: "cd".repeat(32), diagnosis: sha256(canonical(diagnosis)) }],
  ["00:09", NETCHECK, "fix-proposed", proposed],
  ["01:30", BOB, "previewed/c1", { proposal: "inc-1-fix", hash: HASH }],
  ["02:00", { id: "U_EVE", team: "T" }, "refused/c2", { proposal: "inc-1-fix", decision: "approve", statement: "sre", reason: "you are no approver" }],
  ["03:12", BOB, "break-glass-approved/c3", { proposal: "inc-1-fix", hash: HASH, statement: "emergency", reason: "all pods of the shop are down" }],
  ["03:14", NETCHECK, "fix-started", { proposal: "inc-1-fix", hash: HASH }],
  ["03:20", NETCHECK, "fix-finished", { proposal: "inc-1-fix", outcome: "succeeded", reason: "" }],
  ["03:40", NETCHECK, "verified", { proposal: "inc-1-fix", ok: true, words: "Collected again after 5 s: the cause is gone." }],
  ["04:00", NETCHECK, "moon-phase-checked", { moonPhase: "full", list: ["a", "b"], nested: { x: 1 }, empty: "" }],
  ["59:00", ALICE, "reviewed/p", { proposal: "inc-1-fix", statement: "emergency" }],
);
const source: TimelineSource = {
  incident: { ...incident, review: "done" },
  events,
  diagnosis,
  capture: "cd".repeat(32),
  catalogue,
  madeAt: "2026-11-21T10:00:00.000Z",
};
const markdown = (from: TimelineSource) => render({ ...timelineOf(from) }, "timeline.md");
const html = (from: TimelineSource) => render({ ...timelineOf(from) }, "timeline.html");

describe("the timeline of an incident", () => {
  const timeline = timelineOf(source);

  test("what was asked, found, on which evidence, and whether that is what is stored", () => {
    expect(timeline).toMatchObject({ asked: "What is wrong with the network of node2?", by: "U_ALICE", opened: "2026-11-21 08:00:00", state: "resolved" });
    expect(timeline.found.causes[0]?.evidence).toEqual([{ command: "sysctl -a", line: 12, text: "net.bridge.bridge-nf-call-iptables = 0" }]);
    expect(timeline.found.hashes.map(({ what, good }) => [what, good])).toEqual([
      ["The capture", true],
      ["The diagnosis", true],
    ]);
    const forged = timelineOf({ ...source, diagnosis: { ...diagnosis, verdict: "healthy" }, capture: undefined });
    expect(forged.found.hashes.map(({ words }) => words)).toEqual(["is not in the store any more", "is NOT what was recorded: it was changed later"]);
  });

  test("who saw it, who decided what, when, by which statement, and who was refused", () => {
    expect(timeline.seen).toEqual([{ utc: "2026-11-21 08:01:30", after: "+1 min 30 s", who: "U_BOB" }]);
    expect(timeline.decisions.map(({ who, what, statement, reason, after, breakGlass }) => [who, what, statement, reason, after, breakGlass])).toEqual([
      ["U_EVE", "wanted to approve, and was refused", "sre", "you are no approver", "+2 min 0 s", false],
      ["U_BOB", "approved by break-glass: the policy alone did not allow it", "emergency", "all pods of the shop are down", "+3 min 12 s", true],
      ["U_ALICE", "reviewed the use of break-glass", "emergency", "", "+59 min 0 s", false],
    ]);
    expect(timeline.review).toBe("Break-glass was used by U_BOB: the policy alone did not allow this change. U_ALICE reviewed it at 2026-11-21 08:59:00.");
  });

  test("exactly what ran, and what came of it", () => {
    const [change] = timeline.changes;
    expect(change).toMatchObject({
      kind: "Fix",
      id: fixId,
      hash: HASH,
      outcome: "It ran and succeeded.",
      verification: "Collected again after 5 s: the cause is gone.",
    });
    expect(change?.commands).not.toBe("");
    const later = timelineOf({ ...source, events: trail(["00:00", NETCHECK, "fix-proposed", { ...proposed, version: "000000000000" }]) }).changes[0];
    expect(later).toMatchObject({ commands: "", outcome: "It was not run." });
    expect(later?.commandsNote).toContain("another version");
  });

  test("a rollback is a change of its own, with the commands that take the fix back", () => {
    const [withRollback] = [...catalogue.fixes].filter(([, { file }]) => Object.keys(file.parameters).length === 0 && file.rollback.length > 0);
    const [id, { version, file }] = withRollback as [string, NonNullable<typeof fix>];
    const about = { proposal: "inc-1-rollback", fix: id, version, parameters: {} };
    const rolled = timelineOf({
      ...source,
      events: trail(
        ["00:00", NETCHECK, "rollback-proposed", about],
        ["00:05", NETCHECK, "rollback-finished", { proposal: "inc-1-rollback", outcome: "unknown", reason: "" }],
      ),
    });
    expect(rolled.changes[0]).toMatchObject({ kind: "Rollback", outcome: "It is not known whether it ran. It was not run again." });
    expect(rolled.changes[0]?.commands.split("\n")[0]).toContain(file.rollback[0]?.run[0]);
  });

  test("an event of a type that it does not know still reads as a sentence", () => {
    const row = timeline.events.find(({ number }) => number === 11);
    expect([row?.what, row?.details]).toEqual([
      "moon phase checked",
      [
        { name: "moon phase", value: "full" },
        { name: "list", value: "a, b" },
        { name: "nested", value: '{"x":1}' },
      ],
    ]);
    expect(timelineOf({ ...source, events: trail(["00:00", ALICE, "constructor"]) }).events[0]?.what).toBe("constructor");
  });

  test("the chain is checked, and a change of it shows", () => {
    expect(timeline.chain).toEqual({ events: 12, whole: true, last: events.at(-1)?.hash, problems: [] });
    const forged = events.with(6, { ...(events[6] as AuditEvent), actor: ALICE });
    expect(markdown({ ...source, events: forged })).toContain("**chain BROKEN**");
    expect(html({ ...source, events: forged })).toMatch(/chain BROKEN<\/span>[\s\S]*event 7 \(break-glass-approved of inc-1\) was changed/);
  });

  test.each([
    ["files", { sources: ["a.tgz"] }, "What do these files say of node2: a.tgz?"],
    ["a pod", { workload: { kind: "pod", namespace: "shop", name: "web-1" } }, "What is wrong with pod shop/web-1? node2 was looked at for it."],
    ["a comparison", { against: ["node3"] }, "What is wrong with the network of node2, compared with node3?"],
  ] as const)("what was asked about %s", (_, more, asked) => {
    expect(timelineOf({ ...source, incident: { ...incident, ...more } }).asked).toBe(asked);
  });

  test("nothing but an opened incident", () => {
    const bare = { ...source, incident, diagnosis: undefined, capture: undefined, events: trail(["00:00", ALICE, "incident-opened"]) };
    for (const text of [markdown(bare), html(bare)]) {
      for (const words of ["There is no stored diagnosis", "Nobody opened the preview.", "Nobody decided anything.", "Nothing: no fix was proposed."])
        expect(text).toContain(words);
      expect(text).not.toContain("Break-glass");
      expect(text).toMatch(/1 events, .*chain whole/);
    }
  });
});

describe("the files", () => {
  test("both say the same things", () => {
    for (const text of [markdown(source), html(source)].map((file) => file.replaceAll("\\", "").replaceAll("&#x3D;", "=")))
      for (const words of [
        "U_BOB",
        "net.bridge.bridge-nf-call-iptables = 0",
        "all pods of the shop are down",
        "BREAK-GLASS",
        HASH,
        "12 events",
        events.at(-1)?.hash ?? "-",
      ])
        expect(text).toContain(words);
  });

  test("the page loads nothing and runs nothing", () => {
    const page = html(source);
    expect(page).toContain(`content="default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"`);
    expect(page).not.toMatch(/<script|<img|<link|<iframe|\son\w+=|url\(|@import|https?:/i);
  });

  test("hostile text stays text, in both", () => {
    const evil = `<script>alert(1)</script><img src=x onerror=y> [a](https://evil.example) | **x** \`z\` ${"\u202e"}desrever\n# heading`;
    const hostile: TimelineSource = {
      ...source,
      incident: { ...incident, target: evil, problem: evil },
      diagnosis: {
        ...diagnosis,
        causes: [
          {
            ...(diagnosis.causes[0] as (typeof diagnosis.causes)[0]),
            summary: evil,
            title: evil,
            evidence: [{ command: evil, file: "f", line: 1, text: evil }],
          },
        ],
      },
      events: trail(["00:00", { id: evil, team: "" }, `approved/${evil}`, { reason: evil, statement: evil, [evil]: evil }]),
    };
    const page = html(hostile);
    expect(page).not.toMatch(/<script|<img/i);
    expect(page).toContain("&lt;script&gt;alert(1)");
    const text = markdown(hostile);
    expect(page + text).not.toContain("\u202e");
    const outside = text.replaceAll(/^ {4}.*$/gm, "").replaceAll(/`[^`\n]*`/g, "");
    expect(outside).not.toMatch(/(?<!\\)<(?:script|img)/);
    expect(outside).not.toMatch(/(?<!\\)\[a\]|^# heading|https:\/\//m);
    // a table's row stays one row
    expect(text.split("\n").filter((one) => one.startsWith("| 1 |"))).toHaveLength(1);
    expect(
      text
        .split("\n")
        .find((one) => one.startsWith("| 1 |"))
        ?.match(/(?<!\\)\|/g),
    ).toHaveLength(6);
  });
});
