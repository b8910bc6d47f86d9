import type { RequestOptions } from "node:https";
import { BlockList, isIP } from "node:net";
import { TransportError } from "../triage/ports.ts";
import { type AwsCredentials, eksTokens } from "./pod-eks.ts";

/** How a cluster's API server is reached. Endpoints come from the configuration alone; certificates are always checked. */
export type ClusterAccess =
  /** A kubeconfig file with everything it may hold: certificates, tokens, token files, exec plugins, OIDC. The current context unless told. */
  | { readonly by: "kubeconfig"; readonly file: string; readonly context?: string | undefined }
  /** The service account of the pod that netcheck runs in. Its token rotates and is read again every minute. `root`: where the pod's files are, if not at /. */
  | { readonly by: "in-cluster"; readonly root?: string }
  /** `certificateAuthority`: PEM; without it the usual public authorities. */
  | { readonly by: "bearer"; readonly endpoint: string; readonly certificateAuthority?: string | undefined; readonly token: () => Promise<string> }
  /** `certificateAuthority`: PEM. `role`: ARN of a role to assume first (another account). */
  | {
      readonly by: "eks";
      readonly endpoint: string;
      readonly certificateAuthority: string;
      readonly name: string;
      readonly region: string;
      readonly role?: string | undefined;
      /** Instead of the environment's own credentials. */
      readonly credentials?: () => Promise<AwsCredentials>;
    };

/** What a request needs. */
export interface Connection {
  readonly endpoint: URL;
  /** Headers, certificates and agent for `node:https`. */
  readonly options: RequestOptions;
}

/** Credentials for requests to one API server. */
export interface Access {
  connect(): Promise<Connection>;
  /** The server did not accept the credentials: get others for the next request. */
  renew(): void;
}

/** Prepares the way to a cluster; reads nothing before the first `connect`, which throws TransportError where the way cannot be found. */
export function accessOf(access: ClusterAccess): Access {
  switch (access.by) {
    case "bearer":
      return bearer(access.endpoint, access.certificateAuthority, access.token, () => undefined);
    case "eks": {
      const { token, forget } = eksTokens(access.name, access.region, access.credentials ?? awsCredentials(access.region, access.role));
      return bearer(access.endpoint, access.certificateAuthority, token, forget);
    }
    default:
      return fromKubeConfig(access);
  }
}

function bearer(endpoint: string, ca: string | undefined, token: () => Promise<string>, renew: () => void): Access {
  return {
    async connect() {
      const url = safeEndpoint(endpoint);
      let value: string;
      try {
        value = (await token()).trim();
      } catch (cause) {
        const { message, retryable = false } = cause as Error & { retryable?: boolean };
        throw new TransportError(`debug-pod: could not get a token for ${url.host}: ${message}`, { retryable, cause });
      }
      return { endpoint: url, options: { headers: { Authorization: `Bearer ${value}` }, ...(ca === undefined ? {} : { ca }) } };
    },
    renew,
  };
}

/** Through the Kubernetes client's own reader of kubeconfigs; it is loaded here and nowhere else, when it is needed. */
function fromKubeConfig(access: Extract<ClusterAccess, { by: "kubeconfig" | "in-cluster" }>): Access {
  const what = access.by === "in-cluster" ? "the service account of this pod" : `the kubeconfig ${access.file}`;
  async function load() {
    const { KubeConfig } = await import("@kubernetes/client-node");
    const config = new KubeConfig();
    if (access.by === "in-cluster") config.loadFromCluster(access.root);
    else {
      config.loadFromFile(access.file);
      if (access.context !== undefined) config.setCurrentContext(access.context);
    }
    const cluster = config.getCurrentCluster();
    if (cluster === null) throw new Error(`there is no cluster for the context ${config.getCurrentContext()}`);
    if (cluster.skipTLSVerify === true)
      throw new Error("it says insecure-skip-tls-verify: netcheck checks certificates always. Give the certificate authority");
    return { config, endpoint: safeEndpoint(cluster.server) };
  }
  let loaded: ReturnType<typeof load> | undefined;
  return {
    async connect() {
      try {
        loaded ??= load();
        const { config, endpoint } = await loaded;
        const options: RequestOptions = {};
        await config.applyToHTTPSOptions(options);
        // its agent is for https alone
        if (endpoint.protocol === "http:") delete options.agent;
        return { endpoint, options };
      } catch (cause) {
        loaded = undefined;
        if (cause instanceof TransportError) throw cause;
        throw new TransportError(`debug-pod: could not use ${what}: ${(cause as Error).message.trim().split("\n")[0]}`, { retryable: false, cause });
      }
    },
    renew: () => {
      loaded = undefined;
    },
  };
}

function awsCredentials(region: string, role: string | undefined): () => Promise<AwsCredentials> {
  let provider: (() => Promise<AwsCredentials>) | undefined;
  return async () => {
    if (provider === undefined) {
      const { fromNodeProviderChain, fromTemporaryCredentials } = await import("@aws-sdk/credential-providers");
      provider =
        role === undefined
          ? fromNodeProviderChain({ clientConfig: { region } })
          : fromTemporaryCredentials({ params: { RoleArn: role, RoleSessionName: "netcheck" }, clientConfig: { region } });
    }
    return provider();
  };
}

/**
 * Where clouds tell a machine its own secrets, and what else is reached without a router: no API server is there. Names are not looked up; behind one that leads
 * there nothing has the certificate that is asked for.
 */
const LINK_LOCAL = new BlockList();
LINK_LOCAL.addSubnet("169.254.0.0", 16, "ipv4");
LINK_LOCAL.addSubnet("fe80::", 10, "ipv6");
LINK_LOCAL.addAddress("fd00:ec2::254", "ipv6");

/** An address that credentials may be sent to: https, or http to this very machine (tests, `kubectl proxy`). Throws TransportError. */
export function safeEndpoint(text: string): URL {
  const refuse = (why: string): never => {
    throw new TransportError(`debug-pod: could not use the API endpoint ${text.slice(0, 200)}: ${why}`, { retryable: false });
  };
  if (!URL.canParse(text)) return refuse("it must be an https address without a password in it");
  const url = new URL(text);
  const host = url.hostname.replace(/^\[|\]$/g, "");
  const family = isIP(host);
  const local = host === "localhost" || (family === 4 && host.startsWith("127."));
  if (url.username !== "" || url.password !== "" || !(url.protocol === "https:" || (url.protocol === "http:" && local)))
    return refuse("it must be an https address without a password in it");
  if (family !== 0 && LINK_LOCAL.check(host, family === 4 ? "ipv4" : "ipv6"))
    return refuse("it is an address of the machine's own metadata or link, not of a cluster");
  return url;
}
