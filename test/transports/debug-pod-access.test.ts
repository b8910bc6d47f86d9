import { createHash, createHmac } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { request } from "node:http";
import { createServer, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TLSSocket } from "node:tls";
import { SignatureV4 } from "@smithy/signature-v4";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { debugPodTransport } from "../../functions/transports/debug-pod.ts";
import { type ClusterAccess, safeEndpoint } from "../../functions/transports/pod-access.ts";
import { eksToken, eksTokens } from "../../functions/transports/pod-eks.ts";
import type { KubernetesEmulator } from "../emulators/kubernetes.ts";
import { clusterAt, create, finalState, frame, image, printing, quick, startCluster, target } from "./pods.ts";

const pem = (name: string): string => readFileSync(new URL(`../emulators/kubernetes/test-only-${name}.pem`, import.meta.url), "utf8");
const [cert, key] = [pem("cert"), pem("key")];
const base64 = (text: string): string => Buffer.from(text).toString("base64");

let emulator: KubernetesEmulator;
/** The stand-in server behind TLS, as a real one is. */
let front: Server;
let url: string;
let folder: string;
/** Whether the last client showed a certificate that the server trusts. */
let certified: boolean;
beforeEach(async () => {
  emulator = await startCluster({ kubelet: printing(frame("done\n")) });
  front = createServer({ cert, key, ca: cert, requestCert: true, rejectUnauthorized: false }, (incoming, response) => {
    certified = (incoming.socket as TLSSocket).authorized;
    // a client certificate is a credential
    const headers = certified ? { ...incoming.headers, authorization: "Bearer token" } : incoming.headers;
    const onward = request(`${emulator.url}${incoming.url}`, { method: incoming.method ?? "GET", headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 0, answer.headers);
      answer.pipe(response);
    });
    incoming.pipe(onward);
  });
  await new Promise<void>((resolve) => front.listen(0, "127.0.0.1", resolve));
  url = `https://127.0.0.1:${(front.address() as AddressInfo).port}`;
  folder = mkdtempSync(join(tmpdir(), "netcheck-kube-"));
});
afterEach(async () => {
  vi.unstubAllEnvs();
  front.closeAllConnections();
  await new Promise((resolve) => front.close(resolve));
  await emulator.close();
  rmSync(folder, { recursive: true });
});

async function run(access: ClusterAccess): Promise<unknown> {
  const transport = create(emulator, { access });
  return finalState(transport, await transport.start(target, quick));
}
const done = { state: "done", stdout: "done\n" };
const authorizations = (): string[] => [...new Set(emulator.requests.map(({ authorization }) => authorization))];

/** A kubeconfig for the server, as cloud tools write it. */
function kubeconfig(user: object, cluster: object = { "certificate-authority-data": base64(cert) }): string {
  const file = join(folder, "config");
  const context = (name: string, ref: string) => ({ name, context: { cluster: ref, user: "me" } });
  const content = {
    apiVersion: "v1",
    kind: "Config",
    "current-context": "here",
    clusters: [
      { name: "here", cluster: { server: url, ...cluster } },
      { name: "elsewhere", cluster: { server: "http://10.0.0.1" } },
    ],
    users: [{ name: "me", user }],
    contexts: [context("here", "here"), context("elsewhere", "elsewhere")],
  };
  writeFileSync(file, JSON.stringify(content));
  return file;
}

describe("a kubeconfig", () => {
  test("with a token", async () => {
    expect(await run({ by: "kubeconfig", file: kubeconfig({ token: "token" }) })).toMatchObject(done);
  });

  test("with a client certificate", async () => {
    expect(await run({ by: "kubeconfig", file: kubeconfig({ "client-certificate-data": base64(cert), "client-key-data": base64(key) }) })).toMatchObject(done);
    expect(certified).toBe(true);
  });

  test("with an exec plugin, which is asked again when its token has ended", async () => {
    const plugin = join(folder, "plugin");
    writeFileSync(
      plugin,
      `echo x >>${folder}/asked; echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"'"$(cat ${folder}/token)"'"}}'`,
    );
    writeFileSync(join(folder, "token"), "ended");
    const file = kubeconfig({ exec: { apiVersion: "client.authentication.k8s.io/v1", command: "sh", args: [plugin] } });
    const transport = create(emulator, { access: { by: "kubeconfig", file } });
    await expect(transport.start(target, quick)).rejects.toThrow("did not accept netcheck's credentials (401)");
    writeFileSync(join(folder, "token"), "token");
    expect(await finalState(transport, await transport.start(target, quick))).toMatchObject(done);
    expect(authorizations()).toEqual(["Bearer ended", "Bearer token"]);
  });

  test.each([
    ["whose plugin fails", () => kubeconfig({ exec: { command: "sh", args: ["-c", "echo no such profile >&2; exit 1"] } }), "no such profile"],
    ["whose plugin is not there", () => kubeconfig({ exec: { command: "/no/such/plugin", args: [] } }), "ENOENT"],
    ["that is not there", () => join(folder, "nothing"), "ENOENT"],
    ["that checks no certificates", () => kubeconfig({ token: "token" }, { "insecure-skip-tls-verify": true }), "it says insecure-skip-tls-verify"],
  ])("%s: said so", async (_what, file, words) => {
    const error = await run({ by: "kubeconfig", file: file() }).catch((reason: Error) => reason);
    expect(error).toMatchObject({ name: "TransportError", message: expect.stringContaining(words) });
    expect(emulator.requests).toEqual([]);
  });

  test.each([
    ["elsewhere", "it must be an https address"],
    ["no-such-context", "there is no cluster for the context no-such-context"],
  ])("context %s: refused", async (context, words) => {
    await expect(run({ by: "kubeconfig", file: kubeconfig({ token: "token" }), context })).rejects.toThrow(words);
  });
});

describe("a bearer token", () => {
  test("with the cluster's own certificate authority", async () => {
    expect(await run({ by: "bearer", endpoint: url, certificateAuthority: cert, token: async () => "token\n" })).toMatchObject(done);
  });

  test("another certificate authority: nothing is sent, and it says so", async () => {
    const error = await run({ by: "bearer", endpoint: url, token: async () => "token" }).catch((reason: Error) => reason);
    expect(error).toMatchObject({
      name: "TransportError",
      retryable: false,
      message: expect.stringContaining("its certificate is not signed by the configured authority"),
    });
    expect(emulator.requests).toEqual([]);
  });

  test("that has ended is asked for again, once per request", async () => {
    const tokens = ["ended", "token"];
    expect(await run({ by: "bearer", endpoint: url, certificateAuthority: cert, token: async () => tokens.shift() ?? "token" })).toMatchObject(done);
    expect(authorizations()).toEqual(["Bearer ended", "Bearer token"]);
  });

  test.each([false, true])("that cannot be had; perhaps a moment later: %j", async (retryable) => {
    const error = Object.assign(new Error("the secret is not there"), retryable ? { retryable } : {});
    const access: ClusterAccess = { by: "bearer", endpoint: url, token: () => Promise.reject(error) };
    await expect(run(access)).rejects.toMatchObject({ name: "TransportError", message: expect.stringContaining("the secret is not there"), retryable });
  });
});

test("what netcheck.yaml says by now counts, in a process that was there before", async () => {
  const newer = image.replace(/^[^@]*/, "images.example/newer");
  let current = clusterAt(emulator, { access: { by: "kubeconfig", file: kubeconfig({ token: "token" }) } });
  const transport = debugPodTransport({ cluster: () => current, pauseMs: 5 });
  await transport.start(target, quick);
  current = { ...current, image: newer };
  await transport.start(target, { ...quick, id: "job-2" });
  // the secret that its token is in is called otherwise
  const secret = (value: string): ClusterAccess => ({ by: "bearer", endpoint: url, certificateAuthority: cert, token: async () => value });
  current = { ...current, access: secret("ended") };
  await expect(transport.start(target, { ...quick, id: "job-3" })).rejects.toThrow("did not accept netcheck's credentials (401)");
  current = { ...current, access: secret("token") };
  await transport.start(target, { ...quick, id: "job-4" });
  const images = [...emulator.pods.values()].map(({ spec }) => spec.containers[0]?.image);
  expect(images).toEqual([image, newer, newer]);
});

test("in a cluster: the pod's own service account", async () => {
  const account = join(folder, "var/run/secrets/kubernetes.io/serviceaccount");
  mkdirSync(account, { recursive: true });
  writeFileSync(join(account, "ca.crt"), cert);
  writeFileSync(join(account, "token"), "token");
  vi.stubEnv("KUBERNETES_SERVICE_HOST", "127.0.0.1");
  vi.stubEnv("KUBERNETES_SERVICE_PORT", new URL(url).port);
  expect(await run({ by: "in-cluster", root: folder })).toMatchObject(done);
});

test.each([
  ["https://10.0.0.1:6443", true],
  ["https://[fd00::1]:6443", true],
  ["http://127.0.0.1:8001", true],
  ["http://localhost:8001", true],
  ["http://127.0.0.1.example.com", false],
  ["http://10.0.0.1", false],
  ["https://user:password@10.0.0.1", false],
  ["file:///etc/passwd", false],
  ["10.0.0.1", false],
])("endpoint %s: %s", (text, good) => {
  if (good) expect(safeEndpoint(text).origin).toBe(text);
  else expect(() => safeEndpoint(text)).toThrow("it must be an https address without a password in it");
});

type Bytes = string | ArrayBuffer | ArrayBufferView;
const bytes = (data: Bytes): Buffer =>
  typeof data === "string" ? Buffer.from(data) : ArrayBuffer.isView(data) ? Buffer.from(data.buffer, data.byteOffset, data.byteLength) : Buffer.from(data);
/** A hash as the SDK's own signer wants it. */
class Sha256 {
  readonly #hash;
  constructor(key?: Bytes) {
    this.#hash = key === undefined ? createHash("sha256") : createHmac("sha256", bytes(key));
  }
  update(data: Bytes): void {
    this.#hash.update(bytes(data));
  }
  async digest(): Promise<Uint8Array> {
    return this.#hash.digest();
  }
  reset(): void {
    throw new Error("a hash is used once");
  }
}

describe("EKS", () => {
  const credentials = { accessKeyId: "AKIDEXAMPLE", secretAccessKey: "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", sessionToken: "session/+=token" };
  const at = new Date("2026-11-21T10:00:00Z");

  test.each([
    ["long-lived keys", { ...credentials, sessionToken: undefined }],
    ["a session", credentials],
  ])("the token is what the SDK's own signer makes: %s", async (_what, keys) => {
    const signer = new SignatureV4({
      service: "sts",
      region: "eu-central-1",
      credentials: {
        accessKeyId: keys.accessKeyId,
        secretAccessKey: keys.secretAccessKey,
        ...(keys.sessionToken === undefined ? {} : { sessionToken: keys.sessionToken }),
      },
      sha256: Sha256,
    });
    const host = "sts.eu-central-1.amazonaws.com";
    const signed = await signer.presign(
      {
        method: "GET",
        protocol: "https:",
        hostname: host,
        path: "/",
        headers: { host, "x-k8s-aws-id": "prod" },
        query: { Action: "GetCallerIdentity", Version: "2011-06-15" },
      },
      { expiresIn: 60, signingDate: at, unhoistableHeaders: new Set(["x-k8s-aws-id"]) },
    );
    const token = eksToken("prod", "eu-central-1", keys, at);
    expect(token).toMatch(/^k8s-aws-v1\.[A-Za-z0-9_-]+$/);
    const made = new URL(Buffer.from(token.slice("k8s-aws-v1.".length), "base64url").toString());
    expect(made.host).toBe(host);
    expect(Object.fromEntries(made.searchParams)).toEqual(signed.query);
  });

  test("is used for 13 minutes, and made anew before it ends, or when it was not accepted", async () => {
    let now = at.getTime();
    let asked = 0;
    const { token, forget } = eksTokens(
      "prod",
      "eu-central-1",
      async () => {
        asked += 1;
        return credentials;
      },
      () => new Date(now),
    );
    const first = await token();
    now += 12 * 60_000;
    expect(await token()).toBe(first);
    now += 60_000;
    const second = await token();
    expect(second).not.toBe(first);
    forget();
    await token();
    expect(asked).toBe(3);
  });

  test("reaches the cluster with it", async () => {
    const access: ClusterAccess = {
      by: "eks",
      endpoint: url,
      certificateAuthority: cert,
      name: "prod",
      region: "eu-central-1",
      credentials: async () => credentials,
    };
    await expect(run(access)).rejects.toThrow("did not accept netcheck's credentials (401)");
    expect(authorizations()[0]).toMatch(/^Bearer k8s-aws-v1\.aHR0cHM6Ly9zdHMu/);
  });
});
