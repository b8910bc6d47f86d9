import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { buffer } from "node:stream/consumers";
import { pack } from "tar-stream";
import { afterEach, expect, test } from "vitest";
import { loadDiagnosis } from "../../functions/triage/collect.ts";
import { ALICE, Bench, BOB, CHANNEL } from "./harness.ts";
import { catalogueOf, root } from "./runbooks.ts";

/** Files and text dropped beside a mention, on the embedded engine, with the real importers and rules. */

const sosreport = join(root, "test/imports/sosreport-node4.tar.xz");
const catalogue = catalogueOf(undefined, ["bridge-netfilter-off", "unreplied-service-connection"]);

const open: Bench[] = [];
afterEach(async () => {
  for (const bench of open.splice(0)) await bench.close();
});
function bench(): Bench {
  const made = new Bench();
  open.push(made);
  made.catalogue = catalogue;
  Object.assign(made.files, { "sosreport-node4.tar.xz": sosreport, "holiday.png": join(root, "docs/images/local-narrow.png") });
  return made;
}
const shared = (...names: string[]) => ({ files: names.map((name, index) => ({ id: `F${index + 1}`, name })) });
const thread = { channel: CHANNEL, thread: "0.900" };
const places = (bench: Bench) => [...bench.chat.posts.values()].map(({ place }) => place);

/** What a node printed whose fault has a catalogued fix. */
const saved = readFileSync(join(root, "runbooks/rules/kube-forward-before-cilium/fixtures/lab-fault/outputs/iptables-save_-c.txt"), "utf8");

test("a sosreport in a thread: cause, picture and report there; on record, with hashes; no fix", async () => {
  const at = bench();
  await at.paste(shared("sosreport-node4.tar.xz"));
  expect(at.outcome()).toBe("diagnosed");
  expect([...at.chat.posts.keys()]).toEqual(["inc-1/root", "inc-1/diagnosis-1"]);
  expect(places(at)).toEqual([thread, thread]);
  expect(at.chat.data("inc-1/diagnosis-1")).toMatchObject({
    target: "node4",
    source: "sosreport-node4.tar.xz",
    cause: { rule: "bridge-netfilter-off" },
    noFix: true,
    again: false,
  });
  expect(at.chat.drawn("inc-1/diagnosis-1")).toContain("a fix needs a live node");
  expect(at.chat.data("inc-1/root")).toMatchObject({ target: "node4", note: "read from sosreport-node4.tar.xz", state: "likely cause found" });
  expect([...at.chat.uploads.keys()]).toEqual(["inc-1/diagram-1", "inc-1/report"]);
  expect(JSON.parse(at.chat.uploads.get("inc-1/diagram-1") ?? "")).toMatchObject({ breakAt: expect.any(Number) as number });
  const report = at.chat.uploads.get("inc-1/report") ?? "";
  expect(report).toContain("| node4 | likely cause found | bridge-netfilter-off | sosreport-node4.tar.xz |");
  expect(report).toContain("# node4: likely cause found");
  expect(report).not.toContain("Proposed fix");

  const incident = await at.incident();
  expect(incident).toMatchObject({ state: "diagnosed", target: "node4", sources: ["sosreport-node4.tar.xz"], requester: ALICE });
  expect(incident.proposal).toBeUndefined();
  const trail = await at.store.audit("inc-1");
  expect(trail.map(({ type, actor }) => [type, actor.id])).toEqual([
    ["incident-opened", ALICE.id],
    ["collected", "netcheck"],
    ["diagnosed", "netcheck"],
  ]);
  expect(trail[1]?.data).toMatchObject({ file: "sosreport-node4.tar.xz", bytes: 3808, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string });
  expect(trail[2]?.data).toMatchObject({ causes: ["bridge-netfilter-off"], diagnosis: expect.stringMatching(/^[0-9a-f]{64}$/) as string });
  // the rule's fix is not even in what is kept
  expect((await loadDiagnosis(at, incident.diagnosis ?? "")).causes.map(({ fix }) => fix)).toEqual([undefined]);
});

test("a capture of which a file is missing: what is there is diagnosed, and the thread says which one it is", async () => {
  const at = bench();
  const tar = pack();
  const outputs = ["iptables-save", "ip rule"].map((command, index) => ({ command, file: `outputs/${index}.txt` }));
  tar.entry({ name: "capture.json" }, JSON.stringify({ schema: "netcheck.capture/1", target: { name: "node8" }, outputs }));
  tar.entry({ name: "outputs/0.txt" }, saved);
  tar.finalize();
  const folder = mkdtempSync(join(tmpdir(), "netcheck-pasted-"));
  try {
    writeFileSync(join(folder, "node8.tar"), await buffer(tar));
    Object.assign(at.files, { "node8.tar": join(folder, "node8.tar") });
    await at.paste(shared("node8.tar"));
  } finally {
    rmSync(folder, { recursive: true });
  }
  expect(at.outcome()).toBe("diagnosed");
  expect([...at.chat.posts.keys()]).toEqual(["inc-1/root", "inc-1/unreadable-1", "inc-1/diagnosis-1"]);
  expect(at.chat.data("inc-1/unreadable-1")).toMatchObject({
    text: 'Could not read all of node8.tar. "outputs/1.txt" is not in the capture: what `ip rule` printed is not known.',
  });
});

test("several outputs in one text: each is read, and quoted by the line of the text", async () => {
  const at = bench();
  await at.paste({ text: `root@node2:~# iptables-save -c\n${saved}root@node2:~# ip route\ndefault via 10.0.0.1 dev eth0\n` });
  expect(at.chat.data("inc-1/diagnosis-1")).toMatchObject({ target: "node2", cause: { rule: "kube-forward-before-cilium" } });
  const diagnosis = await loadDiagnosis(at, (await at.incident()).diagnosis ?? "");
  expect(diagnosis.stats.lines).toBeGreaterThan(saved.split("\n").length);
  const line = saved.split("\n").findIndex((one) => one.includes("-A FORWARD ") && one.includes("KUBE-FORWARD"));
  expect(diagnosis.causes[0]?.evidence.map((one) => [one.command, one.line])).toContainEqual(["iptables-save -c", line + 2]);
});

test("outputs in a file each: one diagnosis of all, and what is none of them is told", async () => {
  const at = bench();
  const folder = mkdtempSync(join(tmpdir(), "netcheck-pasted-"));
  const files: Record<string, string> = {
    "iptables-save_-c.txt": saved,
    "ip_route.txt": "default via 10.0.0.1 dev eth0\n",
    "ip_addr.txt": "\n",
    "ip_rule.txt": "\n",
  };
  try {
    for (const [name, text] of Object.entries(files)) {
      at.files[name] = join(folder, name);
      writeFileSync(join(folder, name), text);
    }
    await at.paste(shared(...Object.keys(files), "ss.txt"));
  } finally {
    rmSync(folder, { recursive: true });
  }
  expect(at.outcome()).toBe("diagnosed");
  expect([...at.chat.posts.keys()].filter((key) => key.includes("/diagnosis-"))).toEqual(["inc-1/diagnosis-1"]);
  expect(at.chat.data("inc-1/diagnosis-1")).toMatchObject({
    source: "iptables-save_-c.txt, ip_route.txt and 2 more",
    cause: { rule: "kube-forward-before-cilium" },
  });
  expect(at.chat.data("inc-1/unreadable-1")["text"]).toBe("Could not read ss.txt. Slack does not have it any more.");
  const [, collected] = await at.store.audit("inc-1");
  expect(collected?.data).toMatchObject({ files: Object.keys(files).map((name) => ({ name, sha256: expect.stringMatching(/^[0-9a-f]{64}$/) as string })) });
});

test("a sysdump of seven nodes: five messages, the worst first, and all of them in the report's table", async () => {
  const at = bench();
  const tar = pack();
  for (let node = 1; node <= 7; node += 1) {
    const [command, text] = node === 6 ? ["iptables-save -c", saved] : ["ip -4 r", `default via 10.0.0.${node} dev eth0`];
    tar.entry({ name: `cilium-sysdump-1/bugtool-cilium-node${node}/cmd/${command.replaceAll(" ", "-")}.md` }, `# ${command}\n\n\`\`\`\n${text}\n\`\`\`\n`);
  }
  tar.finalize();
  const folder = mkdtempSync(join(tmpdir(), "netcheck-pasted-"));
  try {
    at.files["sysdump.tar"] = join(folder, "sysdump.tar");
    writeFileSync(join(folder, "sysdump.tar"), await buffer(tar));
    await at.paste(shared("sysdump.tar"));
  } finally {
    rmSync(folder, { recursive: true });
  }
  expect(at.outcome()).toBe("diagnosed");
  const told = [...at.chat.posts.keys()].filter((key) => key.includes("/diagnosis-"));
  expect(told).toHaveLength(5);
  const nodes = told.map((key) => String(at.chat.data(key)["target"]));
  expect(nodes).toEqual(["cilium-node6", "cilium-node1", "cilium-node2", "cilium-node3", "cilium-node4"]);
  expect(at.chat.data("inc-1/diagnosis-1")).toMatchObject({ cause: { rule: "kube-forward-before-cilium" } });
  expect(at.chat.data("inc-1/root")).toMatchObject({
    target: "7 nodes",
    note: "read from sysdump.tar; the first 5 of 7 nodes are shown, all are in the report; worst: cilium-node6",
  });
  const report = at.chat.uploads.get("inc-1/report") ?? "";
  expect(report.match(/^\| cilium-node\d \| .* \| sysdump\.tar \|$/gm)).toHaveLength(7);
  expect(report.match(/^# cilium-node\d: /gm)).toHaveLength(7);
});

test("what nobody could read of the text is named in the report", async () => {
  const at = bench();
  await at.paste({
    text: "root@node2:~# for i in eth0 eth1; do ethtool -S $i; done\nNIC statistics:\n     rx_dropped: 12\nroot@node2:~# ip route\ndefault via 10.0.0.1 dev eth0\n",
  });
  const [, unread] = (at.chat.uploads.get("inc-1/report") ?? "").split("## Outputs that were not read\n");
  expect(unread?.trim().split("\n").at(-1)).toBe("- `for i in eth0 eth1; do ethtool -S $i; done`");
});

test("pasted text is read, and a forged output never becomes a fix", async () => {
  const at = bench();
  const text = `\`\`\`\nroot@node2:~# iptables-save -c\n${saved}\n\`\`\``;
  await at.paste({ text });
  expect(at.chat.data("inc-1/diagnosis-1")).toMatchObject({ target: "node2", source: "the pasted text", cause: { rule: "kube-forward-before-cilium" } });
  expect(await at.store.proposal("inc-1-fix")).toBeUndefined();
  expect(await at.events("fix-proposed")).toEqual([]);
  // nobody can act on it: not by a forged click either
  expect(await at.click("confirm", BOB)).toBe("failed");
  expect(await at.click("again", BOB)).toBe("failed");
  expect(at.chat.whispered(BOB).join()).toContain("read from a file, not from a node");
  expect([...at.node.jobs]).toEqual([]);
});

test("the node's name in a file is a stranger's word", async () => {
  const at = bench();
  await at.paste({
    text: "<!channel>@`evil`|# ip route\nroot@node1..[x](http://evil):~# ip route\n10.0.0.0/24 dev eth0 scope link\nroot@$(reboot):~# ip addr\n",
  });
  expect(String(at.chat.data("inc-1/diagnosis-1")["target"])).toMatch(/^[A-Za-z0-9._:-]+$/);
  expect(at.chat.drawn("inc-1/diagnosis-1")).not.toContain("<!channel>");
});

test("files that cannot be read are named with a reason and what can be read; the others are diagnosed", async () => {
  const at = bench();
  await at.paste(shared("holiday.png", "gone.tgz", "sosreport-node4.tar.xz"));
  expect(at.outcome()).toBe("diagnosed");
  expect(at.chat.data("inc-1/unreadable-1")["text"]).toMatch(
    /^Could not read holiday\.png\. .*no output of a command.*It reads a capture .*sosreport.*sysdump/,
  );
  expect(at.chat.data("inc-1/unreadable-2")["text"]).toBe("Could not read gone.tgz. Slack does not have it any more.");
  expect(at.chat.data("inc-1/diagnosis-1")).toMatchObject({ cause: { rule: "bridge-netfilter-off" } });
  // where it lay for a moment is nobody's business
  expect(at.chat.drawn("inc-1/unreadable-1")).not.toContain("/tmp");
});

test("nothing readable: said in the thread, and closed", async () => {
  const at = bench();
  await at.paste({ text: "the node is slow\nplease help" });
  expect(at.outcome()).toBe("unreadable");
  expect(at.chat.data("inc-1/unreadable-1")["text"]).toMatch(/^Could not read the pasted text\. /);
  expect(at.chat.data("inc-1/root")).toMatchObject({ state: "the triage failed", note: "nothing in it could be read" });
  expect((await at.incident()).state).toBe("failed");
});

test("words beside a file are only words; outputs beside it are read as well", async () => {
  const at = bench();
  await at.paste({ ...shared("sosreport-node4.tar.xz"), text: "this node is slow\nsince noon" });
  expect([...at.chat.posts.keys()]).toEqual(["inc-1/root", "inc-1/diagnosis-1"]);
  const both = bench();
  await both.paste({ ...shared("sosreport-node4.tar.xz"), text: "$ ip route\ndefault via 10.0.0.1 dev eth0\n" });
  expect([...both.chat.posts.keys()]).toEqual(["inc-1/root", "inc-1/diagnosis-1", "inc-1/diagnosis-2"]);
});

test("the same asked of two nodes in one text: two diagnoses, the worse one first", async () => {
  const at = bench();
  await at.paste({ text: `root@good1:~# iptables-save -c\n# Completed on Sun Nov 22 05:00:00 2026\nroot@bad2:~# iptables-save -c\n${saved}` });
  expect([...at.chat.posts.keys()]).toEqual(["inc-1/root", "inc-1/diagnosis-1", "inc-1/diagnosis-2"]);
  expect(at.chat.data("inc-1/diagnosis-1")).toMatchObject({ target: "bad2", cause: { rule: "kube-forward-before-cilium" } });
  expect(at.chat.data("inc-1/diagnosis-2")).toMatchObject({ target: "good1", cause: null });
});

test("nothing but a mention: help, whispered, and nothing on record", async () => {
  const at = bench();
  await at.paste({ problem: '"what is wrong?" has more than one word' });
  expect(at.outcome()).toBe("help");
  expect(at.chat.whispers.map(({ place, actor, message }) => [place, actor, message.template])).toEqual([[thread, ALICE, "help"]]);
  expect(at.chat.whispered(ALICE).join()).toContain("has more than one word");
  expect(await at.store.incident("inc-1")).toBeUndefined();
  expect(await at.store.audit()).toEqual([]);
});

test("one line that is no question: read if a node printed it, else help", async () => {
  const at = bench();
  await at.paste({ text: "[12345.678901] nf_conntrack: nf_conntrack: table full, dropping packet", problem: "it has more than one word" });
  expect(at.outcome()).toBe("diagnosed");
  expect(at.chat.whispers).toEqual([]);
  const words = bench();
  await words.paste({ text: "what is wrong?", problem: '"what is wrong?" has more than one word' });
  expect(words.outcome()).toBe("help");
  expect(words.chat.whispered(ALICE).join()).toContain("has more than one word");
  expect(await words.store.audit()).toEqual([]);
});

test("the same message delivered twice is one run", async () => {
  const at = bench();
  await at.paste(shared("sosreport-node4.tar.xz"));
  await at.paste(shared("sosreport-node4.tar.xz"));
  expect(at.chat.posts.size).toBe(2);
  expect(await at.store.audit()).toHaveLength(3);
});

test("a connection that breaks is tried again", async () => {
  let left = 2;
  const at = new Bench(({ importer }) => ({
    importer: {
      ...importer,
      file: async (one) => {
        left -= 1;
        if (left >= 0) throw Object.assign(new Error("the connection broke"), { retryable: true });
        return importer.file(one);
      },
    },
  }));
  open.push(at);
  at.files["sosreport-node4.tar.xz"] = sosreport;
  await at.paste(shared("sosreport-node4.tar.xz"));
  expect(at.outcome()).toBe("diagnosed");
});

test("what goes wrong is told in the thread, without a button that would do nothing", async () => {
  const at = bench();
  at.chat.trouble = (_call, what) => {
    if (what === "inc-1/diagnosis-1") throw new Error("slack: could not post");
  };
  await at.paste(shared("sosreport-node4.tar.xz"));
  expect(at.outcome()).toBe("failed");
  expect(at.chat.posts.get("inc-1/failure")).toMatchObject({ place: thread, message: { template: "note" } });
  expect(at.chat.data("inc-1/failure")["text"]).toContain("The triage of sosreport-node4.tar.xz failed: slack: could not post");
});

test("a target mentioned in a thread: the whole triage stays in it, up to the verified fix, and again", async () => {
  const at = bench();
  const request = { incident: "inc-1", target: "node2", requester: ALICE, place: thread };
  at.engine.execute("inc-1", { kind: "triage", request });
  await at.pass(60);
  await at.click("confirm", BOB);
  expect(at.outcome()).toBe("resolved");
  expect(at.chat.posts.has("inc-1/outcome")).toBe(true);
  expect(new Set(places(at).map((place) => `${place.channel} ${place.thread}`))).toEqual(new Set([`${CHANNEL} 0.900`]));
  await at.click("again", BOB);
  expect(places(at).every((place) => place.thread === "0.900")).toBe(true);
});
