import { type Known, nothingKnown } from "../functions/rules/known.ts";
import { loadCatalogue } from "../functions/rules/load.ts";

/**
 * What a bundle adds to functions/rules/known.ts: the rules, fixes and collection runbooks of the repository, read and checked here, found there by their texts. What somebody
 * changes afterwards, or has in a folder of his own, is read as ever; so is what is wrong here.
 */
export function knownCatalogue(runbooks: string): string {
  const known: Known = nothingKnown();
  loadCatalogue(runbooks, { tolerant: true, known });
  const literal = (value: unknown): string => `JSON.parse(${JSON.stringify(JSON.stringify(value))})`;
  return [
    `for (const [key, value] of ${literal([...known.files])}) known.files.set(key, value);`,
    `for (const key of ${literal([...known.checked])}) known.checked.add(key);`,
  ].join("\n");
}
