import { createHash } from "node:crypto";

/**
 * Whether a case is tried: there are too many for every run, and each says much the same as its neighbours. One in `of`, chosen by what it is, so that it is
 * the same ones each time; all of them with CASES=all in the environment.
 */
export const taken = (of: number, ...what: readonly (string | number)[]): boolean =>
  process.env["CASES"] === "all" || createHash("sha1").update(what.join("\n")).digest().readUInt16BE(0) % of === 0;
