import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { localTransport } from "../../functions/transports/local.ts";
import { transportContract } from "./contract.ts";

transportContract("local", async () => {
  const directory = await mkdtemp(join(tmpdir(), "netcheck-local-"));
  const target = { name: "here", cluster: "test", transport: "local", address: "here" };
  return {
    transport: () => localTransport({ directory, enter: ({ name }) => (name === "nowhere" ? ["/no/such/program"] : []) }),
    target,
    nowhere: { ...target, name: "nowhere" },
    register: () => {},
    close: () => rm(directory, { recursive: true }),
  };
});

test("a collection that is released leaves nothing behind; a fix's folder stays, so that it is never started again", async () => {
  const directory = await mkdtemp(join(tmpdir(), "netcheck-local-"));
  try {
    const transport = localTransport({ directory, enter: () => [] });
    const target = { name: "here", cluster: "test", transport: "local", address: "here" };
    const script = { name: "nothing", text: "echo done\n", parameters: {}, timeoutSeconds: 5 };
    for (const [id, changes] of [
      ["inc-1-collect", {}],
      ["inc-1-fix", { changes: true as const }],
    ] as const) {
      const handle = await transport.start(target, { id, script: { ...script, ...changes }, parameters: {}, nonce: "0".repeat(32) });
      expect(await transport.poll(target, handle, 5000)).toMatchObject({ state: "done", stdout: "done\n" });
      await transport.release?.(target, handle);
      await transport.release?.(target, handle);
    }
    expect(await readdir(directory)).toEqual(["inc-1-fix"]);
    expect(await transport.find(target, "inc-1-fix")).toBe("inc-1-fix");
  } finally {
    await rm(directory, { recursive: true });
  }
});
