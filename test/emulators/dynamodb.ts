import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, renameSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { CreateTableCommand, type DynamoDBClient, UpdateTimeToLiveCommand } from "@aws-sdk/client-dynamodb";
import { LIST_INDEX } from "../../functions/store/dynamodb.ts";

/** The package that holds Amazon's DynamoDB Local. It is fetched, not installed: what else the package depends on is of no use here. */
const PACKAGE = "amplify-dynamodb-simulator@2.9.30";
const FOLDER = join(import.meta.dirname, "../../node_modules/.cache/dynamodb-local");

/** Why DynamoDB Local cannot run here; undefined if it can. */
export function dynamoDbProblem(): string | undefined {
  try {
    execFileSync("java", ["-version"], { stdio: "ignore" });
    return undefined;
  } catch {
    return "DynamoDB Local needs Java (apt-get install default-jre-headless)";
  }
}

export interface DynamoDbLocal {
  /** For `AWS_ENDPOINT_URL_DYNAMODB`. */
  readonly url: string;
  close(): Promise<void>;
}

/** Starts Amazon's DynamoDB Local, in memory; fetches it from the npm registry when it is not there yet. Takes about 6 seconds. */
export async function startDynamoDb(): Promise<DynamoDbLocal> {
  if (!existsSync(FOLDER)) fetchPackage();
  const port = await freePort();
  const java = spawn("java", ["-Xmx512m", "-Djava.library.path=DynamoDBLocal_lib", "-jar", "DynamoDBLocal.jar", "-inMemory", "-port", String(port)], {
    cwd: join(FOLDER, "package/emulator"),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let output = "";
  for (const stream of [java.stdout, java.stderr]) stream.setEncoding("utf8").on("data", (text: string) => (output += text));
  const url = `http://127.0.0.1:${port}`;
  const ended = once(java, "close");
  for (;;) {
    const answer = await fetch(url).catch(() => undefined);
    // it refuses a request without a signature, so it listens
    if (answer !== undefined) break;
    if (java.exitCode !== null) throw new Error(`DynamoDB Local ended with ${java.exitCode}: ${output}`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
  return {
    url,
    close: async () => {
      java.kill("SIGKILL");
      await ended;
    },
  };
}

/** A table as infra/ makes it. */
export async function createTable(client: DynamoDBClient, name: string): Promise<void> {
  const text = (AttributeName: string) => ({ AttributeName, AttributeType: "S" as const });
  const key = (hash: string, range: string) => [
    { AttributeName: hash, KeyType: "HASH" as const },
    { AttributeName: range, KeyType: "RANGE" as const },
  ];
  await client.send(
    new CreateTableCommand({
      TableName: name,
      BillingMode: "PAY_PER_REQUEST",
      AttributeDefinitions: ["pk", "sk", "list", "listed"].map(text),
      KeySchema: key("pk", "sk"),
      GlobalSecondaryIndexes: [{ IndexName: LIST_INDEX, KeySchema: key("list", "listed"), Projection: { ProjectionType: "ALL" } }],
    }),
  );
  await client.send(new UpdateTimeToLiveCommand({ TableName: name, TimeToLiveSpecification: { AttributeName: "expires", Enabled: true } }));
}

function fetchPackage(): void {
  mkdirSync(join(FOLDER, ".."), { recursive: true });
  const folder = mkdtempSync(join(FOLDER, "../fetching-"));
  const [archive = ""] = execFileSync("npm", ["pack", PACKAGE, "--silent"], { cwd: folder, encoding: "utf8" }).trim().split("\n").slice(-1);
  execFileSync("tar", ["xzf", archive], { cwd: folder });
  rmSync(join(folder, archive));
  // whole or not at all, also with two test runs at once
  try {
    renameSync(folder, FOLDER);
  } catch {
    rmSync(folder, { recursive: true });
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  server.close();
  await once(server, "close");
  return typeof address === "object" && address !== null ? address.port : 0;
}
