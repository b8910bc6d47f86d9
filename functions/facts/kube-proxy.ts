import { z } from "zod";
import { answeredByDefault, defineFact, lines, type Part, UnparsedLines, type View } from "./fact.ts";
import { asString, jsonElements } from "./json.ts";
import { epochOf } from "./log-time.ts";
import { isPrompt } from "./paste.ts";

/**
 * What kube-proxy says of itself: its mode, and when it last wrote its rules.
 *
 *     ipvs
 *     {"lastUpdated": "2026-11-21 03:51:28.612 +0000 UTC m=+12.5","currentTime": "2026-11-21 03:55:28.7 +0000 UTC m=+252.6", "nodeEligible": true}
 */
const Mode = z.object({
  line: z.int(),
  /** "iptables", "ipvs", "nftables", "userspace"; "" if the setting is empty: then it is the default of the version, on Linux "iptables". */
  mode: z.string(),
  /** "endpoint": the running program said so. "config": it stands in its settings. */
  source: z.enum(["endpoint", "config"]),
});
const Health = z.object({
  line: z.int(),
  /** Seconds since the rules were last written, at the time of the answer. A healthy kube-proxy tells the time of the answer: then it is 0. */
  behind: z.number(),
});
/** Counters and times of `/metrics` that tell of the writing of rules. */
const Metric = z.object({
  line: z.int(),
  /** "kubeproxy_sync_proxy_rules_last_timestamp_seconds", … */
  name: z.string(),
  value: z.number(),
  /** Of a second sample: what it has more. */
  valueDelta: z.number().optional(),
});
const KubeProxy = z.object({ modes: z.array(Mode), health: z.array(Health), metrics: z.array(Metric) });
type KubeProxy = z.infer<typeof KubeProxy>;

const ENDPOINT =
  /^(?:https?:\/\/)?(?:127\.0\.0\.1|localhost|\[::1\]|0\.0\.0\.0|[\w.-]{1,253}|\$\{?\w{1,40}\}?):(\d{4,5})\/(proxyMode|healthz|metrics|configz)$/;
// it ends without a line break, so a prompt may follow at once
const WORD = /^(iptables|ipvs|nftables|userspace|kernelspace)(?:[^\w-].{0,200}|[\w.-]{1,64}@[\w.-]{1,64}[:\s].{0,200})?$/;
const SETTING = /^\s{0,12}(?:"?mode"?|--proxy-mode)\s{0,4}[:=]\s{0,4}["']?(iptables|ipvs|nftables|userspace|kernelspace|)["']?,?$/;
/** The ConfigMap as JSON: `"config.conf": "apiVersion: …\nmode: \"ipvs\"\n"`. */
const IN_ONE_STRING = /^\s{0,40}"?config\.conf"?\s{0,4}:\s{0,4}"/;
/** `{"kubeproxy.config.k8s.io":{…,"Mode":"ipvs",…}}` */
const RUNNING = /"mode": {0,4}"(iptables|ipvs|nftables|userspace|)"/i;
const METRIC = /^(kubeproxy_sync_proxy_rules_[a-z_]{1,80}|kubeproxy_network_programming_[a-z_]{1,80})(?:\{[^}]{0,400}\})? ([-+.eE\d]{1,40})(?: \d{1,20})?$/;
const CONFIG = /(?:^|\/)kube-?proxy[\w./-]{0,80}(?:config|config\.conf|config\.yaml|\.yaml|\.yml)$/;

/** What `curl -i` prints before the answer; the line breaks stay, so that lines keep their numbers. */
const HEADER = /^(?:HTTP\/[0-9.]{1,3} [0-9]{3}\b.{0,100}|[A-Za-z][A-Za-z-]{1,60}: .{0,1000})$/gm;

export const kubeProxy = defineFact<KubeProxy>({
  id: "kube-proxy",
  title: "kube-proxy's mode and when it last wrote its rules",
  commands: [
    { argv: ["curl", "-s", "-m", "2", "http://127.0.0.1:10249/proxyMode"] },
    { argv: ["curl", "-s", "-m", "2", "http://127.0.0.1:10256/healthz"] },
    // where there is no curl
    { argv: ["wget", "-q", "-T", "2", "-O", "-", "http://127.0.0.1:10256/healthz"] },
  ],
  recognize(argv): View | undefined {
    const [program, ...rest] = argv;
    if (program === "curl" || program === "wget") {
      const url = rest.map((word) => ENDPOINT.exec(word)).find((match) => match !== null);
      if (url === undefined || url === null) return undefined;
      // other programs have a healthz and metrics too: only kube-proxy's ports
      const expected = url[2] === "healthz" ? ["10256"] : ["10249"];
      return expected.includes(url[1] as string) ? { format: url[2] as string, complete: true, scope: url[2] as string, rank: 1 } : undefined;
    }
    if (program === "kubectl" || program === "oc") {
      const asks = /^(?:cm|configmaps?)(?:\/kube-proxy)?$/;
      return rest.some((word) => asks.test(word)) && rest.some((word) => /^(?:(?:cm|configmaps?)\/)?kube-proxy(?:-config)?$/.test(word))
        ? { format: "config", complete: true, scope: "config", rank: 1 }
        : undefined;
    }
    if (["cat", "grep"].includes(program ?? "") && rest.some((word) => CONFIG.test(word)))
      return { format: "config", complete: program === "cat", scope: "config", rank: 1 };
    return undefined;
  },
  schema: KubeProxy,
  // 7 (curl) and 4 (wget): nobody answers on that port, so there is no kube-proxy; 28 is a timeout and no answer
  answered: (output) => answeredByDefault(output) || output.exitCode === 7 || output.exitCode === 4,
  parse({ text, view }) {
    const unparsed = new UnparsedLines();
    const value: KubeProxy = { modes: [], health: [], metrics: [] };
    if (view.format === "healthz") {
      for (const { value: answer, line, text: quote } of jsonElements(text.replace(HEADER, ""), unparsed)) {
        const [last, now] = [asString(answer["lastUpdated"]), asString(answer["currentTime"])].map((time) =>
          time === undefined ? undefined : epochOf(time, undefined),
        );
        if (last === undefined || now === undefined) unparsed.add(line, quote);
        else value.health.push({ line, behind: Math.max(0, Math.round((now - last) * 1000) / 1000) });
      }
      return unparsed.with(value);
    }
    for (const { line, text: content } of lines(text)) {
      if (view.format === "proxyMode") {
        const mode = WORD.exec(content.trim())?.[1];
        if (mode !== undefined) value.modes.push({ line, mode, source: "endpoint" });
        else if (!isPrompt(content) && !content.startsWith("curl: ")) unparsed.add(line, content);
      } else if (view.format === "metrics") {
        const metric = METRIC.exec(content);
        if (metric !== null && Number.isFinite(Number(metric[2]))) value.metrics.push({ line, name: metric[1] as string, value: Number(metric[2]) });
      } else if (view.format === "configz") {
        const mode = RUNNING.exec(content)?.[1];
        if (mode !== undefined) value.modes.push({ line, mode, source: "endpoint" });
      } else {
        // the settings hold much that says nothing of the mode; JSON has all of them in one string
        const settings = IN_ONE_STRING.test(content) ? content.split("\\n").map((setting) => setting.replaceAll('\\"', '"')) : [content];
        const mode = settings.map((setting) => SETTING.exec(setting)?.[1]).find((found) => found !== undefined);
        if (mode !== undefined) value.modes.push({ line, mode, source: "config" });
      }
    }
    return unparsed.with(value);
  },
  merge(parts: readonly Part<KubeProxy>[]) {
    const [first, second] = [1, 2].map((sample) => parts.filter((part) => part.sample === sample));
    const before = new Map((first ?? []).flatMap((part) => part.value.metrics.map((row) => [row.name, row.value] as const)));
    const after = (second ?? []).flatMap((part) => part.value.metrics.map((row) => ({ ...row, valueDelta: row.value - (before.get(row.name) ?? row.value) })));
    const modes = (first ?? []).flatMap((part) => part.value.modes);
    // somebody changed it between two answers
    const changed = (second ?? []).flatMap((part) =>
      part.value.modes.filter((row) => !modes.some(({ mode, source }) => mode === row.mode && source === row.source)),
    );
    return {
      modes: [...modes, ...changed].toSorted((a, b) => (a.source === b.source ? 0 : a.source === "endpoint" ? -1 : 1)),
      health: (first ?? []).flatMap((part) => part.value.health),
      metrics: after.length > 0 ? after : (first ?? []).flatMap((part) => part.value.metrics),
    };
  },
});
