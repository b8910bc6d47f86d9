import type { Block, Element, Option } from "./block-schema.ts";

/** The elements of a block that a user can act on. */
export function elementsOf(one: Block): Element[] {
  if (one.type === "actions") return one.elements;
  if (one.type === "input") return [one.element];
  if (one.type === "section" && one.accessory !== undefined && one.accessory.type !== "image") return [one.accessory];
  return [];
}

/** All options an element offers, groups opened up. */
export function optionsOf(element: Element): readonly Option[] {
  if (!("options" in element || "option_groups" in element)) return [];
  const groups = "option_groups" in element ? (element.option_groups ?? []) : [];
  return [...(element.options ?? []), ...groups.flatMap((group) => group.options)];
}
