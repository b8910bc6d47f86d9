import { z } from "zod";
import { isPromptLine } from "./command.ts";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { jsonMembers } from "./json-members.ts";
import { withoutPrompts } from "./paste.ts";

/**
 * What the cloud says of this machine, as people paste it: the metadata service of EC2. netcheck does not ask it itself: on a machine without one the
 * question hangs.
 *
 *     $ curl -s http://169.254.169.254/latest/meta-data/instance-type
 *     m5.large
 */
const Item = z.object({
  line: z.int(),
  /** Below meta-data/, or the field of the identity document: "instance-type", "network/interfaces/macs/". */
  path: z.string(),
  /** Of a path that ends with "/": one name of the listing. */
  value: z.string(),
});
const InstanceMetadata = z.object({ rows: z.array(Item) });
type Item = z.infer<typeof Item>;

const URL = /^(?:http:\/\/)?(?:169\.254\.169\.254|\[fd00:ec2::254\])\/(?:latest|\d{4}-\d\d-\d\d)\/(?:meta-data\/?|dynamic\/)(.{0,200})$/;
const FIELD = /^([a-z][a-z0-9-]{1,60}): {1,4}(.{1,400})$/;
const ERROR = /<\?xml|<!DOCTYPE|<html|404 - Not Found|Not Found|401 - Unauthorized|<\/?(?:head|body|title|h1|p|div)/i;
// keys are no facts
const SECRET = /credentials|identity-credentials|public-keys/;

export const instanceMetadata = defineFact({
  id: "instance-metadata",
  title: "What the metadata service of EC2 says of this machine (read only where pasted)",
  commands: [],
  recognize(argv): View | undefined {
    if (argv[0] === "ec2-metadata" || argv[0] === "ec2metadata") {
      const all = argv.length === 1 || argv.includes("--all");
      return { format: "fields", complete: all, scope: "", rank: 1 };
    }
    if (argv[0] !== "curl" && argv[0] !== "wget") return undefined;
    const path = pathOf(argv);
    if (path === undefined || SECRET.test(path) || /(?:^|\s)PUT(?:\s|$)/.test(argv.join(" "))) return undefined;
    return { format: path.startsWith("instance-identity/document") ? "document" : "value", complete: false, scope: path, rank: 1 };
  },
  schema: InstanceMetadata,
  parse({ text, argv, view }) {
    const unparsed = new UnparsedLines();
    const rows: Item[] = [];
    if (view.format === "document") {
      for (const member of jsonMembers(withoutPrompts(text), unparsed)) {
        if (typeof member.value === "string")
          rows.push(Object.assign({ line: member.line, path: member.name, value: member.value.slice(0, 400) }, { text: member.text }));
      }
      return unparsed.with({ rows });
    }
    const path = pathOf(argv) ?? "";
    for (const { line, text: raw } of lines(text)) {
      if (isPromptLine(raw)) continue;
      const field = view.format === "fields" ? FIELD.exec(raw) : null;
      if (field !== null) {
        if (!SECRET.test(field[1] as string)) rows.push({ line, path: field[1] as string, value: field[2] as string });
      } else if (view.format === "value" && !ERROR.test(raw) && raw.length <= 400) rows.push({ line, path, value: raw.trim() });
      else unparsed.add(line, raw);
    }
    return unparsed.with({ rows });
  },
});

function pathOf(argv: readonly string[]): string | undefined {
  for (const word of argv) {
    const match = URL.exec(word);
    if (match !== null) return match[1] as string;
  }
  return undefined;
}
