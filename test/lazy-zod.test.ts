import { expect, test } from "vitest";
import * as zod from "zod";
import { factParts } from "../functions/cli/fact-fields.ts";
import { z as lazy } from "../infra/lazy-zod.ts";

type Zod = Pick<typeof zod.z, "object" | "array" | "int" | "string" | "enum" | "number" | "boolean">;

const schemaWith = (z: Zod) =>
  z.object({
    rows: z.array(z.object({ line: z.int(), name: z.string().optional(), kind: z.enum(["a", "b"]), rate: z.number().min(0), flags: z.array(z.string()) })),
    complete: z.boolean(),
  });

test("a schema that was put off is the same schema", () => {
  const [real, put] = [schemaWith(zod), schemaWith(lazy as unknown as Zod)];
  expect(zod.toJSONSchema(put)).toEqual(zod.toJSONSchema(real));
  expect(factParts(put)).toEqual(factParts(real));
  const good = { rows: [{ line: 1, kind: "a", rate: 0.5, flags: [] }], complete: true };
  expect(put.parse(good)).toEqual(real.parse(good));
  for (const bad of [{}, { ...good, rows: [{ ...good.rows[0], kind: "c" }] }, { ...good, rows: [{ ...good.rows[0], rate: -1 }] }])
    expect(put.safeParse(bad).error?.issues).toEqual(real.safeParse(bad).error?.issues);
});
