import { createHash } from "node:crypto";
import { DynamoDBClient, TransactionCanceledException } from "@aws-sdk/client-dynamodb";
import { GetObjectCommand, PutObjectCommand, S3Client } from "@aws-sdk/client-s3";
import {
  BatchGetCommand,
  DynamoDBDocumentClient,
  GetCommand,
  PutCommand,
  paginateQuery,
  paginateScan,
  TransactWriteCommand,
  type TransactWriteCommandInput,
} from "@aws-sdk/lib-dynamodb";
import { canonical, chain } from "../triage/audit.ts";
import type { AuditDraft, AuditEvent, Incident, MessageRef, Proposal, ProposalState, Reserved } from "../triage/ports.ts";
import { checkDocument } from "./document.ts";
import { isOutage } from "./outage.ts";
import { type Place, take } from "./places.ts";
import type { AuditedStore, Head } from "./verify.ts";

/**
 * The store on one DynamoDB table and one S3 bucket. A change and the audit events that record it are one transaction; whoever loses a race reads again and
 * repeats. Keys:
 *
 *     pk               sk            what
 *     I#<incident>     incident      the incident as JSON, `version`; in the index `list` by shard, newest first
 *     I#<incident>     A#<number>    its audit events, and one copy of each under
 *     G#<thousand>     A#<number>    … in global order
 *     I#<incident>     K#<key>       an event with that key was written
 *     I#<incident>     head          where its chain ends; of the chain over all incidents: pk GLOBAL
 *     P#<proposal>     proposal      the proposal as JSON, `version`
 *     M#<key>          message       what was posted under a key
 *     R#<scope>        places        who holds places of a limit (a node is one), since when, as JSON, `version`
 *     D#<kind>         =<key>        a small document as JSON, `version`; "null" if it was taken away, because nothing is ever deleted
 *
 * All of it is read consistently but the list of incidents. Captures and reports are objects in the bucket, under `blobs/`.
 */
export interface DynamoDbOptions {
  readonly table: string;
  readonly bucket: string;
  readonly region?: string;
  /** Incidents, proposals, messages and places are removed by the table's time to live after this many days. Audit events stay. Default 400: a year, and time to ask. */
  readonly retentionDays?: number;
  readonly now?: () => Date;
}

/** Name of the index over incidents: partition `list`, sort `listed`. */
export const LIST_INDEX = "list";
/** Incidents are spread over so many partitions, by hash, so that a storm of pages does not write into one. */
const SHARDS = 8;
/** A transaction has 100 items at most; an event takes three, its chains' ends and the change that it records three more. */
const MAX_EVENTS = 32;
/** Lost races before we give up: each leaves one of the racers done, so that this many must have come between. */
const MAX_TRIES = 60;
/** Longest pause before the next try; half of it on average. */
const MAX_PAUSE_MS = 400;
const BUCKET_EVENTS = 1000;
const WHOLE = "GLOBAL";

type Write = NonNullable<TransactWriteCommandInput["TransactItems"]>[number];
interface Stored<T> {
  readonly value: T;
  readonly version: number;
}
interface End {
  readonly sequence: number;
  readonly event: AuditEvent | undefined;
}

export class DynamoDbStore implements AuditedStore {
  readonly #db: DynamoDBDocumentClient;
  readonly #s3: S3Client;
  readonly #table: string;
  readonly #bucket: string;
  readonly #retentionSeconds: number;
  readonly #now: () => Date;

  constructor({ table, bucket, region, retentionDays = 400, now = () => new Date() }: DynamoDbOptions) {
    // short: a call that hangs must not use up an invocation; the SDK retries throttling and lost connections with jitter
    const settings = {
      ...(region === undefined ? {} : { region }),
      maxAttempts: 6,
      requestHandler: { connectionTimeout: 2000, requestTimeout: 5000, throwOnRequestTimeout: true },
    };
    this.#db = DynamoDBDocumentClient.from(new DynamoDBClient(settings), { marshallOptions: { removeUndefinedValues: true } });
    this.#s3 = new S3Client({ ...settings, requestHandler: { connectionTimeout: 2000, requestTimeout: 60_000, throwOnRequestTimeout: true } });
    // first of all that a call passes, so last of all that its error does: after the SDK's own attempts
    this.#db.middlewareStack.add((next) => (args) => next(args).catch(passing), { step: "initialize", priority: "high", name: "netcheckPassing" });
    this.#s3.middlewareStack.add((next) => (args) => next(args).catch(passing), { step: "initialize", priority: "high", name: "netcheckPassing" });
    this.#table = table;
    this.#bucket = bucket;
    this.#retentionSeconds = retentionDays * 86_400;
    this.#now = now;
  }

  close(): void {
    this.#db.destroy();
    this.#s3.destroy();
  }

  // ---- incidents ----

  async open(incident: Incident, event: AuditDraft): Promise<Incident> {
    return this.#race(`open incident ${incident.id}`, async () => {
      const old = await this.#incident(incident.id);
      if (old !== undefined) return { result: old.value };
      return { result: plain(incident), writes: [this.#putIncident(plain(incident), 0), ...(await this.#append(incident.id, [event]))] };
    });
  }

  async incident(id: string): Promise<Incident | undefined> {
    return (await this.#incident(id))?.value;
  }

  async incidents(limit: number): Promise<readonly Incident[]> {
    const shards = await Promise.all(
      Array.from({ length: SHARDS }, async (_, shard) => {
        const found: { listed: string; json: string }[] = [];
        const query = {
          TableName: this.#table,
          IndexName: LIST_INDEX,
          KeyConditionExpression: "#list = :shard",
          ExpressionAttributeNames: { "#list": "list" },
          ExpressionAttributeValues: { ":shard": `incident#${shard}` },
          ScanIndexForward: false,
          Limit: limit,
        };
        for await (const page of paginateQuery({ client: this.#db, pageSize: limit }, query)) {
          found.push(...((page.Items ?? []) as { listed: string; json: string }[]));
          if (found.length >= limit) break;
        }
        return found;
      }),
    );
    const newestFirst = shards.flat().sort((a, b) => (a.listed < b.listed ? 1 : -1));
    return newestFirst.slice(0, limit).map(({ json }) => JSON.parse(json) as Incident);
  }

  async update(id: string, change: Partial<Omit<Incident, "id">>, events: readonly AuditDraft[]): Promise<Incident> {
    return this.#race(`update incident ${id}`, async () => {
      const old = await this.#incident(id);
      if (old === undefined) throw new Error(`store: could not update incident ${id}: there is none`);
      const changed = plain<Incident>({ ...old.value, ...change, id });
      return { result: changed, writes: [this.#putIncident(changed, old.version), ...(await this.#append(id, events))] };
    });
  }

  // ---- proposals ----

  async propose(proposal: Proposal, event: AuditDraft): Promise<Proposal> {
    return this.#race(`keep proposal ${proposal.id}`, async () => {
      const old = await this.#proposal(proposal.id);
      if (old !== undefined) return { result: old.value };
      return { result: plain(proposal), writes: [this.#putProposal(plain(proposal), 0), ...(await this.#append(proposal.incident, [event]))] };
    });
  }

  async proposal(id: string): Promise<Proposal | undefined> {
    return (await this.#proposal(id))?.value;
  }

  /** As the port says, and as SqliteStore: a list of decisions that does not begin with the stored one is refused, too. */
  async transition(
    id: string,
    from: readonly ProposalState[],
    change: Partial<Omit<Proposal, "id" | "incident" | "hash">>,
    event: AuditDraft,
  ): Promise<{ readonly applied: boolean; readonly proposal: Proposal }> {
    return this.#race<{ applied: boolean; proposal: Proposal }>(`change proposal ${id}`, async () => {
      const old = await this.#proposal(id);
      if (old === undefined) throw new Error(`store: could not change proposal ${id}: there is none`);
      const { value, version } = old;
      const stale = change.decisions !== undefined && canonical(change.decisions.slice(0, value.decisions.length)) !== canonical(value.decisions);
      if (stale || !from.includes(value.state)) return { result: { applied: false, proposal: value } };
      const changed = plain<Proposal>({ ...value, ...change, id, incident: value.incident, hash: value.hash });
      const writes = [this.#putProposal(changed, version), ...(await this.#append(value.incident, [event]))];
      return { result: { applied: true, proposal: changed }, writes };
    });
  }

  // ---- audit ----

  async record(incident: string, events: readonly AuditDraft[]): Promise<void> {
    await this.#race(`record events of ${incident}`, async () => ({ result: undefined, writes: await this.#append(incident, events) }));
  }

  async audit(incident?: string): Promise<readonly AuditEvent[]> {
    if (incident !== undefined) return this.#events(`I#${incident}`);
    const { sequence } = await this.#end(WHOLE);
    const events: AuditEvent[] = [];
    for (let first = 1; first <= sequence; first += BUCKET_EVENTS) events.push(...(await this.#events(globalBucket(first))));
    return events;
  }

  /** Where the chains should end. Reads the whole table: it is for audits. */
  async heads(): Promise<readonly Head[]> {
    const heads: Head[] = [];
    const scan = {
      TableName: this.#table,
      ConsistentRead: true,
      FilterExpression: "sk = :head",
      ExpressionAttributeValues: { ":head": "head" },
    };
    for await (const page of paginateScan({ client: this.#db }, scan))
      for (const { pk, sequence, json } of (page.Items ?? []) as { pk: string; sequence: number; json: string }[])
        heads.push({ incident: pk === WHOLE ? undefined : pk.slice(2), sequence, hash: (JSON.parse(json) as AuditEvent).hash });
    return heads.sort((a, b) => ((a.incident ?? "") < (b.incident ?? "") ? -1 : 1));
  }

  /** The writes that link the events behind what is there. Keys that are there already are skipped. */
  async #append(incident: string, drafts: readonly AuditDraft[]): Promise<Write[]> {
    const fresh = await this.#unwritten(incident, drafts);
    if (fresh.length === 0) return [];
    if (fresh.length > MAX_EVENTS) throw new RangeError(`store: could not record ${fresh.length} events of ${incident} at once: ${MAX_EVENTS} are the most`);
    const [own, whole] = await Promise.all([this.#end(incident), this.#end(WHOLE)]);
    let [last, globalLast] = [own.event, whole.event];
    const writes: Write[] = [];
    for (const draft of fresh) {
      // what is hashed is what a reader will get back: plain JSON
      const event = chain(incident, plain(draft), last, globalLast);
      const json = canonical(event);
      writes.push(
        this.#putNew({ pk: `I#${incident}`, sk: eventKey(event.sequence), json }),
        this.#putNew({ pk: globalBucket(event.globalSequence), sk: eventKey(event.globalSequence), json }),
        this.#putNew({ pk: `I#${incident}`, sk: `K#${event.key}` }),
      );
      last = globalLast = event;
    }
    return [
      ...writes,
      this.#putEnd(`I#${incident}`, own.sequence, last as AuditEvent, "sequence"),
      this.#putEnd(WHOLE, whole.sequence, last as AuditEvent, "globalSequence"),
    ];
  }

  async #unwritten(incident: string, drafts: readonly AuditDraft[]): Promise<AuditDraft[]> {
    const byKey = new Map<string, AuditDraft>();
    for (const draft of drafts) if (!byKey.has(draft.key)) byKey.set(draft.key, draft);
    const keys = [...byKey.keys()];
    for (let from = 0; from < keys.length; from += 100) {
      let wanted: { pk: string; sk: string }[] = keys.slice(from, from + 100).map((key) => ({ pk: `I#${incident}`, sk: `K#${key}` }));
      while (wanted.length > 0) {
        const { Responses, UnprocessedKeys } = await this.#db.send(
          new BatchGetCommand({ RequestItems: { [this.#table]: { Keys: wanted, ConsistentRead: true, ProjectionExpression: "pk, sk" } } }),
        );
        for (const { sk } of (Responses?.[this.#table] ?? []) as { sk: string }[]) byKey.delete(sk.slice(2));
        wanted = (UnprocessedKeys?.[this.#table]?.Keys ?? []) as { pk: string; sk: string }[];
        if (wanted.length > 0) await pause(MAX_PAUSE_MS);
      }
    }
    return [...byKey.values()];
  }

  async #end(of: string): Promise<End> {
    const item = await this.#get<{ sequence: number; json: string }>(of === WHOLE ? WHOLE : `I#${of}`, "head");
    return item === undefined ? { sequence: 0, event: undefined } : { sequence: item.sequence, event: JSON.parse(item.json) as AuditEvent };
  }

  async #events(pk: string): Promise<AuditEvent[]> {
    const events: AuditEvent[] = [];
    const query = {
      TableName: this.#table,
      ConsistentRead: true,
      KeyConditionExpression: "pk = :pk AND begins_with(sk, :event)",
      ExpressionAttributeValues: { ":pk": pk, ":event": "A#" },
    };
    for await (const page of paginateQuery({ client: this.#db }, query))
      for (const { json } of (page.Items ?? []) as { json: string }[]) events.push(JSON.parse(json) as AuditEvent);
    return events;
  }

  // ---- data, messages, locks, places ----

  async put(key: string, data: Uint8Array): Promise<void> {
    if (!/^[A-Za-z0-9_/.-]{1,200}$/.test(key)) throw new RangeError(`store: could not put ${JSON.stringify(key)}: a key has 1 to 200 of A-Z a-z 0-9 _ / . -`);
    await this.#s3.send(new PutObjectCommand({ Bucket: this.#bucket, Key: `blobs/${key}`, Body: data }));
  }

  async get(key: string): Promise<Uint8Array | undefined> {
    try {
      const { Body } = await this.#s3.send(new GetObjectCommand({ Bucket: this.#bucket, Key: `blobs/${key}` }));
      return (await Body?.transformToByteArray()) ?? new Uint8Array();
    } catch (error) {
      if ((error as Error).name === "NoSuchKey") return undefined;
      throw error;
    }
  }

  async change<T>(kind: string, key: string, update: (stored: T | undefined) => T | undefined): Promise<T | undefined> {
    checkDocument(kind, key);
    const [pk, sk] = [`D#${kind}`, `=${key}`];
    return this.#race(`change the document ${kind} ${key}`, async () => {
      const old = stored<T | null>(await this.#get(pk, sk));
      const made = update(old?.value ?? undefined);
      if (made === undefined && (old === undefined || old.value === null)) return { result: undefined };
      const json = JSON.stringify(made ?? null);
      return { result: (JSON.parse(json) as T | null) ?? undefined, writes: [this.#putVersion({ pk, sk, json, expires: this.#expiry() }, old?.version ?? 0)] };
    });
  }

  async kept<T>(kind: string, key: string): Promise<T | undefined> {
    checkDocument(kind, key);
    return stored<T | null>(await this.#get(`D#${kind}`, `=${key}`))?.value ?? undefined;
  }

  async list<T>(
    kind: string,
    { prefix = "", limit, newestFirst = false }: { readonly prefix?: string; readonly limit: number; readonly newestFirst?: boolean },
  ): Promise<readonly { readonly key: string; readonly value: T }[]> {
    const found: { key: string; value: T }[] = [];
    const query = {
      TableName: this.#table,
      ConsistentRead: true,
      KeyConditionExpression: "pk = :pk AND begins_with(sk, :prefix)",
      FilterExpression: "json <> :gone",
      ExpressionAttributeValues: { ":pk": `D#${kind}`, ":prefix": `=${prefix}`, ":gone": "null" },
      ScanIndexForward: !newestFirst,
    };
    for await (const page of paginateQuery({ client: this.#db, pageSize: Math.max(limit, 25) }, query)) {
      for (const { sk, json } of (page.Items ?? []) as { sk: string; json: string }[]) found.push({ key: sk.slice(1), value: JSON.parse(json) as T });
      if (found.length >= limit) break;
    }
    return found.slice(0, limit);
  }

  async remember(key: string, message: MessageRef): Promise<void> {
    const Item = { pk: `M#${key}`, sk: "message", json: JSON.stringify(message), expires: this.#expiry() };
    await this.#db.send(new PutCommand({ TableName: this.#table, Item }));
  }

  async recall(key: string): Promise<MessageRef | undefined> {
    const item = await this.#get<{ json: string }>(`M#${key}`, "message");
    return item && (JSON.parse(item.json) as MessageRef);
  }

  async reserve(scope: string, holder: string, most: number, keepMs: number | undefined, at: Date): Promise<Reserved> {
    return this.#race<Reserved>(`reserve ${scope} for ${holder}`, async () => {
      const { value: held, version } = (await this.#places(scope)) ?? { value: [], version: 0 };
      const { ok, holders, places } = take(held, { holder, most, keepMs, at: at.getTime() });
      return { result: { ok, holders }, ...(places === undefined ? {} : { writes: [this.#putPlaces(scope, places, version)] }) };
    });
  }

  async release(scope: string, holder: string): Promise<void> {
    await this.#race(`release ${scope} of ${holder}`, async () => {
      const old = await this.#places(scope);
      if (old === undefined || !old.value.some((place) => place.holder === holder)) return { result: undefined };
      const places = old.value.filter((place) => place.holder !== holder);
      return { result: undefined, writes: [this.#putPlaces(scope, places, old.version)] };
    });
  }

  // ---- the table ----

  /**
   * Reads, and writes what follows from it in one transaction; from the start again if somebody else wrote in between. A transaction carries a token, so that
   * one whose answer was lost is not taken for somebody else's.
   */
  async #race<T>(what: string, attempt: () => Promise<{ result: T; writes?: Write[] }>): Promise<T> {
    for (let tries = 1; ; tries++) {
      const { result, writes = [] } = await attempt();
      if (writes.length === 0) return result;
      try {
        await this.#db.send(new TransactWriteCommand({ TransactItems: writes, ClientRequestToken: crypto.randomUUID() }));
        return result;
      } catch (error) {
        if (!lostRace(error)) throw error;
        if (tries === MAX_TRIES)
          throw new Error(`store: could not ${what}: ${MAX_TRIES} times somebody else wrote first. Nothing was changed; try again`, { cause: error });
        await pause(Math.min(MAX_PAUSE_MS, 10 * 2 ** tries));
      }
    }
  }

  async #get<T>(pk: string, sk: string): Promise<T | undefined> {
    const { Item } = await this.#db.send(new GetCommand({ TableName: this.#table, Key: { pk, sk }, ConsistentRead: true }));
    return Item as T | undefined;
  }

  async #incident(id: string): Promise<Stored<Incident> | undefined> {
    return stored(await this.#get(`I#${id}`, "incident"));
  }

  async #proposal(id: string): Promise<Stored<Proposal> | undefined> {
    return stored(await this.#get(`P#${id}`, "proposal"));
  }

  async #places(scope: string): Promise<Stored<Place[]> | undefined> {
    return stored(await this.#get(`R#${scope}`, "places"));
  }

  #putPlaces(scope: string, places: readonly Place[], version: number): Write {
    return this.#putVersion({ pk: `R#${scope}`, sk: "places", json: JSON.stringify(places), expires: this.#expiry() }, version);
  }

  #putIncident(incident: Incident, version: number): Write {
    const shard = createHash("sha256").update(incident.id).digest().readUInt8(0) % SHARDS;
    const listing = { list: `incident#${shard}`, listed: `${incident.createdAt}#${incident.id}` };
    return this.#putVersion({ pk: `I#${incident.id}`, sk: "incident", json: JSON.stringify(incident), ...listing, expires: this.#expiry() }, version);
  }

  #putProposal(proposal: Proposal, version: number): Write {
    return this.#putVersion({ pk: `P#${proposal.id}`, sk: "proposal", json: JSON.stringify(proposal), expires: this.#expiry() }, version);
  }

  /** The next version of an item, if nobody wrote it in between. */
  #putVersion(item: Readonly<Record<string, unknown>>, version: number): Write {
    const Item = { ...item, version: version + 1 };
    if (version === 0) return this.#putNew(Item);
    return {
      Put: { TableName: this.#table, Item, ConditionExpression: "version = :version", ExpressionAttributeValues: { ":version": version } },
    };
  }

  #putNew(item: Readonly<Record<string, unknown>>): Write {
    return { Put: { TableName: this.#table, Item: { ...item }, ConditionExpression: "attribute_not_exists(pk)" } };
  }

  #putEnd(pk: string, before: number, last: AuditEvent, number: "sequence" | "globalSequence"): Write {
    const Item = { pk, sk: "head", sequence: last[number], json: canonical(last) };
    if (before === 0) return this.#putNew(Item);
    return {
      Put: {
        TableName: this.#table,
        Item,
        ConditionExpression: "#sequence = :before",
        ExpressionAttributeNames: { "#sequence": "sequence" },
        ExpressionAttributeValues: { ":before": before },
      },
    };
  }

  /** For the table's time to live, in seconds since 1970. */
  #expiry(): number {
    return Math.floor(this.#now().getTime() / 1000) + this.#retentionSeconds;
  }
}

function stored<T>(item: { json: string; version: number } | undefined): Stored<T> | undefined {
  return item && { value: JSON.parse(item.json) as T, version: item.version };
}

const plain = <T>(value: T): T => JSON.parse(JSON.stringify(value)) as T;
const eventKey = (sequence: number): string => `A#${String(sequence).padStart(12, "0")}`;
const globalBucket = (globalSequence: number): string => `G#${String(Math.floor((globalSequence - 1) / BUCKET_EVENTS)).padStart(9, "0")}`;

/** Somebody else wrote one of the items, or writes it right now. Everything else (no permission, too large, throttled to the end) is an error. */
function lostRace(error: unknown): boolean {
  if ((error as Error).name === "TransactionInProgressException") return true;
  if (!(error instanceof TransactionCanceledException)) return false;
  const codes = (error.CancellationReasons ?? []).map(({ Code }) => Code ?? "None");
  const races = new Set(["None", "ConditionalCheckFailed", "TransactionConflict", "ThrottlingError", "ProvisionedThroughputExceeded"]);
  return codes.length > 0 && codes.every((code) => races.has(code));
}

/**
 * Passes an error on, and says with `retryable` that an outage may pass, so that the step is tried again later, however long the SDK has tried: what is lost otherwise is the release of a
 * lock, or what became of a fix.
 */
function passing(error: unknown): never {
  throw isOutage(error) ? Object.assign(error as Error, { retryable: true }) : error;
}

/** A random pause up to `ms`: racers that wait equally long meet again. */
function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, Math.random() * ms));
}
