/** Strings that JSON writes as they are, and that any terminal just shows. */
const PLAIN = /^[ !#-[\]-~]*$/;
/** Written at once: less would be a system call a row, more would hold the whole text. */
const CHUNK = 1 << 18;

/**
 * The JSON of a fact's value, in pieces of about 256 KB: lists of flat rows, of which what is false, empty or undefined is left out (two thirds of the text of a
 * firewall rule). Other values are written as they are. All of it is printable ASCII: what is not stands there as `\u001b`, which means the same.
 */
export function* compactJson(value: Readonly<Record<string, unknown>>): Generator<Buffer> {
  let text = "{";
  let separator = "";
  for (const [name, list] of Object.entries(value)) {
    text += `${separator}${asciiJson(name)}:`;
    separator = ",";
    if (!Array.isArray(list)) text += asciiJson(list);
    else {
      text += "[";
      let between = "";
      for (const row of list as unknown[]) {
        text += between;
        text += rowJson(row);
        between = ",";
        if (text.length > CHUNK) {
          yield Buffer.from(text, "latin1");
          text = "";
        }
      }
      text += "]";
    }
  }
  yield Buffer.from(`${text}}`, "latin1");
}

function rowJson(row: unknown): string {
  if (typeof row !== "object" || row === null || Array.isArray(row)) return asciiJson(row);
  let text = "";
  const fields = row as Readonly<Record<string, unknown>>;
  for (const name in fields) {
    const field = fields[name];
    if (field === undefined || field === false || field === "" || (Array.isArray(field) && field.length === 0)) continue;
    text += text === "" ? '{"' : ',"';
    text += name;
    if (typeof field === "string" && PLAIN.test(field)) {
      text += '":"';
      text += field;
      text += '"';
    } else {
      text += '":';
      text += typeof field === "number" && Number.isFinite(field) ? field : asciiJson(field);
    }
  }
  return text === "" ? "{}" : `${text}}`;
}

const asciiJson = (value: unknown): string =>
  (JSON.stringify(value) ?? "null").replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
