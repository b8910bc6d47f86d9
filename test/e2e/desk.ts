import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Locator, type Page } from "playwright-core";

/** The browser without a window of its own draws the same, and takes seven tenths of the processor's time. */
const BROWSERS = ["/usr/bin/chromium-headless-shell", "/usr/bin/chromium"];
const browser = BROWSERS.find((path) => existsSync(path));

/** True, with the reason said, where there is no browser; on CI that is an error. */
export function skipBrowser(): boolean {
  if (browser !== undefined) return false;
  const problem = `there is neither ${BROWSERS.join(" nor ")} (Debian: apt-get install chromium-headless-shell)`;
  if (process.env["CI"] === "true") throw new Error(`e2e: could not run on CI: ${problem}`);
  console.warn(`skipped: ${problem}`);
  return true;
}

/** A headless Chromium that calls nobody by itself. */
export function launchBrowser(): Promise<Browser> {
  return chromium.launch({
    executablePath: browser ?? "",
    args: [
      "--no-sandbox",
      "--disable-gpu",
      "--disable-quic",
      "--no-first-run",
      "--disable-background-networking",
      "--disable-component-update",
      "--disable-sync",
    ],
  });
}

/** A folder for one run of local mode; `remove` takes it away. */
export function temporaryFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "netcheck-e2e-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Somebody at the local page: where things are on it, and what went wrong in it. */
export class Desk {
  readonly page: Page;
  /** Errors and warnings of the console, exceptions, and requests that left this machine. */
  readonly complaints: string[] = [];
  readonly #context: BrowserContext;

  private constructor(context: BrowserContext, page: Page) {
    this.#context = context;
    this.page = page;
    page.setDefaultTimeout(20_000);
    page.on("console", (message) => {
      if (message.type() === "error" || message.type() === "warning") this.complaints.push(`console: ${message.text()} (${message.location().url})`);
    });
    page.on("pageerror", (error) => this.complaints.push(`exception: ${error.message}`));
    context.on("request", (request) => {
      const { protocol, hostname } = new URL(request.url());
      if (!["data:", "blob:"].includes(protocol) && hostname !== "127.0.0.1") this.complaints.push(`request to ${request.url()}`);
    });
  }

  static async open(browser: Browser, url: string, options: BrowserContextOptions = {}): Promise<Desk> {
    // A fixed time zone and language: screenshots look the same everywhere.
    const context = await browser.newContext({ viewport: { width: 1280, height: 900 }, locale: "en-GB", timezoneId: "UTC", ...options });
    const desk = new Desk(context, await context.newPage());
    await desk.page.goto(url);
    await desk.composer.waitFor();
    return desk;
  }

  close(): Promise<void> {
    return this.#context.close();
  }

  get channel(): Locator {
    return this.page.getByRole("main");
  }
  get thread(): Locator {
    return this.page.getByRole("region", { name: "Thread" });
  }
  /** Where messages to the channel are typed. */
  get composer(): Locator {
    return this.channel.getByRole("combobox");
  }
  /** The threads' first messages, oldest first. */
  get roots(): Locator {
    return this.channel.getByRole("article");
  }
  dialog(name: string): Locator {
    return this.page.getByRole("dialog", { name, exact: true });
  }
  button(name: string): Locator {
    return this.thread.getByRole("button", { name, exact: true });
  }

  /** Types a line into the channel and sends it. */
  async type(line: string): Promise<void> {
    await this.composer.fill(line);
    await this.composer.press("Enter");
  }

  /** Opens the thread below the first message that says this. */
  async openThread(words: string): Promise<void> {
    await this.roots.filter({ hasText: words }).getByRole("button", { name: /repl/ }).first().click();
    await this.thread.waitFor();
  }

  /** Becomes another person. */
  async become(name: string): Promise<void> {
    const people = this.page.getByRole("group", { name: "You are" });
    // The radio button itself is hidden behind its label.
    await people.getByText(name, { exact: true }).last().click();
    await this.page.getByRole("combobox", { name: `as ${name.split(" ")[0]}` }).waitFor();
  }

  /** Opens the modal that approves. */
  async review(): Promise<Locator> {
    await this.button("Review and approve…").click();
    const review = this.dialog("Review and approve");
    await review.waitFor();
    return review;
  }

  /** Opens it and sends it off. */
  async approve(): Promise<void> {
    const review = await this.review();
    await review.getByRole("button", { name: "Approve & run" }).click();
    await review.waitFor({ state: "detached" });
  }
}
