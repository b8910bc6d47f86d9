import { statSync } from "node:fs";
import { basename, join } from "node:path";
import { type Capture, NOT_READ } from "../facts/capture.ts";
import { tellsTime, toldByDate } from "../facts/date-output.ts";
import { archiveKindOf, decodeText, type Head, unpackedFile } from "../transports/archive.ts";
import { CaptureError, MAX_OUTPUT, readCaptureFiles, readText } from "../transports/capture-files.ts";
import { aksLogCollector } from "./aks-log-collector.ts";
import { aksPeriscope } from "./aks-periscope.ts";
import { antreaAgent } from "./antrea-agent.ts";
import { bottlerocket } from "./bottlerocket.ts";
import { archiveBundle, type Bundle, captureOfDraft, type Draft, type DraftOutput, directoryBundle, type Importer, isKnown } from "./bundle.ts";
import { calicoDiags } from "./calico-diags.ts";
import { ciliumSysdump } from "./cilium-sysdump.ts";
import { clusterDump } from "./cluster-dump.ts";
import { readCommandJson } from "./command-json.ts";
import { eksLogCollector } from "./eks-log-collector.ts";
import { commandNamed, isText } from "./file-names.ts";
import { inspectionReport } from "./inspection-report.ts";
import { mustGather } from "./must-gather.ts";
import { nestedIn, openNested } from "./nested.ts";
import { nodeLogs } from "./node-logs.ts";
import { type NodeFiles, nodesOf } from "./nodes-of.ts";
import { rancherLogCollector } from "./rancher-log-collector.ts";
import { recording } from "./recording.ts";
import { byMoment, momentsOf } from "./sample-names.ts";
import { bundlesIn } from "./side-by-side.ts";
import { sosreport } from "./sosreport.ts";
import { standardInput } from "./standard-input.ts";
import { supportconfig } from "./supportconfig.ts";
import { readTranscript } from "./transcript.ts";
import { troubleshoot } from "./troubleshoot.ts";

/** Every kind of bundle, one line each. */
export const importers: readonly Importer[] = [
  sosreport,
  bottlerocket,
  eksLogCollector,
  ciliumSysdump,
  rancherLogCollector,
  supportconfig,
  aksLogCollector,
  aksPeriscope,
  calicoDiags,
  troubleshoot,
  inspectionReport,
  nodeLogs,
  antreaAgent,
  clusterDump,
  mustGather,
  recording,
];

const WANTED = `a capture (a directory with capture.json, or a .tgz of one), ${importers.map(({ title }) => title).join(", ")} (directory or archive), or a text with pasted outputs`;

/**
 * Reads whatever people have: a capture, a support bundle as a directory or archive, a text file with pasted outputs. One capture per node in it. The path `-` is
 * standard input, which is read as a pasted text.
 * @param secrets what is blacked out besides the usual (`redact` of a runbook); a capture of netcheck's own was cleaned on the node
 * @throws {CaptureError} that says what is wrong with it, or what it should be.
 */
export async function readCaptures(path: string, secrets: readonly string[] = []): Promise<Capture[]> {
  if (path === "-") {
    const { text, truncated } = await readInput();
    return pastedCaptures(text, "stdin", "standard input", secrets, truncated);
  }
  let stats: ReturnType<typeof statSync>;
  try {
    stats = statSync(path);
  } catch (cause) {
    throw new CaptureError(`${path}: could not read it: ${(cause as Error).message}`, { cause });
  }
  if (basename(path) === "capture.json") return [await readCaptureFiles(path)];
  if (stats.isDirectory() || (stats.isFile() && archiveKindOf(path) !== undefined)) {
    let bundle: Bundle;
    try {
      bundle = stats.isDirectory() ? directoryBundle(path) : await archiveBundle(path);
    } catch (cause) {
      throw new CaptureError(`${path}: could not unpack it: ${(cause as Error).message}`, { cause });
    }
    return await fromBundle(path, bundle, secrets);
  }
  if (/\.(?:gpg|asc|pgp)$/i.test(path)) throw new CaptureError(`${path}: it is encrypted, as \`sos report --encrypt\` does: decrypt it first (\`gpg -d\`)`);
  const { text, truncated } = readText(path);
  return pastedCaptures(text, basename(path), path, secrets, truncated);
}

/** @throws {CaptureError} */
async function readInput(): Promise<{ readonly text: string; readonly truncated: boolean }> {
  try {
    const { bytes, truncated } = await standardInput(MAX_OUTPUT);
    return { text: decodeText(bytes), truncated };
  } catch (cause) {
    throw new CaptureError(`standard input: could not read it: ${(cause as Error).message}`, { cause });
  }
}

/**
 * The outputs in a pasted text: one capture, and one more for each further machine on which the same was asked. `file` is what evidence calls it; `place` is what
 * errors call it; `truncated`: the end of the text was not read.
 * @throws {CaptureError} if no output of a known command is in it.
 */
export function pastedCaptures(given: string, file: string, place: string, secrets: readonly string[] = [], truncated = false): [Capture, ...Capture[]] {
  if (given.trim() === "") throw new CaptureError(`${place}: there is nothing in it`);
  const text = withoutFrame(given);
  const [stored, ...further] = readCommandJson(text, file);
  const { others, ...draft } = stored === undefined ? readTranscript(text, file, commandNamed(file)) : { ...stored, others: further };
  if (draft.outputs.length === 0) throw new CaptureError(`${place}: netcheck found no output of a command that it knows in it. It reads ${WANTED}`);
  const capture = (one: Draft): Capture => captureOfDraft(one, "paste", "pasted", secrets);
  const [first, ...more] = withoutEnd([draft, ...others], truncated);
  return [capture(first ?? draft), ...more.map(capture)];
}

/** A text that is one block from its first line to its last, without the fences: in a chat people put all that they copied into one, whatever it was. Lines keep their numbers. */
function withoutFrame(text: string): string {
  const [, before = "", inside = ""] = /^(\s*)```[ \t]*\r?(\n[\s\S]*\n)```\s*$/.exec(text) ?? [];
  return inside === "" || inside.includes("```") ? text : before + inside;
}

/** What one text holds: where its end was not read, the output that reaches to it lacks its end. An output keeps the line numbers of the text. */
function withoutEnd(drafts: readonly Draft[], truncated: boolean): readonly Draft[] {
  if (!truncated) return drafts;
  const lastLine = ({ text }: DraftOutput): number => text.split("\n").length;
  const end = Math.max(...drafts.flatMap(({ outputs }) => outputs.map(lastLine)));
  return drafts.map((draft) => ({ ...draft, outputs: draft.outputs.map((output) => (lastLine(output) === end ? { ...output, truncated: true } : output)) }));
}

async function fromBundle(path: string, bundle: Bundle, secrets: readonly string[]): Promise<Capture[]> {
  // only its owner's own top: a bundle may hold captures of ours somewhere
  if (bundle.names.some((name) => /^(?:[^/]{1,255}\/)?capture\.json$/.test(name))) return [await readCaptureFiles(path)];
  const nested = nestedIn(bundle.names);
  return nested.length > 0 ? await fromNested(path, bundle, nested, secrets) : await fromOne(path, bundle, secrets);
}

/** What is in an archive or a folder itself, and not in archives that lie in it. `path` names it and need not be a file's: it may lie in another archive. */
async function fromOne(path: string, bundle: Bundle, secrets: readonly string[]): Promise<Capture[]> {
  const parts = bundlesIn(bundle, importers);
  if (parts.length > 0) return (await Promise.all(parts.map((part) => fromImporter(`${path}/${part.name}`, part.importer, part.bundle, secrets)))).flat();
  const importer = importers.find((one) => one.recognize(bundle.names) !== undefined);
  return await (importer === undefined ? fromTexts(path, bundle, secrets) : fromImporter(path, importer, bundle, secrets));
}

async function fromImporter(path: string, importer: Importer, bundle: Bundle, secrets: readonly string[]): Promise<Capture[]> {
  const name = basename(path);
  let drafts: Draft[];
  try {
    const heads = await bundle.read(importer.recognize(bundle.names) ?? (() => false));
    drafts = (await importer.read(heads, bundle.names, name)).filter((draft) => draft.outputs.length > 0);
  } catch (cause) {
    throw new CaptureError(`${path}: could not read it as ${importer.title}: ${(cause as Error).message}`, { cause });
  }
  if (drafts.length === 0) throw new CaptureError(`${path}: it looks like ${importer.title}, but holds no output of a command that netcheck knows`);
  return drafts.map((draft) => captureOfDraft(draft, importer.id, name, secrets));
}

/** The bundles of nodes that lie packed in a folder or in another archive, and those beside them that do not. One that cannot be read costs only itself, and is told beside the others. */
async function fromNested(path: string, bundle: Bundle, names: readonly string[], secrets: readonly string[]): Promise<Capture[]> {
  const captures: Capture[] = [];
  const problems: { name: string; error: Error }[] = [];
  const take = async (name: string, read: () => Promise<Capture[]>): Promise<void> => {
    try {
      captures.push(...(await read()));
    } catch (error) {
      problems.push({ name, error: error as Error });
    }
  };
  const beside = { ...bundle, names: bundle.names.filter((name) => !names.includes(name)) };
  if (importers.some((one) => one.recognize(beside.names) !== undefined)) await take(path, () => fromOne(path, beside, secrets));
  if (statSync(path).isDirectory()) for (const name of names) await take(name, () => readCaptures(join(path, name), secrets));
  else
    for await (const { name, bundle } of openNested(path, names)) {
      const place = `${path}/${name}`;
      await take(name, async () => {
        if (bundle instanceof Error) throw new CaptureError(`${place}: could not unpack it: ${bundle.message}`);
        return await fromOne(place, bundle, secrets);
      });
    }
  const [first] = captures;
  if (first === undefined) throw problems[0]?.error ?? new CaptureError(`${path}: it is not ${WANTED}`);
  const lost = problems.map(({ name, error }) => ({
    command: name,
    reason: `${error.message.replace(/^.{0,4000}?: (?=could not |it )/, "")}: ${basename(name)} ${NOT_READ}`,
  }));
  return [{ ...first, notCollected: [...first.notCollected, ...lost] }, ...captures.slice(1)];
}

/** What people have instead of what can be read, and what to do. */
function hintOf(names: readonly string[]): string | undefined {
  return names.some((name) => MUST_GATHER.test(name)) ? NO_NODE : undefined;
}

/** A must-gather of OpenShift. */
const MUST_GATHER = /(?:^|\/)(?:cluster-scoped-resources\/core|host_service_logs|namespaces\/openshift-[^/]{1,60})\//;
const NO_NODE =
  "it looks like a must-gather of OpenShift: it holds what the API server knows, and next to nothing of a node's network. A sosreport of the node does (in `oc debug node/NAME`: `chroot /host`, then `toolbox`, `sos report`)";

/** A directory of files that people saved: each is a text with prompts, or its name is the command (`iptables-save.txt`, `ip_route.txt`). One capture per node. */
async function fromTexts(path: string, bundle: Bundle, secrets: readonly string[]): Promise<Capture[]> {
  const above = foldersAbove(bundle.names);
  const texts = await bundle.read((name) => isText(name) && name.split("/").length - above <= 4);
  let room = MAX_UNPACKED;
  const lost: { command: string; reason: string }[] = [];
  for (const [name, head] of texts) {
    const unpacked = await unpackedFile(name, head, Math.min(MAX_OUTPUT, room));
    if (unpacked === head) continue;
    room -= unpacked?.bytes.length ?? 0;
    if (unpacked !== undefined) texts.set(name, unpacked);
    else {
      texts.delete(name);
      lost.push({ command: name, reason: `it could not be unpacked: ${basename(name)} ${NOT_READ}` });
    }
  }
  const [only] = texts;
  // `case-7/paste.txt`: a text in a folder is read like the text alone
  if (only !== undefined && texts.size === 1 && hintOf(bundle.names) === undefined && !commandNamed(only[0]).some(isKnown)) {
    const captures = pastedCaptures(decodeText(only[1].bytes), basename(only[0]), path, secrets, only[1].truncated);
    return captures.map((capture) => (capture.unnamed === true ? { ...capture, target: basename(path) } : capture));
  }
  const nodes = nodesOf(
    [...texts.keys()].filter((name) => !ofAnother(name, bundle.names)),
    (moments) => areApart(moments.map(({ files }) => startOf(files, texts))),
  );
  const drafts = nodes.map((node) => draftOf(node, texts));
  const filled = drafts.filter(({ outputs }) => outputs.length > 0);
  if (filled.length === 0) throw new CaptureError(`${path}: ${hintOf(bundle.names) ?? lost[0]?.reason ?? `it is not ${WANTED}`}`);
  const [first, ...more] = filled.map((draft) => captureOfDraft(draft, "paste", basename(path), secrets));
  return first === undefined ? [] : [{ ...first, notCollected: [...first.notCollected, ...lost] }, ...more];
}

/** In how many folders all files lie: `tmp/collect/node1/…`. */
function foldersAbove(names: readonly string[]): number {
  const [first = "", ...others] = names;
  const folders = first.split("/").slice(0, -1);
  const depth = folders.findIndex((_, i) => others.some((name) => !name.startsWith(`${folders.slice(0, i + 1).join("/")}/`)));
  return depth === -1 ? folders.length : depth;
}

/** Counters that grew for longer than this tell nothing of now. */
const TWO_SAMPLES = 15 * 60 * 1000;

function areApart(starts: readonly (string | undefined)[]): boolean {
  const times = starts.flatMap((start) => (start === undefined ? [] : Date.parse(start)));
  return times.length > 1 && Math.max(...times) - Math.min(...times) > TWO_SAMPLES;
}

/** When these files were written, as one of them tells that holds the output of `date`. */
function startOf(files: ReadonlyMap<string, string>, texts: ReadonlyMap<string, Head>): string | undefined {
  return toldByDate(
    [...files].flatMap(([file, name]) =>
      commandNamed(name)
        .filter(tellsTime)
        .map((command) => ({ command, text: decodeText((texts.get(file) as Head).bytes.subarray(0, 4096)) })),
    ),
  );
}

function draftOf({ node, files }: NodeFiles, texts: ReadonlyMap<string, Head>): Draft {
  const names = new Map([...files].map(([file, name]) => [name, file]));
  const moments = momentsOf([...names.keys()], commandNamed);
  const read = byMoment([...names.keys()], moments).map((name) => {
    const file = names.get(name) ?? name;
    return {
      file,
      commands: commandNamed(moments.get(name)?.name ?? name),
      text: decodeText((texts.get(file) as Head).bytes),
      truncated: texts.get(file)?.truncated === true,
    };
  });
  return {
    target: node,
    startedAt: startOf(files, texts),
    outputs: read.flatMap(({ file, commands, text, truncated }) =>
      withoutEnd([{ target: node, outputs: readTranscript(text, file, commands).outputs }], truncated).flatMap(({ outputs }) => outputs),
    ),
  };
}

/** All packed files of a folder together: some scripts pack each file by itself. */
const MAX_UNPACKED = 256 * 1024 * 1024;

/** What each network namespace answers in its own way. */
const OF_A_NAMESPACE =
  /^(?:ip6?|ifconfig|route|arp|ss|netstat|nstat|conntrack|nft|sysctl|ethtool|tc|bridge|ip6?tables)(?:[\s-]|$)|^cat \/(?:proc\/(?:sys\/)?net|etc\/resolv)/;

/** True of `pod_ip_route.txt`, and of `fabric_ip_neigh.txt` beside `ip_neigh.txt`: what is in it is not the node's. */
function ofAnother(name: string, names: readonly string[]): boolean {
  if (/(?:^|\/)(?:pods?|containers?|netns)\//.test(name) && commandNamed(name).some((command) => OF_A_NAMESPACE.test(command) && isKnown(command))) return true;
  const match = /^((?:.*\/)?)([a-z][a-z\d]{0,15})[_-](.+)$/.exec(name);
  if (match === null || commandNamed(name).some(isKnown)) return false;
  const [, folder = "", whose = "", rest = ""] = match;
  return /^(?:pod|container|peer|client|router|gateway|switch)[a-z\d]{0,3}$/.test(whose) || names.includes(folder + rest);
}
