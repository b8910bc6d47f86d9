import { readdirSync } from "node:fs";
import { join } from "node:path";
import type { Command } from "commander";
import { distance } from "fastest-levenshtein";
import { z } from "zod";
import { loadFile } from "../rules/load.ts";
import { FixFile } from "../rules/schema.ts";
import { Config } from "../triage/config.ts";
import { explain, type Judgement, limits, type Members, type Subject, terms } from "../triage/policy.ts";
import { UsageError } from "./errors.ts";
import type { Shared } from "./output.ts";

const ABOUT = `
Says whether somebody may approve a fix, what each statement of the policy says to it and why, by the code that decides in production. It asks nobody: not
Slack, not the cloud. Who is in a user group must be told (--group); a group that is not told counts as one that could not be looked up.

  netcheck policy test --config infra/netcheck.yaml --group S0SRE=U0BOB,U0CAROL \\
    --approver U0BOB --requester U0ALICE --fix enable-ip-forward --target prod-eu/node1 --at 2026-12-24T18:00+01:00

Exit code 0: it was evaluated, whatever the answer; 1: it was not as expected (--expect, --cases), or a file is wrong; 2: usage. docs/policy.md has more.
`;

/** `netcheck policy test`. */
export function register(netcheck: Command, { runbooks, run }: Shared): void {
  netcheck
    .command("policy")
    .description("the policy of netcheck.yaml: who may approve fixes")
    .command("test")
    .description("may somebody approve a fix on a node at a time, and why")
    .option("--config <file>", "netcheck.yaml", "netcheck.yaml")
    .option("--approver <user>", "a Slack user id")
    .option("--fix <id>", "as in `netcheck fixes list`")
    .option("--target <node>", "a node, or cluster/node")
    .option("--cluster <name>", "its cluster, where the name alone does not tell")
    .option("--requester <user>", "who asked for the triage; somebody else than the approver unless told")
    .option("--at <time>", "with its zone: 2026-12-24T18:00+01:00; now unless told")
    .option("--group <group=users>", "members of a user group: S0SRE=U0BOB,U0CAROL; repeatable", collect, [])
    .option("--expect <answer>", "allow, break-glass or deny: exit code 1 if it is another")
    .option("--cases <file>", "all cases of a YAML file instead, each with what is expected")
    .option("--json", "one JSON line for each case")
    .addHelpText("after", ABOUT)
    .action(
      run(async (options: Options) => {
        const { cases, config } = options.cases === undefined ? oneCase(options) : readCases(options);
        const results: Result[] = [];
        for (const one of cases) results.push(await decide(config, one, runbooks));
        for (const result of results) process.stdout.write(options.json === true ? `${JSON.stringify(result)}\n` : textOf(result, options.cases === undefined));
        const wrong = results.filter(({ asExpected }) => asExpected === false).length;
        if (options.cases !== undefined && options.json !== true)
          process.stdout.write(`${results.length - wrong} of ${results.length} case${results.length === 1 ? "" : "s"} as expected\n`);
        if (wrong > 0) process.exitCode = 1;
      }),
    );
}

interface Options {
  readonly config: string;
  readonly approver?: string;
  readonly fix?: string;
  readonly target?: string;
  readonly cluster?: string;
  readonly requester?: string;
  readonly at?: string;
  readonly group: readonly string[];
  readonly expect?: string;
  readonly cases?: string;
  readonly json?: boolean;
}

const ANSWERS = ["allow", "break-glass", "deny"] as const;
const PERSON = /^(?:[UW][A-Z0-9_]{2,20}|cli)$/;
const GROUP = /^S[A-Z0-9_]{2,20}$/;
const TIME = /^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}(?::\d{2}(?:\.\d{1,3})?)?(?:Z|[+-]\d{2}:\d{2})$/;
/** No id of Slack's: it is named nowhere, so that only statements about everybody's requests fit. */
const SOMEBODY = "somebody else";

const Person = z.string().regex(PERSON, "the id of a user (U…)");
const Time = z.string().refine((text) => TIME.test(text) && !Number.isNaN(Date.parse(text)), 'a time with its zone: "2026-12-24T18:00+01:00"');
const CaseFile = z.strictObject({
  /** Members of the user groups. */
  groups: z.record(z.string().regex(GROUP, "the id of a user group (S…)"), z.array(Person)).default({}),
  /** When, for the cases that do not say. */
  at: Time.optional(),
  cases: z
    .array(
      z.strictObject({
        name: z.string().min(1).max(200),
        approver: Person,
        fix: z.string().min(1),
        /** A node, or cluster/node. */
        target: z.string().min(1),
        requester: Person.optional(),
        at: Time.optional(),
        expect: z.enum(ANSWERS),
        /** The statement that must decide, or "default". */
        statement: z.string().min(1).optional(),
      }),
    )
    .min(1)
    .max(1000),
});

/** One question to the policy. */
interface Case {
  readonly name?: string;
  readonly approver: string;
  readonly requester: string;
  readonly fix: string;
  readonly target: string;
  readonly cluster: string | undefined;
  readonly at: Date;
  readonly groups: Readonly<Record<string, readonly string[]>>;
  readonly expect: (typeof ANSWERS)[number] | undefined;
  readonly statement: string | undefined;
}

/** Its answer, as `--json` prints it. */
interface Result extends Omit<Case, "groups" | "expect" | "statement" | "at" | "cluster"> {
  readonly schema: "netcheck.policy-test/1";
  readonly cluster: string;
  readonly risk: Subject["risk"];
  readonly at: string;
  readonly answer: (typeof ANSWERS)[number];
  /** The statement that decided, or "default". */
  readonly statement: string;
  /** Why not, as the person would be told. */
  readonly reason?: string;
  /** Why there would be no proposal at all. */
  readonly noProposal?: string;
  readonly approvalsNeeded?: number;
  readonly expiresMinutes?: number;
  readonly remindMinutes?: number;
  readonly limits: readonly string[];
  readonly statements: readonly Judgement[];
  readonly expected?: string;
  readonly asExpected?: boolean;
}

function oneCase(options: Options): { cases: Case[]; config: Config } {
  const required = (key: "approver" | "fix" | "target"): string => {
    const value = options[key];
    if (value === undefined) throw new UsageError(`policy test needs --${key}, or --cases with a file`);
    return value;
  };
  const [approver, fix, target] = [required("approver"), required("fix"), required("target")];
  for (const [key, id] of [
    ["approver", approver],
    ["requester", options.requester],
  ] as const)
    if (id !== undefined && !PERSON.test(id)) throw new UsageError(`--${key} takes the id of a user (U…), not ${id}`);
  if (options.at !== undefined && !Time.safeParse(options.at).success)
    throw new UsageError(`--at takes a time with its zone, such as 2026-12-24T18:00+01:00, not ${options.at}`);
  const expect = ANSWERS.find((answer) => answer === options.expect);
  if (options.expect !== undefined && expect === undefined) throw new UsageError(`--expect takes ${ANSWERS.join(", ")}, not ${options.expect}`);
  const { cluster, requester = SOMEBODY } = options;
  const at = options.at === undefined ? new Date() : new Date(options.at);
  const groups = Object.fromEntries(options.group.map(groupOf));
  const config = loadFile(options.config, Config).value;
  return { cases: [{ approver, requester, fix, target, cluster, at, groups, expect, statement: undefined }], config };
}

function groupOf(text: string): [group: string, users: string[]] {
  const [, group, list = ""] = /^([^=]+)=(.*)$/.exec(text) ?? [];
  const users = list === "" ? [] : list.split(",");
  if (group === undefined || !GROUP.test(group) || !users.every((user) => PERSON.test(user)))
    throw new UsageError(`--group takes a group and its members, such as S0SRE=U0BOB,U0CAROL, not ${text}`);
  return [group, users];
}

function readCases(options: Options): { cases: Case[]; config: Config } {
  const alone = (["approver", "fix", "target", "cluster", "requester", "at", "expect"] as const).find((key) => options[key] !== undefined);
  if (alone !== undefined || options.group.length > 0) throw new UsageError(`--cases takes all from its file: leave out --${alone ?? "group"}`);
  const { value } = loadFile(options.cases ?? "", CaseFile);
  const now = new Date();
  const cases = value.cases.map(({ requester = SOMEBODY, at = value.at, statement, ...rest }) => {
    return { ...rest, requester, cluster: undefined, at: at === undefined ? now : new Date(at), groups: value.groups, statement };
  });
  return { cases, config: loadFile(options.config, Config).value };
}

async function decide(config: Config, one: Case, runbooks: string): Promise<Result> {
  const where = one.name === undefined ? "" : `${one.name}: `;
  const { cluster, target } = placeOf(config, one, where);
  const risk = riskOf(one.fix, runbooks, where);
  const actor = (id: string) => ({ id, team: "" });
  const subject: Subject = { cluster, target, fix: one.fix, requester: actor(one.requester), risk };
  const members: Members = async (group) => {
    const found = Object.hasOwn(one.groups, group) ? one.groups[group] : undefined;
    if (found === undefined) throw new Error("who is in it was not told");
    return found;
  };
  const { ruling, judgements } = await explain(config, subject, actor(one.approver), members, one.at);
  const possible = await terms(config, subject, members, one.at);
  const answer = !ruling.ok ? "deny" : ruling.breakGlass ? "break-glass" : "allow";
  const expected = one.expect === undefined ? undefined : one.statement === undefined ? one.expect : `${one.expect} by ${one.statement}`;
  return {
    schema: "netcheck.policy-test/1",
    ...(one.name === undefined ? {} : { name: one.name }),
    approver: one.approver,
    requester: one.requester,
    fix: one.fix,
    risk,
    cluster,
    target,
    at: one.at.toISOString(),
    answer,
    statement: ruling.statement,
    ...(ruling.ok ? { approvalsNeeded: ruling.approvalsNeeded } : { reason: ruling.reason }),
    ...(possible.ok ? { expiresMinutes: possible.expiresMinutes } : { noProposal: possible.reason }),
    ...(possible.ok && possible.remindMinutes !== undefined ? { remindMinutes: possible.remindMinutes } : {}),
    limits: (await limits(config, subject, members, one.at)).map(({ words }) => words),
    statements: judgements,
    ...(expected === undefined ? {} : { expected, asExpected: one.expect === answer && (one.statement ?? ruling.statement) === ruling.statement }),
  };
}

/** Cluster and name of the node. @throws {UsageError} if it is in no cluster, or in several */
function placeOf({ clusters }: Config, one: Case, where: string): { cluster: string; target: string } {
  const [first = "", second] = one.target.split(/\/(.*)/s);
  const [asked, target] = second === undefined ? [one.cluster, first] : [first, second];
  if (asked !== undefined && one.cluster !== undefined && asked !== one.cluster) throw new UsageError(`${one.target} is not in the cluster ${one.cluster}`);
  const names = Object.keys(clusters);
  if (asked !== undefined && !names.includes(asked)) throw new UsageError(`${where}there is no cluster ${asked}; clusters are ${names.join(", ")}`);
  const candidates = names.filter((name) => name === (asked ?? name));
  const listed = candidates.filter((name) => Object.hasOwn(clusters[name]?.targets ?? {}, target));
  // of a cluster whose nodes are found by tag or label any name may come
  const open = candidates.filter((name) => clusters[name]?.targetsByTag !== undefined || clusters[name]?.debugPods?.targetsByLabel !== undefined);
  const found = listed.length > 0 ? listed : open;
  if (found.length === 0) throw new UsageError(`${where}no node of ${candidates.join(", ")} is named ${target}`);
  if (found.length > 1) throw new UsageError(`${where}${target} may be in ${found.join(" or ")}: write ${found[0]}/${target}`);
  return { cluster: found[0] as string, target };
}

function riskOf(fix: string, runbooks: string, where: string): Subject["risk"] {
  const known = readdirSync(join(runbooks, "fixes"));
  if (known.includes(fix)) return loadFile(join(runbooks, "fixes", fix, "fix.yaml"), FixFile).value.risk;
  const [nearest = ""] = known.toSorted((a, b) => distance(a, fix) - distance(b, fix));
  throw new UsageError(`${where}there is no fix "${fix}"; the nearest is ${nearest}`);
}

function textOf(result: Result, whole: boolean): string {
  const { answer, asExpected, expected, name, statement } = result;
  const verdict = `${answer} by ${statement === "default" ? "default" : `statement "${statement}"`}`;
  if (!whole && asExpected === true) return `ok      ${name}: ${verdict}\n`;
  const failure = asExpected === false ? `NOT AS EXPECTED${name === undefined ? "" : `: ${name}`}: expected ${expected}, but it is ${verdict}\n` : "";
  const question = `May ${result.approver} approve ${result.fix} (${result.risk} risk) on ${result.cluster}/${result.target}, asked for by ${result.requester}, at ${result.at}?\n`;
  const width = Math.max(0, ...result.statements.map((one) => one.statement.length));
  const lines = result.statements.map((one) => `  ${one.statement.padEnd(width)}  ${one.effect.padEnd(5)}  ${one.says.padEnd(21)}  ${one.why}\n`);
  return `${failure}${question}${lines.join("")}${conclusion(result)}`;
}

function conclusion({ answer, approvalsNeeded = 1, expiresMinutes, limits: places, noProposal, reason, remindMinutes, statement }: Result): string {
  if (answer === "deny")
    return `No. The person would be told: You cannot approve this: ${reason}.\n${noProposal === undefined ? "" : `Nobody could: there would be no button, because ${noProposal}.\n`}`;
  const how =
    answer === "allow"
      ? `Yes, by statement "${statement}": ${approvalsNeeded === 1 ? "this one approval is enough" : `${approvalsNeeded} people have to approve`}.`
      : `Only by breaking the glass, by statement "${statement}": a reason is asked for, told openly, recorded, and reviewed by somebody else.`;
  const times = `The proposal expires after ${expiresMinutes} minutes${remindMinutes === undefined ? "" : `; the first reminder comes after ${remindMinutes}`}.`;
  return `${how} ${times}\n${places.map((words) => `It runs only within the limit: ${words}.\n`).join("")}`;
}

const collect = (value: string, earlier: string[]): string[] => [...earlier, value];
