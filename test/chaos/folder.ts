import { existsSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

/**
 * A folder for a run's files, in memory where there is some: a killed process leaves the same there as on a disk (what only a power cut takes is another
 * matter: `PRAGMA synchronous = FULL`), and hundreds of runs do not wait for a disk.
 */
export const scratchFolder = (): string => mkdtempSync(join(existsSync("/dev/shm") ? "/dev/shm" : tmpdir(), "netcheck-chaos-"));
