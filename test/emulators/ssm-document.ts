import { parse } from "yaml";
import { z } from "zod";

/** An error as the service sends it: `__type` and `message`, HTTP 400. */
export class SsmError extends Error {
  readonly type: string;
  constructor(type: string, message: string) {
    super(message);
    this.type = type;
  }
}

const Parameter = z.strictObject({
  type: z.enum(["String", "StringList", "Integer", "Boolean"]),
  description: z.string().optional(),
  displayType: z.enum(["textfield", "textarea"]).optional(),
  default: z.union([z.string(), z.array(z.string()), z.number(), z.boolean()]).optional(),
  allowedValues: z.array(z.union([z.string(), z.number(), z.boolean()])).optional(),
  allowedPattern: z.string().optional(),
  minItems: z.int().optional(),
  maxItems: z.int().optional(),
  minChars: z.int().optional(),
  maxChars: z.int().optional(),
  interpolationType: z.literal("ENV_VAR").optional(),
});

const Step = z.strictObject({
  action: z.literal("aws:runShellScript"),
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,128}$/),
  precondition: z.record(z.string(), z.array(z.string())).optional(),
  inputs: z.strictObject({
    runCommand: z.union([z.string(), z.array(z.string())]),
    timeoutSeconds: z.union([z.string(), z.number()]).optional(),
    workingDirectory: z.string().optional(),
  }),
});

/** A Command document of schema 2.2, as far as runShellScript needs it. Agents accept parameter names of letters and digits only. */
const Document = z.strictObject({
  schemaVersion: z.literal("2.2"),
  description: z.string().optional(),
  parameters: z.record(z.string().regex(/^[a-zA-Z0-9]+$/), Parameter).default({}),
  mainSteps: z.array(Step).min(1),
});
export type Document = z.infer<typeof Document>;
export type Values = Record<string, string | string[]>;

/** Largest document the service takes, in bytes. */
const maximumSize = 65_536;

/** Read a document's JSON or YAML text. Throws InvalidDocumentContent or MaxDocumentSizeExceeded. */
export function readDocument(content: string): Document {
  if (Buffer.byteLength(content) > maximumSize) throw new SsmError("MaxDocumentSizeExceeded", `The size limit of a document is ${maximumSize / 1024} KB.`);
  let document: Document;
  try {
    document = Document.parse(content.startsWith("{") ? JSON.parse(content) : parse(content));
  } catch (error) {
    throw new SsmError("InvalidDocumentContent", error instanceof z.ZodError ? z.prettifyError(error) : String(error));
  }
  const known = Object.keys(document.parameters);
  for (const [, name = ""] of JSON.stringify(document.mainSteps).matchAll(/\{\{\s*([a-zA-Z0-9]+)\s*\}\}/g))
    if (!known.includes(name)) throw new SsmError("InvalidDocumentContent", `Parameter ${name} is used and not defined.`);
  return document;
}

/** Check what SendCommand was given against the document's parameters and fill in defaults. Throws InvalidParameters. */
export function bindParameters(document: Document, given: Record<string, string[]>): Values {
  const invalid = (message: string) => new SsmError("InvalidParameters", message);
  for (const name of Object.keys(given)) if (!(name in document.parameters)) throw invalid(`Parameter ${name} is not defined in the document.`);
  const values: Values = {};
  for (const [name, parameter] of Object.entries(document.parameters)) {
    const list = given[name] ?? (parameter.default === undefined ? undefined : [parameter.default].flat().map(String));
    if (list === undefined) throw invalid(`Parameter ${name} is required.`);
    if (parameter.type !== "StringList" && list.length !== 1) throw invalid(`Parameter ${name} takes one value, not ${list.length}.`);
    if (list.length < (parameter.minItems ?? 0) || list.length > (parameter.maxItems ?? Number.POSITIVE_INFINITY))
      throw invalid(`Parameter ${name} has ${list.length} values, which is not allowed.`);
    for (const value of list) {
      const problem = problemOf(value, parameter);
      if (problem !== undefined) throw invalid(`Parameter ${name}: ${problem}`);
    }
    values[name] = parameter.type === "StringList" ? list : (list[0] ?? "");
  }
  return values;
}

/** `allowedPattern` is searched for, not matched as a whole: the weaker reading, so that a pattern without anchors shows up as the hole it is. */
function problemOf(value: string, parameter: z.infer<typeof Parameter>): string | undefined {
  if (parameter.type === "Integer" && !/^-?\d+$/.test(value)) return "value is not an integer";
  if (parameter.type === "Boolean" && !/^(true|false)$/.test(value)) return "value is not a boolean";
  if (parameter.allowedValues !== undefined && !parameter.allowedValues.map(String).includes(value)) return "value is not one of allowedValues";
  if (parameter.allowedPattern !== undefined && !new RegExp(parameter.allowedPattern).test(value)) return `value does not match ${parameter.allowedPattern}`;
  if (value.length < (parameter.minChars ?? 0)) return `value is shorter than ${parameter.minChars}`;
  if (value.length > (parameter.maxChars ?? Number.POSITIVE_INFINITY)) return `value is longer than ${parameter.maxChars}`;
  return undefined;
}

export interface BoundStep {
  name: string;
  script: string;
  environment: Record<string, string>;
  /** Seconds the script may run. */
  timeout: number;
}

/**
 * The steps as the agent runs them. `{{ name }}` is plain text substitution, quotes and all: whoever relies on it is open to injection.
 * A parameter with interpolationType ENV_VAR arrives as the environment variable SSM_<name>, and `{{ name }}` as a reference to it; an agent before
 * 3.3.2746.0 (`environment` false) knows nothing of that and substitutes the text.
 */
export function bindSteps(document: Document, values: Values, environment: boolean): BoundStep[] {
  const asVariable = (name: string) => environment && document.parameters[name]?.interpolationType === "ENV_VAR";
  const fill = (text: string): string =>
    Object.entries(values).reduce((filled, [name, value]) => {
      const replacement = asVariable(name) ? `$SSM_${name}` : typeof value === "string" ? value : JSON.stringify(value);
      return filled.replaceAll(new RegExp(`\\{\\{\\s*${name}\\s*\\}\\}`, "g"), () => replacement);
    }, text);
  const lines = (input: string | string[]): string[] => {
    if (typeof input !== "string") return input.flatMap(lines);
    const whole = /^\{\{\s*([a-zA-Z0-9]+)\s*\}\}$/.exec(input)?.[1]; // a parameter alone keeps its type: a list becomes lines
    const value = whole === undefined ? undefined : values[whole];
    return Array.isArray(value) ? value : [fill(input)];
  };
  const variables = Object.entries(values).filter(([name]) => asVariable(name));
  return document.mainSteps.map(({ name, inputs }) => ({
    name,
    script: lines(inputs.runCommand).join("\n"),
    environment: Object.fromEntries(variables.map(([key, value]) => [`SSM_${key}`, typeof value === "string" ? value : JSON.stringify(value)])),
    timeout: Number(fill(String(inputs.timeoutSeconds ?? 3600))),
  }));
}
