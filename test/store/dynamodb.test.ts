import { DynamoDBClient, ScanCommand } from "@aws-sdk/client-dynamodb";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DynamoDbStore } from "../../functions/store/dynamodb.ts";
import { verifyStore } from "../../functions/store/verify.ts";
import { createTable, type DynamoDbLocal, dynamoDbProblem, startDynamoDb } from "../emulators/dynamodb.ts";
import { startFlakyProxy } from "../emulators/flaky-proxy.ts";
import { type S3Emulator, startS3 } from "../emulators/s3.ts";
import { storeContract } from "./contract.ts";
import { draft, incident } from "./drafts.ts";

const problem = dynamoDbProblem();
// on a laptop without Java this is skipped; CI must be able to
const skipped = problem !== undefined && process.env["CI"] !== "true";
if (skipped) process.stderr.write(`skipped: ${problem}\n`);

describe.skipIf(skipped)("on DynamoDB Local", () => {
  let dynamoDb: DynamoDbLocal;
  let s3: S3Emulator;
  let client: DynamoDBClient;
  let tables = 0;

  beforeAll(async () => {
    dynamoDb = await startDynamoDb();
    s3 = await startS3();
    Object.assign(process.env, {
      AWS_ENDPOINT_URL_DYNAMODB: dynamoDb.url,
      AWS_ENDPOINT_URL_S3: s3.url,
      AWS_REGION: "eu-central-1",
      AWS_ACCESS_KEY_ID: "AKIDEXAMPLE",
      AWS_SECRET_ACCESS_KEY: "secret",
    });
    client = new DynamoDBClient({});
  }, 120_000);
  afterAll(async () => {
    client.destroy();
    await Promise.all([dynamoDb.close(), s3.close()]);
  });

  const subject = async () => {
    const table = `netcheck-${++tables}`;
    await createTable(client, table);
    const [store, other] = [1, 2].map(() => new DynamoDbStore({ table, bucket: `bucket-${tables}` })) as [DynamoDbStore, DynamoDbStore];
    return {
      table,
      store,
      other,
      remove: async () => {
        store.close();
        other.close();
      },
    };
  };

  storeContract("dynamodb", subject);

  test("more events than one bucket and one page hold come back in order", { timeout: 60_000 }, async () => {
    const { store, remove } = await subject();
    await store.open(incident("i1"), draft("incident-opened"));
    for (let n = 0; n < 1010; n += 30)
      await store.record(
        "i1",
        Array.from({ length: 30 }, (_, i) => draft(`k${n + i}`, { text: "x".repeat(1200) })),
      );
    const events = await store.audit();
    expect(events.map(({ globalSequence }) => globalSequence)).toEqual(Array.from({ length: 1 + 34 * 30 }, (_, i) => i + 1));
    expect(await store.audit("i1")).toEqual(events);
    await expect(
      store.record(
        "i1",
        Array.from({ length: 33 }, (_, i) => draft(`more${i}`)),
      ),
    ).rejects.toThrow("32 are the most");
    await remove();
  });

  test("throttled, and with answers that get lost, nothing is lost and nothing is done twice", { timeout: 60_000 }, async () => {
    const { store, table, remove } = await subject();
    const proxy = await startFlakyProxy(dynamoDb.url, { throttled: 0.15, lost: 0.1, seed: 7 });
    // a client reads its endpoint at its first request
    expect(await store.audit()).toEqual([]);
    process.env["AWS_ENDPOINT_URL_DYNAMODB"] = proxy.url;
    const [one, two] = [1, 2].map(() => new DynamoDbStore({ table, bucket: "bucket-flaky" })) as [DynamoDbStore, DynamoDbStore];
    const writers = Array.from({ length: 12 }, async (_, n) => {
      const mine = n % 2 ? one : two;
      await asAStep(() => mine.open(incident(`i${n % 3}`), draft("incident-opened")));
      await asAStep(() => mine.record(`i${n % 3}`, [draft(`k${n}`)]));
      expect((await asAStep(() => mine.reserve("running/eu", `p${n}`, 12, undefined, new Date(0)))).ok).toBe(true);
    });
    await Promise.all(writers).finally(() => (process.env["AWS_ENDPOINT_URL_DYNAMODB"] = dynamoDb.url));
    expect(proxy.counts().throttled).toBeGreaterThan(3);
    expect(proxy.counts().lost).toBeGreaterThan(3);
    expect((await store.audit()).map(({ key }) => key).toSorted()).toEqual(
      ["incident-opened", "incident-opened", "incident-opened", ...Array.from({ length: 12 }, (_, n) => `k${n}`)].toSorted(),
    );
    expect(await verifyStore(store)).toEqual([]);
    expect((await store.reserve("running/eu", "late", 12, undefined, new Date(0))).holders).toHaveLength(12);
    one.close();
    two.close();
    await Promise.all([proxy.close(), remove()]);
  });

  test("what expires says so to the table; audit events never do", async () => {
    const { store, table, remove } = await subject();
    await store.open(incident("i1"), draft("incident-opened"));
    await store.remember("i1/root", { channel: "C1", ts: "1.1" });
    const { Items = [] } = await client.send(new ScanCommand({ TableName: table }));
    const expiring = Items.filter((item) => item["expires"] !== undefined).map((item) => item["sk"]?.S);
    expect(new Set(expiring)).toEqual(new Set(["incident", "message"]));
    expect(Items.length).toBeGreaterThan(expiring.length);
    await remove();
  });
});

/** Of many requests one now and then fails six times in a row: the engine runs a step again whose error says that it may pass. */
async function asAStep<T>(run: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await run();
    } catch (error) {
      if (attempt === 5 || (error as { retryable?: boolean }).retryable !== true) throw error;
    }
  }
}
