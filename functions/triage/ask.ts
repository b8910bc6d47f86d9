import { sha256 } from "./audit.ts";
import type { Context, TriageResult } from "./context.ts";
import { chooseTargetMessage, helpMessage, noteMessage } from "./note.ts";
import type { Actor, AskRequest, Called, Message, MessageTriageRequest, Place, Ports, Target } from "./ports.ts";
import { targetsOf } from "./targets.ts";

/** Kind of the document that holds the names of all targets, as they were last seen: so that a modal need not wait for a cloud's answer. */
const TARGETS = "targets";
/** Targets that the modal lists; others are typed. With 100 bytes each it stays far below what Slack takes as a view. */
const MOST_LISTED = 300;
/** Names that are kept. */
const MOST_KEPT = 2000;
/** Slack's limits: of a group of options, of an option's value, and of what it shows. */
const GROUP = 100;
const VALUE = 150;
const LABEL = 75;

/** `/netcheck` alone: a modal asks which node, with all targets to choose from. Then the list is refreshed for the next one. */
export async function ask({ durable, ports }: Context, request: AskRequest): Promise<TriageResult> {
  const { requester, place, triggerId, incident: run } = request;
  try {
    await durable.step("ask", async () => {
      const message = askMessage(await names(ports), place);
      await ports.chat.modal(triggerId, place, requester, message, helpMessage("The window that asks for a node could not be opened in time: type its name."));
      return null;
    });
    await durable.step("refresh-targets", async () => {
      await keepNames(ports).catch((error: unknown) => ports.log("warn", "the targets could not be listed", { problem: (error as Error).message }));
      return null;
    });
    return { outcome: "asked" };
  } catch (error) {
    return failed({ durable, ports }, place, requester, run, error as Error);
  }
}

/** "Triage the node in this message": one target is named → its triage, in that thread; several → which one; none → the modal. */
export async function triageMessage({ durable, ports }: Context, request: MessageTriageRequest): Promise<TriageResult> {
  const { requester, place, triggerId, incident: run, text } = request;
  try {
    const outcome = await durable.step("find", async () => {
      const { found, problem } = await namedIn(ports, text);
      const [only] = found;
      if (only !== undefined && found.length === 1) {
        const incident = `inc-${sha256(run).slice(0, 12)}`;
        const { fresh: _, ...thread } = place;
        await ports.work.start(incident, { kind: "triage", request: { incident, target: nameOf(only), requester, place: thread } });
        return "started";
      }
      if (found.length > 1) {
        const choices = found.map((target) => ({ label: nameOf(target).slice(0, LABEL), command: nameOf(target) }));
        await ports.chat.whisper(place, requester, chooseTargetMessage("", true, choices, place.thread ?? ""));
        return "several";
      }
      const nothing = `No target that netcheck knows is named in that message${problem === undefined ? "" : `, as far as it can be told: ${problem}`}.`;
      await ports.chat.modal(
        triggerId,
        place,
        requester,
        askMessage(await names(ports), place, nothing),
        noteMessage("grey_question", `${nothing} Mention netcheck with the name.`),
      );
      return "none";
    });
    return { outcome };
  } catch (error) {
    return failed({ durable, ports }, place, requester, run, error as Error);
  }
}

async function failed({ durable, ports }: Pick<Context, "durable" | "ports">, place: Place, actor: Actor, run: string, error: Error): Promise<TriageResult> {
  ports.log("error", "a question for a target failed", { run, problem: error.message });
  await durable.step("tell-failure", async () => {
    await ports.chat.whisper(place, actor, noteMessage("warning", `That did not work: ${error.message}. Run id: ${run}`));
    return null;
  });
  return { outcome: "failed" };
}

/** As it is typed where two clusters may have the name. */
const nameOf = ({ cluster, name }: Pick<Target, "cluster" | "name">): string => `${cluster}/${name}`;

/** `cluster/name` of what the configuration names now and of what was found the last time, in order. */
async function names(ports: Pick<Ports, "config" | "store">): Promise<readonly string[]> {
  const [config, kept] = await Promise.all([ports.config(), ports.store.kept<readonly string[]>(TARGETS, "all")]);
  // a cluster may have left the configuration since
  const found = (kept ?? []).filter((name) => Object.hasOwn(config.clusters, name.slice(0, name.indexOf("/"))));
  return [...new Set([...targetsOf(config).map(nameOf), ...found])].sort();
}

async function keepNames(ports: Pick<Ports, "targets" | "store">): Promise<void> {
  const { called } = await ports.targets.all();
  const found = called.map(({ target }) => nameOf(target)).slice(0, MOST_KEPT);
  await ports.store.change<readonly string[]>(TARGETS, "all", () => found);
}

/** The modal. @param all `cluster/name`, in order @param problem why it is asked */
export function askMessage(all: readonly string[], place: Place, problem = ""): Message {
  const listed = all.filter((name) => name.length <= VALUE).slice(0, MOST_LISTED);
  const clusters = Map.groupBy(listed, (name) => name.slice(0, name.indexOf("/")));
  const groups = [...clusters].flatMap(([cluster, members]) =>
    Array.from({ length: Math.ceil(members.length / GROUP) }, (_, at) => ({
      group: (at === 0 ? cluster : `${cluster.slice(0, LABEL - 6)} (${at + 1})`).slice(0, LABEL),
      options: members.slice(at * GROUP, (at + 1) * GROUP).map((command) => ({ command, name: command.slice(cluster.length + 1).slice(0, LABEL) })),
    })),
  );
  const metadata = [place.channel, place.thread ?? "-", place.responseUrl ?? "-"].join(" ");
  return { template: "ask", data: { problem, groups, more: all.length - listed.length, listed: listed.length, metadata } };
}

/** Words of a text that may be names of targets. */
const WORD = /[A-Za-z0-9][A-Za-z0-9_.:/-]*/g;
/** Different words of one message that are looked at. */
const MOST_WORDS = 1000;
/** What is asked for one by one, because no list has it: ids of machines and IPv4 addresses. */
const ADDRESS = /^(?:m?i-[0-9a-f]{8,17}|\d{1,3}(?:\.\d{1,3}){3})$/;
const MOST_ASKED = 5;

/** Targets that a message names, each once. `problem`: why not all of them can be told. */
async function namedIn(ports: Pick<Ports, "targets">, text: string): Promise<{ readonly found: readonly Target[]; readonly problem?: string }> {
  const words = wordsOf(text);
  const { called, problem: unlisted } = await ports.targets.all();
  const problems = unlisted === undefined ? [] : [unlisted];
  const found = new Map<string, Target>();
  const byName = Map.groupBy(
    called.flatMap(({ target, names: known }: Called) => known.map((name) => ({ name, target }))),
    ({ name }) => name,
  );
  for (const word of words) for (const { target } of byName.get(word) ?? []) found.set(nameOf(target), target);
  for (const word of words.filter((one) => ADDRESS.test(one) && !byName.has(one)).slice(0, MOST_ASKED)) {
    try {
      const resolution = await ports.targets.resolve(word);
      if (resolution.kind === "found") found.set(nameOf(resolution.target), resolution.target);
    } catch (error) {
      problems.push((error as Error).message);
    }
  }
  return { found: [...found.values()], ...(problems.length === 0 ? {} : { problem: [...new Set(problems)].join("; ") }) };
}

/** In lower case, without the punctuation behind them; of `host:9100` and of a web address also the host. */
export function wordsOf(text: string): readonly string[] {
  const words = new Set<string>();
  for (const [word] of text.toLowerCase().matchAll(WORD)) {
    if (words.size >= MOST_WORDS) break;
    const bare = word.replace(/[_.:/-]+$/, "");
    words.add(bare);
    const host = /^(?:https?:\/\/)?([^:/]+)(?::\d{1,5})?(?:\/|$)/.exec(bare)?.[1];
    // what stands before the "/" of cluster/name is no host
    if (host !== undefined && (bare.startsWith("http") || !bare.includes("/"))) words.add(host);
  }
  return [...words];
}
