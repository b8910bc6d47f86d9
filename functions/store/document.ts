/** Throws where a document's kind or key would not do in every store. */
export function checkDocument(kind: string, key: string): void {
  if (!/^[a-z-]{1,40}$/.test(kind)) throw new RangeError(`store: ${JSON.stringify(kind)} is no kind of document: a kind has 1 to 40 of a-z and "-"`);
  if (key.length === 0 || key.length > 500) throw new RangeError(`store: the key of a document has 1 to 500 characters; this one has ${key.length}`);
}
