import { writeFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { iamPage } from "./iam-page.ts";
import { iamSurface } from "./iam-surface.ts";
import { sampleMain, sampleMember } from "./sample.ts";

/** `npm run docs:iam`: writes docs/generated/iam.md. */
const page = iamPage(
  new Map([
    ["Main stack", iamSurface(sampleMain())],
    ["Member stack", iamSurface(sampleMember())],
  ]),
);
writeFileSync(fileURLToPath(new URL("../docs/generated/iam.md", import.meta.url)), page);
