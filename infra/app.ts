import path from "node:path";
import { fileURLToPath } from "node:url";
import { Code } from "aws-cdk-lib/aws-lambda";
import { loadCatalogue } from "../functions/rules/load.ts";
import { bundleAck } from "./bundle.ts";
import { bundleFunction } from "./bundle-function.ts";
import { checkedApp } from "./checked-app.ts";
import { MemberStack } from "./member-stack.ts";
import { FUNCTIONS } from "./netcheck-function.ts";
import { NetcheckStack } from "./netcheck-stack.ts";
import { givenContext, readMemberSettings, readSettings } from "./settings.ts";

/**
 * What `npm run deploy`, `npm run synth` and `npm run destroy` work on: the main stack; with `-c hubRole=… -c externalId=…` the member stack of another
 * account or region instead. The settings are in infra/settings.ts.
 */
const root = fileURLToPath(new URL("..", import.meta.url));
try {
  await main();
} catch (error) {
  // settings, the catalogue, cdk-nag: all say what is wrong themselves
  process.stderr.write(`netcheck: ${(error as Error).message}\n`);
  process.exitCode = 1;
}

async function main(): Promise<void> {
  const app = checkedApp();
  const catalogue = loadCatalogue(path.join(root, "runbooks"));
  const given = givenContext(app);
  const member = readMemberSettings(given);
  if (member === undefined) {
    const settings = readSettings(given);
    const folder = (name: string) => path.join(root, "dist/lambda", name);
    for (const name of FUNCTIONS) await (name === "slack" ? bundleAck(folder(name)) : bundleFunction(name, folder(name)));
    new NetcheckStack(app, settings.stack, { settings, catalogue, code: (name) => Code.fromAsset(folder(name)) });
  } else {
    new MemberStack(app, `${member.stack}-member`, { settings: member, catalogue });
  }
  app.synth();
}
