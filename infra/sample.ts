import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import type { App } from "aws-cdk-lib";
import { Code } from "aws-cdk-lib/aws-lambda";
import { type Catalogue, loadCatalogue } from "../functions/rules/load.ts";
import { checkedApp } from "./checked-app.ts";
import { MemberStack } from "./member-stack.ts";
import { NetcheckStack } from "./netcheck-stack.ts";
import { readMemberSettings, readSettings } from "./settings.ts";

/** A resource of a CloudFormation template. */
export interface Resource {
  readonly Type: string;
  // biome-ignore lint/suspicious/noExplicitAny: CloudFormation's properties, each type's own
  readonly Properties: Record<string, any>;
  readonly DeletionPolicy?: string;
  readonly UpdateReplacePolicy?: string;
}
export interface Template {
  readonly Resources: Readonly<Record<string, Resource>>;
  readonly Outputs: Readonly<Record<string, { readonly Value: unknown; readonly Description?: string }>>;
  /** Of its nested stacks. */
  readonly Nested?: readonly Template[];
}

const root = fileURLToPath(new URL("..", import.meta.url));
let loaded: Catalogue | undefined;
const catalogue = (): Catalogue => {
  loaded ??= loadCatalogue(path.join(root, "runbooks"));
  return loaded;
};

/**
 * The main stack of a sample deployment, with the example configuration and no code in its functions: for tests and for docs/generated/iam.md. Needs no network.
 * @param context as `-c` would give it. @throws for every finding of cdk-nag that nobody acknowledged
 */
export function sampleMain(context: Readonly<Record<string, string>> = {}): Template {
  return synthesized((app) => {
    const settings = readSettings({
      config: path.join(root, "infra/netcheck.example.yaml"),
      tokenSecrets: "arn:aws:secretsmanager:eu-central-1:111122223333:secret:k3s-token-AbCdEf",
      ...context,
    });
    return new NetcheckStack(app, settings.stack, { settings, catalogue: catalogue(), code: () => Code.fromInline("export {};") });
  });
}

/** The member stack, in the same way. */
export function sampleMember(context: Readonly<Record<string, string>> = {}): Template {
  return synthesized((app) => {
    const settings = readMemberSettings({ hubRole: "arn:aws:iam::111122223333:role/netcheck-triage", externalId: "netcheck-prod", ...context });
    if (settings === undefined) throw new Error("a member stack needs hubRole");
    return new MemberStack(app, `${settings.stack}-member`, { settings, catalogue: catalogue() });
  });
}

function synthesized(make: (app: App) => { readonly stackName: string }): Template {
  const outdir = mkdtempSync(path.join(tmpdir(), "netcheck-synth-"));
  try {
    const app = checkedApp({ outdir });
    const { stackName } = make(app);
    const template = app.synth().getStackByName(stackName).template as Template;
    const nested = readdirSync(outdir).filter((file) => file.endsWith(".nested.template.json"));
    return { ...template, Nested: nested.sort().map((file) => JSON.parse(readFileSync(path.join(outdir, file), "utf8")) as Template) };
  } finally {
    rmSync(outdir, { recursive: true, force: true });
  }
}
