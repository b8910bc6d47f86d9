import { mkdirSync, mkdtempSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { program } from "../functions/cli/program.ts";
import { archiveKey, athenaSql, COLUMNS } from "../functions/store/archive-layout.ts";
import { SqliteStore } from "../functions/store/sqlite.ts";
import { canonical, chain } from "../functions/triage/audit.ts";
import type { AuditEvent } from "../functions/triage/ports.ts";
import type { Ran } from "./run-cli.ts";
import { draft, incident } from "./store/drafts.ts";

/** `netcheck audit …` on a trail of two incidents. */

let folder: string;
let events: readonly AuditEvent[];
beforeAll(async () => {
  folder = mkdtempSync(join(tmpdir(), "netcheck-cli-audit-"));
  const store = new SqliteStore(join(folder, "data/store.sqlite"));
  for (const [id, day] of [
    ["inc-1", "2026-01-01"],
    ["inc-2", "2026-02-01"],
  ] as const) {
    const on = (key: string, data = {}) => ({ ...draft(key, data), at: `${day}T08:00:00.000Z` });
    await store.open(incident(id), on("incident-opened"));
    await store.record(id, [on("diagnosed", { verdict: "healthy" }), on("approved/c1", { statement: "sre" })]);
  }
  events = await store.audit();
  store.close();
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The command in this process: starting one for each question takes longer than all the answers. Paths are below `folder`, as typed and as told. */
async function audit(...args: string[]): Promise<Ran> {
  const said = { stdout: "", stderr: "" };
  const hear = (stream: "stdout" | "stderr") =>
    vi.spyOn(process[stream], "write").mockImplementation((chunk) => {
      said[stream] += String(chunk).replaceAll(`${folder}/`, "");
      return true;
    });
  const ears = [hear("stdout"), hear("stderr")];
  const before = process.exitCode;
  process.exitCode = 0;
  try {
    const command = await program("audit");
    await command.parseAsync(["node", "netcheck", "audit", ...args.map((word) => (PATH.test(word) ? join(folder, word) : word))]);
    return { code: Number(process.exitCode), ...said };
  } finally {
    process.exitCode = before;
    for (const ear of ears) ear.mockRestore();
  }
}
const PATH = /^(?:[a-z]+\.(?:jsonl|html)|data(?:\/store\.sqlite)?|archive|short|forged|empty|merged|rewritten|nowhere)$/;
const inData = (...args: string[]): Promise<Ran> => audit(...args, "--directory", "data");
const lines = (text: string): string[] => text.trimEnd().split("\n");
const file = (name: string, content: readonly string[]): string => {
  writeFileSync(join(folder, name), `${content.join("\n")}\n`);
  return name;
};
/** As the archiving Lambda writes it. */
function archive(name: string, all: readonly AuditEvent[]): string {
  for (const event of all) {
    const path = join(folder, name, archiveKey(event));
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, `${canonical(event)}\n`);
  }
  return name;
}
/** The events from number 5 on, otherwise. */
function otherwise(): AuditEvent[] {
  const made = events.slice(0, 4);
  for (const key of ["x", "y", "z"]) {
    const last = made.findLast((event) => event.incident === "inc-1");
    made.push(chain("inc-1", draft(key), last, made.at(-1)));
  }
  return made;
}

describe("export and verify", () => {
  test("an export is whole by itself, for its owner alone, and says where it ends", async () => {
    expect(await inData("export", "-o", "all.jsonl", "--format", "jsonl")).toEqual({
      code: 0,
      stdout: "all.jsonl: 6 events, and the ends of their chains\n",
      stderr: "",
    });
    expect(statSync(join(folder, "all.jsonl")).mode & 0o777).toBe(0o600);
    const exported = lines(readFileSync(join(folder, "all.jsonl"), "utf8"));
    expect(exported.slice(0, -1).map((line) => JSON.parse(line) as unknown)).toEqual(events);
    expect(JSON.parse(exported.at(-1) ?? "")).toMatchObject({
      schema: "netcheck.audit-heads/1",
      after: [],
      heads: [{ sequence: 6 }, { incident: "inc-1" }, { incident: "inc-2" }],
    });
    expect(await audit("verify", "all.jsonl")).toEqual({ code: 0, stdout: "6 events: the chain is whole\n", stderr: "" });
    const cut = file("cut.jsonl", [...exported.slice(0, 4), exported[6] ?? ""]);
    const { code, stdout } = await audit("verify", cut);
    expect([code, lines(stdout)[0]]).toEqual([1, "truncated: the audit trail ends with event 4, but 6 were written: events 5 to 6 were cut off"]);
    expect(stdout).toContain("What to do (truncated): look for the events behind the last one in the archive");
    const headless = await audit("verify", file("headless.jsonl", exported.slice(0, 4)));
    expect([headless.code, headless.stdout]).toEqual([
      0,
      expect.stringMatching(/^4 events: the chain is whole\nnot checked: the file does not end with a line of ends/) as string,
    ]);
    expect((await audit("verify", "headless.jsonl", "--anchors", "all.jsonl")).stdout).toMatch(/^truncated: /);
    const more = await audit("verify", file("more.jsonl", [...exported, exported[0] ?? ""]), "--json");
    expect([more.code, (JSON.parse(more.stdout) as { problems: { kind: string; look: string }[] }).problems[0]]).toEqual([
      1,
      {
        kind: "inserted",
        problem: expect.stringContaining("behind the line with the ends") as string,
        look: expect.stringContaining("no step of netcheck") as string,
      },
    ]);
    expect((await audit("verify", file("odd.jsonl", [...exported.slice(0, 2), "{nonsense", ...exported.slice(3)]))).stdout).toMatch(
      /^edited: event 3 \(no type/,
    );
  });

  test("of one incident, and of the later events: whole as far as it goes, and it says how far", async () => {
    await inData("export", "--incident", "inc-2", "-o", "two.jsonl");
    const two = await audit("verify", "two.jsonl");
    expect([two.code, two.stdout]).toEqual([
      0,
      "3 events: the chain is whole\nnot checked: it holds incident inc-2 alone: the chain over all incidents cannot be checked with it\n",
    ]);
    await inData("export", "--since", "2026-01-15", "-o", "later.jsonl");
    const later = await audit("verify", "later.jsonl");
    expect([later.code, later.stdout]).toEqual([0, "3 events: the chain is whole\nnot checked: it begins behind event 3: what is before is not in the file\n"]);
    expect((await inData("export", "--since", "yesterday")).stderr).toBe(
      "netcheck: --since yesterday: this is no time; write it as 2026-11-21 or 2026-11-21T08:00:00Z\n",
    );
    const notes = await audit("verify", file("notes.jsonl", ["root@node1:~# ip route", "default via 10.0.0.1 dev eth0"]));
    expect([notes.code, notes.stdout, notes.stderr]).toEqual([
      1,
      "",
      "netcheck: notes.jsonl: none of its lines is JSON, so it is no file of netcheck audit export\n",
    ]);
    expect((await inData("export", "inc-9")).stderr).toBe("netcheck: there are no events of inc-9; netcheck audit show lists all\n");
    expect((await inData("show", "inc-9")).stderr).toBe("netcheck: there are no events of inc-9; netcheck audit show lists all\n");
    const mixed = await audit("verify", "two.jsonl", "later.jsonl");
    expect([mixed.code, mixed.stderr]).toEqual([2, "netcheck: two.jsonl and later.jsonl cannot be compared: one is of inc-2, the other of all incidents\n"]);
  });

  test("a downloaded archive, alone, with anchors and against the store", async () => {
    await inData("export", "-o", "anchors.jsonl");
    archive("archive", events);
    const alone = await audit("verify", "archive");
    expect([alone.code, alone.stdout]).toEqual([
      0,
      expect.stringMatching(/^6 events: the chain is whole\nnot checked: an archive does not say where it ends/) as string,
    ]);
    const both = await audit("verify", "data", "archive", "--anchors", "anchors.jsonl");
    expect([both.code, lines(both.stdout).at(-1)]).toEqual([0, "data and archive: the 6 events that both have are the same"]);
    archive("short", events.slice(0, 5));
    expect((await audit("verify", "short", "--anchors", "anchors.jsonl")).stdout).toMatch(
      /^truncated: the audit trail ends with event 5, and does not contain event 6/,
    );
    const forged = archive("forged", events);
    const [first] = events as [AuditEvent];
    writeFileSync(join(folder, forged, archiveKey(first)), canonical(events[1]));
    expect((await audit("verify", forged)).stdout).toContain("edited: 000000000001-inc-1-1.json holds another event than its name says");
    mkdirSync(join(folder, "empty"));
    expect((await audit("verify", "empty")).stderr).toMatch(/^netcheck: empty: there is neither a store\.sqlite nor an archived event in it/);
  });

  test("a file without a line: an export that came to nothing is no whole trail", async () => {
    const { code, stdout, stderr } = await audit("verify", file("nothing.jsonl", []));
    expect([code, stdout, stderr]).toEqual([1, "", expect.stringMatching(/^netcheck: nothing\.jsonl: it is empty, and an export ends with a line/) as string]);
  });

  test("two exports that went different ways: forked, from which event on", async () => {
    await inData("export", "-o", "one.jsonl");
    const other = file(
      "other.jsonl",
      otherwise().map((event) => canonical(event)),
    );
    const { code, stdout } = await audit("verify", "one.jsonl", other);
    expect(code).toBe(1);
    expect(stdout).toContain("forked: one.jsonl and other.jsonl disagree from event 5 of the audit trail on: event 4 is the last that both have");
    const json = JSON.parse((await audit("verify", "one.jsonl", other, "--json")).stdout) as { compared: { common: number; problems: { kind: string }[] }[] };
    expect(json.compared[0]).toMatchObject({ common: 4, problems: [{ kind: "forked" }] });
    // the other one in the archive, too: two objects of one number
    archive("merged", [...events, ...otherwise().slice(4)]);
    expect((await audit("verify", "merged")).stdout).toContain("forked: two events follow event 4 of the audit trail");
  });

  test("a store that was rewritten as a whole, ends and all: anchors show it, and another copy", async () => {
    await inData("export", "-o", "before.jsonl");
    const store = new SqliteStore(join(folder, "rewritten/store.sqlite"));
    for (const { incident: of, key, at, actor, type, data } of events)
      await store.record(of, [{ key, at, actor, type, data: key === "approved/c1" ? { statement: "forged" } : data }]);
    store.close();
    expect((await audit("verify", "rewritten")).code).toBe(0);
    const anchored = await audit("verify", "rewritten", "--anchors", "before.jsonl");
    expect([anchored.code, anchored.stdout]).toEqual([
      1,
      expect.stringContaining("edited: the audit trail does not contain event 6 as it was exported") as string,
    ]);
    expect((await audit("verify", "rewritten", "before.jsonl")).stdout).toContain("disagree from event 3 of the audit trail on");
    expect((await audit("verify", "data", "--anchors", "data/store.sqlite")).stderr).toContain("it holds no ends of chains");
    expect((await audit("verify", "nowhere")).stderr).toBe("netcheck: nowhere: there is no such file or folder\n");
  });
});

describe("report", () => {
  test("Markdown, or a page, or the nearest ids", async () => {
    const markdown = await inData("report", "inc-1");
    expect([markdown.code, markdown.stdout]).toEqual([
      0,
      expect.stringMatching(/^# inc-1: node1\n[\s\S]*3 events, chain whole, last hash `[0-9a-f]{64}`/) as string,
    ]);
    expect((await inData("report", "inc-2", "--html", "-o", "two.html")).stdout).toBe("two.html: the timeline of inc-2\n");
    expect(readFileSync(join(folder, "two.html"), "utf8")).toMatch(/^<!doctype html>[\s\S]*<\/html>\n$/);
    expect(await inData("report", "inc-3")).toEqual({ code: 1, stdout: "", stderr: "netcheck: there is no incident inc-3; the nearest are inc-2, inc-1\n" });
  });
});

describe("athena", () => {
  test("the columns are the fields of an exported event, and the questions ask for nothing else", () => {
    const [event] = events as [AuditEvent];
    expect(COLUMNS.map(([field]) => field)).toEqual(Object.keys(event).sort());
    const sql = athenaSql("s3://bucket");
    const [ddl = "", ...questions] = sql.split(";\n");
    const columns = [...ddl.matchAll(/^ {2}`(\w+)` /gm)].map(([, name]) => name);
    expect(columns).toEqual(
      Object.keys(event)
        .sort()
        .map((name) => name.toLowerCase()),
    );
    // a name that is not in lower case is told where it comes from
    for (const name of Object.keys(event)) expect(ddl.includes(`'mapping.${name.toLowerCase()}' = '${name}'`)).toBe(name !== name.toLowerCase());
    expect(ddl).toMatch(/'storage\.location\.template' = 's3:\/\/bucket\/audit\/\$\{day\}\/'/);
    expect(archiveKey(event)).toMatch(/^audit\/2026-01-01\/0{11}1-inc-1-1\.json$/);
    const asked = new Set([...questions.join("").matchAll(/(?<!AS )(?<!\.)"(\w+)"(?!\s*\.\s*")/g)].map(([, name]) => name));
    for (const name of asked) expect([...columns, "day", "id"], `${name} is no column`).toContain(name);
    expect(questions).toHaveLength(4);
  });

  test("printed for a bucket, and as docs/audit.md shows it", async () => {
    const { code, stdout } = await audit("athena", "--location", "s3://netcheck-archive/audit/");
    expect([code, stdout]).toEqual([0, athenaSql("s3://netcheck-archive")]);
    expect(readFileSync(new URL("../docs/audit.md", import.meta.url), "utf8")).toContain(athenaSql("s3://netcheck-archive"));
    const odd = await audit("athena", "--location", "s3://x/';DROP TABLE y;--");
    expect([odd.code, odd.stderr]).toEqual([2, expect.stringContaining("this is no place in S3") as string]);
  });

  test("an event without a time has a place all the same", () => {
    expect(archiveKey({ at: "../..", globalSequence: 1, incident: "i", sequence: 1 })).toBe("audit/1970-01-01/000000000001-i-1.json");
  });
});
