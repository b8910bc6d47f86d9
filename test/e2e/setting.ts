import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Browser, BrowserContextOptions, Locator } from "playwright-core";
import { afterAll, afterEach, beforeAll, expect, test as testAnywhere } from "vitest";
import { type Local, type LocalOptions, startLocal } from "../../functions/local/main.ts";
import { UNHURRIED } from "../unhurried.ts";
import { Desk, launchBrowser, skipBrowser, temporaryFolder } from "./desk.ts";
import { smaller } from "./png.ts";

/** What the browser tests share: one browser per file, local mode and people at it per test. */

export const root = fileURLToPath(new URL("../../", import.meta.url));
export const narrow: BrowserContextOptions = { viewport: { width: 400, height: 800 }, hasTouch: true };

const skipped = skipBrowser();
export const test = skipped ? testAnywhere.skip : testAnywhere;
let started: Browser;
beforeAll(async () => {
  if (!skipped) started = await launchBrowser();
});
afterAll(() => (skipped ? undefined : started.close()));
/** The browser of this file. */
export const browser = (): Browser => started;

/** What is to be undone after this test, the last one first. */
export const cleanups: (() => unknown)[] = [];
afterEach(async () => {
  for (const cleanup of cleanups.splice(0).reverse()) await cleanup();
});

/** Local mode in a folder of its own. */
export async function serve(options: Partial<LocalOptions> = {}): Promise<Local> {
  const folder = temporaryFolder();
  cleanups.push(folder.remove);
  const local = await startLocal({ directory: join(folder.path, "state"), fresh: true, workspace: UNHURRIED, ...options });
  cleanups.push(() => local.close());
  return local;
}

/** A page at which nothing may go wrong. */
export async function sit(url: string, options?: BrowserContextOptions): Promise<Desk> {
  const desk = await Desk.open(started, url, options);
  cleanups.push(async () => {
    await desk.close();
    expect(desk.complaints).toEqual([]);
  });
  return desk;
}

/** Pixels: as small as the page is with three columns, so that a picture stays below 150 KB. */
const PICTURE = { width: 1120, height: 740 };

/** Keeps a picture for the documents, if that was asked for (SCREENSHOTS=1). */
export async function shot(desk: Desk, name: string): Promise<void> {
  if (process.env["SCREENSHOTS"] !== "1") return;
  // Nothing under the mouse.
  await desk.page.mouse.move(0, 0);
  const size = desk.page.viewportSize();
  if (size !== null && size.width > PICTURE.width) await desk.page.setViewportSize(PICTURE);
  const picture = smaller(await desk.page.screenshot());
  if (size !== null) await desk.page.setViewportSize(size);
  expect(picture.length, `${name}: bytes`).toBeLessThan(150_000);
  writeFileSync(join(root, "docs/images", name), picture);
}

/** Presses Tab until the element has the focus; it must be among the first 60. */
export async function tabTo(desk: Desk, element: Locator): Promise<void> {
  for (let presses = 0; presses < 60; presses++) {
    await desk.page.keyboard.press("Tab");
    if (await element.evaluate((one) => one === document.activeElement)) return;
  }
  throw new Error("cannot be reached with Tab");
}

export async function expectFocus(element: Locator): Promise<void> {
  await expect.poll(() => element.evaluate((one) => one === document.activeElement)).toBe(true);
}
