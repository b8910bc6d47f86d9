import { createHash } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, test } from "vitest";
import type { Capture } from "../../functions/facts/capture.ts";
import { commandLine, isPromptLine } from "../../functions/facts/command.ts";
import { captureOfDraft } from "../../functions/imports/bundle.ts";
import { pastedCaptures } from "../../functions/imports/index.ts";
import { judge } from "../../functions/rules/judge.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { taken } from "./taken.ts";

/**
 * The same outputs, packed as people pack them: what was asked through which program, and what stands around it in a paste, must not change a verdict. Each rule is held against its own cases,
 * and one in eight cases meets one of the forms; each of them all with CASES=all in the environment.
 */
const runbooks = fileURLToPath(new URL("../../runbooks/", import.meta.url));
const catalogue = loadCatalogue(runbooks);

interface Asked {
  readonly command: string;
  readonly text: string;
}
type Form = (outputs: readonly Asked[]) => Capture | undefined;

const plain: Form = (outputs) =>
  captureOfDraft({ target: "node1", outputs: outputs.map((output) => ({ ...output, file: "1", truncated: false })) }, "paste", "node1", []);
/** Each command asked in another way. */
const asked =
  (change: (command: string) => string): Form =>
  (outputs) =>
    plain(outputs.map(({ command, text }) => ({ command: change(command), text })));
/** All of it as one text; undefined if nothing of it was read. */
const pasted =
  (print: (output: Asked) => string, around: (text: string) => string = (text) => text): Form =>
  (outputs) => {
    try {
      // of another node's name nothing is asked here
      const { unnamed, ...capture } = pastedCaptures(around(outputs.map(print).join("")), "paste.txt", "paste.txt")[0];
      return { ...capture, target: unnamed === true ? "node1" : capture.target };
    } catch {
      return undefined;
    }
  };

const quoted = (command: string): string => `'${command.replaceAll("'", String.raw`'\''`)}'`;
const prompt = (sign: string) =>
  pasted(
    ({ command, text }) => `${sign}${command}\n${text}`,
    (text) => `${text}${sign}\n`,
  );
const lines = (change: (line: string, i: number) => string) => (text: string) => `${text.trimEnd().split("\n").map(change).join("\n")}\n`;

const FORMS: Readonly<Record<string, Form>> = {
  sudo: asked((command) => `sudo ${command}`),
  "in the namespaces of init": asked((command) => `nsenter -t 1 -m -u -n -i -- ${command}`),
  "through ssh": asked((command) => `ssh node1 ${quoted(command)}`),
  "in a shell": asked((command) => `bash -lc ${quoted(command)}`),
  "going on after a failure": asked((command) => `${command} || true`),
  "k3s kubectl": asked((command) => command.replace(/^kubectl /, "k3s kubectl ")),
  "lines of Windows": (outputs) => plain(outputs.map(({ command, text }) => ({ command, text: text.replaceAll("\n", "\r\n") }))),
  "a prompt of root": prompt("[root@node1 ~]# "),
  "a prompt with an environment": prompt("(base) ops@node1:~$ "),
  "a prompt with a clock and a context": prompt("[14:12:31] ops@node1 (prod|kube-system) ~ $ "),
  "an arrow": prompt("➜  ~ "),
  "headings between signs": pasted(({ command, text }) => `===== ${command} =====\n${text}\n`),
  "a sentence above a block": pasted(({ command, text }) => `Output of \`${command}\`:\n\n\`\`\`\n${text}\`\`\`\n\n`),
  "a shell that shows what it runs": pasted(({ command, text }) => `+ ${command}\n${text}`),
  "a time in front of each line": pasted(
    ({ command, text }) => `root@node1:~# ${command}\n${text}`,
    lines((line, i) => `2026-11-21T03:52:${String(10 + (i % 50)).padStart(2, "0")}.000Z ${line}`),
  ),
  "numbered lines": pasted(
    ({ command, text }) => `root@node1:~# ${command}\n${text}`,
    lines((line, i) => `${i + 1}: ${line}`),
  ),
  "numbers above blocks": (outputs) =>
    pasted(({ text }) => text)([{ command: "", text: outputs.map(({ command, text }, i) => `${i + 1}. ${command}\n\n\`\`\`\n${text}\`\`\`\n`).join("\n") }]),
  "elements of a page": pasted(({ command, text }) => `<pre><code>$ ${command}\n${text}</code></pre>\n`),
  "the journal's words in front of each line": pasted(
    ({ command, text }) => `+ ${command}\n${text}`,
    lines((line) => `Nov 21 03:52:01 node1 collect.sh[4711]: ${line}`),
  ),
  "steps of a build": pasted(
    ({ command, text }) => `+ ${command}\n${text}`,
    lines((line) => `#7 0.312 ${line}`),
  ),
  "headings where it begins and ends": pasted(({ command, text }) => `---- BEGIN ${command} ----\n${text}---- END ${command} ----\n`),
  "headings in brackets": pasted(({ command, text }) => `[CMD] ${command}\n${text}\n`),
  "a logger's headings": pasted(({ command, text }) => `2026-11-21 03:52:10,123 INFO running: ${command}\n${text}\n`),
  "lines of signs below": pasted(({ command, text }) => `${command}\n${"-".repeat(command.length)}\n${text}\n`),
  "lines of signs between": pasted(({ command, text }) => `root@node1:~# ${command}\n${text}--------------------------------------------------\n`),
  "zsh's prompt": pasted(({ command, text }) => `node1% ${command}\n${text}`),
  watch: pasted(({ command, text }) => `Every 2.0s: ${command}                    node1: Tue Nov 24 03:10:12 2026\n\n${text}\n`),
  "the time it took": pasted(({ command, text }) => `root@node1:~# time ${command}\n${text}\nreal\t0m0.012s\nuser\t0m0.004s\nsys\t0m0.008s\n`),
  "a comment behind it": pasted(({ command, text }) => `root@node1:~# ${command}   # on the bad node\n${text}`),
  "fields of a collector": pasted(({ command, text }) => `cmd: ${command}\nexit: 0\nstdout:\n${text}stderr:\n\n`),
  "words that name it": pasted(({ command, text }) => `${command} output:\n\n\`\`\`\n${text}\`\`\`\n\n`),
  "a window's edge": pasted(
    ({ command, text }) => `root@node1:~# ${command}\n${text}`,
    lines((line) => line.replaceAll(/(.{80})(?=.)/g, "$1\n")),
  ),
  "a quotation": pasted(
    ({ command, text }) => `root@node1:~# ${command}\n${text}`,
    lines((line) => `> ${line}`.trimEnd()),
  ),
};

/** What was asked and printed; undefined where a paste cannot show it so: a cut output, what stood on stderr, a loop, a script of somebody's own, a command that is quoted with its prompt. */
async function typed(path: string): Promise<readonly Asked[] | undefined> {
  const { outputs } = await readCaptureFiles(path);
  const shown = outputs.filter(({ text }) => text.trim() !== "");
  if (outputs.some(({ truncated, stderr }) => truncated || stderr !== "")) return undefined;
  if (shown.some(({ command }) => isPromptLine(command) || /[\n;|>]|&&|^(?:\.|(?:for|while|sudo|ssh|bash|sh|nsenter) )/.test(command))) return undefined;
  if (shown.some(({ text }) => /[\0\r]|^[^\n]{0,80}[#$] /.test(text))) return undefined;
  if (shown.reduce((size, { text }) => size + text.length, 0) > 100_000) return undefined;
  return shown.map(({ command, text }) => ({ command, text: text.endsWith("\n") ? text : `${text}\n` }));
}

const names = Object.keys(FORMS);

/** What a form takes from a text so that nobody could tell. */
const LOST: Readonly<Record<string, readonly string[]>> = {
  // one line alone that fills the window may end there: it is not put together with the next one
  "a window's edge": [
    "accept-queue-overflow/asked-inside-of-a-pod-on-a-wide-terminal",
    "accept-queue-overflow/pod-by-proc-net-netstat",
    "bridge-netfilter-off/an-ipv6-pod-answers-itself",
    "cilium-bpf-map-full/contention-low-pressure",
    "cilium-bpf-map-full/full-and-dropping",
    "cni-config-missing/condition-in-one-line",
    "conntrack-table-full/event-of-the-node-monitoring-agent",
    "conntrack-table-full/pasted-proc-files",
    "forward-policy-drop/traced",
    "kube-proxy-not-syncing/pasted-journal-prefix-on-each-line",
    "kube-proxy-not-syncing/pasted-old-log-ends-with-closing-local-ports",
    "leftover-cni-interface/flannel-routes-beside-calico-by-crictl-ps",
    "mac-address-policy-persistent/pasted-grep-of-the-policy-and-annotation",
    "mac-address-policy-persistent/vpc-cni-on-ubuntu",
    "node-local-dns-orphan/address-says-that-nobody-listens",
    "stale-neighbor-entry/ipv6-advertised-by-another",
    "vpc-cni-ip-exhausted/refused-once-and-the-subnet-is-empty",
    "vtep-mac-mismatch/fdb-at-the-peers-old-address",
    "vtep-mac-mismatch/json-entry-leads-to-no-node",
  ],
  // what stands in front of the number is no known program's words
  "a logger's headings": ["calico-bgp-down/birdcl-no-route"],
  "headings in brackets": ["calico-bgp-down/birdcl-no-route"],
  // of an output that is known by its command alone, and stands below a single prompt of one word and a sign
  "zsh's prompt": ["kube-proxy-not-syncing/last-lines-of-a-refused-one"],
  // the comment behind `kubectl describe node NAME` may be another node's
  "a comment behind it": ["mac-address-policy-persistent/pasted-grep-of-the-policy-and-annotation"],
  "lines of signs below": ["vtep-mac-mismatch/jsonpath-entry-at-the-peers-old-address"],
  // the time is what these are about
  "the time it took": ["vxlan-checksum-offload/pasted-trial-on-the-card", "vxlan-checksum-offload/tried-out-and-timed"],
  // watch is not told what stands on stderr
  watch: [
    "overlay-interface-down/asked-for-and-not-there",
    "overlay-interface-down/pasted-felix-misses-its-device",
    "node-local-dns-orphan/address-asked-in-vain",
  ],
};

test.each(names)("%s: what was asked and printed is all there", (name) => {
  const outputs = [
    { command: "kubectl get nodes -o wide", text: "NAME   STATUS\nnode1  Ready\n" },
    { command: "ip rule", text: "0:\tfrom all lookup local\n32766:\tfrom all lookup main\n" },
  ];
  const capture = FORMS[name]?.(outputs);
  expect(capture?.outputs.map(({ argv, command }) => commandLine(argv ?? command).argv.join(" "))).toEqual(["kubectl get nodes -o wide", "ip rule"]);
  // the prompt that waits at the end may stand behind the last one; what reads an output passes it over
  for (const [i, { text }] of outputs.entries())
    expect(capture?.outputs[i]?.text.replaceAll("\r", "").trim()).toMatch(new RegExp(`^${text.trim()}(?:\n\\S{1,3} *~?)?$`));
});

/** A form for one in eight cases, by its name: another case changes nothing for it. */
function formsFor(name: string): readonly string[] {
  if (process.env["CASES"] === "all") return names;
  if (!taken(8, name)) return [];
  return [names[createHash("sha256").update(name).digest().readUInt32BE() % names.length] as string];
}

describe.each([...catalogue.rules])("%s", (id, rule) => {
  const only = { rules: new Map([[id, rule]]) };
  const folder = `${runbooks}rules/${id}/fixtures`;
  const cases = readdirSync(folder).filter((name) => existsSync(`${folder}/${name}/capture.json`));

  test(`in other forms (${cases.length} cases)`, async () => {
    const changed: string[] = [];
    for (const name of cases) {
      const forms = formsFor(`${id}/${name}`);
      const outputs = forms.length === 0 ? undefined : await typed(`${folder}/${name}`);
      if (outputs === undefined || outputs.length === 0) continue;
      const verdict = (capture: Capture | undefined) => (capture === undefined ? "nothing was read" : judge(capture, only).outcomes[0]?.verdict);
      const before = verdict(plain(outputs));
      for (const form of forms) {
        if (LOST[form]?.includes(`${id}/${name}`) === true) continue;
        const after = verdict((FORMS[form] as Form)(outputs));
        if ((before === "match") !== (after === "match")) changed.push(`${name}, ${form}: ${before} → ${after}`);
      }
    }
    expect(changed).toEqual([]);
  });
});
