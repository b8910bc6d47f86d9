/** Strings that JSON writes as they are: nothing in them is escaped, and no half of a pair. */
const PLAIN = /^[ !#-[\]-\ud7ff\ue000-\uffff]*$/;
/** Written at once: less would be a system call a row, more would hold the whole text. */
const CHUNK = 1 << 18;

/**
 * The JSON of a fact's value, in pieces of about 256 KB: lists of flat rows, of which what is false, empty or undefined is left out (two thirds of the text of a
 * firewall rule). Other values are written as they are.
 */
export function* compactJson(value: Readonly<Record<string, unknown>>): Generator<string> {
  let text = "{";
  let separator = "";
  for (const [name, list] of Object.entries(value)) {
    text += `${separator}${JSON.stringify(name)}:`;
    separator = ",";
    if (!Array.isArray(list)) text += JSON.stringify(list) ?? "null";
    else {
      text += "[";
      let between = "";
      for (const row of list as unknown[]) {
        text += between + rowJson(row);
        between = ",";
        if (text.length > CHUNK) {
          yield text;
          text = "";
        }
      }
      text += "]";
    }
  }
  yield `${text}}`;
}

function rowJson(row: unknown): string {
  if (typeof row !== "object" || row === null || Array.isArray(row)) return JSON.stringify(row) ?? "null";
  let text = "";
  const fields = row as Readonly<Record<string, unknown>>;
  for (const name in fields) {
    const field = fields[name];
    if (field === undefined || field === false || field === "" || (Array.isArray(field) && field.length === 0)) continue;
    text += `${text === "" ? "{" : ","}"${name}":`;
    if (typeof field === "string" && PLAIN.test(field)) text += `"${field}"`;
    else text += typeof field === "number" && Number.isFinite(field) ? field : (JSON.stringify(field) ?? "null");
  }
  return text === "" ? "{}" : `${text}}`;
}
