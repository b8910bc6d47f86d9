import type { BrowserContextOptions, Locator } from "playwright-core";
import { describe, expect } from "vitest";
import type { Desk } from "./desk.ts";
import { brightness, faint, overflow } from "./looks.ts";
import { expectFocus, narrow, serve, shot, sit, tabTo, test } from "./setting.ts";

/** On call in local mode: pages, a fleet, the app's Home tab, the menu of a message, and what people say about an answer. */

const LOOKS: ["light" | "dark", string, BrowserContextOptions][] = [
  ["light", "wide", {}],
  ["dark", "400 px", narrow],
];

/** Goes to a place of the sidebar, which is a menu where there is little room. */
async function go(desk: Desk, place: string): Promise<void> {
  const menu = desk.page.getByRole("button", { name: "Channels and people" });
  if (await menu.isVisible()) await menu.click();
  await desk.page.getByRole("navigation").getByRole("button", { name: place }).click();
}

/** Nothing is hard to read, and nothing sticks out. */
async function expectGoodLooks(desk: Desk, colorScheme: string): Promise<void> {
  expect(await brightness(desk.page)).toBe(colorScheme);
  expect(await faint(desk.page)).toEqual([]);
  expect(await overflow(desk.page)).toEqual([]);
}

/** Opens the menu of a message and chooses "Triage this node". */
async function triage(desk: Desk, message: Locator): Promise<void> {
  await message.hover();
  await message.getByRole("button", { name: "More about this message" }).click();
  await desk.page.getByRole("menuitem", { name: "Triage this node" }).click();
}

describe("sample pages", () => {
  const log = (desk: Desk): Locator => desk.page.getByRole("log", { name: "Sent and answered" });

  test.each(LOOKS)("%s, %s: a page fires, is triaged in the channel, and is resolved; a forged one is refused", async (colorScheme, size, options) => {
    const local = await serve();
    const desk = await sit(local.url, { colorScheme, ...options });
    await go(desk, "Sample pages");
    await desk.page.getByLabel("What the page is about").selectOption("node2");
    const fire = desk.page.getByRole("button", { name: "Fire: PagerDuty" });
    await tabTo(desk, fire);
    await desk.page.keyboard.press("Enter");
    await log(desk).getByText("202: accepted").waitFor();
    await desk.page.getByLabel("with a proof that does not fit").check();
    await fire.click();
    const refused = log(desk).getByRole("listitem").filter({ hasText: "401: no signature in X-PagerDuty-Signature fits" });
    await refused.locator("summary").click();
    expect(await refused.locator("pre").innerText()).toMatch(
      /^POST \/pager\/pagerduty\ncontent-type: application\/json\nx-pagerduty-signature: v1=[0-9a-f]{64}\n/,
    );
    await expectGoodLooks(desk, colorScheme);

    await go(desk, "incidents");
    const root = desk.roots.filter({ hasText: "Connections through node2 time out" });
    await root.getByText("firing · 1 node, 1 triage").waitFor();
    await root.getByText("kube-proxy's chain stands before Cilium's").waitFor();
    await desk.openThread("Connections through node2");
    await desk.thread.getByText("On call now: @oncall").waitFor();
    await desk.button("Review and approve…").waitFor();
    await expectGoodLooks(desk, colorScheme);
    await desk.thread.getByText("A page asked for it").scrollIntoViewIfNeeded();
    if (size === "wide") await shot(desk, "local-page.png");
    else await desk.thread.getByRole("button", { name: "Close thread" }).click();

    await go(desk, "Sample pages");
    // what was chosen is kept, so that it can be resolved
    expect(await desk.page.getByLabel("What the page is about").inputValue()).toBe("node2");
    await desk.page.getByLabel("with a proof that does not fit").setChecked(false);
    await desk.page.getByRole("button", { name: "Resolve: PagerDuty" }).click();
    await log(desk).getByText("PagerDuty: resolve, node2").waitFor();
    await go(desk, "incidents");
    await root.getByText("resolved · 1 node, 1 triage").waitFor();
    expect(await desk.roots.count()).toBe(1);
    expect((await local.store.incidents(10)).length).toBe(1);
  });

  test("a storm is one message: 37 alerts, and no node is examined twice", async () => {
    const local = await serve();
    const desk = await sit(local.url);
    await go(desk, "Sample pages");
    await desk.page.getByLabel("What the page is about").selectOption("storm");
    // one alert per page: it cannot
    expect(await desk.page.getByRole("button", { name: "Fire: PagerDuty" }).isDisabled()).toBe(true);
    await desk.page.getByRole("button", { name: "Fire: Alertmanager" }).click();
    await log(desk).getByText("202: accepted").waitFor();
    await go(desk, "incidents");
    await desk.roots.getByRole("heading", { name: "37 alerts, 5 nodes, 5 triages" }).waitFor();
    await expect.poll(async () => (await local.store.incidents(50)).filter(({ state }) => state !== "collecting").length).toBe(5);
    expect(await desk.roots.count()).toBe(1);
  });
});

describe("a fleet of 40 replayed nodes", () => {
  test.each(LOOKS)("%s, %s: one message with groups by cause, a node by button, and fixes, one node first", async (colorScheme, size, options) => {
    const local = await serve();
    const desk = await sit(local.url, { colorScheme, ...options });
    await desk.type("/netcheck nodes pool=green");
    const root = desk.roots.filter({ hasText: "40 nodes (pool=green)" });
    await root.getByText("31 nodes without a cause: everything that was checked is in order").waitFor({ timeout: 60_000 });
    for (const part of [
      "4 nodes have the same cause: Bridged traffic bypasses iptables",
      "2 nodes have the same cause: kube-proxy's chain stands before Cilium's",
      "1 node has a cause: ebtables rules left by azure-vnet",
      "1 node without a cause that netcheck knows, but unlike its pool: Only here (rule table 100)",
      "1 node could not be looked at, which says nothing about its network",
    ])
      await root.getByText(part).waitFor();
    expect(await desk.roots.count()).toBe(1);
    await root.getByRole("heading").scrollIntoViewIfNeeded();
    await expectGoodLooks(desk, colorScheme);
    if (size === "wide") await shot(desk, "local-fleet.png");
    await root.getByRole("button", { name: "green-7", exact: true }).click();
    await desk.openThread("pool=green");
    await desk.thread.getByText("netcheck-nodes-").first().waitFor();
    await desk.thread.getByText("Bridged traffic bypasses iptables").last().waitFor();
    await expectGoodLooks(desk, colorScheme);
    if (size !== "wide") return;

    // one node first, then the others: each time somebody entitled says yes
    await root.getByRole("button", { name: "Fix one node first…" }).first().click();
    await desk.button("Review and approve…").waitFor();
    await desk.become("Bob Tanaka");
    await desk.openThread("pool=green");
    await desk.approve();
    await desk.button("Fix the other 3…").click();
    await desk.dialog("Fix 3 nodes").getByRole("button", { name: "Approve & run" }).click();
    await desk.thread.getByText("All 3 are fixed and verified.").waitFor({ timeout: 60_000 });
  });
});

describe("Home", () => {
  test.each(LOOKS)("%s, %s: what is open and waits, approved from there by a second person", async (colorScheme, size, options) => {
    const local = await serve();
    const desk = await sit(local.url, { colorScheme, ...options });
    await go(desk, "netcheck home");
    await desk.channel.getByText("Nothing waits for an approval.").waitFor();
    await desk.channel.getByText("You may have any node examined: that only reads.").waitFor();
    await go(desk, "incidents");
    await desk.type("/netcheck node2");
    await desk.roots.getByText("a fix is waiting for approval").waitFor();
    const menu = desk.page.getByRole("button", { name: "Channels and people" });
    if (await menu.isVisible()) await menu.click();
    await desk.become("Bob Tanaka");
    await go(desk, "netcheck home");
    await desk.channel.getByText("Put Cilium's jump first in FORWARD").waitFor();
    for (const heading of ["Waiting for approval", "Open incidents", "Recent nodes", "What I may do"])
      await desk.channel.getByRole("heading", { name: heading }).waitFor();
    await desk.channel.getByText("You may approve every fix on all nodes of demo").waitFor();
    await expectGoodLooks(desk, colorScheme);
    if (size === "wide") await shot(desk, "local-home.png");
    await desk.channel.getByRole("button", { name: "Review and approve…" }).click();
    const review = desk.dialog("Review and approve");
    await review.getByRole("button", { name: "Approve & run" }).click();
    await review.waitFor({ state: "detached" });
    await desk.channel.getByRole("link", { name: "Open the thread of node2" }).click();
    await desk.thread.getByText("the cause is gone").first().waitFor();
  });
});

describe("the menu of a message", () => {
  test.each(LOOKS)("%s, %s: the node that it names is examined in its thread; without a name a window asks", async (colorScheme, _, options) => {
    const desk = await sit((await serve()).url, { colorScheme, ...options });
    await desk.type("payments via node4 are slow since noon");
    await triage(desk, desk.roots.filter({ hasText: "payments via node4" }));
    await desk.openThread("payments via node4");
    await desk.button("Review and approve…").waitFor();
    if (options === narrow) await desk.thread.getByRole("button", { name: "Close thread" }).click();
    expect(await desk.roots.count()).toBe(1);

    await desk.type("something is slow");
    await triage(desk, desk.roots.filter({ hasText: "something is slow" }));
    const window = desk.dialog("Examine a node");
    await window.getByText("No target that netcheck knows is named in that message.").waitFor();
    // what is typed is searched for
    const node = window.getByRole("combobox", { name: "Node" });
    await expectFocus(node);
    await desk.page.keyboard.type("lthy");
    expect(await window.getByRole("option").allInnerTexts()).toEqual([expect.stringMatching(/^healthy1/)]);
    await expectGoodLooks(desk, colorScheme);
    await desk.page.keyboard.press("Escape");
    await window.waitFor();
    await desk.page.keyboard.type("green-4");
    await desk.page.keyboard.press("ArrowDown");
    await desk.page.keyboard.press("Enter");
    expect(await node.inputValue()).toBe("green-40");
    await desk.page.keyboard.press("Enter");
    await window.waitFor({ state: "detached" });
    await desk.openThread("something is slow");
    await desk.thread.getByText("no cause found: everything that was checked is in order").first().waitFor();
  });

  test("without a mouse: reached with Tab, arrows choose, Escape gives the focus back", async () => {
    const desk = await sit((await serve()).url);
    await desk.type("is it node1 or node2?");
    const more = desk.roots.filter({ hasText: "is it node1" }).getByRole("button", { name: "More about this message" });
    await tabTo(desk, more);
    await desk.page.keyboard.press("Enter");
    const items = desk.page.getByRole("menuitem");
    await expectFocus(items.first());
    await desk.page.keyboard.press("Escape");
    await expectFocus(more);
    await desk.page.keyboard.press("Enter");
    await desk.page.keyboard.press("ArrowUp");
    await expectFocus(items.last());
    await desk.page.keyboard.press("Enter");
    const answer = desk.page.getByRole("article").filter({ hasText: "Several targets are named in that message. Which one do you mean?" });
    await answer.getByText("Only visible to you").waitFor();
    await answer.getByRole("button", { name: "demo/node2" }).click();
    await desk.openThread("is it node1");
    await desk.button("Review and approve…").waitFor();
  });
});

test("said to be wrong, muted, and shown as muted wherever that hides something", async () => {
  const local = await serve();
  const desk = await sit(local.url);
  await desk.type("/netcheck node4");
  await desk.openThread("node4");
  await desk.button("Wrong cause").click();
  await expect.poll(async () => (await local.store.list("feedback", { limit: 10 })).length).toBe(1);

  await desk.type("/netcheck mute bridge-netfilter-off on node4 for 7d because the image is rebuilt on Monday");
  await desk.page.getByText("the image is rebuilt on Monday").first().waitFor();
  await desk.button("Run again").first().click();
  await desk.roots.filter({ hasText: "no cause found but" }).waitFor();
  await go(desk, "netcheck home");
  await desk.channel.getByText("the image is rebuilt on Monday").waitFor();
  await expectGoodLooks(desk, "light");
});

test("where netcheck is no member it says how to invite it; then it answers there, and in a direct conversation", async () => {
  const desk = await sit((await serve()).url);
  await go(desk, "payments");
  await desk.type("/netcheck healthy1");
  await desk.roots.filter({ hasText: "invite it with /invite @netcheck" }).getByText("Only visible to you").waitFor();
  await desk.type("/invite @netcheck");
  await desk.roots.getByText("was added to this channel by").waitFor();
  await desk.type("/netcheck healthy1");
  await desk.roots.getByText("no cause found: everything that was checked is in order").waitFor();

  await go(desk, "netcheck home");
  await go(desk, "netcheck (direct)");
  await desk.type("healthy1");
  await desk.openThread("healthy1");
  await desk.thread.getByText("no cause found: everything that was checked is in order").first().waitFor();
});
