import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { frame, holding, printing } from "../transports/pods.ts";
import { type KubernetesEmulator, startKubernetes } from "./kubernetes.ts";
import { recordedAnswer } from "./kubernetes-pod.ts";

/** The stand-in answers as the real server did when it was recorded, so that what works against one works against the other. */

let emulator: KubernetesEmulator;
let kubelet: ReturnType<typeof holding>;
beforeEach(async () => {
  kubelet = holding();
  emulator = await startKubernetes({
    namespace: "node-debug",
    nodes: { "node-a": { kubelet: kubelet.kubelet }, "node-b": { kubelet: printing("hello\n") }, "node-c": { phase: "failed-outofcpu" } },
  });
});
afterEach(() => emulator.close());

interface Answer {
  status: number;
  type: string | null;
  text: string;
  json: Record<string, never> & { metadata: Record<string, string>; status: Record<string, string>; message: string; reason?: string; items: unknown[] };
}
async function ask(method: string, path: string, body?: unknown, token = "token"): Promise<Answer> {
  const response = await fetch(`${emulator.url}/api/v1/namespaces/node-debug/${path}`, {
    method,
    headers: token === "" ? {} : { Authorization: `Bearer ${token}` },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const type = response.headers.get("content-type");
  return {
    status: response.status,
    type,
    text,
    json: (type === "application/json" && text !== "" && !path.includes("watch") ? JSON.parse(text) : {}) as Answer["json"],
  };
}
const pod = (name: string, nodeName = "node-a", more: object = {}) => ({
  kind: "Pod",
  apiVersion: "v1",
  metadata: { name },
  spec: { nodeName, containers: [{ name: "debug", image: "x", command: ["sh"] }], terminationGracePeriodSeconds: 1, ...more },
});
/** Status, reason and message: what a client decides by. `name` stands for the recorded pod's. */
const words = ({ status, text }: { status: number; text: string }, recorded = "", name = ""): unknown => {
  const { reason, message } = JSON.parse(text) as { reason?: string; message: string };
  return { status, reason, message: message.replaceAll(recorded, name) };
};
/** The events of a watch, as far as they matter. */
async function watched(query: string): Promise<string[]> {
  const { text } = await ask("GET", `pods?watch=true&timeoutSeconds=1&${query}`);
  return text
    .split("\n")
    .filter(Boolean)
    .map((line) => {
      const { type, object } = JSON.parse(line) as { type: string; object: { metadata?: { deletionTimestamp?: string }; status: { phase?: string } } };
      return `${type} ${object.status.phase ?? ""}${object.metadata?.deletionTimestamp === undefined ? "" : " deleting"}`;
    });
}

describe("refusals have the recorded status, reason and words", () => {
  test("of who asks", async () => {
    expect(words(await ask("GET", "pods", undefined, "wrong"))).toEqual(words(recordedAnswer("auth/401-invalid-token")));
    expect(words(await ask("GET", "pods", undefined, ""))).toEqual(words(recordedAnswer("auth/403-anonymous")));
  });

  test("of a name that is taken, or still being deleted", async () => {
    await ask("POST", "pods", pod("c1"));
    expect(await ask("POST", "pods", pod("c1"))).toMatchObject({ status: 409, json: { reason: "AlreadyExists", message: 'pods "c1" already exists' } });
    await ask("DELETE", "pods/c1");
    await ask("POST", "pods", pod("psp2"));
    expect((await ask("DELETE", "pods/psp2")).json.metadata).toMatchObject({ deletionTimestamp: expect.any(String), deletionGracePeriodSeconds: 1 });
  });

  test("of what is not there", async () => {
    expect(await ask("GET", "pods/nope")).toMatchObject({ status: 404, json: { reason: "NotFound", message: 'pods "nope" not found' } });
    expect(await ask("DELETE", "pods/nope")).toMatchObject({ status: 404 });
    expect(await ask("GET", "pods/nope/log")).toMatchObject({ status: 404, json: { message: 'pods "nope" not found' } });
  });

  test("of what Kubernetes would not store", async () => {
    expect(await ask("POST", "pods", pod("Bad_Name"))).toMatchObject({ status: 422, json: { reason: "Invalid" } });
    expect(await ask("POST", "pods", { ...pod("a"), metadata: { name: "a", labels: { x: "a/b" } } })).toMatchObject({ status: 422 });
    expect(await ask("POST", "pods", { ...pod("a"), metadata: { name: "a", namespace: "other" } })).toMatchObject({
      status: 400,
      json: { reason: "BadRequest" },
    });
  });

  test("of another pod's uid, and of a longer deadline", async () => {
    const { uid } = (await ask("POST", "pods", pod("p", "node-a", { activeDeadlineSeconds: 60 }))).json.metadata;
    expect(await ask("DELETE", "pods/p", { preconditions: { uid: "other" } })).toMatchObject({ status: 409, json: { reason: "Conflict" } });
    expect(await ask("PATCH", "pods/p", { spec: { activeDeadlineSeconds: 61 } })).toMatchObject({ status: 422 });
    expect(await ask("PATCH", "pods/p", { metadata: { uid: "other" } })).toMatchObject({ status: 409 });
    expect(await ask("DELETE", "pods/p", { preconditions: { uid } })).toMatchObject({ status: 200 });
  });
});

describe("a watch", () => {
  test("tells a pod's life, also to whoever comes late", async () => {
    await ask("POST", "pods", pod("w1", "node-b"));
    await emulator.settled();
    expect(await watched("resourceVersion=1000&fieldSelector=metadata.name%3Dw1")).toEqual(["ADDED Pending", "MODIFIED Pending", "MODIFIED Succeeded"]);
    await ask("DELETE", "pods/w1");
    expect((await watched("resourceVersion=1000")).slice(-2)).toEqual(["MODIFIED Succeeded deleting", "DELETED Succeeded deleting"]);
  });

  test("of a version that is too old is told 410 in the stream, with status 200", async () => {
    emulator.compact();
    const answer = await ask("GET", "pods?watch=true&resourceVersion=1");
    expect(answer).toMatchObject({ status: 200, text: recordedAnswer("watch/error-410-old-rv").text });
  });
});

describe("a log", () => {
  test("is text, cut from its end by limitBytes, and there until the pod is gone", async () => {
    await ask("POST", "pods", pod("l", "node-b"));
    await emulator.settled();
    expect(await ask("GET", "pods/l/log?container=debug")).toMatchObject({ status: 200, type: "text/plain", text: "hello\n" });
    expect((await ask("GET", "pods/l/log?container=debug&limitBytes=3")).text).toBe("hel");
    expect(await ask("GET", "pods/l/log?container=nope")).toMatchObject({ status: 400, json: { message: "container nope is not valid for pod l" } });
    await ask("DELETE", "pods/l");
    expect((await ask("GET", "pods/l/log")).status).toBe(404);
  });

  test("of a pod that the kubelet refused is not available; of one whose node is gone, the NODE is called a pod", async () => {
    await ask("POST", "pods", pod("p-outof", "node-c"));
    await new Promise((resolve) => setImmediate(resolve));
    expect(await ask("GET", "pods/p-outof/log?container=debug")).toMatchObject({ status: 400, text: expect.stringContaining("is not available") });
    emulator.nodes.delete("node-c");
    expect(await ask("GET", "pods/p-outof/log")).toMatchObject({ status: 404, text: expect.stringContaining('pods \\"node-c\\" not found') });
  });
});

test("a deleted pod that runs is Failed before it is gone; on a dead node it hangs", async () => {
  await ask("POST", "pods", pod("r"));
  await new Promise((resolve) => setImmediate(resolve));
  expect((await ask("DELETE", "pods/r")).json.metadata).toMatchObject({ deletionTimestamp: expect.any(String) });
  await emulator.settled();
  expect((await watched("resourceVersion=1000")).slice(-2)).toEqual(["MODIFIED Failed deleting", "DELETED Failed deleting"]);
  emulator.nodes.set("dead", { ready: "Unknown" });
  await ask("POST", "pods", pod("d", "dead"));
  await ask("DELETE", "pods/d");
  expect(await ask("POST", "pods", pod("d", "dead"))).toMatchObject({ status: 409, json: { message: 'object is being deleted: pods "d" already exists' } });
  kubelet.finish(frame(""));
});
