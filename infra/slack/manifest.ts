import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";

/** Where the address goes in manifest.yaml. */
const PLACEHOLDER = "{{url}}";

/**
 * The Slack app's manifest with the address that Slack sends requests to.
 * @param url output SlackUrl of the stack. @throws if it is no https address without a query
 */
export function slackManifest(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (parsed?.protocol !== "https:" || parsed.search !== "" || parsed.hash !== "" || !/^[\w:/.~%-]+$/.test(url))
    throw new Error(`${JSON.stringify(url)} cannot be the address for Slack: it must begin with https:// and is the output SlackUrl of the stack`);
  return readFileSync(new URL("manifest.yaml", import.meta.url), "utf8").replaceAll(PLACEHOLDER, url);
}

if (import.meta.main) {
  try {
    const { url } = parseArgs({ options: { url: { type: "string" } } }).values;
    if (url === undefined)
      throw new Error("which address does Slack send its requests to? npm run --silent manifest -- --url https://…/slack (output SlackUrl of the stack)");
    process.stdout.write(slackManifest(url));
  } catch (error) {
    process.stderr.write(`manifest: ${(error as Error).message}\n`);
    process.exitCode = 2;
  }
}
