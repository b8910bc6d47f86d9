import { rmSync } from "node:fs";
import { resolve } from "node:path";
import { EngineLockedError } from "../local/engine.ts";
import { startLocal } from "../local/main.ts";
import { SocketModeError, startSocketMode } from "../local/socket-mode.ts";
import { CommandError, UsageError } from "./errors.ts";

/** `netcheck start`: serves local mode until it is stopped; with `once`, runs one command and prints its thread. `serve`, `connect`: what brings local mode up. */
export async function start(
  options: { once?: string; port: number; directory: string; fresh?: boolean; config?: string },
  serve: typeof startLocal = startLocal,
  connect: typeof startSocketMode = startSocketMode,
): Promise<void> {
  const once = options.once;
  if (!(Number.isInteger(options.port) && options.port >= 0 && options.port < 65_536)) throw new UsageError("--port takes a number from 0 to 65535");
  if (once !== undefined && !/^\s*\/netcheck(?:\s|$)/.test(once))
    throw new UsageError(`--once takes a command as it is typed in the chat, such as "/netcheck node1", not "${once}"`);
  const [botToken, appToken] = [process.env["SLACK_BOT_TOKEN"], process.env["SLACK_APP_TOKEN"]];
  if (once === undefined && botToken !== undefined && appToken !== undefined) {
    process.stdout.write("netcheck connects to Slack, because SLACK_BOT_TOKEN and SLACK_APP_TOKEN are set\n");
    const real = await connect({
      directory: resolve(options.directory),
      fresh: options.fresh === true,
      ...(options.config === undefined ? {} : { config: resolve(options.config) }),
      botToken,
      appToken,
    }).catch((cause: NodeJS.ErrnoException) => {
      // what still tries to connect must not keep the process
      if (cause instanceof SocketModeError) setTimeout(() => process.exit(), LAST_WORDS_MS).unref();
      throw expected(cause, options.directory);
    });
    process.stdout.write("netcheck is connected to Slack: type /netcheck in a channel that it is in\n");
    const leave = (): void => void real.close().then(() => process.exit(0));
    process.once("SIGINT", leave).once("SIGTERM", leave);
    return;
  }
  // one command must not meet the traces of another
  const directory = once === undefined ? resolve(options.directory) : resolve(options.directory, `once-${process.pid}`);
  const forget = (): void => {
    if (once !== undefined) rmSync(directory, { recursive: true, force: true });
  };
  if (once !== undefined) {
    // also where nobody reads the end of the thread any more (| head), or somebody stops it: both end the process
    process.once("exit", forget);
    process.once("SIGINT", () => process.exit(130)).once("SIGTERM", () => process.exit(143));
  }
  const local = await serve({
    directory,
    fresh: once !== undefined || options.fresh === true,
    port: once === undefined ? options.port : 0,
    ...(options.config === undefined ? {} : { config: resolve(options.config) }),
  }).catch((cause: NodeJS.ErrnoException) => {
    forget();
    if (cause.code === "EADDRINUSE") {
      const taken = `port ${options.port} is taken; stop what listens there, or say --port`;
      throw new CommandError(once === undefined && options.port !== 0 ? taken : NO_PORT, { cause });
    }
    if (cause.code === "EACCES" && cause.syscall === "listen") throw new CommandError(`port ${options.port} may not be listened on; say --port`, { cause });
    throw expected(cause, options.directory);
  });
  if (once === undefined) {
    process.stdout.write(`netcheck is ready: open ${local.url} and type /netcheck node1\n`);
    const stop = (): void => void local.close().then(() => process.exit(0));
    process.once("SIGINT", stop).once("SIGTERM", stop);
    return;
  }
  try {
    const [command = "", ...words] = once.trim().split(/\s+/);
    const outcome = await local.workspace.command({ user: "U_ALICE", channel: "C_INCIDENTS", command, text: words.join(" ") });
    if (!outcome.ok) throw new CommandError(outcome.error ?? "the command was refused");
    await local.engine.idle();
    await local.workspace.idle();
    const thread = local.workspace.transcript("C_INCIDENTS", undefined, "U_ALICE");
    if (thread === "")
      process.stderr.write(`netcheck: ${once.trim()} is answered with a window, which only the page shows: run netcheck start and ask there\n`);
    else process.stdout.write(`${thread}\n`);
    if ((await local.store.incidents(1)).length > 0)
      process.stderr.write("netcheck: --once keeps nothing: to approve a fix or record this incident, run netcheck start and ask again there\n");
  } finally {
    await local.close();
    forget();
  }
}

/** What may go wrong in whatever way it is started, in words for people; any other error as it is. */
function expected(cause: NodeJS.ErrnoException, directory: string): Error {
  if (NO_FOLDER.has(cause.code ?? ""))
    return new CommandError(`${directory}: local mode cannot keep its data there: ${cause.message}. Name another --directory`, { cause });
  if (cause instanceof EngineLockedError) return new CommandError(`${cause.message}. Stop the other netcheck, or name another --directory`, { cause });
  return cause instanceof SocketModeError ? new CommandError(cause.message, { cause }) : cause;
}

/** For what is printed to be read before the process ends. */
const LAST_WORDS_MS = 1000;

/** What the system says of a folder that cannot be made or written. */
const NO_FOLDER = new Set(["EACCES", "EEXIST", "ENOTDIR", "EPERM", "EROFS", "ENOSPC"]);
const NO_PORT = "this machine has no free local port: too many connections hold one. See net.ipv4.ip_local_port_range and `ss -s`";
