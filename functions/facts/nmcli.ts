import { isPromptLine, operands } from "./command.ts";
import { lines, type UnparsedLines } from "./fact.ts";

/** One line of `nmcli device show`: what NetworkManager knows of a device, its own or not. */
export interface NmcliField {
  readonly line: number;
  readonly interface: string;
  /** "IP4.ADDRESS[1]", "GENERAL.STATE", … */
  readonly key: string;
  readonly value: string;
}

// "IP4.ROUTE[2]:      dst = 0.0.0.0/0, nh = 10.31.0.1, mt = 100", with -t "IP4.ROUTE[2]:dst = 0.0.0.0/0, …"
const FIELD = /^([A-Z][A-Z0-9-]{1,30}\.[A-Z][A-Z0-9_-]{1,40}(?:\[\d{1,4}\])?):[ \t]{0,60}(.{0,2000})$/;
const VALUED: ReadonlySet<string> = new Set(["-f", "--fields", "-m", "--mode", "-c", "--colors", "-e", "--escape", "-w", "--wait"]);

/** "device show", with the device's name behind it if one was asked for; undefined for another question of nmcli's, and for values without their names (-g). */
export function nmcliDevices(argv: readonly string[]): string | undefined {
  if (argv[0] !== "nmcli" || argv.includes("-g") || argv.includes("--get-values")) return undefined;
  const [object = "", verb = "", ...rest] = operands(argv, VALUED);
  if (object === "" || !"device".startsWith(object) || verb.length < 2 || !"show".startsWith(verb) || rest.length > 1) return undefined;
  return ["device show", ...rest].join(" ");
}

/** The lines of `nmcli device show`, each with its device: `GENERAL.DEVICE` begins one, unless only one was asked for and this field was not. */
export function nmcliFields(text: string, argv: readonly string[], unparsed: UnparsedLines): NmcliField[] {
  const fields: NmcliField[] = [];
  let device = /^device show (\S{1,15})$/.exec(nmcliDevices(argv) ?? "")?.[1];
  for (const { line, text: content } of lines(text)) {
    const [, key, value = ""] = FIELD.exec(content.trim()) ?? [];
    if (key === undefined) {
      if (!isPromptLine(content) && !content.startsWith("Error: ")) unparsed.add(line, content);
      continue;
    }
    // -t writes a colon in a value as \:
    const said = value.replaceAll("\\:", ":").trim();
    if (key === "GENERAL.DEVICE") device = said;
    if (device !== undefined) fields.push({ line, interface: device, key, value: said });
  }
  return fields;
}
