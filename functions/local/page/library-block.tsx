import type { ComponentProps, ReactNode } from "react";
import { Message } from "slack-blocks-to-jsx";
import type { Block } from "../../slack/block-schema.ts";

type LibraryBlocks = ComponentProps<typeof Message>["blocks"];

/** One block that the page does not draw itself. Same schema on both sides, but the library has its own types for it. */
export default function LibraryBlock({ block }: { block: Block }): ReactNode {
  const theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  return <Message blocks={[block] as unknown as LibraryBlocks} name="" logo="/assets/icon.svg" theme={theme} withoutWrapper />;
}
