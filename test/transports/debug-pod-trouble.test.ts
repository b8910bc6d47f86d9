import { afterEach, describe, expect, test } from "vitest";
import { debugPodTransport, type PodCluster, reapPods } from "../../functions/transports/debug-pod.ts";
import { podName } from "../../functions/transports/pod-spec.ts";
import type { JobState } from "../../functions/triage/ports.ts";
import type { EmulatedNode, KubernetesEmulator, KubernetesFault } from "../emulators/kubernetes.ts";
import { job, script } from "./contract.ts";
import { clusterAt, create, finalState, frame, holding, printing, quick, startCluster, target } from "./pods.ts";

let emulator: KubernetesEmulator;
afterEach(() => emulator.close());

async function cluster(node: EmulatedNode = { kubelet: printing(frame("done\n")) }, more: Partial<PodCluster> = {}) {
  emulator = await startCluster(node);
  return create(emulator, more);
}
const posts = () => emulator.requests.filter(({ method }) => method === "POST").length;
const done = { state: "done", exitCode: 0, stdout: "done\n", truncated: false };
const rejection = (promise: Promise<unknown>): Promise<Error & { retryable?: boolean }> =>
  promise.then(
    () => {
      throw new Error("it did not fail");
    },
    (error: Error) => error,
  );

describe("a start that is denied surely did not happen, and says why and what to do", () => {
  const denials: [string, KubernetesFault["answer"], string][] = [
    [
      "an admission webhook",
      { recorded: "admission/403-webhook-denied" },
      'an admission webhook of the cluster denied it: admission webhook "validation.gatekeeper.sh" denied the request: [privileged-containers]',
    ],
    ["a webhook without a word", { recorded: "admission/400-webhook-denied-bare" }, "Allow netcheck's namespace in that policy"],
    ["a PodSecurityPolicy", { recorded: "admission/403-psp-restricted" }, "a PodSecurityPolicy denied it"],
    ["no PodSecurityPolicy", { recorded: "admission/403-psp-none" }, "Give netcheck's account a policy that allows privileged pods"],
    [
      "Pod Security Admission",
      {
        status: 403,
        reason: "Forbidden",
        message: 'pods "x" is forbidden: violates PodSecurity "baseline:latest": host namespaces (hostNetwork=true, hostPID=true, hostIPC=true)',
      },
      "Label netcheck's namespace with pod-security.kubernetes.io/enforce: privileged",
    ],
    [
      "a ValidatingAdmissionPolicy",
      {
        status: 422,
        reason: "Invalid",
        message: "pods \"x\" is forbidden: ValidatingAdmissionPolicy 'netcheck-pods' with binding 'netcheck-pods' denied request: the image is not pinned",
      },
      "a ValidatingAdmissionPolicy denied it: ",
    ],
    [
      "OpenShift",
      {
        status: 403,
        reason: "Forbidden",
        message: 'pods "x" is forbidden: unable to validate against any security context constraint: [provider "restricted-v2": Forbidden]',
      },
      "Give netcheck's account the security context constraint privileged",
    ],
    ["a broken webhook", { recorded: "admission/500-webhook-error" }, "an admission webhook of the cluster does not work, so no pod can be made"],
    ["a webhook that is down", { recorded: "admission/500-webhook-refused" }, "Repair it, or exempt netcheck's namespace from it"],
    ["a slow webhook", { recorded: "admission/500-webhook-timeout" }, "context deadline exceeded"],
    [
      "RBAC",
      { recorded: "auth/403-create-pod" },
      'cannot create resource "pods" in API group "" in the namespace "node-debug". Give netcheck\'s account the rights of infra/k8s',
    ],
    ["no credential that the cluster knows", { recorded: "auth/403-anonymous" }, "came without a credential that the cluster knows"],
    ["credentials that have ended", { recorded: "auth/401-invalid-token" }, "did not accept netcheck's credentials (401)"],
    ["the quota", { recorded: "create/403-quota" }, "the quota of the namespace is used up"],
    ["a LimitRange", { recorded: "create/403-limitrange" }, "a LimitRange of the namespace denied it"],
    ["a priority class that is not there", { recorded: "create/403-missing-priorityclass" }, "Correct priorityClass in netcheck.yaml"],
    ["a namespace that is being deleted", { recorded: "create/403-namespace-terminating" }, "the namespace is being deleted"],
    ["a namespace that is not there", { recorded: "create/404-missing-namespace" }, "Create it with infra/k8s"],
    ["a pod that it does not take", { recorded: "create/422-many" }, "the API server does not take the pod"],
  ];
  test.each(denials)("%s", async (_what, answer, words) => {
    const transport = await cluster();
    emulator.fail({ match: "POST pods", answer, times: 9 });
    const error = await rejection(transport.start(target, quick));
    expect(error).toMatchObject({ name: "TransportError", retryable: false });
    expect(error.message).toMatch(/^debug-pod: could not start quick on node1: /);
    expect(error.message).toContain(words);
    expect(emulator.pods.size).toBe(0);
  });

  test("a value that is not of its type, an image by tag, an endpoint without https: refused before anything is sent", async () => {
    const transport = await cluster();
    const typed = script("typed", "true", { word: { pattern: "^[a-z]+$", description: "" } });
    expect((await rejection(transport.start(target, job("job-1", typed, { word: "a;b" })))).message).toContain("the value of word is not of its type");
    expect((await rejection(transport.start(target, job("job-1", typed, { other: "a" })))).message).toContain("the value of other");
    expect((await rejection(create(emulator, { image: "images.example/debug:1" }).start(target, quick))).message).toContain("name it by its digest");
    const plain = { access: { by: "bearer", endpoint: "http://10.0.0.1", token: async () => "t" } } as const;
    expect((await rejection(create(emulator, plain).start(target, quick))).message).toContain("it must be an https address");
    expect(emulator.requests).toEqual([]);
  });

  test("a node that the cluster does not have, or that has gone silent: no pod is made", async () => {
    const transport = await cluster();
    expect(await rejection(transport.start({ ...target, name: "nowhere", address: "nowhere" }, quick))).toMatchObject({
      name: "TransportError",
      message: "debug-pod: could not start quick on nowhere: the cluster has no node nowhere",
    });
    emulator.nodes.set(target.address, { ready: "Unknown" });
    expect((await rejection(transport.start(target, quick))).message).toMatch(/has not answered to the cluster since .*Z: Kubelet stopped posting node status/);
    expect(posts()).toBe(0);
  });

  test("a node that is not Ready is just the one to look at; nor is the right to look at nodes needed", async () => {
    const transport = await cluster({ kubelet: printing(frame("done\n")), ready: "False" });
    emulator.fail({ match: "GET nodes", answer: { recorded: "auth/403-list-nodes" }, times: 9 });
    expect(await finalState(transport, await transport.start(target, quick))).toMatchObject(done);
  });
});

describe("a start in trouble that passes", () => {
  test("one 403 while the server starts is not final, nor are 429 and 503", async () => {
    const transport = await cluster();
    emulator.fail({ match: "GET nodes", answer: { recorded: "boot/2-503" }, times: 1 });
    emulator.fail({ match: "POST pods", answer: { recorded: "boot/3-403" }, times: 1 });
    emulator.fail({ match: "POST pods", answer: { recorded: "misc/429-too-many-requests" }, times: 1 });
    emulator.fail({ match: "GET log", answer: { recorded: "misc/429-too-many-requests" }, times: 2 });
    expect(await finalState(transport, await transport.start(target, quick))).toMatchObject(done);
  });

  test("throttled for good: surely not started, and worth another try", async () => {
    const transport = await cluster();
    emulator.fail({ match: "POST pods", answer: { recorded: "misc/429-too-many-requests" }, times: 99 });
    const error = await rejection(transport.start(target, quick));
    expect(error).toMatchObject({ name: "TransportError", retryable: true });
    expect(error.message).toContain("is throttling (429): Too many requests, please try again later.");
  });

  test("a connection that was cut after the request: the pod is looked up by its name, and is not made twice", async () => {
    const transport = await cluster();
    emulator.fail({ match: "POST pods", answer: "drop-after", times: 1 });
    const handle = await transport.start(target, quick);
    expect(posts()).toBe(1);
    expect(await transport.find(target, "job-1")).toBe(handle);
    expect(await finalState(transport, handle)).toMatchObject(done);
  });

  test("a connection that was cut before it: nothing of that name is there, so it is sent again", async () => {
    const transport = await cluster();
    emulator.fail({ match: "POST pods", answer: "drop", times: 1 });
    expect(await finalState(transport, await transport.start(target, quick))).toMatchObject(done);
    expect(emulator.pods.size).toBe(1);
  });

  test("cut again and again: unknown, not a TransportError", async () => {
    const transport = await cluster();
    emulator.fail({ match: "POST pods", answer: "drop", times: 9 });
    expect(await rejection(transport.start(target, quick))).toMatchObject({ name: "Error", message: expect.stringContaining("could not be reached") });
  });

  test("a server that is down: surely not started, and worth another try", async () => {
    const transport = await cluster(undefined, { access: { by: "bearer", endpoint: "http://127.0.0.1:1", token: async () => "t" } });
    const error = await rejection(transport.start(target, quick));
    expect(error).toMatchObject({ name: "TransportError", retryable: true });
    expect(error.message).toContain("the API server 127.0.0.1:1 could not be reached: nothing answers on that port: it is down, or starting (ECONNREFUSED)");
  });

  test("a server that takes requests and says nothing: cut off, and told", async () => {
    await cluster();
    const transport = debugPodTransport({ cluster: () => clusterAt(emulator), pauseMs: 5, silenceMs: 60 });
    emulator.fail({ match: "GET nodes", answer: "hang", times: 9 });
    const error = await rejection(transport.start(target, quick));
    expect(error).toMatchObject({ name: "TransportError", retryable: true, message: expect.stringContaining("could not be reached: no answer for") });
    expect(posts()).toBe(0);
  });

  test("the same job twice is one pod; a stranger of that name is not taken for it", async () => {
    const transport = await cluster();
    expect(await transport.start(target, quick)).toBe(await transport.start(target, quick));
    expect(emulator.pods.size).toBe(1);
    const pod = emulator.pods.get(podName("job-1", target.address));
    if (pod?.metadata.annotations !== undefined) pod.metadata.annotations["netcheck/job-id"] = "another";
    expect((await rejection(transport.start(target, quick))).message).toContain("it is not of the job job-1");
    expect((await rejection(transport.find(target, "job-1"))).message).toContain("it is not of the job job-1");
  });

  test("an earlier pod of the job that is still being removed: try again later", async () => {
    const transport = await cluster();
    emulator.fail({ match: "POST pods", answer: { recorded: "create/409-being-deleted" }, times: 1 });
    expect(await rejection(transport.start(target, quick))).toMatchObject({ name: "TransportError", retryable: true });
  });
});

describe("a pod that does not start", () => {
  const inTime = { startSeconds: 120 };
  const reasons: [string, string, string][] = [
    ["errimagepull-404", 'its image cannot be pulled: Failed to pull image "127.0.0.1:5000/missing/debug:1"', "Check the image and its digest"],
    ["errimagepull-401", "401 Unauthorized", "the right to pull it"],
    ["errimagepull-403", "403 Forbidden", "the right to pull it"],
    ["errimagepull-429", "429 Too Many Requests", "use a mirror of your own"],
    ["errimagepull-503", "503 Service Unavailable", "Look at the registry"],
    ["errimagepull-unreachable", "its image cannot be pulled", "The node cannot reach the registry, which may be the fault that you are looking for"],
    ["imagepullbackoff-404", "127.0.0.1:5000/missing/debug:1: not found", "Check the image and its digest"],
    ["containercreating-pulling", "its image was still being pulled", "startSeconds"],
    ["containercreating-hostpath-type", "a volume of it cannot be mounted", "hostPath type check failed"],
    ["containercreating-sandbox-fails", "the node could not make its sandbox", "cannot allocate memory"],
    ["createcontainerconfigerror", "the container cannot be made: CreateContainerConfigError", "configmap"],
    ["errimageneverpull", "its image cannot be used", "pull policy of Never"],
    ["invalidimagename", "its image cannot be used", "invalid reference format"],
  ];
  test.each(reasons)("%s: given time, then stopped, then surely not run", async (phase, why, advice) => {
    const transport = await cluster({ phase }, inTime);
    const handle = await transport.start(target, quick);
    expect(await transport.poll(target, handle, 30)).toMatchObject({ state: "running" });
    emulator.advance(119);
    expect(await transport.poll(target, handle, 0)).toMatchObject({ state: "running" });
    emulator.advance(2);
    const state = await finalState(transport, handle);
    expect(state).toMatchObject({ state: "not-run", reason: expect.stringMatching(/^the debug pod did not start within 120 s: /) });
    expect((state as { reason: string }).reason).toContain(why);
    expect((state as { reason: string }).reason).toContain(advice);
    // a restarted netcheck reads the same
    expect(await create(emulator, inTime).poll(target, handle, 0)).toEqual(state);
  });

  const refused: [string, JobState["state"], string][] = [
    [
      "failed-outofcpu",
      "not-run",
      "the node refused the pod: Pod Node didn't have enough resource: cpu, requested: 64000, used: 0, capacity: 2000 (OutOfcpu). The node is full",
    ],
    ["failed-nodeaffinity", "not-run", "the node refused the pod: Pod Predicate NodeAffinity failed (NodeAffinity)"],
    ["failed-starterror", "not-run", "its container could not be started: failed to create containerd task"],
    ["failed-evicted", "lost", "the node evicted the pod: Pod ephemeral local storage usage exceeds the total limit of containers 1Mi."],
    ["failed-oomkilled", "lost", "its program was killed because it used more memory than the pod may"],
    ["failed-exit3", "lost", "its program ended with exit code 3 (Error)"],
    ["failed-deadlineexceeded", "lost", "the pod was stopped after 170 s, its limit"],
  ];
  test.each(refused)("%s: %s", async (phase, state, words) => {
    const transport = await cluster({ phase });
    const found = await finalState(transport, await transport.start(target, quick));
    expect(found).toMatchObject({ state, reason: expect.stringContaining(words) });
  });

  test("the scheduler finds no place (an admission plugin took the node's name away)", async () => {
    const transport = await cluster({ phase: "unschedulable-cpu" });
    const handle = await transport.start(target, quick);
    expect(await transport.poll(target, handle, 20)).toMatchObject({ detail: expect.stringContaining("0/1 nodes are available: 1 Insufficient cpu.") });
  });

  test("its node is removed before it takes the pod: surely not run", async () => {
    const transport = await cluster({});
    const handle = await transport.start(target, quick);
    emulator.nodes.delete(target.address);
    emulator.advance(20);
    expect(await finalState(transport, handle)).toEqual({ state: "not-run", reason: `the cluster has no node ${target.address}` });
  });

  test("its node goes silent before it takes the pod: nobody can say that it will never run", async () => {
    const transport = await cluster({});
    const handle = await transport.start(target, quick);
    emulator.nodes.set(target.address, { ready: "Unknown" });
    emulator.advance(60);
    expect(await transport.poll(target, handle, 0)).toMatchObject({ state: "running", detail: expect.stringContaining("has not answered to the cluster") });
    emulator.advance(61);
    await transport.poll(target, handle, 0);
    emulator.advance(31);
    expect(await finalState(transport, handle)).toMatchObject({ state: "lost", reason: expect.stringContaining("did not start within 120 s: the node") });
  });

  test("nobody is there to give it up, and its own deadline passes: surely not run", async () => {
    const transport = await cluster({ phase: "errimagepull-404" });
    const handle = await transport.start(target, quick);
    await transport.poll(target, handle, 30);
    emulator.expire(podName("job-1", target.address));
    expect(await finalState(transport, handle)).toMatchObject({
      state: "not-run",
      reason: expect.stringMatching(/^its time was over before it started: its image cannot be pulled: .*not found$/),
    });
  });

  test("without the right to stop it: lost, with the reason all the same", async () => {
    const transport = await cluster({ phase: "errimagepull-404" });
    const handle = await transport.start(target, quick);
    await transport.poll(target, handle, 30);
    emulator.advance(121);
    const message = 'pods "x" is forbidden: User "netcheck" cannot patch resource "pods" in API group "" in the namespace "netcheck"';
    emulator.fail({ match: "PATCH pods", answer: { status: 403, reason: "Forbidden", message }, times: 9 });
    expect(await finalState(transport, handle)).toMatchObject({ state: "lost", reason: expect.stringContaining("Check the image and its digest") });
  });

  test("more time is given where the configuration says so", async () => {
    const transport = await cluster({ phase: "containercreating-pulling" }, { startSeconds: 600 });
    const handle = await transport.start(target, quick);
    emulator.advance(500);
    expect(await transport.poll(target, handle, 0)).toMatchObject({ state: "running", detail: "the node is preparing the container" });
  });
});

describe("a pod that runs", () => {
  test("is watched, not polled: one look, one watch, one look at the end", async () => {
    const { kubelet, finish } = holding();
    const transport = await cluster({ kubelet });
    const handle = await transport.start(target, quick);
    // until it says Running, so that only the end is left to be seen
    while (emulator.pods.get(podName("job-1", target.address))?.status.phase !== "Running") await transport.poll(target, handle, 20);
    emulator.requests.length = 0;
    const state = transport.poll(target, handle, 5000);
    await emulator.watched();
    finish(frame("done\n"));
    expect(await state).toMatchObject(done);
    expect(emulator.requests.map(({ method, path, query }) => `${method} ${path.split("/").at(-1)} ${query.get("watch") ?? ""}`.trim())).toEqual([
      `GET ${podName("job-1", target.address)}`,
      "GET pods true",
      `GET ${podName("job-1", target.address)}`,
      "GET log",
    ]);
  });

  test("is not waited for longer than asked", async () => {
    const transport = await cluster({ kubelet: holding().kubelet });
    const handle = await transport.start(target, quick);
    const began = performance.now();
    expect(await transport.poll(target, handle, 150)).toMatchObject({ state: "running" });
    expect(performance.now() - began).toBeLessThan(2000);
  });

  test("a version that is too old, and a server that stops in the middle of the watch: it looks again", async () => {
    const { kubelet, finish } = holding();
    const transport = await cluster({ kubelet });
    const handle = await transport.start(target, quick);
    emulator.compact();
    const state = transport.poll(target, handle, 5000);
    await emulator.watched();
    emulator.cutWatches();
    await emulator.watched();
    finish(frame("done\n"));
    expect(await state).toMatchObject(done);
  });

  test("a node that goes away: lost when it is removed, waited for while it may come back", async () => {
    const transport = await cluster({ kubelet: holding().kubelet });
    const handle = await transport.start(target, quick);
    while (emulator.pods.get(podName("job-1", target.address))?.status.phase !== "Running") await transport.poll(target, handle, 20);
    emulator.nodes.set(target.address, { ready: "Unknown" });
    emulator.advance(50);
    expect(await transport.poll(target, handle, 0)).toMatchObject({
      state: "running",
      detail: expect.stringContaining("has not answered to the cluster since"),
    });
    emulator.advance(170);
    expect(await transport.poll(target, handle, 0)).toMatchObject({ state: "lost", reason: expect.stringContaining("has not answered to the cluster since") });
    emulator.nodes.delete(target.address);
    expect(await transport.poll(target, handle, 0)).toMatchObject({ state: "lost", reason: `the cluster has no node ${target.address}` });
  });

  test("somebody deletes it: lost", async () => {
    const transport = await cluster({ kubelet: holding().kubelet });
    const handle = await transport.start(target, quick);
    const state = finalState(transport, handle, 5000);
    await emulator.watched();
    await transport.release?.(target, handle);
    expect(await state).toMatchObject({ state: "lost", reason: expect.stringMatching(/deleted/) });
    // another pod of that name is not ours
    await transport.start(target, quick);
    expect(await transport.poll(target, handle, 0)).toMatchObject({ state: "lost", reason: expect.stringContaining("the pod is gone") });
  });
});

describe("the log", () => {
  const long = frame("x".repeat(100_000), { raw: true });

  test("an end that was lost is read again", async () => {
    const transport = await cluster({ kubelet: printing(frame("done\n")) });
    const handle = await transport.start(target, quick);
    emulator.loseEnd(30, 2);
    expect(await finalState(transport, handle)).toMatchObject(done);
  });

  test("an end that stays lost: what came, marked as cut", async () => {
    const transport = await cluster({ kubelet: printing(long) });
    const handle = await transport.start(target, quick);
    emulator.loseEnd(long.length / 2, 9);
    const state = await finalState(transport, handle);
    expect(state).toMatchObject({ state: "done", truncated: true });
    expect(state.state === "done" && state.stdout.length).toBeGreaterThan(10_000);
  });

  test("a beginning that the kubelet threw away: lost, with what to do", async () => {
    const transport = await cluster({ kubelet: printing(long), log: { rotateAfter: 40_000 } });
    expect(await finalState(transport, await transport.start(target, quick))).toMatchObject({
      state: "lost",
      reason: expect.stringContaining("containerLogMaxSize"),
    });
  });

  test("bytes that were changed: cut, never taken for whole", async () => {
    const transport = await cluster({ kubelet: printing(frame("done\n").replace("H4sI", "H4sJ")) });
    expect(await finalState(transport, await transport.start(target, quick))).toMatchObject({ state: "done", truncated: true });
  });

  test("no frame: what it said instead; a frame with another nonce is none", async () => {
    const transport = await cluster({ kubelet: printing(`sh: 1: not found\n${frame("done\n", { nonce: "f".repeat(32) })}`, 0) });
    expect(await finalState(transport, await transport.start(target, quick))).toMatchObject({
      state: "lost",
      reason: expect.stringContaining("it said: sh: 1: not found"),
    });
  });

  const unreadable: [string, boolean, string][] = [
    ["log/500-kubelet-refused", true, "connection refused"],
    ["log/500-kubelet-no-route", true, "no route to host"],
    ["log/403-kubelet-denies-apiserver", false, "the node's kubelet refuses the API server itself"],
    ["auth/403-log", false, 'cannot get resource "pods/log"'],
  ];
  test.each(unreadable)("%s: it cannot be looked at (worth another try: %s)", async (recorded, retryable, words) => {
    const transport = await cluster({ kubelet: printing(frame("done\n")), log: { answer: recorded } });
    const handle = await transport.start(target, quick);
    await emulator.settled();
    const error = await rejection(finalState(transport, handle));
    expect(error).toMatchObject({ name: "TransportError", retryable });
    expect(error.message).toMatch(/^debug-pod: could not look at the pod netcheck-[0-9a-f]{32} of node1: /);
    expect(error.message).toContain(words);
    // nothing is lost: the pod is there until it is released
    emulator.nodes.set(target.address, { kubelet: printing("") });
    expect(await finalState(transport, handle)).toMatchObject(done);
  });
});

describe("cleaning up", () => {
  test("the pod stays until it is released, so a result can be read again; then it is gone, and releasing again is fine", async () => {
    const transport = await cluster();
    const handle = await transport.start(target, quick);
    expect(await finalState(transport, handle)).toMatchObject(done);
    expect(await finalState(create(emulator), handle)).toMatchObject(done);
    await transport.release?.(target, handle);
    expect(emulator.pods.size).toBe(0);
    await transport.release?.(target, handle);
    expect(await transport.find(target, "job-1")).toBeUndefined();
  });

  test("a pod of the same name that is another one is left alone", async () => {
    const transport = await cluster();
    const handle = await transport.start(target, quick);
    await finalState(transport, handle);
    await transport.release?.(target, handle.replace(/\/.*/, "/00000000-0000-0000-0000-000000000000"));
    expect(emulator.pods.size).toBe(1);
  });

  test("what cannot be deleted is told", async () => {
    const transport = await cluster();
    const handle = await transport.start(target, quick);
    emulator.fail({ match: "DELETE pods", answer: { recorded: "auth/403-delete" }, times: 9 });
    const error = await rejection(transport.release?.(target, handle) ?? Promise.resolve());
    expect(error).toMatchObject({ name: "TransportError", message: expect.stringContaining("cannot delete resource") });
  });

  test("the reaper deletes what has expired, page by page, and nothing else", async () => {
    const transport = await cluster();
    for (let i = 0; i < 130; i += 1) await transport.start(target, job(`job-${i}`, quick.script));
    const stranger = structuredClone([...emulator.pods.values()][0]);
    if (stranger === undefined) throw new Error("there are pods");
    stranger.metadata.name = "theirs";
    stranger.metadata.labels = { "app.kubernetes.io/managed-by": "helm" };
    emulator.pods.set("theirs", stranger);
    await emulator.settled();
    expect(await reapPods(clusterAt(emulator), new Date(), 5)).toEqual({ found: 130, deleted: [], stuck: [], failed: [] });
    const later = new Date(Date.now() + (120 + 20 + 30 + 900 + 60) * 1000);
    emulator.fail({ match: "DELETE pods", answer: { recorded: "auth/403-delete" }, times: 2 });
    const reaped = await reapPods(clusterAt(emulator), later, 5);
    expect(reaped).toMatchObject({ found: 130, failed: [{ reason: expect.stringContaining("cannot delete resource") }] });
    expect(reaped.deleted).toHaveLength(129);
    expect([...emulator.pods.keys()]).toEqual([reaped.failed[0]?.pod, "theirs"]);
  });

  test("a pod that hangs on a dead node is not deleted again and again, but told", async () => {
    const transport = await cluster({});
    const handle = await transport.start(target, quick);
    emulator.nodes.set(target.address, { ready: "Unknown" });
    await transport.release?.(target, handle);
    const name = podName("job-1", target.address);
    expect(await reapPods(clusterAt(emulator), new Date(Date.now() + 60_000), 5)).toEqual({ found: 1, deleted: [], stuck: [], failed: [] });
    expect(await reapPods(clusterAt(emulator), new Date(Date.now() + 600_000), 5)).toEqual({ found: 1, deleted: [], stuck: [name], failed: [] });
  });

  test("a reaper that may not list says so", async () => {
    await cluster();
    emulator.fail({ match: "GET pods", answer: { recorded: "boot/3-403" }, times: 9 });
    expect(await rejection(reapPods(clusterAt(emulator), new Date(), 5))).toMatchObject({
      name: "TransportError",
      message: expect.stringContaining("debug-pod: could not list netcheck's pods: it is not allowed: pods is forbidden"),
    });
  });
});
