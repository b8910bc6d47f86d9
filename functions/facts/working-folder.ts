/**
 * What a command names that was typed in a folder, with the folder in front: `cd /etc/cni/net.d && cat 10-flannel.conflist` shows what
 * `cat /etc/cni/net.d/10-flannel.conflist` shows.
 */
const READS = /^(?:sudo\s{1,4})?(cat|zcat|head|tail|more|less|ls|ll|jq|e?grep)(?=\s|$)/;
const WORD = /(?:'[^'\n]{0,400}'|"[^"\n]{0,400}"|[^\s'"]){1,1000}/g;
/** Their first word is no file. */
const LOOKS_FOR = /^(?:jq|e?grep)$/;

/** The command with whole paths; as it is if it reads no file. */
export function inFolder(command: string, folder: string): string {
  const program = READS.exec(command)?.[1];
  if (program === undefined || command.length > 2000) return command;
  const end = command.search(/\s{0,4}(?:\||\d?>)/);
  const asked: readonly string[] = (end === -1 ? command : command.slice(0, end)).match(WORD) ?? [];
  const start = asked.indexOf(program) + 1;
  let sought = LOOKS_FOR.test(program) ? 1 : 0;
  let files = 0;
  const shown = asked.map((word, i) => {
    // options and their numbers
    if (i < start || word.startsWith("-") || /^\+?\d{1,9}$/.test(word)) return word;
    if (sought-- > 0) return word;
    files++;
    if (word === ".") return folder;
    return /^[\w*?[{.@][^\s'"$~]{0,400}$/.test(word) ? `${folder}/${word.replace(/^\.\//, "")}` : word;
  });
  const all = program === "ls" || program === "ll" || (LOOKS_FOR.test(program) && asked.some((word) => /^-[a-zA-Z]{0,8}[rR]/.test(word)));
  return [...shown, ...(files === 0 && all ? [folder] : [])].join(" ") + (end === -1 ? "" : command.slice(end));
}

const CHANGE = /^cd(?:\s{1,8}(\S{1,200}))?$/;

/** The folder after this command; undefined if it is not known. The same one if the command does not change it. */
export function folderAfter(command: string, folder: string | undefined): string | undefined {
  const change = CHANGE.exec(command.trim());
  if (change === null) return folder;
  const [, to = "~"] = change;
  if (!/^[\w./@+-]{1,200}$/.test(to) || to === "-" || (!to.startsWith("/") && folder === undefined)) return undefined;
  const parts: string[] = [];
  for (const part of `${to.startsWith("/") ? "" : folder}/${to}`.split("/")) {
    if (part === "..") parts.pop();
    else if (part !== "" && part !== ".") parts.push(part);
  }
  return `/${parts.join("/")}`;
}
