import { zod } from "./zod.ts";

/**
 * `z` for the schemas of facts, put off: each is built when something of it is first asked for. Building all of them takes a quarter of the time of a short
 * command, and reading an output needs none. The bundler puts this in the place of zod in functions/facts; from the sources the facts use zod itself.
 */
export const z = Object.fromEntries(
  (["array", "boolean", "enum", "int", "number", "object", "string"] as const).map((name) => [
    name,
    (...given: unknown[]) => putOff(() => (zod()[name] as Build)(...given.map(real))),
  ]),
);

type Build = (...given: unknown[]) => object;

/** Methods that make a schema of a schema. */
const METHODS = new Set(["optional", "min", "max"]);
/** What builds the schema behind a stand-in. */
const builders = new WeakMap<object, () => object>();

/** What was meant: the schema behind a stand-in, also of each field of a shape. zod compares schemas by identity, so that it must not see a stand-in inside. */
function real(given: unknown): unknown {
  if (typeof given !== "object" || given === null || Array.isArray(given)) return given;
  const build = builders.get(given);
  return build === undefined ? Object.fromEntries(Object.entries(given).map(([name, field]) => [name, real(field)])) : build();
}

function putOff(build: () => object): object {
  let built: object | undefined;
  const schema = (): object => {
    built ??= build();
    return built;
  };
  const standIn = new Proxy(
    {},
    {
      get(_, name) {
        if (typeof name !== "string" || !METHODS.has(name)) return Reflect.get(schema(), name) as unknown;
        return (...given: unknown[]) => putOff(() => (Reflect.get(schema(), name) as Build).apply(schema(), given));
      },
      has: (_, name) => Reflect.has(schema(), name),
      getPrototypeOf: () => Reflect.getPrototypeOf(schema()),
    },
  );
  builders.set(standIn, schema);
  return standIn;
}
