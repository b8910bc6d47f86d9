/** What a terminal would act on: control characters but line ends and tabs, direction overrides, zero-width marks, and the separators that only look like line ends. */
const ACTIVE = /(?![\n\t])[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/gu;

/** Anything but what every terminal just shows. Nearly all that is printed has none of it, and this is found in a tenth of the time. */
const UNUSUAL = /[^\n\t -~]/;

const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;

/**
 * A text that a terminal only shows: whatever a node, a file or its name holds, no colour, cursor, title or clipboard is changed, and nothing is hidden or
 * turned around. What would do so stands there as `\u001b`: in a sentence a person sees it, in a JSON string it means the same as before.
 */
export const harmless = (text: string): string =>
  UNUSUAL.test(text) ? text.replace(ACTIVE, (character) => [...Array(character.length).keys()].map((i) => escaped(character.charAt(i))).join("")) : text;

/** All that is written to the stream from now on is {@link harmless}; bytes go through as they are. */
export function guard(stream: Pick<NodeJS.WriteStream, "write">): void {
  const write = stream.write.bind(stream) as (chunk: unknown, ...rest: unknown[]) => boolean;
  stream.write = (chunk: unknown, ...rest: unknown[]): boolean => write(typeof chunk === "string" ? harmless(chunk) : chunk, ...rest);
}
