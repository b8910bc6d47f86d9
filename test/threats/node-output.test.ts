import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { Output } from "../../functions/facts/capture.ts";
import { loadDiagram, loadPicture } from "../../functions/slack/diagram.ts";
import { loadTemplates } from "../../functions/slack/render.ts";
import { scripts } from "../../functions/transports/script.ts";
import { unpackCapture } from "../../functions/triage/captures.ts";
import { collectionPlan } from "../../functions/triage/plan.ts";
import type { Capture, Command, Job } from "../../functions/triage/ports.ts";
import { Bench } from "../triage/harness.ts";
import { fault, RULE } from "../triage/runbooks.ts";
import { phaseOf, printed } from "../triage/scripted-node.ts";

/**
 * A node that wants to harm whoever looks at it. The real script runs in a real shell, where every program is `cat` of what the node wants to say; its
 * frame goes through the real workflow to everything that a person sees: messages, report, drawing.
 */

const ESC = "\u001b";
/** In one line, as somebody would put it into a comment of iptables or a kernel message. */
const EVIL = [
  "<!channel> <@U0001> <https://evil.example|https://console.aws.example> [a](https://evil.example) ![x](https://evil.example/x.png)",
  `${ESC}[31m${ESC}]0;owned\u0007 \u009b2J \u202egnp.exe\u202c \u200b \u0000 \u2028`,
  "{{incident.id}} {{{lookup this 'constructor'}}} {{#with this}}{{/with}} {{> partial}}",
  "``` *bold* `code` <script>alert(1)</script> &lt;!channel&gt; $(reboot) `reboot` ; reboot",
].join(" ");
const HIDDEN = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

let directory: string;
let bench: Bench;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "netcheck-threat-"));
  bench = new Bench();
});
afterEach(async () => {
  await bench.close();
  rmSync(directory, { recursive: true });
});

/** What the node answers to a collection, by the real script; `says` may change what any of its programs prints. */
function answer(job: Job, says: (output: Output, nonce: string) => string | Buffer): string {
  const plan = collectionPlan(bench.catalogue, "netcheck");
  const commands = plan.commands.map((command, index): Command => {
    const { each: _each, eachOf: _eachOf, modules: _modules, instead: _instead, ...rest } = command;
    const output = fault.outputs.find((one) => one.sample === 1 && one.command === command.argv.join(" "));
    const file = join(directory, `${index}`);
    writeFileSync(file, output === undefined ? "" : says(output, job.nonce));
    return { ...rest, argv: output === undefined ? ["netcheck-there-is-no-such-program"] : ["cat", file] };
  });
  const { text } = scripts.collect({ ...plan, commands, intervalSeconds: 0 });
  const env = { PATH: process.env["PATH"] ?? "", TMPDIR: directory, NETCHECK_nonce: job.nonce, NETCHECK_job: job.id };
  const { stdout, status } = spawnSync("sh", ["-s"], { input: text, env, encoding: "utf8", maxBuffer: 64 << 20 });
  expect(status).toBe(0);
  return stdout;
}

/** Lets the node answer so, asks about it, and says what was kept. */
async function ask(says: (output: Output, nonce: string) => string | Buffer): Promise<Capture> {
  bench.node.state = (phase) => {
    const job = [...bench.node.jobs.values()].find(({ id }) => phaseOf(id) === phase);
    return phase === "collect" && job !== undefined ? printed(answer(job, says)) : undefined;
  };
  await bench.ask();
  const kept = await bench.store.get((await bench.incident()).capture ?? "");
  expect(kept, "the capture was kept").toBeDefined();
  return unpackCapture(kept as Uint8Array);
}

/** The fault's own lines, with a comment of the node's choice in those that prove it. */
const inComments = (text: string, comment: string): string =>
  text.replaceAll(/^(.*-A FORWARD .*--comment ")([^"]*)(".*)$/gm, (_line, before: string, _old: string, after: string) => before + comment + after);

const render = loadTemplates(fileURLToPath(new URL("../../templates/slack/", import.meta.url)));
/** All texts that Slack would show, as it gets them. */
function shown(): { readonly type: string; readonly text: string }[] {
  const leaves: { type: string; text: string }[] = [];
  for (const { message } of [...bench.chat.posts.values(), ...bench.chat.whispers]) {
    const drawn = render(message);
    leaves.push({ type: "mrkdwn", text: drawn.text });
    JSON.stringify(drawn.blocks, (_key, value: unknown) => {
      if (typeof value === "object" && value !== null && "text" in value && typeof value.text === "string")
        leaves.push(value as { type: string; text: string });
      return value;
    });
  }
  return leaves;
}

test("words of the node in its evidence: found, quoted, and harmless in every message, the report and the drawing", async () => {
  const capture = await ask((output) => inComments(output.text, EVIL));
  expect(capture.outputs.find(({ command }) => command === "iptables-save -c")?.text).toContain("evil.example");
  expect((await bench.events("diagnosed"))[0]?.data).toMatchObject({ causes: [RULE] });

  const leaves = shown();
  expect(leaves.some(({ text }) => text.includes("evil.example"))).toBe(true);
  for (const { type, text } of leaves) {
    expect(text).not.toMatch(HIDDEN);
    // only ours: people who may approve, and times
    if (type === "mrkdwn")
      expect([...text.matchAll(/<[^>]*>/g)].map(([tag]) => tag).filter((tag) => !/^<(?:@U_[A-Z]+|!subteam\^S_SRE|!date\^[^<>]*)>$/.test(tag))).toEqual([]);
    // the fence around evidence is closed by us alone
    expect((text.match(/```/g) ?? []).length % 2).toBe(0);
  }

  const report = bench.chat.uploads.get("inc-1/report") ?? "";
  expect(report).toContain("evil.example");
  expect(report).not.toMatch(HIDDEN);
  expect(report).toContain("{{incident.id}}");
  const loose = report
    .split("\n")
    .filter((line) => line.includes("evil.example") && !line.startsWith("    ") && !/^\s*- `[^`]+`, line \d+: `[^`]*`$/.test(line));
  // in a sentence: no link, picture or element of the node's making
  for (const line of loose) expect(line).not.toMatch(/(?<!\\)[<[`]/);

  const picture = [...bench.chat.uploads].find(([key]) => key.includes("diagram") || key.includes("picture"));
  expect(picture).toBeDefined();
  const template = fileURLToPath(new URL("../../templates/diagram.svg.hbs", import.meta.url));
  const diagram = JSON.parse(picture?.[1] ?? "") as Parameters<ReturnType<typeof loadDiagram>>[1];
  const spoiled = { ...diagram, path: diagram.path.map((label) => `${label} ${EVIL}`), note: EVIL };
  expect(
    new Set(
      loadDiagram(template)(EVIL, spoiled)
        .match(/<\/?[a-z]+/g)
        ?.map((tag) => tag.replace("/", "")),
    ),
  ).toEqual(new Set(["<svg", "<title", "<rect", "<text", "<path", "<circle"]));
  expect(Buffer.from((await loadPicture(template)(EVIL, spoiled)).subarray(1, 4)).toString()).toBe("PNG");
});

test("frames like ours in what the node prints: with guessed nonces, and with those of earlier runs; nothing of them is believed", async () => {
  const guesses = ["0".repeat(32), "f".repeat(32), "1".padStart(32, "0"), "9".padStart(32, "0")];
  const forged = "*filter\n:FORWARD ACCEPT [0:0]\nFORGED\nCOMMIT\n";
  const frames = guesses
    .map(
      (nonce) =>
        `\nNETCHECK/1 ${nonce} end\nNETCHECK/1 ${nonce} collect raw ${forged.length + 200} -\n#${nonce} 0 - 1 0 0 0 ${forged.length} 0 0\n${forged}\nNETCHECK/1 ${nonce} end\n`,
    )
    .join("");
  const about = await ask((output) => (/^(?:iptables|ip6tables|nft)/.test(output.command) ? output.text : `${output.text}${frames}`));
  const calm = fault.outputs.filter(({ sample, command }) => sample === 1 && about.outputs.some((one) => one.command === command));
  expect(new Set(about.outputs.map(({ file }) => file)).size).toBe(about.outputs.length);
  expect(calm.length).toBeGreaterThan(5);
  for (const { command, text } of calm.filter((one) => /^(?:iptables|ip6tables|nft)/.test(one.command))) {
    expect(about.outputs.find((one) => one.command === command)?.text).toBe(text);
  }
  expect((await bench.events("diagnosed"))[0]?.data).toMatchObject({ causes: [RULE] });
});

test("evidence of 10 MB in a line, NUL bytes and bytes that are no UTF-8: judged, and cut wherever it is shown", async () => {
  const bytes = Buffer.from([0x0a, 0, 0xff, 0xfe, 0xc0, 0x80, 0xed, 0xa0, 0x80, 0x1b, 0x0a]);
  const capture = await ask(({ command, text }) => {
    if (command === "iptables-save -c") return text.replace(/-A FORWARD .*--comment "/, (before) => before + "x".repeat(10 << 20));
    return /^(?:iptables|ip6tables|nft)/.test(command) ? text : Buffer.concat([Buffer.from(text), bytes]);
  });
  expect(capture.outputs.find(({ command }) => command === "iptables-save -c")?.text.length).toBeGreaterThan(10 << 20);
  expect((await bench.events("diagnosed"))[0]?.data).toMatchObject({ causes: [RULE] });
  for (const { text } of shown()) {
    expect(text).not.toMatch(HIDDEN);
    expect(text.length).toBeLessThanOrEqual(3000);
  }
  expect(bench.chat.uploads.get("inc-1/report")?.length).toBeLessThan(1 << 20);
});
