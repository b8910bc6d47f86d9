import type { JobState } from "./ports.ts";

/** Why a node could not do what the script asked of it: what was seen → what it means and what to do. The first that fits. */
const TROUBLES: readonly (readonly [code: number | undefined, said: RegExp, words: string])[] = [
  [undefined, /no space left on device/i, "the node's disk is full: free some space below /tmp and /var"],
  [undefined, /disk quota exceeded/i, "the node's disk quota is used up: free some space below /tmp and /var"],
  [undefined, /read-only file system/i, "the node has no folder that can be written: /tmp is read-only. Give it a tmpfs on /tmp"],
  [
    126,
    /permission denied/i,
    "the node refused to run the script: its folder may be mounted noexec, or SELinux or AppArmor denies it (see `ausearch -m avc -ts recent`)",
  ],
  [
    undefined,
    /cannot allocate memory|out of memory|fork: (?:retry: )?resource temporarily unavailable/i,
    "the node has no memory or no processes left for the script",
  ],
  [137, /(?:)/, "the script was killed on the node: its time was up, or a memory limit (cgroup) was reached"],
  [127, /not found/i, "the node lacks what runs the script (sh)"],
];

/**
 * Why nothing can be read from an answer, for people.
 * @param problem what the reader of the answer said
 */
export function whyUnreadable(problem: string, { exitCode, stderr }: Pick<Extract<JobState, { state: "done" }>, "exitCode" | "stderr">): string {
  const lines = stderr
    .trim()
    .split("\n")
    .map((line) => line.trim());
  const said = (lines.find((line) => line !== "") ?? "").slice(0, 200);
  const known = TROUBLES.find(([code, pattern]) => (code === undefined || code === exitCode) && pattern.test(stderr));
  const own = lines.find((line) => line.startsWith("netcheck: "))?.replace("netcheck: ", "");
  const quoted = said === "" ? "" : `; stderr: ${said}`;
  if (known !== undefined) return `${known[2]}${quoted} (exit code ${exitCode})`;
  return own === undefined ? `${problem}${quoted} (exit code ${exitCode})` : `${own.slice(0, 200)} (exit code ${exitCode})`;
}
