/**
 * The one form of the command lines of kubectl: people write the options in any place and spelling, and call the program by many names.
 *
 *     oc -n=dns get Pods --output=wide      kubectl get pods -n dns -o wide
 *     kubectl get -Aowide po                kubectl get po -A -o wide
 */

/** By what names kubectl is called, and what stands in front of it. */
const CALLED =
  /^(?:sudo )?(?:[A-Z_]{1,40}=\S{1,200} ){0,4}(?:(?:docker|podman) exec (?:-\S{1,40} ){0,4}\S{1,100} )?(?:\S{0,200}\/)?(?:(?:k3s|k0s|rke2|microk8s|minikube) kubectl(?: --)?|microk8s\.kubectl|kubectl(?:\.exe|\.sh)?|kubecolor|oc|k)(?=\s)/;

/** A command line with `kubectl` for all of its names, at the beginning: `sudo k3s kubectl get po`, `KUBECONFIG=a oc get po`. Others as they are. */
export const asKubectl = (command: string): string => command.replace(CALLED, "kubectl");

/** Short options with a value, and what each is called when it is written out. */
const VALUED: Readonly<Record<string, string>> = {
  n: "namespace",
  o: "output",
  l: "selector",
  c: "container",
  f: "filename",
  s: "s",
  L: "label-columns",
  v: "v",
};
const SHORT: ReadonlyMap<string, string> = new Map([
  ["--all-namespaces", "-A"],
  ...Object.entries(VALUED).map(([short, long]): [string, string] => [`--${long}`, `-${short}`]),
]);
/** Other options with a value in the next word, which is put behind a `=`: where it stands alone it looks like a name. */
const LONG_VALUED = /^--(?:field-selector|sort-by|template|tail|since|since-time|subresource|types|for|chunk-size)$/;
/** Whom to ask and how says nothing of what is asked. */
const WHOM =
  /^--(?:context|cluster|kube(?:config|rc)|user(?:name)?|password|as(?:-group|-uid)?|token|request-timeout|cache-dir|certificate-authority|client-(?:certificate|key)|tls-server-name|server|v|vmodule|loglevel|log-flush-frequency|profile(?:-output)?)$/;
/** What these ask is told by what they name: its place on the line does not matter. */
const ASKING = /^(?:get|describe|events)$/;
/** Verbs that other programs have from kubectl. */
const SHARED = /^(?:get|describe|events|logs)$/;

/** The words of a command of kubectl, or of a program that has its verbs, with what it asks in front, and each option apart in its short form behind. Others as they are. */
export function plainKubectl(argv: readonly string[]): string[] {
  const [program, ...given] = argv;
  if (program !== "kubectl" && program !== "oc") return [...argv];
  const named: string[] = [];
  const options: string[] = [];
  const ordered: string[] = [];
  for (let i = 0; i < given.length; i++) {
    const word = given[i] as string;
    // behind it stands what something else is asked
    if (word === "--") return [...argv];
    const parts = word.startsWith("-") ? apart(word, given[i + 1], named[0]) : undefined;
    if (parts?.takesNext === true) i++;
    (parts === undefined ? named : options).push(...(parts?.words ?? [word]));
    ordered.push(...(parts?.words ?? [word]));
  }
  const verb = named[0] ?? "";
  if (!SHARED.test(verb)) return [program, ...ordered];
  if (!ASKING.test(verb)) return ["kubectl", ...ordered];
  if (given.includes("--raw")) {
    const [, namespace, all, one] = RAW.exec(given[given.indexOf("--raw") + 1] ?? "") ?? [];
    if (verb !== "get" || all === undefined) return ["kubectl", ...ordered];
    return [
      "kubectl",
      "get",
      all,
      ...(one === undefined ? [] : [one]),
      ...(namespace !== undefined ? ["-n", namespace] : one === undefined ? ["-A"] : []),
      "-o",
      "json",
    ];
  }
  const kind = named[1]?.replace(/^[^/]{1,200}/, (kinds) => kinds.split(",").map(plainKind).join(","));
  return ["kubectl", verb, ...(kind === undefined ? [] : [kind, ...named.slice(2)]), ...options];
}

/** What a question in that form names in front of its options: the kind (with a name behind a slash, or several kinds), then names. */
export function namedWords(argv: readonly string[]): readonly string[] {
  const options = argv.findIndex((word) => word.startsWith("-"));
  return argv.slice(2, options === -1 ? argv.length : options);
}

/** `get --raw /api/v1/namespaces/dns/pods`: what the API answers is what `-o json` shows. */
const RAW = /^\/api(?:s\/[\w.]{1,60})?\/v1\/(?:namespaces\/([\w.-]{1,63})\/)?([a-z]{1,40})(?:\/([\w.-]{1,253}))?\/?$/;
const KINDS: ReadonlyMap<string, string> = new Map([
  ["po", "pods"],
  ["pod", "pods"],
  ["no", "nodes"],
  ["node", "nodes"],
  ["svc", "services"],
  ["service", "services"],
  ["ep", "endpoints"],
  ["cm", "configmaps"],
  ["configmap", "configmaps"],
  ["ev", "events"],
  ["event", "events"],
]);

/** The API does not mind the case of a kind, nor its version behind it: "Pods", "pods.v1.". */
function plainKind(kind: string): string {
  const name = kind.toLowerCase().replace(/\.v1\.?$/, "");
  return KINDS.get(name) ?? name;
}

/** An option in its short form, its value behind it; several in one word (`-Ao wide`) apart. */
function apart(word: string, next: string | undefined, verb: string | undefined): { words: string[]; takesNext: boolean } {
  const value = (option: string, glued: string): { words: string[]; takesNext: boolean } =>
    glued !== "" || next === undefined ? { words: glued === "" ? [option] : [option, glued], takesNext: false } : { words: [option, next], takesNext: true };
  if (word.startsWith("--")) {
    const [, long = word, glued = ""] = /^(--[a-z-]{1,60})(?:=(.{0,4096}))?$/s.exec(word) ?? [];
    const short = SHORT.get(long);
    if (short === "-A") return { words: glued === "false" ? [] : [short], takesNext: false };
    if (WHOM.test(long)) return { words: [], takesNext: glued === "" };
    if (short !== undefined) return value(short, glued);
    return LONG_VALUED.test(word) && next !== undefined ? { words: [`${word}=${next}`], takesNext: true } : { words: [word], takesNext: false };
  }
  const words: string[] = [];
  for (let i = 1; i < word.length; i++) {
    const letter = word[i] as string;
    // of a log it is to be followed
    if (!Object.hasOwn(VALUED, letter) || (letter === "f" && verb === "logs")) {
      // "-A=true"
      if (letter === "=") break;
      if (!/[A-Za-z]/.test(letter)) return { words: [word], takesNext: false };
      words.push(`-${letter}`);
      continue;
    }
    const rest = value(`-${letter}`, word.slice(i + 1).replace(/^=/, ""));
    if (/[sv]/.test(letter)) return { words, takesNext: rest.takesNext };
    return { words: [...words, ...rest.words], takesNext: rest.takesNext };
  }
  return { words, takesNext: false };
}

/** What `kubectl exec` says beside what the command printed. */
export const EXEC_REMARK = /^(?:command terminated with exit code \d{1,3}|Defaulted container .{1,2000})$/;
