import { celEnv, isCelError, parse, plan } from "@bufbuild/cel";
import { strings } from "@bufbuild/cel/ext";
import type { V1Pod } from "@kubernetes/client-node";
import type { PolicySpec } from "../../functions/transports/pod-policy.ts";

/** What admission does with a ValidatingAdmissionPolicy, by another CEL library with real RE2: no API server runs here. */

const environment = celEnv({ funcs: [...strings] });
const planned = new Map<string, ReturnType<typeof plan>>();
type Json = string | number | bigint | boolean | null | Json[] | { [name: string]: Json };

/** CEL knows whole numbers; JSON knows doubles. */
function cel(value: unknown): Json {
  if (Array.isArray(value)) return value.map(cel);
  if (typeof value === "object" && value !== null) return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, cel(item)]));
  return typeof value === "number" && Number.isSafeInteger(value) ? BigInt(value) : (value as Json);
}

/** Fields that are no pointers in Kubernetes' Go types: their zero values are left out when an object is shown to a policy. */
const PLAIN = new Set([
  "value",
  "readOnly",
  "hostNetwork",
  "hostPID",
  "hostIPC",
  "stdin",
  "tty",
  "workingDir",
  "nodeName",
  "serviceAccountName",
  "subPath",
  "priorityClassName",
]);
function served(value: unknown, name = ""): unknown {
  if (Array.isArray(value)) return value.map((item) => served(item));
  if (typeof value !== "object" || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .filter(([key, item]) => !(PLAIN.has(key) && (item === "" || item === false)) && !(Array.isArray(item) && item.length === 0))
      .map(([key, item]) => [key, served(item, `${name}.${key}`)]),
  );
}

/** A pod as a policy sees it: after the API server has filled in its defaults. Fields of the pod win. */
export function admitted(pod: V1Pod): unknown {
  const { spec, ...rest } = structuredClone(pod) as { readonly spec?: { readonly containers?: readonly object[] } };
  const defaults = {
    schedulerName: "default-scheduler",
    serviceAccountName: "default",
    serviceAccount: "default",
    priority: 0,
    preemptionPolicy: "PreemptLowerPriority",
  };
  const containers = spec?.containers?.map((container) => ({ terminationMessagePath: "/dev/termination-log", ...container }));
  return served({ ...rest, spec: { ...defaults, ...spec, containers } });
}

/** Evaluates the policy. Returns what denies: the messages of expressions that are false, and of those that cannot be evaluated (failurePolicy Fail). */
export function denials(policy: PolicySpec, params: { data: Record<string, string> }, object: unknown): string[] {
  const variables: Record<string, Json> = {};
  const bindings = { object: cel(object), params: cel(params), variables };
  const run = (expression: string): unknown => {
    try {
      const program = planned.get(expression) ?? plan(environment, parse(expression));
      planned.set(expression, program);
      return program(bindings as never);
    } catch (error) {
      return error;
    }
  };
  for (const { name, expression } of policy.variables ?? []) {
    const value = run(expression);
    // a variable that fails makes those fail that use it
    if (!isCelError(value) && !(value instanceof Error)) variables[name] = value as Json;
  }
  return policy.validations.flatMap(({ expression, message }) => {
    const value = run(expression);
    return value === true ? [] : [value === false ? message : `${message} (could not be evaluated)`];
  });
}
