import { copyFileSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { durableHandler } from "../../functions/durable/handler.ts";
import { sharedImporter } from "../../functions/imports/shared.ts";
import { Engine, type Execution } from "../../functions/local/engine.ts";
import { workOn } from "../../functions/local/work.ts";
import type { Catalogue } from "../../functions/rules/load.ts";
import { loadReport } from "../../functions/slack/report.ts";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { scripts } from "../../functions/transports/script.ts";
import { sha256 } from "../../functions/triage/audit.ts";
import { Config } from "../../functions/triage/config.ts";
import type { Actor, AuditEvent, Click, Importer, Incident, PasteRequest, Ports, Proposal, Transport, WorkEvent } from "../../functions/triage/ports.ts";
import { configuredTargets } from "../../functions/triage/targets.ts";
import { work } from "../../functions/triage/workflow.ts";
import { pass, VirtualClock } from "../local/virtual-clock.ts";
import { ALICE, BOB } from "../store/drafts.ts";
import { RecordingChat } from "./recording-chat.ts";
import { catalogueOf, root } from "./runbooks.ts";
import { ScriptedNode } from "./scripted-node.ts";

export { ALICE, BOB };
export const CAROL: Actor = { id: "U_CAROL", team: "T_LOCAL" };
export const MALLORY: Actor = { id: "U_MALLORY", team: "T_LOCAL" };
export const CHANNEL = "C_INCIDENTS";

/** One node and one statement: the members of S_SRE may approve, and Alice, who asks. */
export function configOf(policy: unknown[] = [{ id: "sre", effect: "allow", approvers: ["S_SRE", ALICE.id], expires: "60m" }]): Config {
  return Config.parse({ clusters: { lab: { transport: "replay", targets: { node2: { address: "i-2" }, node3: {} } } }, policy });
}

const loaded = catalogueOf();
export const report = loadReport(join(root, "templates/report.md.hbs"));

/** The real importer on files of the repository: `files` says which one is shared under a name. Of any other the chat knows nothing. */
export const importerOf = (files: Readonly<Record<string, string>>): Importer =>
  sharedImporter({
    fetch: async ({ name }, path) => {
      const from = files[name];
      if (from === undefined) throw new Error("Slack does not have it any more");
      copyFileSync(from, path);
      const content = readFileSync(from);
      return { bytes: content.length, sha256: sha256(content) };
    },
    directory: tmpdir(),
  });

/** The whole workflow on the embedded engine with its real store, a scripted node, a recording chat, and time moved by hand. */
export class Bench {
  readonly clock = new VirtualClock();
  readonly engine = new Engine({ file: ":memory:", clock: this.clock });
  readonly store = new SqliteStore(":memory:");
  readonly chat = new RecordingChat();
  readonly node = new ScriptedNode();
  /** Read afresh by the workflow: may be changed at any time. */
  config: Config = configOf();
  catalogue: Catalogue = loaded;
  readonly groups: Record<string, readonly string[]> = { S_SRE: [BOB.id, CAROL.id] };
  readonly logged: string[] = [];
  /** Files in the chat: name → where it is in the repository. */
  readonly files: Record<string, string> = {};
  readonly ports: Ports;
  #clicks = 0;

  /** @param change other ports than the usual ones */
  constructor(change: (ports: Ports) => Partial<Ports> = () => ({})) {
    let dice = 0;
    const usual: Ports = {
      work: workOn(this.engine),
      targets: configuredTargets(async () => this.config),
      transport: (): Transport => this.node,
      scripts,
      importer: importerOf(this.files),
      store: this.store,
      chat: this.chat,
      members: async (group) => this.groups[group] ?? [],
      config: async () => this.config,
      now: () => new Date(this.clock.now()),
      random: (digits) => String(++dice).padStart(digits, "0"),
      log: (level, message, fields) => this.logged.push(`${level}: ${message} ${JSON.stringify(fields ?? {})}`),
    };
    this.ports = { ...usual, ...change(usual) };
    this.engine.start(durableHandler<WorkEvent>((event, durable) => work({ durable, ports: this.ports, catalogue: this.catalogue, report }, event)));
  }

  async close(): Promise<void> {
    await this.engine.close(0);
    this.store.close();
  }

  /** Somebody asks about a target; returns when nothing moves any more, with the id of the incident. */
  async ask(target = "node2", id = "inc-1", requester: Actor = ALICE): Promise<string> {
    this.engine.execute(id, { kind: "triage", request: { incident: id, target, requester, place: { channel: CHANNEL, responseUrl: "https://hooks/1" } } });
    await this.pass(60);
    return id;
  }

  /** Somebody drops files or text beside a mention; returns when nothing moves any more. */
  async paste(more: Partial<PasteRequest>, id = "inc-1"): Promise<string> {
    const request: PasteRequest = { incident: id, requester: ALICE, place: { channel: CHANNEL, thread: "0.900" }, files: [], text: "", problem: "", ...more };
    this.engine.execute(id, { kind: "paste", request });
    await this.pass(60);
    return id;
  }

  /**
   * Somebody clicks and nobody waits for what comes of it: on a button, or on the button of the modal ("confirm"), which knows the hash that is shown and into
   * which the name of the node was typed. Returns the name of the click's execution.
   */
  press(action: Click["action"], actor: Actor, more: Partial<Click> = {}): string {
    const id = `click-${++this.#clicks}`;
    const place = { channel: CHANNEL, thread: "1.000" };
    const proposal = action === "again" ? undefined : (more.proposal ?? "inc-1-fix");
    const shown = this.chat.posts.get(`${proposal}/proposal`)?.message.data ?? {};
    const modal = action === "confirm" ? { hash: String(shown["hash"]), typed: String(shown["target"]) } : {};
    const click: Click = { id, action, incident: "inc-1", proposal, actor, place, triggerId: "trigger", ...modal, ...more };
    this.engine.execute(click.id, { kind: "click", click });
    return click.id;
  }

  /** The same, and waits until nothing moves any more. Returns what the click came to. */
  async click(action: Click["action"], actor: Actor, more: Partial<Click> = {}): Promise<unknown> {
    const name = this.press(action, actor, more);
    await this.pass(300);
    return this.outcome(name);
  }

  pass(seconds: number): Promise<void> {
    return pass(this.engine, this.clock, seconds);
  }

  execution(name = "inc-1"): Execution | undefined {
    return this.engine.execution(name);
  }

  /** What an execution came to. */
  outcome(name = "inc-1"): unknown {
    const ended = this.engine.execution(name);
    return (ended?.result as { outcome?: string } | undefined)?.outcome ?? ended?.status;
  }

  async incident(id = "inc-1"): Promise<Incident> {
    const found = await this.store.incident(id);
    if (found === undefined) throw new Error(`there is no incident ${id}`);
    return found;
  }

  async proposal(id = "inc-1-fix"): Promise<Proposal> {
    const found = await this.store.proposal(id);
    if (found === undefined) throw new Error(`there is no proposal ${id}`);
    return found;
  }

  async events(type: string): Promise<AuditEvent[]> {
    return (await this.store.audit()).filter((event) => event.type === type);
  }
}
