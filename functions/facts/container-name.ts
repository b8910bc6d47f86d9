import type { Capture } from "./capture.ts";

/**
 * What the containers are called whose logs were asked by id: `crictl logs 9d01f6bb72c11` says nothing of the program, but `crictl ps` of the same capture does.
 *
 *     9d01f6bb72c11       4a6d8ab0f1c7a       3 weeks ago         Running             kube-proxy                 0                   c0b5a1e6f2d31       kube-proxy-2vz8h
 */
const BY_ID = /\blogs?\b.{0,200}[0-9a-f]{8,64}/;
const LISTING = /\b(?:crictl|docker|podman|nerdctl)\b.{0,200}\bps\b/;
const CRI = /^\s{0,8}([0-9a-f]{8,64})\s+\S{1,400}\s+.{1,40}?\s+(?:Running|Exited|Created|Unknown)\s+(\S{1,253})\s+\d{1,9}\s/i;
// docker's own names: k8s_CONTAINER_POD_NAMESPACE_UID_N
const DOCKER = /^\s{0,8}([0-9a-f]{8,64})\s.{1,3000}\sk8s_([^_\s]{1,63})_\S{1,300}$/;

/** Gives the words of a command that shows the log of a container the container's name in place of its id, as far as a listing in the capture tells. */
export function containerNames(capture: Capture): (argv: readonly string[]) => readonly string[] {
  if (!capture.outputs.some(({ command }) => BY_ID.test(command))) return (argv) => argv;
  const names = new Map<string, string>();
  for (const { command, text } of capture.outputs) {
    if (!LISTING.test(command)) continue;
    for (const line of text.split("\n", 5000)) {
      const [, id, name] = CRI.exec(line) ?? DOCKER.exec(line) ?? [];
      if (id !== undefined && name !== undefined) names.set(id, name);
    }
  }
  const nameOf = (word: string): string | undefined =>
    /^[0-9a-f]{8,64}$/.test(word) ? [...names].find(([id]) => id.startsWith(word) || word.startsWith(id))?.[1] : undefined;
  return (argv) => {
    if (names.size === 0 || argv[1] !== "logs") return argv;
    return argv.map((word) => {
      const name = nameOf(word);
      return name === undefined ? word : `k8s_${name}_`;
    });
  };
}
