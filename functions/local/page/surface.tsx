import { type ReactNode, useState } from "react";
import type { Block, Element } from "../../slack/block-schema.ts";
import { elementsOf } from "../../slack/elements.ts";
import { Blocks, keyOf, SurfaceContext } from "./blocks.tsx";
import { send } from "./client.ts";
import { Problem } from "./problem.tsx";

/** What was entered on a surface, by `blockId actionId`. */
export type Entered = ReadonlyMap<string, string | readonly string[]>;

interface SurfaceProps {
  readonly blocks: readonly Block[];
  readonly user: string;
  /** Where these blocks are: fields of a click. */
  readonly place: { readonly channel: string; readonly ts: string } | { readonly viewId: string };
  /** Inputs kept by the surrounding modal; a message keeps its own. */
  readonly entered?: Entered;
  readonly onEnter?: (entered: Entered) => void;
  readonly errors?: Readonly<Record<string, string>>;
}

/** Blocks with working buttons and inputs. What the app does not answer is said below them. */
export function LiveBlocks({ blocks, user, place, entered: given, onEnter, errors = {} }: SurfaceProps): ReactNode {
  const [own, setOwn] = useState<Entered>(new Map());
  const [pending, setPending] = useState<string>();
  const [problem, setProblem] = useState<string>();
  const entered = given ?? own;
  const act = async (block: Block, element: Element, value: string | readonly string[] | undefined, now: Entered) => {
    setPending(keyOf(block, element));
    setProblem(undefined);
    const outcome = await send("action", { user, ...place, blockId: block.block_id, actionId: element.action_id, value, values: valuesOf(blocks, now) });
    setPending(undefined);
    if (!outcome.ok) setProblem(outcome.error);
  };
  const surface = {
    entered,
    pending,
    errors,
    press: (block: Block, element: Element) => void act(block, element, undefined, entered),
    enter: (block: Block, element: Element, value: string | readonly string[]) => {
      const now = new Map(entered);
      if (element.type !== "overflow") now.set(keyOf(block, element), value);
      (onEnter ?? setOwn)(now);
      // An input waits for Submit; anything else is told to the app at once.
      if (block.type !== "input") void act(block, element, value, now);
    },
  };
  return (
    <SurfaceContext value={surface}>
      <Blocks blocks={blocks} />
      <Problem text={problem} />
    </SurfaceContext>
  );
}

/** What was entered, as the server wants it: by block id, then by action id. */
export function valuesOf(blocks: readonly Block[], entered: Entered): Record<string, Record<string, string | readonly string[]>> {
  const values: Record<string, Record<string, string | readonly string[]>> = {};
  for (const block of blocks) {
    for (const element of elementsOf(block)) {
      const value = entered.get(keyOf(block, element));
      if (value !== undefined) values[block.block_id ?? ""] = { ...values[block.block_id ?? ""], [element.action_id ?? ""]: value };
    }
  }
  return values;
}
