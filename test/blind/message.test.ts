import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import type { Capture } from "../../functions/facts/capture.ts";
import { pastedCaptures, readCaptures } from "../../functions/imports/index.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readMention } from "../../functions/slack/listeners/mention.ts";
import { packCapture, packLongCapture, unpackCapture } from "../../functions/triage/captures.ts";
import { taken } from "../rules/taken.ts";

/** What `netcheck diagnose` says of a file is said of the same text in a message, too, however Slack writes it down, and of a capture that was kept in the store. */
const here = fileURLToPath(new URL(".", import.meta.url));
const catalogue = loadCatalogue(fileURLToPath(new URL("../../runbooks/", import.meta.url)), { tolerant: true });
const folders = (path: string) => readdirSync(path, { withFileTypes: true }).flatMap((entry) => (entry.isDirectory() ? [entry.name] : []));
const cases = folders(here)
  .flatMap((fault) => folders(join(here, fault)).map((name) => `${fault}/${name}`))
  .filter((name) => existsSync(join(here, name, "expect.json")) && taken(32, name));
const pastes = cases.filter((name) => existsSync(join(here, name, "paste.txt")));

const said = (captures: readonly Capture[]) =>
  captures.map((capture) => {
    const { verdict, causes, unchecked } = diagnose(capture, catalogue, "", () => 0);
    return { verdict, causes: causes.map(({ rule, confidence }) => `${rule} ${confidence}`), unchecked: unchecked.map(({ rule }) => rule) };
  });
/** Without the keys that hold nothing: the same in JSON. */
const inJson = (capture: Capture): unknown => JSON.parse(JSON.stringify(capture));

test.each(cases)("%s is kept as it is", async (name) => {
  const paste = join(here, name, "paste.txt");
  for (const capture of await readCaptures(existsSync(paste) ? paste : join(here, name))) {
    expect(inJson(unpackCapture(packCapture(capture)))).toEqual(inJson(capture));
    expect(inJson(unpackCapture(await packLongCapture(capture)))).toEqual(inJson(capture));
  }
});

test.each(pastes)("%s in a message", async (name) => {
  const path = join(here, name, "paste.txt");
  const file = readFileSync(path, "utf8");
  const text = file.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
  const expected = said(await readCaptures(path));
  const block = file.includes("```") ? [] : [`\`\`\`\n${text}\n\`\`\``, `\`\`\`${text.trim()}\`\`\``];
  for (const body of [text, ...block]) {
    const event = { type: "app_mention", user: "U1", text: `<@U0BOT>\n${body}`, ts: "1.000", channel: "C1" };
    const asked = readMention(event, { team_id: "T1", authorizations: [{ user_id: "U0BOT" }] });
    const typed = asked?.kind === "paste" ? asked.request.text : "";
    expect(said(pastedCaptures(typed, "pasted", "the message")), body.slice(0, 200)).toEqual(expected);
  }
});

test("there are enough of both", () => expect([cases.length > 50, pastes.length > 8]).toEqual([true, true]));
