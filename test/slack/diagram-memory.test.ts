import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { loadPicture } from "../../functions/slack/diagram.ts";

/** `npm run chaos -- --only soak` found it: the rasteriser's memory is not the garbage collector's, and each picture kept 3 MB of it. */
test("pictures leave no memory behind", async () => {
  const draw = loadPicture(fileURLToPath(new URL("../../templates/diagram.svg.hbs", import.meta.url)));
  const diagram = { path: ["pod 10.0.0.1", "veth1", "bridge cni0", "pod 10.0.0.2"], breakAt: 3, note: "here it is lost" };
  const drawn = async (pictures: number): Promise<number> => {
    for (let picture = 0; picture < pictures; picture++) await draw("A title", diagram);
    return process.memoryUsage().external;
  };
  const before = await drawn(3);
  expect((await drawn(20)) - before).toBeLessThan(20 * 1024 * 1024);
});
