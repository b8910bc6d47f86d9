import { afterAll, vi } from "vitest";

/**
 * The files of one worker share its process and modules: what a file changes there is put back behind it. Run before each file. A module that is exchanged (`vi.mock`)
 * would stay so for the next file: hand over what is to be exchanged instead.
 */
const before = { ...process.env };
afterAll(() => {
  vi.useRealTimers();
  vi.restoreAllMocks();
  vi.unstubAllEnvs();
  vi.unstubAllGlobals();
  for (const name of Object.keys(process.env)) if (before[name] === undefined) delete process.env[name];
  Object.assign(process.env, before);
});
