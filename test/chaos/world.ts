import { join } from "node:path";
import { durableHandler } from "../../functions/durable/handler.ts";
import type { Capture } from "../../functions/facts/capture.ts";
import { sign } from "../../functions/local/app-link.ts";
import { Engine } from "../../functions/local/engine.ts";
import { workOn } from "../../functions/local/work.ts";
import type { Catalogue } from "../../functions/rules/load.ts";
import { type HttpResponse, slackHandler } from "../../functions/slack/app.ts";
import { slackChat } from "../../functions/slack/chat.ts";
import { loadTemplates } from "../../functions/slack/render.ts";
import { SqliteStore } from "../../functions/store/sqlite.ts";
import { scripts } from "../../functions/transports/script.ts";
import { Config } from "../../functions/triage/config.ts";
import type { Importer, Ports, Work, WorkEvent } from "../../functions/triage/ports.ts";
import { configuredTargets } from "../../functions/triage/targets.ts";
import { work } from "../../functions/triage/workflow.ts";
import { pass, VirtualClock } from "../local/virtual-clock.ts";
import { intercept } from "../triage/intercept.ts";
import { catalogueOf, FIX, fault, fixed, RULE, root } from "../triage/runbooks.ts";
import { ChaosNode } from "./chaos-node.ts";
import type { Delivery, Fault, Gesture, Person, Policy, Scenario } from "./scenario.ts";
import { type Block, buttonOf, SlackWorld, type View } from "./slack-world.ts";

const render = loadTemplates(join(root, "templates/slack"));
const catalogue = alone(catalogueOf());
/** The same fix in other words: what was approved is not it. */
const otherCatalogue = alone(catalogueOf((text) => text.replace(/^title: .*$/m, "title: Another release of the same fix")));
const SECRET = "the-signing-secret-of-the-chaos-run";
const TARGET = "node2";
const CHANNEL = "C_INCIDENTS";
const TEAM = "T_LOCAL";
/** The rule that the run is about, and no other. */
function alone(all: Catalogue): Catalogue {
  const rule = all.rules.get(RULE);
  return rule === undefined ? all : { ...all, rules: new Map([[RULE, rule]]) };
}

/** What the rule is about, and no more: ten thousand runs read it some times each. */
const seen = (capture: Capture): Capture => ({ ...capture, outputs: capture.outputs.filter(({ command }) => LOOKED_AT.test(command)) });
const LOOKED_AT = /^iptables/;
const noImporter = {} as Importer;

const allow = (more: object): object => ({ id: "sre", effect: "allow", approvers: ["S_SRE"], ...more });
const STATEMENTS: Record<Policy, readonly object[]> = {
  sre: [allow({})],
  two: [allow({ approvalsNeeded: 2 })],
  self: [allow({ approvers: ["S_SRE", "U_ALICE"], selfApproval: true })],
  limited: [allow({ oneAtATime: "cluster", rate: { most: 1, per: "1h" } })],
  glass: [allow({ breakGlass: { who: ["U_MALLORY"], reviewers: ["S_SRE"] } })],
  "not-carol": [allow({}), { id: "not-carol", effect: "deny", approvers: ["U_CAROL"] }],
  nobody: [allow({ requesters: ["U_SOMEBODY"] })],
};
const configs = new Map<Policy, Config>(
  Object.entries(STATEMENTS).map(([policy, statements]) => [
    policy as Policy,
    Config.parse({ clusters: { lab: { transport: "replay", targets: { [TARGET]: { address: "i-2" } } } }, policy: statements }),
  ]),
);

/** What of the rules in force somebody who approves is judged by, at one time. */
export interface Rules {
  readonly at: number;
  readonly policy: Policy;
  readonly sre: readonly Person[];
  readonly fixChanged: boolean;
}

/** A request that was sent and what it was answered. `forged`: nobody at Slack signed it so. */
export interface Sent {
  readonly gesture: Gesture;
  readonly forged: boolean;
  readonly status: number;
}

/**
 * One run: the real app (two machines), workflow, store, chat and durable engine; Slack, the node, time and everybody are simulated. Several executions mix step
 * by step at every call of a port, as they do in processes that share a store.
 */
export class ChaosWorld {
  readonly clock = new VirtualClock();
  readonly engine = new Engine({ file: ":memory:", clock: this.clock });
  readonly store = new SqliteStore(":memory:");
  readonly slack = new SlackWorld();
  readonly node = new ChaosNode(seen(fault), seen(fixed), () => this.clock.now());
  /** What ran, by name. */
  readonly started = new Map<string, WorkEvent>();
  readonly sent: Sent[] = [];
  /** In force, one after the other. */
  readonly rules: Rules[];
  readonly logged: string[] = [];
  /** Faults that have struck. */
  readonly struck: Fault[] = [];
  readonly #scenario: Scenario;
  readonly #calls = new Map<string, number>();
  readonly #doors: readonly ((event: { headers: Record<string, string>; body: string; isBase64Encoded: boolean }) => Promise<HttpResponse>)[];
  readonly #reading = new Map<string, Gesture>();
  #catalogue: Catalogue = catalogue;
  #dice: number;
  #triggers = 0;
  #shown = 0;

  constructor(scenario: Scenario) {
    this.#scenario = scenario;
    this.#dice = scenario.mix;
    this.rules = [{ at: this.clock.now(), policy: scenario.policy, sre: ["U_BOB", "U_CAROL"], fixChanged: false }];
    this.node.course = scenario.course;
    this.node.trouble = (call) => this.#trouble("node", call)?.trouble;
    this.slack.trouble = (call) => this.#trouble("slack", call)?.trouble;
    this.slack.groups["S_SRE"] = ["U_BOB", "U_CAROL"];
    const mixed = <T extends object>(name: string, port: T): T =>
      intercept(name, port, async (method, _args, go) => {
        await this.#letOthers();
        const trouble = this.#trouble("port", method);
        if (trouble?.trouble === "before") throw outage(method, trouble.passes);
        const result = await go();
        if (trouble?.trouble === "after") throw outage(method, trouble.passes);
        return result;
      });
    const engineWork = workOn(this.engine);
    const noted: Work = {
      start: async (name, event) => {
        await engineWork.start(name, event);
        this.started.set(name, event);
      },
      answer: (callback, value) => engineWork.answer(callback, value),
    };
    const store = mixed("store", this.store);
    const config = (): Config => configs.get(this.now.policy) as Config;
    const ports: Ports = {
      work: mixed("work", noted),
      targets: configuredTargets(async () => config()),
      transport: () => intercept("node", this.node, async (_method, _args, go) => this.#letOthers().then(go)),
      scripts,
      importer: noImporter,
      store,
      chat: slackChat({
        client: this.slack.client,
        store,
        render,
        draw: async () => Buffer.from("a picture"),
        log: (_level, message) => this.logged.push(message),
      }),
      members: async (group) => (await this.slack.client.usergroups.users.list({ usergroup: group })).users ?? [],
      config: async () => {
        const trouble = this.#trouble("port", "ports.config");
        if (trouble !== undefined) throw outage("ports.config", trouble.passes);
        return config();
      },
      now: () => new Date(this.clock.now()),
      random: (digits) => String(this.#random(10 ** 9)).padStart(digits, "0"),
      log: (level, message, fields) => this.logged.push(`${level}: ${message} ${JSON.stringify(fields ?? {})}`),
    };
    this.engine.start(
      durableHandler<WorkEvent>((event, durable) => work({ durable, ports, catalogue: this.#catalogue, report: () => "the full report" }, event)),
    );
    this.#doors = [0, 1].map(() => slackHandler({ signingSecret: SECRET, work: ports.work, render }));
  }

  /** The rules in force now. */
  get now(): Rules {
    return this.rules.at(-1) as Rules;
  }

  rulesAt(time: number): Rules {
    return this.rules.filter(({ at }) => at <= time).at(-1) ?? (this.rules[0] as Rules);
  }

  /** Everything in its order and time, then a week in which nobody does anything. */
  async play(): Promise<void> {
    const { gestures, changes } = this.#scenario;
    // somebody has to ask before there is anything to decide
    await this.#gesture(FIRST);
    await this.#pass(60);
    const start = this.clock.now();
    const due: { at: number; run: () => Promise<void> }[] = [
      ...changes.map(({ at, what }) => ({ at: start + at * 1000, run: async () => this.#change(what) })),
      ...gestures.map((gesture) => ({ at: start + gesture.at * 1000, run: () => this.#gesture(gesture) })),
    ];
    due.sort((a, b) => a.at - b.at);
    while (due.length > 0) {
      const at = due[0]?.at ?? 0;
      const together = due.filter((one) => one.at === at);
      due.splice(0, together.length);
      await this.#pass((at - this.clock.now()) / 1000);
      // the same millisecond: all at once
      await Promise.all(together.map(({ run }) => run()));
    }
    // the last requests that arrive late, and then as long as it takes: executions end by themselves
    await this.#pass(2 * LATEST);
    for (let day = 0; day < 40 && this.running.length > 0; day++) await this.#pass(86_400);
  }

  /** Executions that have not ended. */
  get running(): string[] {
    return [...this.started.keys()].filter((name) => this.engine.execution(name)?.status === "RUNNING");
  }

  async close(): Promise<void> {
    await this.engine.close(0);
    this.store.close();
  }

  // ---- people --------------------------------------------------------------------------------------------------------------------------------

  async #gesture(gesture: Gesture): Promise<void> {
    const trigger = `trigger-${++this.#triggers}`;
    this.slack.triggers.set(trigger, gesture.who);
    if (gesture.what === "ask") {
      const form = {
        command: "/netcheck",
        text: TARGET,
        user_id: gesture.who,
        team_id: TEAM,
        channel_id: CHANNEL,
        trigger_id: trigger,
        response_url: "https://hooks.invalid/1",
        api_app_id: "A1",
      };
      return this.#send(gesture, form);
    }
    // any button of that name that was ever seen: what is on a screen may be old
    const message =
      this.slack.messages.findLast((one) => one.onlyFor === undefined && buttonOf(one, gesture.what) !== undefined) ?? this.#remembered.get(gesture.what);
    if (message === undefined) return;
    this.#remembered.set(gesture.what, { ...message });
    const value = buttonOf(message, gesture.what) ?? "";
    if (gesture.what === "approve") this.#reading.set(gesture.who, gesture);
    const payload = {
      type: "block_actions",
      ...this.#common(gesture.who, trigger),
      channel: { id: CHANNEL, name: "incidents" },
      container: { type: "message", message_ts: message.ts, channel_id: CHANNEL, is_ephemeral: false },
      message: { type: "message", ts: message.ts, ...(message.thread === undefined ? {} : { thread_ts: message.thread }), text: message.text },
      response_url: "https://hooks.invalid/2",
      state: { values: {} },
      actions: [
        {
          type: "button",
          action_id: gesture.what,
          block_id: "b",
          value: gesture.forged === "value" ? `${value} x` : value,
          text: { type: "plain_text", text: "x" },
          action_ts: `${this.#triggers}.1`,
        },
      ],
    };
    await this.#send(gesture, { payload: JSON.stringify(payload) });
  }
  readonly #remembered = new Map<string, SlackWorld["messages"][number]>();

  /** Modals that were opened since the last look are read and sent off by whoever sees them. */
  async #sendModals(): Promise<void> {
    for (; this.#shown < this.slack.views.length; this.#shown++) {
      const view = this.slack.views[this.#shown] as View;
      const gesture = this.#reading.get(view.user);
      if (gesture === undefined || view.callback === "") continue;
      this.clock.after(gesture.reading * 1000, () => {
        void this.#submit(gesture, view);
      });
    }
  }

  async #submit(gesture: Gesture, view: View): Promise<void> {
    const trigger = `trigger-${++this.#triggers}`;
    this.slack.triggers.set(trigger, view.user);
    const values: Record<string, Record<string, unknown>> = {};
    for (const { type, block_id, element, label } of view.blocks) {
      if (type !== "input" || block_id === undefined || element?.action_id === undefined) continue;
      const text = /reason|why/i.test(label?.text ?? "") ? "the network is down" : gesture.typo ? "another-node" : TARGET;
      values[block_id] = { [element.action_id]: { type: "plain_text_input", value: text } };
    }
    const payload = {
      type: "view_submission",
      ...this.#common(view.user, trigger),
      view: {
        id: `V${this.#triggers}`,
        type: "modal",
        callback_id: view.callback,
        private_metadata: view.metadata,
        state: { values },
        blocks: view.blocks,
        hash: "1",
      },
      response_urls: [],
    };
    await this.#send(gesture, { payload: JSON.stringify(payload) });
  }

  #common(user: string, trigger: string): object {
    return {
      user: { id: user, username: user, name: user, team_id: TEAM },
      team: { id: TEAM, domain: "local" },
      api_app_id: "A1",
      token: "x",
      enterprise: null,
      is_enterprise_install: false,
      trigger_id: trigger,
    };
  }

  /** To one of the machines, now and as often as it is delivered again. */
  async #send(gesture: Gesture, form: Record<string, string>): Promise<void> {
    const { dropped, copies, doors } = gesture.delivery;
    const body = new URLSearchParams(form).toString();
    const first = Math.floor(Date.now() / 1000);
    const deliver = async (door: 0 | 1, timestamp: number): Promise<void> => {
      const forged = gesture.forged === "signature" || gesture.forged === "body";
      const signature = sign(gesture.forged === "signature" ? "a-guess" : SECRET, timestamp, gesture.forged === "body" ? `${body}%20` : body);
      const headers = { "content-type": "application/x-www-form-urlencoded", "x-slack-request-timestamp": String(timestamp), "x-slack-signature": signature };
      const answer = await this.#doors[door]?.({ headers, body, isBase64Encoded: false }).catch(() => ({ statusCode: 500 }));
      this.sent.push({ gesture, forged, status: answer?.statusCode ?? 0 });
    };
    const arriving: Promise<void>[] = dropped ? [] : [deliver(doors[0] ?? 0, first)];
    copies.forEach(({ after, anew }, index) => {
      const again = (): Promise<void> => deliver(doors[index + 1] ?? 0, anew ? first + index + 1 : first);
      if (after === 0) arriving.push(again());
      else this.clock.after(after * 1000, () => void again());
    });
    await Promise.all(arriving);
  }

  #change(what: Scenario["changes"][number]["what"]): void {
    const { now } = this;
    // what happened in the same millisecond before it happened under the old rules
    this.clock.moveTo(this.clock.now() + 1);
    const at = this.clock.now();
    if (what === "carol leaves") {
      this.slack.groups["S_SRE"] = ["U_BOB"];
      this.rules.push({ ...now, at, sre: ["U_BOB"] });
    } else if (what === "another version of the fix") {
      this.#catalogue = otherCatalogue;
      this.rules.push({ ...now, at, fixChanged: true });
    } else this.rules.push({ ...now, at, policy: what.policy });
  }

  // ---- time and trouble ----------------------------------------------------------------------------------------------------------------------

  async #pass(seconds: number): Promise<void> {
    await this.#settle();
    const end = this.clock.now() + seconds * 1000;
    for (let next = this.clock.next(); next !== undefined && next <= end; next = this.clock.next()) {
      this.clock.moveTo(next);
      await this.#settle();
    }
    await pass(this.engine, this.clock, Math.max(0, (end - this.clock.now()) / 1000));
  }

  /** Until nothing moves: requests are answered, executions rest, modals are on their way. */
  async #settle(): Promise<void> {
    for (let before = -1; before !== this.sent.length + this.slack.views.length; ) {
      before = this.sent.length + this.slack.views.length;
      // a request that was sent off by a timer needs some turns of the loop to be taken
      for (let turn = 0; turn < 12; turn++) await new Promise(setImmediate);
      await this.engine.idle();
      await this.#sendModals();
    }
  }

  async #letOthers(): Promise<void> {
    for (let turns = this.#random(4); turns > 0; turns--) await new Promise(setImmediate);
  }

  #random(below: number): number {
    // a linear congruential generator (Numerical Recipes)
    this.#dice = (Math.imul(this.#dice, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((this.#dice / 2 ** 32) * below);
  }

  #trouble<Of extends Fault["of"]>(of: Of, call: string): Extract<Fault, { of: Of }> | undefined {
    const { faults } = this.#scenario;
    const count = this.#calls.get(call) ?? 0;
    this.#calls.set(call, count + 1);
    const found = faults.find((one) => one.of === of && one.call === call && count >= one.nth && count < one.nth + one.times);
    if (found !== undefined) this.struck.push(found);
    return found as Extract<Fault, { of: Of }> | undefined;
  }
}

/** Seconds after which the last gesture, and the last copy of it, arrives (scenario.ts). */
const LATEST = 90_000;
const FIRST: Gesture = {
  at: 0,
  who: "U_ALICE",
  what: "ask",
  typo: false,
  reading: 0,
  forged: "",
  delivery: { dropped: false, copies: [], doors: [0] },
};

const outage = (call: string, retryable: boolean): Error => Object.assign(new Error(`${call}: the service did not answer`), { retryable });

export { type Block, CHANNEL, type Delivery, FIX, TARGET };
