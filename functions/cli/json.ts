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
      const rows = new Rows();
      for (const row of list as unknown[]) {
        text += between;
        text += rows.json(row);
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

/** Writes the rows of one list. What a field was in the row before it mostly is again (a table, a protocol, an interface), so its text is kept. */
class Rows {
  readonly #names: string[] = [];
  readonly #values: unknown[] = [];
  readonly #texts: string[] = [];

  json(row: unknown): string {
    if (typeof row !== "object" || row === null || Array.isArray(row)) return asciiJson(row);
    let text = "";
    let at = 0;
    const fields = row as Readonly<Record<string, unknown>>;
    for (const name in fields) {
      const field = fields[name];
      if (field === undefined || field === false || field === "" || (Array.isArray(field) && field.length === 0)) continue;
      text += at === 0 ? "{" : ",";
      if (typeof field === "number" && Number.isFinite(field)) text += `"${name}":${field}`;
      else {
        if (this.#names[at] !== name || this.#values[at] !== field) {
          this.#names[at] = name;
          this.#values[at] = field;
          this.#texts[at] = `"${name}":${typeof field === "string" && PLAIN.test(field) ? `"${field}"` : asciiJson(field)}`;
        }
        text += this.#texts[at];
      }
      at++;
    }
    return at === 0 ? "{}" : `${text}}`;
  }
}

const asciiJson = (value: unknown): string =>
  (JSON.stringify(value) ?? "null").replaceAll(/[^ -~]/g, (unit) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`);
