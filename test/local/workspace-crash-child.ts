/**
 * A workspace that is killed: `node workspace-crash-child.ts <file> <app url> <die at>`. Serves the workspace in that file, prints `<url> <bot token>` and
 * runs until it is killed; with `die at`, by its own hand in the middle of the message whose text that is.
 */
import { startServer } from "../../functions/local/server.ts";
import { Workspace } from "../../functions/local/workspace.ts";

const [file = "", appUrl = "", dieAt = ""] = process.argv.slice(2);
const workspace = new Workspace({ file });
workspace.chat.onChange(() => {
  const last = workspace.chat.messages("C_INCIDENTS").at(-1);
  if (dieAt !== "" && last?.text === dieAt) process.kill(process.pid, "SIGKILL");
});
const server = await startServer({ workspace, appUrl });
process.stdout.write(`${server.url} ${workspace.botToken}\n`);
