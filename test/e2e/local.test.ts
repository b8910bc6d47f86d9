import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { cpSync, readFileSync, writeFileSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { BrowserContextOptions, Locator } from "playwright-core";
import { describe, expect } from "vitest";
import type { LocalOptions } from "../../functions/local/main.ts";
import { capturesOf } from "../../functions/local/nodes.ts";
import { replayTransport } from "../../functions/transports/replay.ts";
import { Desk, temporaryFolder } from "./desk.ts";
import { brightness, faint, overflow } from "./looks.ts";
import { browser, cleanups, expectFocus, narrow, root, serve, shot, sit, tabTo, test } from "./setting.ts";

const cause = "kube-proxy's chain stands before Cilium's in FORWARD and drops pod traffic as INVALID";

/** Runs `/netcheck node2` as Alice up to the proposal, with its thread open. */
async function proposed(desk: Desk): Promise<void> {
  await desk.type("/netcheck node2");
  await desk.roots.getByText("a fix is waiting for approval").waitFor();
  await desk.openThread("node2");
  await desk.button("Preview").waitFor();
}

test("from a command to a verified fix, approved by a second person", async () => {
  const folder = temporaryFolder();
  cleanups.push(folder.remove);
  const replay = replayTransport({ directory: folder.path, captures: capturesOf(join(root, "runbooks")) });
  // The node takes its time: until then the thread is at its beginning.
  const answer = Promise.withResolvers<void>();
  const local = await serve({ transports: { replay: { ...replay, poll: async (...args) => answer.promise.then(() => replay.poll(...args)) } } });
  const desk = await sit(local.url);

  await desk.type("/netcheck node2");
  await desk.roots.getByText("collecting facts on the node").waitFor();
  expect(await desk.roots.getByText("(edited)").count()).toBe(0);
  answer.resolve();
  await desk.roots.getByRole("heading", { name: `node2: ${cause}` }).waitFor();
  await desk.roots.getByText("a fix is waiting for approval").waitFor();
  await desk.roots.getByText("(edited)").waitFor();

  await desk.openThread("node2");
  await desk.thread.getByText("Likely cause", { exact: true }).waitFor();
  const evidence = desk.thread.locator("pre").filter({ hasText: "-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP" });
  expect(await evidence.innerText()).toMatch(/^\d+: .*-A FORWARD .*-j KUBE-FORWARD {3}\(\+1 between the two samples\)$/m);
  await desk.thread.getByText("Evidence iptables-save -c").waitFor();
  await desk.thread.getByText("Put Cilium's jump first in FORWARD").first().waitFor();

  await desk.button("Preview").click();
  const preview = desk.dialog("Preview fix");
  const commands = await preview.locator("pre").first().innerText();
  expect(commands).toBe(
    [
      "iptables-restore --noflush -w 5 <<'EOF'",
      "*filter",
      '-D FORWARD -m comment --comment "cilium-feeder: CILIUM_FORWARD" -j CILIUM_FORWARD',
      '-I FORWARD 1 -m comment --comment "cilium-feeder: CILIUM_FORWARD" -j CILIUM_FORWARD',
      "COMMIT",
      "EOF",
    ].join("\n"),
  );
  for (const part of ["What it changes, and side effects", "Rollback", "To make it last"]) await preview.getByText(part, { exact: true }).waitFor();
  // To look at, and nothing else.
  expect(await preview.getByRole("button", { name: /Approve/ }).count()).toBe(0);
  await preview.getByRole("button", { name: "Close" }).first().click();
  await preview.waitFor({ state: "detached" });

  // Who asked cannot approve; only that person is told, no window opens, and nothing happens.
  await desk.button("Review and approve…").click();
  const refusal = desk.thread.getByRole("article").filter({ hasText: "You cannot approve this: you asked for this triage" });
  await refusal.getByText("Only visible to you").waitFor();
  await desk.button("Review and approve…").waitFor();
  expect(await desk.dialog("Review and approve").count()).toBe(0);

  await desk.become("Bob Tanaka");
  await desk.button("Review and approve…").waitFor();
  expect(await refusal.count()).toBe(0);
  // The same, with who asked and who has approved; it can be cancelled.
  const review = await desk.review();
  expect(await review.locator("pre").first().innerText()).toBe(commands);
  await review.getByText("Asked by @Alice Moreau · approved by nobody yet (0 of 1)").waitFor();
  await review.getByRole("button", { name: "Cancel" }).click();
  await review.waitFor({ state: "detached" });
  expect(await desk.button("Review and approve…").count()).toBe(1);
  await desk.approve();
  await desk.thread.getByText("Verification: Collected again after 2 s: the cause is gone").waitFor();
  await desk.thread.getByText("Approved by @Bob Tanaka. The fix ran.").waitFor();
  await desk.roots.getByText("resolved and verified").waitFor();
  expect(await desk.button("Review and approve…").count()).toBe(0);
  expect((await local.store.incidents(10)).map((incident) => incident.state)).toEqual(["resolved"]);

  // The report, read here and downloaded.
  await desk.thread.getByRole("button", { name: "Full report on node2" }).click();
  const report = page(desk, /^netcheck-node2-inc-[0-9a-f]+\.md$/);
  await report.getByText("# node2: likely cause found").waitFor();
  await report.getByRole("button", { name: "Close" }).click();
  const [download] = await Promise.all([desk.page.waitForEvent("download"), desk.thread.getByRole("link", { name: /^Download/ }).click()]);
  const text = await readFile(await download.path(), "utf8");
  expect(text).toContain("-A KUBE-FORWARD -m conntrack --ctstate INVALID -j DROP");
});

const page = (desk: Desk, name: RegExp): Locator => desk.page.getByRole("dialog", { name });

test.each([
  ["node1", "Proposed fix"],
  ["node3", "Proposed fix"],
  ["node4", "Proposed fix"],
  ["node5", "Proposed fix"],
])("%s: its cause is found, fixed and verified", async (node, heading) => {
  const desk = await sit((await serve()).url);
  await desk.type(`/netcheck ${node}`);
  await desk.roots.getByText("a fix is waiting for approval").waitFor();
  await desk.become("Carol Diaz");
  await desk.openThread(node);
  await desk.thread.getByText(heading).waitFor();
  await desk.approve();
  await desk.roots.getByText("resolved and verified").waitFor();
});

test("a healthy node: says so, and proposes nothing", async () => {
  const desk = await sit((await serve()).url);
  // By an example of the empty channel.
  await desk.page.getByRole("button", { name: "/netcheck healthy1" }).click();
  await desk.roots.getByText("no cause found: everything that was checked is in order").waitFor();
  await desk.openThread("healthy1");
  await desk.thread.getByRole("button", { name: "Full report on healthy1" }).waitFor();
  expect(await desk.button("Review and approve…").count()).toBe(0);
});

describe("files", () => {
  const sosreport = join(root, "test/imports/sosreport-node4.tar.xz");
  const title = "Bridged traffic bypasses iptables, so replies of services on the same node are not translated back";

  test("a sosreport dropped into a thread with a mention: the cause and the picture there, and no fix", async () => {
    const local = await serve();
    const desk = await sit(local.url);
    await desk.type("node4 loses replies since noon");
    await desk.roots.filter({ hasText: "since noon" }).hover();
    await desk.roots.getByRole("button", { name: "Reply in thread" }).click();
    await desk.thread.waitFor();

    const file = await desk.page.evaluateHandle(
      ({ name, bytes }) => {
        const transfer = new DataTransfer();
        transfer.items.add(new File([Uint8Array.from(bytes)], name));
        return transfer;
      },
      { name: "sosreport-node4.tar.xz", bytes: [...(await readFile(sosreport))] },
    );
    const messages = desk.thread.getByRole("log");
    await messages.dispatchEvent("dragover", { dataTransfer: file });
    await messages.dispatchEvent("drop", { dataTransfer: file });
    await desk.thread.getByRole("list", { name: "Attached files" }).getByText("sosreport-node4.tar.xz").waitFor();
    await desk.thread.getByRole("combobox").fill("@netcheck ");
    await desk.thread.getByRole("combobox").press("Enter");

    await desk.thread.getByText("Likely cause", { exact: true }).waitFor();
    await desk.thread.getByText(title, { exact: true }).waitFor();
    await desk.thread.getByText("a fix needs a live node").waitFor();
    const picture = desk.thread.getByRole("img", { name: /It breaks at/ });
    await picture.waitFor();
    expect(await picture.evaluate((image: HTMLImageElement) => image.naturalWidth)).toBeGreaterThan(300);
    await desk.thread.getByRole("button", { name: "Full report on node4" }).click();
    const report = page(desk, /^netcheck-node4-inc-[0-9a-f]+\.md$/);
    await report.getByText("bridge-netfilter-off").first().waitFor();
    await report.getByRole("button", { name: "Close" }).click();
    // one thread, with all of it inside
    expect(await desk.roots.count()).toBe(1);
    for (const name of ["Review and approve…", "Run again"]) expect(await desk.button(name).count()).toBe(0);
    expect((await local.store.audit()).map(({ type }) => type)).toEqual(["incident-opened", "collected", "diagnosed"]);
  });

  test.each(["light", "dark"] as const)("%s: attached without a mouse, taken off again, and a pasted output instead", async (colorScheme) => {
    const desk = await sit((await serve()).url, { colorScheme });
    // Long before it is opened: the browser must know by then that there is somebody to choose.
    const [chooser] = await Promise.all([
      desk.page.waitForEvent("filechooser"),
      tabTo(desk, desk.channel.getByRole("button", { name: "Attach files" })).then(() => desk.page.keyboard.press("Enter")),
    ]);
    await chooser.setFiles([sosreport]);
    const attached = desk.channel.getByRole("list", { name: "Attached files" });
    await attached.getByText("sosreport-node4.tar.xz").waitFor();
    await expectFocus(desk.composer);
    expect(await faint(desk.page)).toEqual([]);
    expect(await overflow(desk.page)).toEqual([]);
    await desk.page.keyboard.press("Shift+Tab");
    await desk.page.keyboard.press("Shift+Tab");
    await expectFocus(desk.channel.getByRole("button", { name: "Remove sosreport-node4.tar.xz" }));
    await desk.page.keyboard.press("Enter");
    await attached.waitFor({ state: "detached" });
    await expectFocus(desk.composer);

    const saved = await readFile(join(root, "runbooks/rules/kube-forward-before-cilium/fixtures/lab-fault/outputs/iptables-save_-c.txt"), "utf8");
    await desk.type(`@netcheck\n\`\`\`\nroot@node2:~# iptables-save -c\n${saved}\n\`\`\``);
    await desk.openThread("iptables-save");
    await desk.thread.getByText(cause, { exact: true }).waitFor();
    await desk.thread.getByText("Full report on node2").waitFor();
    expect(await desk.button("Review and approve…").count()).toBe(0);
  });

  test("a target mentioned in a thread is examined there, and can be fixed", async () => {
    const desk = await sit((await serve()).url);
    await desk.type("@netcheck node2");
    await desk.openThread("node2");
    await desk.button("Review and approve…").waitFor();
    await desk.become("Bob Tanaka");
    await desk.openThread("node2");
    await desk.approve();
    await desk.thread.getByText("the cause is gone").waitFor();
    expect(await desk.roots.count()).toBe(1);
  });
});

describe("no rule knows the fault: the node is compared with its pool", () => {
  const rule = "Only here (rule table 100): priority 1000 from all lookup 100; none of the 3 peers has it";
  const comparison = (desk: Desk): Locator => desk.thread.getByRole("article").filter({ hasText: "compared with" });

  test.each<["light" | "dark", string, BrowserContextOptions]>([
    ["light", "wide", {}],
    ["dark", "400 px", narrow],
  ])("blue-3, %s, %s: what differs, the decisive thing first, with its lines", async (colorScheme, _, size) => {
    const desk = await sit((await serve()).url, { colorScheme, ...size });
    await desk.type("/netcheck blue-3");
    await desk.roots.getByText("no cause that netcheck knows, but 2 differences from its pool").waitFor();
    await desk.openThread("blue-3");
    const answer = comparison(desk);
    await answer.getByText("blue-3 compared with blue-1, blue-2, blue-4", { exact: true }).waitFor();
    await answer.getByText("No rule found a cause, so netcheck compared this node with the other 3 nodes of the pool blue.").waitFor();
    const text = await answer.innerText();
    expect(text.indexOf(rule)).toBeGreaterThan(0);
    expect(text.indexOf(rule)).toBeLessThan(text.indexOf("unicast 10.40.0.0/16 interface eth0 gateway 10.20.0.77"));
    expect(await answer.locator("pre").first().innerText()).toBe('$ ip -j -4 rule show\n1: {"priority":1000,"src":"all","table":"100"}');
    expect(text).toMatch(/Facts as recorded \(replayed nodes\) on .*: blue-3 .*, blue-1 .*, blue-2 .*, blue-4 .* \(UTC\)\. \d+ facts were compared/);
    // nobody is asked to approve anything
    expect(await desk.button("Review and approve…").count()).toBe(0);
    await answer.scrollIntoViewIfNeeded();
    expect(await brightness(desk.page)).toBe(colorScheme);
    expect(await faint(desk.page)).toEqual([]);
    expect(await overflow(desk.page)).toEqual([]);
    if (colorScheme === "light" && size !== narrow) await shot(desk, "local-pool.png");
  });

  test("blue-1: healthy, and like its pool", async () => {
    const desk = await sit((await serve()).url);
    await desk.type("/netcheck blue-1");
    await desk.openThread("blue-1");
    await comparison(desk).getByText("no difference that matters to traffic").waitFor();
    await desk.roots.getByText("no cause found: everything that was checked is in order").waitFor();
    expect(await comparison(desk).locator("pre").count()).toBe(0);
  });
});

test("an unknown name: near ones are suggested, to the person who typed it only", async () => {
  const desk = await sit((await serve()).url);
  await desk.type("/netcheck nod");
  const answer = desk.roots.filter({ hasText: "I know no target called nod." });
  await answer.getByText("Only visible to you").waitFor();
  expect(await answer.innerText()).toMatch(/Did you mean:\s*node1\s*node2\s*node3\s*node4\s*node5/);
  await desk.become("Bob Tanaka");
  await desk.page.getByRole("heading", { name: "This is #incidents" }).waitFor();
  expect(await answer.count()).toBe(0);
  await desk.become("Alice Moreau");
  await answer.getByRole("button", { name: "node1" }).click();
  await desk.openThread("node1");
  await desk.thread.getByText("Likely cause", { exact: false }).first().waitFor();
});

test("help, and what is no target's name", async () => {
  const desk = await sit((await serve()).url);
  await desk.type("/netcheck help");
  await desk.roots.getByText("/netcheck node1").first().waitFor();
  await desk.roots.getByText("Only visible to you").waitFor();
  await desk.type("/netcheck $(reboot)");
  await desk.roots.getByText('"$(reboot)" cannot be the name of a target.').waitFor();
  // What is no command here never leaves the page.
  await desk.type("/reboot");
  await desk.page.getByRole("alert").getByText("/reboot is not a command here. Try /netcheck help.").waitFor();
});

test("dismissed by who asked, and run again", async () => {
  const desk = await sit((await serve()).url);
  await proposed(desk);
  await desk.button("Dismiss").click();
  await desk.thread.getByText("Dismissed by @Alice Moreau. Nothing was changed.").waitFor();
  await desk.roots.getByText("dismissed", { exact: true }).waitFor();
  expect(await desk.button("Review and approve…").count()).toBe(0);

  await desk.button("Run again").first().click();
  await desk.roots.getByText("a fix is waiting for approval").waitFor();
  expect(await desk.roots.count()).toBe(2);
  expect(await desk.roots.first().innerText()).toContain("dismissed");
});

test("two people before the same window: the first answer counts, and the other is told", async () => {
  const local = await serve();
  const [bob, carol] = [await sit(local.url), await sit(local.url)];
  await proposed(bob);
  await bob.become("Bob Tanaka");
  await carol.become("Carol Diaz");
  await carol.openThread("node2");
  const review = await carol.review();
  await bob.approve();
  await carol.roots.getByText("resolved and verified").waitFor();
  await review.getByRole("button", { name: "Approve & run" }).click();
  await review.waitFor({ state: "detached" });
  const answer = carol.thread.getByRole("article").filter({ hasText: "This proposal is closed already (succeeded)." });
  await answer.getByText("Only visible to you").waitFor();
  await carol.thread.getByText("Approved by @Bob Tanaka. The fix ran.").waitFor();
  expect(await carol.thread.getByText("Verification: Collected again").count()).toBe(1);
});

describe("an approval that asks for words", () => {
  /** The fix of node2 as a disruptive one, and a policy by which Carol may only break the glass. */
  function strict(): Partial<LocalOptions> {
    const folder = temporaryFolder();
    cleanups.push(folder.remove);
    const runbooks = join(folder.path, "runbooks");
    cpSync(join(root, "runbooks"), runbooks, { recursive: true, filter: (path) => !path.endsWith("/fixtures") });
    const file = join(runbooks, "fixes/move-cilium-forward-first/fix.yaml");
    writeFileSync(file, readFileSync(file, "utf8").replace("risk: low", "risk: disruptive"));
    const config = join(folder.path, "netcheck.yaml");
    const statement = { id: "prod", effect: "allow", approvers: ["U_BOB"], breakGlass: { who: ["U_CAROL"] } };
    const clusters = { demo: { transport: "replay", targets: { node2: {} } } };
    writeFileSync(config, JSON.stringify({ clusters, policy: [statement], breakGlass: { channel: "C_PLATFORM" } }));
    return { runbooks, config };
  }

  test.each<["light" | "dark", string, BrowserContextOptions]>([
    ["light", "wide", {}],
    ["dark", "400 px", narrow],
  ])("%s, %s, without a mouse: what is wrong is said in the window, then the glass is broken and reviewed", async (colorScheme, _, size) => {
    const local = await serve(strict());
    const desk = await sit(local.url, { colorScheme, ...size });
    await desk.type("/netcheck node2");
    await desk.roots.getByText("a fix is waiting for approval").waitFor();
    const become = async (name: string) => {
      if (size === narrow && !(await desk.channel.isVisible())) await desk.thread.getByRole("button", { name: "Close thread" }).click();
      if (size === narrow) await desk.page.getByRole("button", { name: "Channels and people" }).click();
      await desk.become(name);
      await desk.openThread("node2");
    };
    await become("Carol Diaz");
    const review = await desk.review();
    await review.getByText("Only in an emergency.").waitFor();
    await review.getByText("disruptive, traffic may break").waitFor();
    expect(await faint(desk.page)).toEqual([]);
    expect(await overflow(desk.page)).toEqual([]);

    // Slack's own check, then ours.
    const [name, why] = [
      review.getByRole("textbox", { name: "Type the name of the node: node2" }),
      review.getByRole("textbox", { name: /^Why can this not wait/ }),
    ];
    await tabTo(desk, review.getByRole("button", { name: "Approve & run" }));
    await desk.page.keyboard.press("Enter");
    const missing = "Please complete this required field.";
    await expect.poll(() => review.getByRole("alert").allInnerTexts()).toEqual([missing, missing]);
    await expectFocus(name);
    await desk.page.keyboard.type("node3");
    await tabTo(desk, why);
    await desk.page.keyboard.type("Payments fail, and Bob is asleep.");
    await tabTo(desk, review.getByRole("button", { name: "Approve & run" }));
    await desk.page.keyboard.press("Enter");
    await review.getByRole("alert").getByText("This is not the name of the node. Type node2, or cancel.").waitFor();
    await expectFocus(name);
    expect(await name.getAttribute("aria-invalid")).toBe("true");
    expect(await faint(desk.page)).toEqual([]);
    expect(await overflow(desk.page)).toEqual([]);
    expect((await local.store.proposal((await local.store.incidents(1))[0]?.proposal ?? ""))?.state).toBe("pending");
    await name.fill("node2");
    await desk.page.keyboard.press("Enter");
    await review.waitFor({ state: "detached" });

    const told = desk.thread.getByRole("article").filter({ hasText: "Break-glass approval." });
    await told.getByText("Payments fail, and Bob is asleep.").waitFor();
    await desk.thread.getByText("the cause is gone").first().waitFor();
    await become("Bob Tanaka");
    await told.getByRole("button", { name: "Reviewed" }).click();
    await told.getByText("reviewed by @Bob Tanaka").waitFor();
    await told.getByRole("button", { name: "Reviewed" }).waitFor({ state: "detached" });
    expect(await overflow(desk.page)).toEqual([]);
    expect((await local.store.incidents(1))[0]).toMatchObject({ state: "resolved", review: "done" });
    // told there, too, though not at the very same moment
    await expect.poll(() => local.workspace.transcript("C_PLATFORM")).toContain("reviewed by @bob");
    const elsewhere = local.workspace.transcript("C_PLATFORM");
    expect(elsewhere).toContain("@carol approved a fix for `node2`");
    expect(elsewhere).toContain("Reason: Payments fail, and Bob is asleep.");
  });
});

describe("without a mouse", () => {
  test("the composer is reached with Tab, and a command is completed and sent", async () => {
    const desk = await sit((await serve()).url);
    await tabTo(desk, desk.composer);
    await desk.page.keyboard.type("/net");
    await desk.page.keyboard.press("Tab");
    expect(await desk.composer.inputValue()).toBe("/netcheck ");
    await desk.page.getByRole("option", { name: "node1" }).waitFor();
    await desk.page.keyboard.press("ArrowDown");
    await desk.page.keyboard.press("ArrowDown");
    expect(await desk.page.getByRole("option", { selected: true }).innerText()).toContain("node2");
    await desk.page.keyboard.press("Enter");
    expect(await desk.composer.inputValue()).toBe("/netcheck node2");
    await desk.page.keyboard.press("Enter");
    await desk.roots.getByText("a fix is waiting for approval").waitFor();

    await tabTo(desk, desk.roots.getByRole("button", { name: /replies/ }));
    await desk.page.keyboard.press("Enter");
    await desk.button("Preview").waitFor();
    await tabTo(desk, desk.button("Preview"));
    await desk.page.keyboard.press("Enter");
    await desk.dialog("Preview fix").waitFor();
    await desk.page.keyboard.press("Escape");
    await desk.dialog("Preview fix").waitFor({ state: "detached" });
    // The focus is where it was.
    await expectFocus(desk.button("Preview"));
    await tabTo(desk, desk.button("Dismiss"));
    await desk.page.keyboard.press("Space");
    await desk.roots.getByText("dismissed", { exact: true }).waitFor();
  });
});

describe("how it looks", () => {
  test.each(["light", "dark"] as const)("%s: everything can be read", async (colorScheme) => {
    const desk = await sit((await serve()).url, { colorScheme });
    expect(await faint(desk.page)).toEqual([]);
    await proposed(desk);
    // Up to the cause, where the story begins.
    await desk.thread.getByText("Likely cause", { exact: true }).scrollIntoViewIfNeeded();
    await desk.composer.focus();
    expect(await brightness(desk.page)).toBe(colorScheme);
    expect(await faint(desk.page)).toEqual([]);
    expect(await overflow(desk.page)).toEqual([]);
    await shot(desk, `local-thread-${colorScheme}.png`);
    await desk.button("Preview").click();
    await desk.dialog("Preview fix").waitFor();
    expect(await faint(desk.page)).toEqual([]);
  });

  test("400 px wide: one thing at a time, nothing sticks out", async () => {
    const desk = await sit((await serve()).url, narrow);
    expect(await overflow(desk.page)).toEqual([]);
    await desk.type("/netcheck node2");
    await desk.roots.getByText("a fix is waiting for approval").waitFor();
    expect(await overflow(desk.page)).toEqual([]);
    await desk.openThread("node2");
    await desk.button("Preview").waitFor();
    expect(await desk.channel.isVisible()).toBe(false);
    expect(await overflow(desk.page)).toEqual([]);
    await shot(desk, "local-narrow.png");
    await desk.button("Preview").click();
    await desk.dialog("Preview fix").waitFor();
    expect(await overflow(desk.page)).toEqual([]);
    await desk.dialog("Preview fix").getByRole("button", { name: "Close" }).last().click();
    await desk.thread.getByRole("button", { name: "Close thread" }).click();

    // People are in the menu.
    await desk.page.getByRole("button", { name: "Channels and people" }).click();
    await desk.become("Bob Tanaka");
    await desk.openThread("node2");
    await desk.approve();
    await desk.thread.getByText("the cause is gone").waitFor();
    expect(await overflow(desk.page)).toEqual([]);
    await desk.thread.getByRole("button", { name: "Close thread" }).click();
    await desk.roots.getByText("resolved and verified").waitFor();
  });
});

describe("killed and started again: the page comes back by itself", () => {
  /** Kills local mode and starts it once more at the same address. */
  async function restart(desk: Desk, folder: string, running: { process: ChildProcess; url: string }): Promise<void> {
    running.process.kill("SIGKILL");
    await desk.page.getByRole("alert").getByText("No connection to the local server.").waitFor();
    await start(folder, Number(new URL(running.url).port));
    await desk.page.getByRole("alert").waitFor({ state: "detached" });
  }

  async function begin(): Promise<{ desk: Desk; folder: string; running: { process: ChildProcess; url: string } }> {
    const folder = temporaryFolder();
    cleanups.push(folder.remove);
    const running = await start(folder.path, 0);
    const desk = await Desk.open(browser(), running.url);
    cleanups.push(async () => {
      await desk.close();
      // Only the time without a server was complained about.
      expect(desk.complaints.filter((one) => !/net::ERR_(CONNECTION|INCOMPLETE_CHUNKED|EMPTY_RESPONSE)/.test(one))).toEqual([]);
    });
    await proposed(desk);
    await desk.become("Bob Tanaka");
    return { desk, folder: folder.path, running };
  }

  test("while a fix waits for approval: it is approved, run and verified", async () => {
    const { desk, folder, running } = await begin();
    await restart(desk, folder, running);
    await desk.approve();
    await desk.thread.getByText("the cause is gone").waitFor();
    await desk.roots.getByText("resolved and verified").waitFor();
    expect(await desk.roots.count()).toBe(1);
  });

  test("while the fix settles: it is verified, and was run once", async () => {
    const { desk, folder, running } = await begin();
    await desk.approve();
    await desk.roots.getByText("fix done, verifying").waitFor();
    await restart(desk, folder, running);
    await desk.thread.getByText("the cause is gone").waitFor();
    await desk.roots.getByText("resolved and verified").waitFor();
    expect(await desk.thread.getByText("(replayed) fix-").count()).toBe(1);
  });
});

/** `npm start` in a process of its own. */
async function start(directory: string, port: number): Promise<{ process: ChildProcess; url: string }> {
  const child = spawn(process.execPath, [join(root, "functions/cli.ts"), "start", "--directory", directory, "--port", String(port)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  cleanups.push(async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const url = /open (http:\S+)/.exec(line)?.[1];
    if (url !== undefined) return { process: child, url };
  }
  throw new Error("local mode ended before it was ready");
}
