// The least that Node can do with a listing: the words of each line, as JSON. What is faster than this does not look at the text. Argument: a file.
import { readFileSync } from "node:fs";

const text = readFileSync(process.argv[2], "latin1");
let out = "[";
for (let start = 0; start < text.length; ) {
  let end = text.indexOf("\n", start);
  if (end === -1) end = text.length;
  let words = "";
  for (let at = start; at < end; ) {
    while (at < end && text.charCodeAt(at) === 32) at++;
    const from = at;
    while (at < end && text.charCodeAt(at) !== 32) at++;
    if (at > from) words += `${words === "" ? "" : ","}"${text.slice(from, at)}"`;
  }
  out += `${out.length > 1 ? "," : ""}[${words}]`;
  if (out.length > 1 << 18) {
    process.stdout.write(out);
    out = "";
  }
  start = end + 1;
}
process.stdout.write(`${out}]\n`);
