import { z } from "zod";
import { defineFact, lines, UnparsedLines, type View } from "./fact.ts";
import { ipCommand, ROUTE_TABLES } from "./ip-command.ts";
import { nmcliDevices, nmcliFields } from "./nmcli.ts";
import { eachOnItsOwn } from "./parts.ts";
import { isPrompt } from "./paste.ts";
import { NO_TABLE } from "./route.ts";

/**
 * Routing tables that were asked for by their name or number and have no route: a listing without a line, or the kernel's word that there is no such table.
 *
 *     Error: ipv4: FIB table does not exist.
 */
const Empty = z.object({ line: z.int(), family: z.enum(["ipv4", "ipv6"]), table: z.string() });
const EmptyTables = z.object({
  rows: z.array(Empty),
  /** Families of which every table was listed at once (`ip route show table all`): one without a route in it is empty. Two tables listed by their names are not all. */
  every: z.array(z.object({ line: z.int(), family: z.enum(["ipv4", "ipv6"]) })),
  /**
   * Families of which the default routes of table main were asked for alone (`ip route show default`, `ip route | grep default`), and none was printed; or of which
   * NetworkManager shows a device that has addresses and no gateway (`nmcli device show`), and no other that has one.
   */
  noDefault: z.array(z.object({ line: z.int(), family: z.enum(["ipv4", "ipv6"]) })),
});

const EVERY = new Set(["all", "0"]);

/** The table that a command lists as a whole, and nothing else. */
function askedTable(argv: readonly string[]): { family: "ipv4" | "ipv6"; table: string } | undefined {
  const command = ipCommand(argv);
  const [word, value] = command?.filters ?? [];
  if (command?.object !== "route" || command.json || command.filters.length !== 2 || word !== "table" || value === undefined || value === "cache")
    return undefined;
  if (EVERY.has(value)) return undefined;
  return { family: command.family ?? "ipv4", table: ROUTE_TABLES.get(value) ?? value };
}

/** The families of which a command lists every table. */
function everyTable(argv: readonly string[]): readonly ("ipv4" | "ipv6")[] {
  const command = ipCommand(argv);
  const [word, value] = command?.filters ?? [];
  if (command?.object !== "route" || command.filters.length !== 2 || word !== "table" || value === undefined || !EVERY.has(value)) return [];
  return command.family === undefined ? ["ipv4", "ipv6"] : [command.family];
}

/** The family of which a command lists the default routes of table main and nothing else. */
function askedDefault(argv: readonly string[], search: string | undefined): "ipv4" | "ipv6" | undefined {
  const [program, ...options] = argv;
  // `route -n | grep ^0.0.0.0`, `netstat -rn | grep ^0.0.0.0`
  if (
    search !== undefined &&
    OLD_SEARCH.test(search) &&
    ((program === "route" && options.join() === "-n") || (program === "netstat" && /^-(?:rn|nr)$/.test(options.join())))
  )
    return "ipv4";
  const command = ipCommand(argv);
  if (command?.object !== "route" || command.json) return undefined;
  const [only, ...more] = command.filters;
  const asked = search === undefined ? only !== undefined && DEFAULT.test(only) : only === undefined && SEARCH.test(search);
  return asked && more.length === 0 ? (command.family ?? (only === "::/0" ? "ipv6" : "ipv4")) : undefined;
}
const DEFAULT = /^(?:default|0\.0\.0\.0\/0|::\/0)$/;
const OLD_SEARCH = /^\^?0(?:\\?\.0){3}$/;
const SEARCH = /^["']?\^?default["']?$/;

export const emptyTable = defineFact({
  id: "empty-table",
  title: "Routing tables that were asked for and are empty, and whether all were asked for (pasted only)",
  commands: [],
  recognize(argv, search): View | undefined {
    const devices = nmcliDevices(argv);
    if (devices !== undefined)
      return search === undefined ? { format: "nmcli", complete: true, scope: `ipv4 default ${devices}`, rank: 0, hint: true } : undefined;
    const family = askedDefault(argv, search);
    if (family !== undefined) return { format: "default", complete: true, scope: `${family} default`, rank: 1 };
    const asked = search === undefined ? askedTable(argv) : undefined;
    const every = search === undefined ? everyTable(argv) : [];
    if (every.length > 0) return { format: "all", complete: true, scope: `${every.join(" ")} all`, rank: 1 };
    return asked === undefined ? undefined : { format: "text", complete: true, scope: `${asked.family} ${asked.table}`, rank: 1 };
  },
  schema: EmptyTables,
  // where the table does not exist the tool fails
  answered: () => true,
  parse({ text, argv, view, stderr, exitCode, truncated }) {
    if (view.format === "nmcli") return new UnparsedLines().with({ rows: [], every: [], noDefault: gatewayless(text, argv) });
    if (view.format === "default") {
      // grep ends with 1 where it found nothing
      const none =
        (exitCode ?? 0) <= 1 && stderr.trim() === "" && truncated !== true && [...lines(text)].every(({ text: said }) => said.trim() === "" || isPrompt(said));
      const family = view.scope.startsWith("ipv6") ? ("ipv6" as const) : ("ipv4" as const);
      return new UnparsedLines().with({ rows: [], every: [], noDefault: none ? [{ line: 1, family }] : [] });
    }
    if (view.format === "all") {
      const listed = view.complete && truncated !== true && text.trim() !== "" && (exitCode ?? 0) === 0;
      return new UnparsedLines().with({ rows: [], every: listed ? everyTable(argv).map((family) => ({ line: 1, family })) : [], noDefault: [] });
    }
    const asked = askedTable(argv);
    const said = [...lines(text)].filter(({ text: content }) => content.trim() !== "" && !isPrompt(content));
    const missing = said.find(({ text: content }) => NO_TABLE.test(content.trim()));
    const whole = said.every(({ text: content }) => NO_TABLE.test(content.trim()));
    // a tool that failed for another reason printed nothing either
    const answered = missing !== undefined || exitCode === undefined || exitCode === 0 || stderr.slice(0, 400).includes("FIB table does not exist");
    const rows = asked !== undefined && whole && answered && view.complete && truncated !== true ? [{ line: missing?.line ?? 1, ...asked }] : [];
    return new UnparsedLines().with({ rows, every: [], noDefault: [] });
  },
  ...eachOnItsOwn,
});

/** `IP4.GATEWAY: --` of a device with an address, where no device has a gateway or a default route. */
function gatewayless(text: string, argv: readonly string[]): z.infer<typeof EmptyTables>["noDefault"] {
  // what is no field the facts of routes and addresses tell of
  const fields = nmcliFields(text, argv, new UnparsedLines()).filter((field) => field.interface !== "lo");
  const addressed = new Set(fields.flatMap((field) => (field.key.startsWith("IP4.ADDRESS") && !field.value.startsWith("169.254.") ? [field.interface] : [])));
  const routed = fields.some(
    ({ key, value }) => (key === "IP4.GATEWAY" && /^\d/.test(value)) || (key.startsWith("IP4.ROUTE") && /^dst = 0\.0\.0\.0\/[01],/.test(value)),
  );
  const none = routed ? undefined : fields.find(({ key, value, interface: name }) => key === "IP4.GATEWAY" && value === "--" && addressed.has(name));
  return none === undefined ? [] : [{ line: none.line, family: "ipv4" }];
}
