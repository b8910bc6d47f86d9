import { z } from "zod";
import { defineDerivedFact, type Row } from "./fact.ts";
import { placed } from "./placed.ts";

/** What shows that the node's cards are EC2's (ENA): the driver among the modules, or a counter that only this driver keeps. */
const Driver = z.object({ line: z.int(), by: z.enum(["module", "counter"]) });
const EnaDriver = z.object({ rows: z.array(Driver) });
type EnaDriver = z.infer<typeof EnaDriver>;

interface Sources {
  readonly module?: { rows: readonly (Row & { name: string })[] };
  readonly "ethtool-statistics"?: { rows: readonly (Row & { name: string })[] };
}

export const enaDriver = defineDerivedFact<EnaDriver>({
  id: "ena-driver",
  title: "The driver of EC2's network cards",
  from: ["module", "ethtool-statistics"],
  // a kernel with the driver built in lists no module; a host without either need not be asked for the counters of its cards
  optional: ["ethtool-statistics"],
  inPart: ["ethtool-statistics"],
  schema: EnaDriver,
  derive(values) {
    const { module, "ethtool-statistics": counters } = values as Sources;
    const loaded = module?.rows.find(({ name }) => name === "ena");
    const counted = counters?.rows.find(({ name }) => name.endsWith("_allowance_exceeded"));
    return {
      rows: [
        ...(loaded === undefined ? [] : [{ ...placed(loaded), by: "module" as const }]),
        ...(counted === undefined ? [] : [{ ...placed(counted), by: "counter" as const }]),
      ],
    };
  },
});
