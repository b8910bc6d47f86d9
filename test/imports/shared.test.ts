import { copyFileSync, mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import { sharedImporter } from "../../functions/imports/shared.ts";

let directory: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "netcheck-shared-"));
});
afterEach(() => rmSync(directory, { recursive: true }));

const sosreport = fileURLToPath(new URL("sosreport-node4.tar.xz", import.meta.url));
const known = { bytes: 1, sha256: "0".repeat(64) };

/** Where files were written, by an importer whose files hold `content`, or are the sosreport. */
function importer(content?: string): { paths: string[]; read: (name: string) => ReturnType<ReturnType<typeof sharedImporter>["file"]> } {
  const paths: string[] = [];
  const { file } = sharedImporter({
    directory: join(directory, "incoming"),
    fetch: async (_file, path) => {
      paths.push(path);
      expect(statSync(dirname(path)).mode & 0o777).toBe(0o700);
      if (content === undefined) copyFileSync(sosreport, path);
      else writeFileSync(path, content);
      return known;
    },
  });
  return { paths, read: (name) => file({ name }) };
}
const left = () => readdirSync(join(directory, "incoming"));

test("a file is read in a private folder, which is gone afterwards", async () => {
  const { read, paths } = importer();
  expect(await read("sosreport-node4.tar.xz")).toMatchObject({ ...known, captures: [{ target: "node4" }] });
  expect(basename(paths[0] ?? "")).toBe("sosreport-node4.tar.xz");
  expect(left()).toEqual([]);
});

test.each([
  ["../../../etc/cron.d/x.txt", "_.._.._etc_cron.d_x.txt"],
  ["/etc/passwd", "_etc_passwd"],
  ["..", "file"],
  ["", "file"],
  ["-rf", "rf"],
  ["a\u0000b\n.txt", "a_b_.txt"],
  ["отчёт.tar.xz", "_.tar.xz"],
  [`${"x".repeat(500)}.tgz`, `${"x".repeat(116)}.tgz`],
])("%j is written as %s, inside", async (name, expected) => {
  const { read, paths } = importer("$ ip route\ndefault via 10.0.0.1 dev eth0\n");
  await read(name).catch(() => undefined);
  expect(basename(paths[0] ?? "")).toBe(expected);
  expect(dirname(dirname(paths[0] ?? ""))).toBe(join(directory, "incoming"));
  expect(left()).toEqual([]);
});

test("a secret in a shared file is nowhere in the capture", async () => {
  const session = "$ ps aux\nroot 1 0.0 0.1 1 1 ? Ss 10:00 0:00 /sbin/init --token hunter22 ACME-1234\n$ ip route\ndefault via 10.0.0.1 dev eth0\n";
  const { file, text } = sharedImporter({
    directory: join(directory, "incoming"),
    secrets: ["ACME-[0-9]{4}"],
    fetch: (_file, path) => {
      writeFileSync(path, session);
      return Promise.resolve(known);
    },
  });
  const [shared] = (await file({ name: "session.txt" })).captures;
  for (const capture of [shared, ...text(session)]) {
    expect(capture?.redacted).toBe(2);
    expect(JSON.stringify(capture)).not.toMatch(/hunter22|ACME/);
    expect(capture?.outputs[1]?.text.trim()).toBe("default via 10.0.0.1 dev eth0");
  }
});

test.each([
  ["notes.txt", "the node is slow", "netcheck found no output of a command that it knows in it. It reads a capture"],
  ["broken.tgz", "no archive", "could not unpack it: "],
  ["capture.json", "{", "it is not JSON"],
])("%s that cannot be read: why, without where it lay", async (name, content, words) => {
  const problem = await importer(content)
    .read(name)
    .then(
      () => "it was read",
      (error: unknown) => (error as Error).message,
    );
  expect(problem).toContain(words);
  expect(problem).not.toContain(directory);
  expect(left()).toEqual([]);
});

test("nothing is left of a file that could not be fetched", async () => {
  const { file } = sharedImporter({ directory: join(directory, "incoming"), fetch: () => Promise.reject(new Error("gone")) });
  await expect(file({ name: "x.tgz" })).rejects.toThrow("gone");
  expect(left()).toEqual([]);
});

test("pasted text is a capture, or a sentence", () => {
  const { text } = sharedImporter({ directory, fetch: () => Promise.resolve(known) });
  expect(text("root@node7:~# ip route\ndefault via 10.0.0.1 dev eth0\n")).toMatchObject([
    {
      target: "node7",
      outputs: [{ command: "ip route", file: "pasted" }],
    },
  ]);
  expect(() => text("hello\nthere")).toThrow(/^the message: netcheck found no output/);
});

test("outputs that were saved in a file each are one node's; anything else is read by itself", async () => {
  const contents: Record<string, string> = {
    "iptables-save.txt": "*filter\n:INPUT ACCEPT [0:0]\nCOMMIT\n",
    "ip_route.txt": "default via 10.0.0.1 dev eth0\n",
    "ip_addr.txt": "no addresses\n",
    "ss_-s.txt.gz": "no archive",
  };
  const { groups, together } = sharedImporter({
    directory: join(directory, "incoming"),
    fetch: ({ name }, path) => {
      const content = contents[name];
      if (content === undefined) return Promise.reject(new Error("Slack does not have it any more"));
      writeFileSync(path, content);
      return Promise.resolve(known);
    },
  });
  const named = (...names: string[]) => names.map((name) => ({ name }));
  const of = (...names: string[]) => groups(named(...names)).map((group) => group.map(({ name }) => name));
  expect(of("node1.txt", "iptables-save.txt", "x.tgz", "ip_route.txt")).toEqual([["node1.txt"], ["iptables-save.txt", "ip_route.txt"], ["x.tgz"]]);
  // alone, of two nodes, packed, a picture
  expect(of("ip_route.txt", "notes.md")).toEqual([["ip_route.txt"], ["notes.md"]]);
  expect(of("ip_route.txt", "ip_route.txt", "ip_addr.txt")).toEqual([["ip_route.txt"], ["ip_route.txt"], ["ip_addr.txt"]]);
  expect(of("iptables-save.tgz", "ip_route.png")).toEqual([["iptables-save.tgz"], ["ip_route.png"]]);

  const { captures, fetched, unread } = await together(named("iptables-save.txt", "ip_route.txt", "ip_neigh.txt", "ss_-s.txt.gz"));
  expect(captures).toMatchObject([
    {
      target: "pasted",
      outputs: [
        { command: "ip route", file: "ip_route.txt" },
        { command: "iptables-save", file: "iptables-save.txt" },
      ],
    },
  ]);
  expect(fetched.map(({ name }) => name)).toEqual(["iptables-save.txt", "ip_route.txt", "ss_-s.txt.gz"]);
  expect(unread).toEqual([
    { name: "ip_neigh.txt", reason: "Slack does not have it any more" },
    { name: "ss_-s.txt.gz", reason: "netcheck found no output of a command that it knows in it" },
  ]);
  expect(left()).toEqual([]);
});

test("a file alone is named after its command as well as among others", async () => {
  expect((await importer("10.0.0.7 dev eth0 lladdr 02:00:00:00:00:07 REACHABLE\n").read("ip_neigh.txt")).captures).toMatchObject([
    { target: "pasted", outputs: [{ command: "ip neigh", file: "ip_neigh.txt" }] },
  ]);
});
