import { missingFiles } from "../facts/capture.ts";
import type { Diagnosis, Verdict } from "../rules/diagnosis.ts";
import { canonical, sha256 } from "./audit.ts";
import { packCapture } from "./captures.ts";
import { examine, loadDiagnosis } from "./collect.ts";
import { auditDraft, type Context, incidentOf, SYSTEM, type TriageResult, threadOf } from "./context.ts";
import { helpMessage, noteMessage } from "./note.ts";
import type { Capture, MessageRef, PasteRequest, Ports, SharedFile } from "./ports.ts";
import { diagnosisMessage, overview, reportData, rootMessage } from "./report.ts";

/**
 * Files and text that somebody dropped beside a mention of the bot, diagnosed in their thread. Nothing runs on a node, and nobody vouches for what is in
 * them: there is no proposal anywhere in this file, and the fixes are taken out of the diagnoses before they are kept.
 */

/** What pasted text is called where files have names. */
const PASTED = "the pasted text";
/** Messages in the thread; every node is in the report. */
const SHOWN = 5;
/** Of one file; a bundle of more nodes is cut, and that is said. */
const MAX_CAPTURES = 100;

/** What one file, or the text, came to. */
type Read =
  | {
      readonly ok: true;
      readonly name: string;
      readonly captures: readonly { readonly key: string; readonly target: string }[];
      readonly left: number;
      readonly lost?: readonly string[];
    }
  | { readonly ok: false; readonly name: string; readonly reason: string };

/** A diagnosis, and where it was read from. */
interface Examined {
  /** Keys of the diagnosis and of its capture in the store. */
  readonly key: string;
  readonly capture: string;
  readonly source: string;
  readonly verdict: Verdict;
}

/** What a request is about, in a few words. */
export function labelOf({ files, text }: Pick<PasteRequest, "files" | "text">): string {
  const names = files.map(({ name }) => name);
  return names.length > 1 ? `${names.length} files` : (names[0] ?? (text === "" ? "a mention" : PASTED));
}

/** Reads, diagnoses and tells. @throws what the workflow has no answer to */
export async function diagnosePaste(context: Context, request: PasteRequest): Promise<TriageResult> {
  const { durable, ports } = context;
  const { incident: id, files, text, problem } = request;
  const words = problem !== "" && text !== "" && !(await durable.step("recognize", () => isOutput(ports, text)));
  if (files.length === 0 && (text === "" || words)) {
    await durable.step("tell-help", async () => {
      await ports.chat.whisper(request.place, request.requester, helpMessage(problem));
      return null;
    });
    return { outcome: "help" };
  }
  const thread = await durable.step("open", () => open(ports, request));
  const read: Read[] = [];
  for (const [index, group] of ports.importer.groups(files).entries()) {
    read.push(
      ...(await durable
        .step(`read-${index + 1}`, () => readFiles(ports, id, `file-${index + 1}`, group))
        .catch((error: unknown): Read[] => [{ ok: false, name: namesOf(group), reason: (error as Error).message }])),
    );
  }
  if (text !== "") {
    const pasted = await durable.step("read-text", () => readText(ports, id, text));
    // beside a file, words are only words
    if (pasted.ok || files.length === 0) read.push(pasted);
  }

  const parts = read.flatMap((one) => (one.ok ? (one.lost ?? []).map((reason) => ({ name: `all of ${one.name}`, reason })) : []));
  const unreadable = [...read.flatMap((one) => (one.ok ? [] : [one])), ...parts];
  if (unreadable.length > 0) await durable.step("tell-unreadable", () => tellUnreadable(ports, id, thread, unreadable));
  const captures = read.flatMap((one) => (one.ok ? one.captures.map((capture) => ({ ...capture, source: one.name })) : []));
  if (captures.length === 0) {
    await durable.step("tell-nothing", async () => {
      const problem = "nothing in it could be read";
      const incident = await ports.store.update(id, { state: "failed", problem }, [auditDraft(ports, "collect-failed", SYSTEM, { files: read.length })]);
      await ports.chat.update(thread, rootMessage(incident, undefined));
      return null;
    });
    return { outcome: "unreadable" };
  }

  const examined: Examined[] = [];
  for (const [index, { key, source }] of captures.entries()) {
    examined.push(await durable.step(`diagnose-${index + 1}`, () => diagnose(context, id, index + 1, key, source)));
  }
  const ranked = [...examined].sort((a, b) => RANK.indexOf(a.verdict) - RANK.indexOf(b.verdict));
  for (const [index, one] of ranked.slice(0, SHOWN).entries()) {
    await durable.step(`tell-diagnosis-${index + 1}`, () => tellDiagnosis(context, id, thread, index + 1, one));
  }
  const left = read.reduce((sum, one) => sum + (one.ok ? one.left : 0), 0);
  await durable.step("tell-report", () => tellReport(context, id, thread, ranked, left));
  return { outcome: "diagnosed" };
}

/** What is worth reading first. */
const RANK: readonly Verdict[] = ["cause-found", "symptoms-only", "inconclusive", "healthy"];

async function open(ports: Ports, request: PasteRequest): Promise<MessageRef> {
  const { incident: id, requester, place, files, text } = request;
  const sources = [...files.map(({ name }) => name), ...(files.length === 0 ? [PASTED] : [])];
  const said = {
    files: files.map(({ id: file, name, size }) => ({ id: file, name, ...(size === undefined ? {} : { bytes: size }) })),
    ...(text === "" ? {} : { text: sha256(text) }),
  };
  const incident = await ports.store.open(
    { id, target: labelOf(request), cluster: "", requester, createdAt: ports.now().toISOString(), state: "collecting", sources },
    auditDraft(ports, "incident-opened", requester, said),
  );
  const root = await ports.chat.post(`${id}/root`, place, rootMessage({ ...incident, state: "collecting" }, undefined));
  const thread: MessageRef = place.thread === undefined ? root : { ...root, thread: place.thread };
  await ports.store.update(id, { thread, state: "collecting" }, []);
  return thread;
}

/** Names of files that were read together; a message has not room for ten long ones. */
function namesOf(files: readonly { readonly name: string }[]): string {
  const shown = files.length > 3 ? files.slice(0, 2) : files;
  const more = files.length - shown.length;
  return shown.map(({ name }) => name).join(", ") + (more === 0 ? "" : ` and ${more} more`);
}

async function readFiles(ports: Ports, id: string, part: string, files: readonly SharedFile[]): Promise<Read[]> {
  const [only, ...more] = files;
  if (only === undefined) return [];
  if (more.length === 0) {
    const { captures, bytes, sha256: hash } = await ports.importer.file(only);
    return [await keep(ports, id, part, captures, { file: only.name, bytes, sha256: hash })];
  }
  const { captures, fetched, unread } = await ports.importer.together(files);
  const problems = unread.map(({ name, reason }): Read => ({ ok: false, name, reason }));
  if (captures.length === 0) return problems;
  return [await keep(ports, id, part, captures, { file: namesOf(fetched), files: fetched }), ...problems];
}

function isOutput(ports: Ports, text: string): Promise<boolean> {
  try {
    return Promise.resolve(ports.importer.text(text).length > 0);
  } catch {
    return Promise.resolve(false);
  }
}

async function readText(ports: Ports, id: string, text: string): Promise<Read> {
  let captures: readonly Capture[];
  try {
    captures = ports.importer.text(text);
  } catch (error) {
    return { ok: false, name: PASTED, reason: (error as Error).message };
  }
  return keep(ports, id, "text", captures, { file: PASTED, bytes: new TextEncoder().encode(text).length, sha256: sha256(text) });
}

/** Keeps the captures in the store. A node's name comes from a stranger's file: only what a name may hold is left of it. */
async function keep(
  ports: Ports,
  id: string,
  part: string,
  captures: readonly Capture[],
  about: { readonly file: string; readonly [key: string]: unknown },
): Promise<Read> {
  const kept: { key: string; target: string }[] = [];
  const hashes: string[] = [];
  for (const [index, capture] of captures.slice(0, MAX_CAPTURES).entries()) {
    const target = capture.target.replaceAll(/[^A-Za-z0-9._:-]+/g, "_").slice(0, 80) || "unnamed";
    const packed = packCapture({ ...capture, target });
    const key = `captures/${id}/${part}-${index + 1}`;
    await ports.store.put(key, packed);
    kept.push({ key, target });
    hashes.push(sha256(packed));
  }
  await ports.store.record(id, [auditDraft(ports, `collected/${part}`, SYSTEM, { ...about, captures: hashes })]);
  const lost = captures.flatMap(missingFiles).slice(0, SHOWN);
  return { ok: true, name: about.file, captures: kept, left: captures.length - kept.length, ...(lost.length === 0 ? {} : { lost }) };
}

async function diagnose({ ports, catalogue }: Context, id: string, number: number, captureKey: string, source: string): Promise<Examined> {
  const { key, diagnosis: found } = await examine(ports, catalogue, captureKey);
  const diagnosis = withoutFixes(found);
  await ports.store.put(key, new TextEncoder().encode(JSON.stringify(diagnosis)));
  const capture = await ports.store.get(captureKey);
  await ports.store.record(id, [
    auditDraft(ports, `diagnosed/${number}`, SYSTEM, {
      file: source,
      verdict: diagnosis.verdict,
      causes: diagnosis.causes.map((cause) => cause.rule),
      unchecked: diagnosis.unchecked.map((item) => item.rule),
      capture: sha256(capture ?? ""),
      diagnosis: sha256(canonical(diagnosis)),
    }),
  ]);
  return { key, capture: captureKey, source, verdict: diagnosis.verdict };
}

/** A forged output must never become a fix's parameters: neither here, nor in what others make of the stored diagnosis. */
function withoutFixes(diagnosis: Diagnosis): Diagnosis {
  return { ...diagnosis, causes: diagnosis.causes.map(({ fix: _fix, fixProblem: _problem, ...cause }) => cause) };
}

async function tellUnreadable(
  ports: Ports,
  id: string,
  thread: MessageRef,
  files: readonly { readonly name: string; readonly reason: string }[],
): Promise<null> {
  for (const [index, { name, reason }] of files.entries()) {
    await ports.chat.post(`${id}/unreadable-${index + 1}`, threadOf(thread), noteMessage("grey_question", `Could not read ${name}. ${sentence(reason)}`));
  }
  return null;
}

/** A reason as a sentence of its own; our name stays as it is. */
const sentence = (reason: string): string =>
  `${reason.startsWith("netcheck ") ? "n" : reason.slice(0, 1).toUpperCase()}${reason.slice(1, 1500)}${/[.!?]$/.test(reason) ? "" : "."}`;

async function tellDiagnosis({ ports, catalogue }: Context, id: string, thread: MessageRef, number: number, { key, source }: Examined): Promise<null> {
  const diagnosis = await loadDiagnosis(ports, key);
  const place = threadOf(thread);
  await ports.chat.post(`${id}/diagnosis-${number}`, place, diagnosisMessage(await incidentOf(ports, id), diagnosis, catalogue, source));
  const [cause] = diagnosis.causes;
  if (cause?.diagram !== undefined) {
    const name = `netcheck-${diagnosis.target}-${id}-${number}.png`;
    await ports.chat.upload(`${id}/diagram-${number}`, place, { name, title: cause.title, content: cause.diagram });
  }
  return null;
}

/** The report with every node in it, and the first message as it stays. */
async function tellReport({ ports, catalogue, report }: Context, id: string, thread: MessageRef, ranked: readonly Examined[], left: number): Promise<null> {
  const all: { diagnosis: Diagnosis; source: string }[] = [];
  for (const { key, source } of ranked) all.push({ diagnosis: await loadDiagnosis(ports, key), source });
  const [worst] = all;
  const [first] = ranked;
  if (worst === undefined || first === undefined) throw new Error("there is no diagnosis to report");
  const target = all.length === 1 ? worst.diagnosis.target : `${all.length} nodes`;
  const incident = await ports.store.update(id, { state: "diagnosed", target, capture: first.capture, diagnosis: first.key }, []);
  const parts = all.map(({ diagnosis }) => report(reportData({ ...incident, target: diagnosis.target }, diagnosis, catalogue)));
  await ports.chat.upload(`${id}/report`, threadOf(thread), {
    name: `netcheck-${target.replaceAll(" ", "-")}-${id}.md`,
    title: `Full report on ${target}`,
    content: [overview(all, left), ...parts].join("\n---\n\n"),
  });
  const from = `read from ${[...new Set(all.map(({ source }) => source))].join(", ")}`;
  const more = all.length > SHOWN ? `${from}; the first ${SHOWN} of ${all.length} nodes are shown, all are in the report` : from;
  await ports.chat.update(thread, rootMessage(incident, worst.diagnosis, all.length === 1 ? more : `${more}; worst: ${worst.diagnosis.target}`));
  return null;
}
