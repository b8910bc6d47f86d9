import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { Command } from "commander";
import type { Check } from "./doctor-findings.ts";
import type { DoctorOptions } from "./doctor-run.ts";
import type { Shared } from "./output.ts";

const root = fileURLToPath(new URL("../../", import.meta.url));

const ABOUT = `
Looks at the configuration, Slack (secret, scopes, channels, clock), the table and buckets, Systems Manager (documents, agents, tags) and each Kubernetes
cluster (reachability, rights, namespace, policies; a debug pod and a changed one as dry runs). It changes nothing. Each look ends as ok, as a problem with
what to do, or as "could not look" with the reason. Exit code 1 if there is a problem, otherwise 0.

After a deployment:  netcheck doctor --config infra/netcheck.yaml --outputs cdk-outputs.json   (npm run deploy writes that file)
Without AWS:         SLACK_BOT_TOKEN=… SLACK_APP_TOKEN=… netcheck doctor --config netcheck.yaml
It uses the AWS credentials of the environment; those of whoever deploys can look at everything.
`;

/** `netcheck doctor`: adds the command. What it needs is loaded when it runs. */
export function register(netcheck: Command, { runbooks, run }: Shared): void {
  netcheck
    .command("doctor")
    .description("check a deployment: what works, what does not, what to do")
    .option("--config <file>", "netcheck.yaml; otherwise what the deployment uses")
    .option("--outputs <file>", "what cdk deploy --outputs-file wrote: where table, buckets and secrets are")
    .option("--stack <name>", "the stack in that file", "netcheck")
    .option("--parameter <name>", "the parameter that holds netcheck.yaml")
    .option("--table <name>", "the DynamoDB table")
    .option("--slack-secret <arn>", "the secret with botToken and signingSecret")
    .option("--url <url>", "where Slack sends its requests")
    .option("--tag <key=value>", "the tag that nodes opt in with", "netcheck=enabled")
    .option("--json", "all findings as one JSON object")
    .addHelpText("after", ABOUT)
    .action(
      run(async (options: DoctorOptions & { json?: boolean }) => {
        const [{ Findings }, { examine }, { loadCatalogue }] = await Promise.all([
          import("./doctor-findings.ts"),
          import("./doctor-run.ts"),
          import("../rules/load.ts"),
        ]);
        let area = "";
        const findings = new Findings((check) => {
          if (options.json === true) return;
          process.stdout.write(`${check.area === area ? "" : `${area === "" ? "" : "\n"}${check.area}\n`}${checkText(check)}`);
          area = check.area;
        });
        const slackManifest = join(root, "infra/slack/manifest.yaml");
        await examine(findings, options, { environment: process.env, catalogue: loadCatalogue(runbooks, { tolerant: true }), slackManifest });
        const count = (state: Check["state"]): number => findings.checks.filter((check) => check.state === state).length;
        const [fine, problems, unknown] = [count("ok"), count("problem"), count("unknown")];
        process.stdout.write(
          options.json === true
            ? `${JSON.stringify({ schema: "netcheck.doctor/1", ok: fine, problems, unknown, checks: findings.checks })}\n`
            : `\n${fine} ok, ${problems} problem${problems === 1 ? "" : "s"}, ${unknown} could not be looked at\n`,
        );
        if (problems > 0) process.exitCode = 1;
      }),
    );
}

const MARKS = { ok: "ok", problem: "PROBLEM", unknown: "could not look" } as const;

function checkText({ check, state, detail, todo }: Check): string {
  return `  ${MARKS[state].padEnd(15)}${check}: ${detail}\n${todo === undefined ? "" : `${" ".repeat(17)}→ ${todo}\n`}`;
}
