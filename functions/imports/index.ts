import { statSync } from "node:fs";
import { basename } from "node:path";
import type { Capture } from "../facts/capture.ts";
import { archiveKind, decodeText, type Head } from "../transports/archive.ts";
import { CaptureError, readCaptureFiles, readText } from "../transports/capture-files.ts";
import { archiveBundle, type Bundle, captureOfDraft, type Draft, directoryBundle, type Importer, isKnown, MAX_OUTPUT } from "./bundle.ts";
import { ciliumSysdump } from "./cilium-sysdump.ts";
import { eksLogCollector } from "./eks-log-collector.ts";
import { recording } from "./recording.ts";
import { sosreport } from "./sosreport.ts";
import { standardInput } from "./standard-input.ts";
import { readTranscript } from "./transcript.ts";

/** Every kind of bundle, one line each. */
export const importers: readonly Importer[] = [sosreport, eksLogCollector, ciliumSysdump, recording];

const WANTED = `a capture (a directory with capture.json, or a .tgz of one), ${importers.map(({ title }) => title).join(", ")} (directory or archive), or a text with pasted outputs`;

/**
 * Reads whatever people have: a capture, a support bundle as a directory or archive, a text file with pasted outputs. One capture per node in it. The path `-` is
 * standard input, which is read as a pasted text.
 * @param secrets what is blacked out besides the usual (`redact` of a runbook); a capture of netcheck's own was cleaned on the node
 * @throws {CaptureError} that says what is wrong with it, or what it should be.
 */
export async function readCaptures(path: string, secrets: readonly string[] = []): Promise<Capture[]> {
  if (path === "-") return pastedCaptures(await readInput(), "stdin", "standard input", secrets);
  let stats: ReturnType<typeof statSync>;
  try {
    stats = statSync(path);
  } catch (cause) {
    throw new CaptureError(`${path}: could not read it: ${(cause as Error).message}`, { cause });
  }
  if (basename(path) === "capture.json") return [await readCaptureFiles(path)];
  if (stats.isDirectory() || archiveKind(path) !== undefined) {
    let bundle: Bundle;
    try {
      bundle = stats.isDirectory() ? directoryBundle(path) : await archiveBundle(path);
    } catch (cause) {
      throw new CaptureError(`${path}: could not unpack it: ${(cause as Error).message}`, { cause });
    }
    return await fromBundle(path, bundle, secrets);
  }
  const { text } = readText(path);
  return pastedCaptures(text, basename(path), path, secrets);
}

/** @throws {CaptureError} */
async function readInput(): Promise<string> {
  try {
    return decodeText((await standardInput(MAX_OUTPUT)).bytes);
  } catch (cause) {
    throw new CaptureError(`standard input: could not read it: ${(cause as Error).message}`, { cause });
  }
}

/**
 * The outputs in a pasted text: one capture, and one more for each further machine on which the same was asked. `file` is what evidence calls it; `place` is what
 * errors call it.
 * @throws {CaptureError} if no output of a known command is in it.
 */
export function pastedCaptures(text: string, file: string, place: string, secrets: readonly string[] = []): [Capture, ...Capture[]] {
  const { others, ...draft } = readTranscript(text, file);
  if (draft.outputs.length === 0) throw new CaptureError(`${place}: netcheck found no output of a command that it knows in it. It reads ${WANTED}`);
  const capture = (one: Draft): Capture => captureOfDraft(one, "paste", "pasted", secrets);
  return [capture(draft), ...others.map(capture)];
}

async function fromBundle(path: string, bundle: Bundle, secrets: readonly string[]): Promise<Capture[]> {
  // only its owner's own top: a bundle may hold captures of ours somewhere
  if (bundle.names.some((name) => /^(?:[^/]{1,255}\/)?capture\.json$/.test(name))) return [await readCaptureFiles(path)];
  for (const importer of importers) {
    const wanted = importer.recognize(bundle.names);
    if (wanted === undefined) continue;
    let heads: Map<string, Head>;
    try {
      heads = await bundle.read(wanted);
      const drafts = (await importer.read(heads, bundle.names)).filter((draft) => draft.outputs.length > 0);
      if (drafts.length > 0) return drafts.map((draft) => captureOfDraft(draft, importer.id, basename(path), secrets));
    } catch (cause) {
      throw new CaptureError(`${path}: could not read it as ${importer.title}: ${(cause as Error).message}`, { cause });
    }
    throw new CaptureError(`${path}: it looks like ${importer.title}, but holds no output of a command that netcheck knows`);
  }
  return await fromTexts(path, bundle, secrets);
}

/** A directory of files that people saved: each is a text with prompts, or its name is the command (`iptables-save.txt`, `ip_route.txt`). */
async function fromTexts(path: string, bundle: Bundle, secrets: readonly string[]): Promise<Capture[]> {
  const texts = [...(await bundle.read((name) => /(?:^|\/)[\w .+-]{1,200}\.(?:txt|log|out|md)$/.test(name) && name.split("/").length <= 3))];
  const outputs = texts
    .filter(([name]) => !ofAnother(name, bundle.names))
    .flatMap(([name, head]) => readTranscript(decodeText(head.bytes), name, commandNamed(name)).outputs);
  if (outputs.length === 0) throw new CaptureError(`${path}: it is not ${WANTED}`);
  return [captureOfDraft({ target: undefined, outputs }, "paste", basename(path), secrets)];
}

/** `ip-route-show.txt`, `iptables_-t_nat_-S.log` → the command. */
function commandNamed(name: string): readonly string[] {
  const bare = basename(name).replace(/\.(?:txt|log|out|md)$/, "");
  return [bare, bare.replaceAll("_", " "), bare.replaceAll("-", " "), bare.replaceAll(/[_-]/g, " ")];
}

/** True of `pod_ip_route.txt`, and of `fabric_ip_neigh.txt` beside `ip_neigh.txt`: what is in it is not the node's. */
function ofAnother(name: string, names: readonly string[]): boolean {
  const match = /^((?:.*\/)?)([a-z][a-z\d]{0,15})[_-](.+)$/.exec(name);
  if (match === null || commandNamed(name).some(isKnown)) return false;
  const [, folder = "", whose = "", rest = ""] = match;
  return /^(?:pod|container|peer|client|router|gateway|switch)[a-z\d]{0,3}$/.test(whose) || names.includes(folder + rest);
}
