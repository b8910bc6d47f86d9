import { defineConfig } from "vitest/config";

/** unit: no root, no browser; limits are generous because the machines are shared. lab: live kernel state, needs root; one file after the other, since its nodes see each other's processes. e2e: a real browser. */
export default defineConfig({
  test: {
    // one less than there are cores unless told: of two cores that would be one. The unit tests wait for processes now and then: `npm run test:unit` takes three
    maxWorkers: 2,
    projects: [
      {
        test: {
          name: "unit",
          // files of one worker share its modules: half of the processor's time went into loading the same ones for each
          isolate: false,
          setupFiles: "test/put-back.ts",
          globalSetup: "test/bundled-cli.ts",
          testTimeout: 120_000,
          hookTimeout: 120_000,
          include: ["test/**/*.test.ts"],
          exclude: ["test/lab/**", "test/e2e/**"],
        },
      },
      { test: { name: "lab", maxConcurrency: 6, include: ["test/lab/**/*.test.ts"], testTimeout: 180_000, hookTimeout: 60_000, fileParallelism: false } },
      { test: { name: "e2e", include: ["test/e2e/**/*.test.ts"], testTimeout: 120_000, hookTimeout: 60_000 } },
    ],
  },
});
