import type { Statement } from "./config.ts";
import { type Context, fixOf, type TriageResult } from "./context.ts";
import { rowsOf } from "./incident-row.ts";
import { allMutes } from "./muted.ts";
import type { Actor, HomeRequest, Message, Ports, Proposal } from "./ports.ts";
import { openIncidents, type Registered } from "./register.ts";
import { untilText } from "./report.ts";
import { isShownTo, type Standing, standingOf } from "./standing.ts";

/** Kind of the documents that say who has a Home tab, by person: only those are refreshed. */
const HOME = "home";
/** Lines of each part: Slack takes 100 blocks in a Home tab, and nobody reads more. */
const SHOWN = { approvals: 8, open: 10, recent: 8, mutes: 8, rights: 10 } as const;
/** Incidents that are looked at for each part. */
const LOOKED_AT = 60;
/** Mutes among which those that are the person's business are looked for. */
const MOST_MUTES = 1000;
/** Names of one statement that are shown. */
const NAMES = 6;

/** Somebody opened the Home tab: it is drawn for that person. What keeps it from being drawn is told there. */
export async function home({ durable, ports, catalogue }: Context, { requester }: HomeRequest): Promise<TriageResult> {
  try {
    await durable.step("home", async () => {
      await ports.store.change(HOME, requester.id, () => ({ at: ports.now().toISOString() }));
      await ports.chat.home(requester, await homeMessage({ ports, catalogue }, requester));
      return null;
    });
    return { outcome: "shown" };
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "a Home tab could not be drawn", { actor: requester.id, problem });
    await durable.step("home-failed", async () => {
      await ports.chat.home(requester, { template: "home-failed", data: { problem } });
      return null;
    });
    return { outcome: "failed" };
  }
}

/** After a decision of a person: the own Home tab, if there is one, as it is now. It is only a view, so a failure is no more than a line in the log. */
export async function refreshHome({ durable, ports, catalogue }: Context, actor: Actor): Promise<void> {
  await durable
    .step("refresh-home", async () => {
      if ((await ports.store.kept(HOME, actor.id)) !== undefined) await ports.chat.home(actor, await homeMessage({ ports, catalogue }, actor));
      return null;
    })
    .catch((error: unknown) => ports.log("warn", "a Home tab could not be refreshed", { actor: actor.id, problem: (error as Error).message }));
}

/** What waits for a person, what is open, what was examined, what is muted, and what the person may do. */
async function homeMessage({ ports, catalogue }: Pick<Context, "ports" | "catalogue">, actor: Actor): Promise<Message> {
  const now = ports.now();
  const standing = await standingOf(await ports.config(), actor, (group) => ports.members(group));
  const mine = (one: Pick<Registered, "requester" | "cluster" | "target">): boolean => isShownTo(standing, one);
  const open = (await openIncidents(ports.store, now)).filter(mine).slice(0, LOOKED_AT);
  const pending = await pendingOf(ports, open, now);
  const recent = (await ports.store.incidents(LOOKED_AT)).filter((one) => one.sources === undefined && mine(one));
  const latest = [...new Map(recent.toReversed().map((one) => [`${one.cluster}/${one.target}`, one])).values()].toReversed();
  const mutes = (await allMutes(ports.store, now, MOST_MUTES)).filter((one) => mine({ ...one, requester: one.by }));
  const incidents = { shown: open.map(({ incident }) => incident), recent: latest.map(({ id }) => id) };
  return {
    template: "home",
    data: {
      approvals: pending.slice(0, SHOWN.approvals).map((proposal, index) => ({
        index,
        incident: proposal.incident,
        proposal: proposal.id,
        target: proposal.target,
        cluster: proposal.cluster,
        kind: proposal.kind ?? "fix",
        ...fixWords({ catalogue }, proposal),
        requester: proposal.requester.id,
        approvals: new Set(proposal.decisions.filter(({ decision }) => decision === "approve").map((one) => one.actor.id)).size,
        expiresAt: Math.floor(Date.parse(proposal.expiresAt) / 1000),
        expires: proposal.expiresAt,
      })),
      approvalsMore: Math.max(0, pending.length - SHOWN.approvals),
      open: await rowsOf(ports, incidents.shown, SHOWN.open),
      openMore: Math.max(0, open.length - SHOWN.open),
      recent: (await rowsOf(ports, incidents.recent, SHOWN.recent)).map((row, index) => ({ ...row, index, command: `${row.cluster}/${row.target}` })),
      mutes: mutes
        .slice(0, SHOWN.mutes)
        .map(({ rule, cluster, target, by, until, reason }) => ({ rule, cluster, target, by: by.id, until: untilText(until), reason })),
      mutesMore: Math.max(0, mutes.length - SHOWN.mutes),
      ...rightsOf(standing),
      at: untilText(now.toISOString()),
    },
  };
}

async function pendingOf(ports: Pick<Ports, "store">, open: readonly Registered[], now: Date): Promise<readonly Proposal[]> {
  const incidents = await Promise.all(open.map(({ incident }) => ports.store.incident(incident)));
  const proposals = await Promise.all(incidents.map(async (one) => (one?.proposal === undefined ? undefined : ports.store.proposal(one.proposal))));
  return proposals.filter((one) => one !== undefined).filter(({ state, expiresAt }) => state === "pending" && Date.parse(expiresAt) > now.getTime());
}

/** A fix may have left the catalogue since. */
function fixWords({ catalogue }: Pick<Context, "catalogue">, proposal: Proposal): { readonly title: string; readonly risk: string } {
  if (!catalogue.fixes.has(proposal.fix)) return { title: proposal.fix, risk: "unknown" };
  const { title, risk } = fixOf(catalogue, proposal).file;
  return { title, risk };
}

/** What the policy says of the person, a line for each statement; whether a certain fix may be approved is asked at each decision. */
function rightsOf({ allows, denies, doubts }: Standing): Record<string, unknown> {
  const lines = [
    ...denies.map((one) => ({ words: deniedWords(one), icon: "no_entry" })),
    ...allows.map((one) => ({ words: allowedWords(one), icon: "white_check_mark" })),
  ];
  return { rights: lines.slice(0, SHOWN.rights), rightsMore: Math.max(0, lines.length - SHOWN.rights), doubts: doubts.slice(0, 3) };
}

const some = (patterns: readonly string[], all: string): string =>
  patterns.includes("*") ? all : `${patterns.slice(0, NAMES).join(", ")}${patterns.length > NAMES ? ` and ${patterns.length - NAMES} more` : ""}`;
const onWhat = ({ clusters, targets, fixes, risks }: Statement): string =>
  `${some(fixes, "every fix")}${risks.length === 1 ? ` of risk ${risks[0]}` : ""} on ${some(targets, "all nodes")} of ${some(clusters, "all clusters")}`;

function allowedWords(statement: Statement): string {
  const needed = statement.effect === "allow" && statement.approvalsNeeded > 1 ? `; ${statement.approvalsNeeded} people must approve` : "";
  const own = statement.effect === "allow" && statement.selfApproval ? "" : "; not what you asked for yourself";
  const frozen = statement.freezeWindows === undefined ? "" : "; not in its freeze windows";
  return `You may approve ${onWhat(statement)}${own}${needed}${frozen} (statement "${statement.id}").`;
}
const deniedWords = (statement: Statement): string =>
  `You may approve nothing on ${some(statement.targets, "all nodes")} of ${some(statement.clusters, "all clusters")} (statement "${statement.id}").`;
