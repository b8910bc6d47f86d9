import { isCommand } from "./bundle.ts";

const GROUP = /^##\[group\](Run )?(.{1,400})$/;
const END = "##[endgroup]";
/** What the step's settings begin with, behind its script. */
const SHELL = /^shell: /;
/** No step has a longer script, with its settings, that is one command. */
const HEAD = 60;

/**
 * The log of GitHub Actions with a prompt in front of what a step ran, where that is one command; of a longer script only what it printed stays. Lines keep their numbers.
 *
 *     ##[group]Run ip route                    $ ip route
 *     ip route
 *     shell: /usr/bin/bash -e {0}
 *     ##[endgroup]
 *     default via 10.0.0.1 dev eth0            default via 10.0.0.1 dev eth0
 */
export function actionSteps(lines: readonly string[]): readonly string[] {
  if (!lines.some((line) => GROUP.test(line))) return lines;
  const shown = [...lines];
  for (let i = 0; i < lines.length; i++) {
    const [, run, title = ""] = GROUP.exec(lines[i] ?? "") ?? [];
    const head = run === undefined ? [] : lines.slice(i + 1, i + HEAD);
    const end = head.indexOf(END);
    if (lines[i] === END) shown[i] = "";
    // `echo "::group::ip route"`
    else if (run === undefined && isCommand(title)) shown[i] = `$ ${title}`;
    else if (end !== -1) {
      shown.fill("", i, i + end + 2);
      if (head.findIndex((line) => SHELL.test(line)) === 1) shown[i] = `$ ${title}`;
      i += end + 1;
    }
  }
  return shown;
}
