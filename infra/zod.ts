import { array, boolean, enum as enumeration, int, number, object, string } from "zod";

const builders = { array, boolean, enum: enumeration, int, number, object, string };

/** What the schemas of facts are built of. A module of its own, so that the command can load it when the first schema is built (cli.ts). */
export const zod = (): typeof builders => builders;
