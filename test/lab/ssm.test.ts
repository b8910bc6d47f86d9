import { afterEach, describe, expect, test, vi } from "vitest";
import { ssmTransport } from "../../functions/transports/ssm.ts";
import { ssmDocument } from "../../functions/transports/ssm-document.ts";
import { type SsmEmulator, startSsm } from "../emulators/ssm.ts";
import { job, result, script } from "../transports/contract.ts";
import { type Lab, startLab } from "./lab.ts";
import { skipLab } from "./requirements.ts";

describe.skipIf(skipLab())("SSM agents on lab nodes", () => {
  let lab: Lab | undefined;
  let emulator: SsmEmulator | undefined;
  afterEach(async () => {
    vi.unstubAllEnvs();
    await emulator?.close();
    await lab?.down();
  });

  test("each runs its script in its own node", async () => {
    lab = await startLab(["s2", "s4"], { suffix: `ssm${process.pid}` });
    const ids = ["i-00000000000000002", "i-00000000000000004"];
    emulator = await startSsm({ agents: Object.fromEntries(lab.nodes.map(({ name, enter }, index) => [ids[index], { name, enter }])) });
    vi.stubEnv("AWS_ENDPOINT_URL_SSM", emulator.url);
    vi.stubEnv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", "secret");
    const look = script("look", `hostname; ls /sys/class/net | tr "\\n" " "; ls /run /var/lib | wc -l`);
    emulator.register(ssmDocument(look).name, ssmDocument(look).content);
    const transport = ssmTransport({ cluster: () => ({ region: "eu-central-1" }), pollMs: 50 });
    const outputs = await Promise.all(
      lab.nodes.map(async ({ name }, index) => {
        const target = { name, cluster: "lab", transport: "ssm", address: ids[index] ?? "" };
        return result(transport, target, await transport.start(target, job(`look-${name}`, look)));
      }),
    );
    expect(outputs).toMatchObject([
      { stdout: expect.stringMatching(/^node2\n.*cilium_host cilium_net eth0 lo lxc3055a222b7f1 /) },
      { stdout: expect.stringMatching(/^node4\ncni0 lo veth05420679 veth078b53a1 /) },
    ]);
  });
});
