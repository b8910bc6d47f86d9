import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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
