import type { Bundle, Importer } from "./bundle.ts";

/** Bundles of several nodes, unpacked side by side in one folder: what is in them must not be put together, nor all but the first be left out. */

/** Importers that find the nodes in their bundles themselves. */
const OF_MANY: ReadonlySet<string> = new Set(["aks-periscope", "cilium-sysdump", "cluster-dump", "must-gather", "node-logs"]);

/** One of them. `name`: the folder that it lies in. */
export interface Part {
  readonly name: string;
  readonly importer: Importer;
  readonly bundle: Bundle;
}

/** The folders that are bundles by themselves, if there are two or more. */
export function bundlesIn(bundle: Bundle, importers: readonly Importer[]): Part[] {
  const root = commonFolder(bundle.names);
  const folders = new Map<string, string[]>();
  for (const name of bundle.names) {
    const folder = name.slice(root.length).split("/", 1)[0] as string;
    if (name.length === root.length + folder.length) continue;
    const inside = folders.get(folder);
    if (inside !== undefined) inside.push(name);
    else if (folders.size === MAX_PARTS) return [];
    else folders.set(folder, [name]);
  }
  if (folders.size < 2) return [];
  const parts = [...folders].flatMap(([folder, names]): Part[] => {
    const inside = (name: string): boolean => name.startsWith(`${root}${folder}/`);
    // by what is in the folder: where it lies says nothing of its kind
    const own = names.map((name) => name.slice(root.length + folder.length + 1));
    const importer = importers.find((one) => !OF_MANY.has(one.id) && one.recognize(own) !== undefined);
    return importer === undefined ? [] : [{ name: folder, importer, bundle: { names, read: (wanted) => bundle.read((name) => inside(name) && wanted(name)) } }];
  });
  return parts.length < 2 ? [] : parts;
}

/** More folders than these are no nodes. */
const MAX_PARTS = 500;

/** The folders that all names begin with, "" or with `/` at its end. */
function commonFolder(names: readonly string[]): string {
  const [first = ""] = names;
  let end = first.lastIndexOf("/") + 1;
  for (const name of names) {
    while (end > 0 && !name.startsWith(first.slice(0, end))) end = end < 2 ? 0 : first.lastIndexOf("/", end - 2) + 1;
    if (end === 0) break;
  }
  return first.slice(0, end);
}
