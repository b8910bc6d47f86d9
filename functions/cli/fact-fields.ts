import type { z } from "zod";

/** A field of a fact's row. */
export interface Field {
  readonly name: string;
  /** As CEL knows it: "string", "int", "double", "bool", "list<string>", …; with the words that an enum allows. */
  readonly type: string;
  readonly optional: boolean;
}

/** A list of a fact (`neighbor.rows`), or a value that stands alone. */
export interface FactPart {
  readonly name: string;
  /** The fields of a row; empty where it is a plain value. */
  readonly fields: readonly Field[];
  /** What it is, where it is no list of rows. */
  readonly type: string;
}

/** The lists of a fact with the fields of their rows, read off its zod schema: what a rule can ask for. */
export function factParts(schema: z.ZodType): FactPart[] {
  return Object.entries(definition(schema).shape ?? {}).map(([name, part]) => {
    const row = definition(part).type === "array" ? definition(definition(part).element as z.ZodType) : undefined;
    if (row?.type !== "object") return { name, fields: [], type: typeName(part) };
    const fields = Object.entries(row.shape ?? {}).map(([key, field]) => ({
      name: key,
      type: typeName(field),
      optional: definition(field).type === "optional",
    }));
    return { name, fields, type: "list of rows" };
  });
}

interface Definition {
  readonly type: string;
  readonly shape?: Record<string, z.ZodType>;
  readonly element?: z.ZodType;
  readonly innerType?: z.ZodType;
  readonly format?: string;
  readonly entries?: Record<string, string>;
}

// biome-ignore lint/suspicious/noExplicitAny: zod's definition objects are not typed by kind
const definition = (schema: z.ZodType): Definition => (schema as any).def as Definition;

function typeName(schema: z.ZodType): string {
  const def = definition(schema);
  switch (def.type) {
    case "optional":
      return typeName(def.innerType as z.ZodType);
    case "boolean":
      return "bool";
    case "number":
      return def.format === "safeint" ? "int" : "double";
    case "array":
      return `list<${typeName(def.element as z.ZodType)}>`;
    case "enum":
      return Object.values(def.entries ?? {})
        .map((word) => JSON.stringify(word))
        .join(" | ");
    default:
      return def.type;
  }
}
