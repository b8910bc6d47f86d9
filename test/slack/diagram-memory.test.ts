import { fileURLToPath } from "node:url";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, test } from "vitest";
import { loadPicture } from "../../functions/slack/diagram.ts";

// what only waits for the collector is not kept: tests that ran in this process before leave it some room to wait
setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

/** `npm run chaos -- --only soak` found it: the rasteriser's memory is not the garbage collector's, and each picture kept 3 MB of it. */
test("pictures leave no memory behind", async () => {
  const draw = loadPicture(fileURLToPath(new URL("../../templates/diagram.svg.hbs", import.meta.url)));
  const diagram = { path: ["pod 10.0.0.1", "veth1", "bridge cni0", "pod 10.0.0.2"], breakAt: 3, note: "here it is lost" };
  const drawn = async (pictures: number): Promise<number> => {
    for (let picture = 0; picture < pictures; picture++) {
      await draw("A title", diagram);
      collectGarbage();
    }
    return process.memoryUsage().external;
  };
  const before = await drawn(10);
  expect((await drawn(20)) - before).toBeLessThan(20 * 1024 * 1024);
});
