import { readChatCommand } from "./chat-words.ts";
import type { Context, TriageResult } from "./context.ts";
import { historyMessage } from "./history.ts";
import { muteCommand } from "./mute.ts";
import { helpMessage, noteMessage } from "./note.ts";
import type { ChatCommand, CommandRequest, Message } from "./ports.ts";
import { rulesMessage } from "./rules-command.ts";
import { statusMessage } from "./status.ts";

/** A command that examines no node: worked out, and answered to the asker alone. Whatever happens, the person is told. */
export async function chatCommand(context: Context, request: CommandRequest): Promise<TriageResult> {
  const { durable, ports } = context;
  const { incident: run, requester, place, text } = request;
  const read = readChatCommand(text);
  try {
    // a step of its own: what was muted must not be muted again because an answer went astray
    const message = await durable.step("work", async () => (read.ok ? answer(context, request, read.command) : helpMessage(read.problem)));
    await durable.step("answer", async () => {
      await ports.chat.whisper(place, requester, message);
      return null;
    });
    return { outcome: read.ok ? read.command.name : "help" };
  } catch (error) {
    const problem = (error as Error).message;
    ports.log("error", "a command failed", { run, problem });
    await durable.step("tell-failure", async () => {
      await ports.chat.whisper(place, requester, noteMessage("warning", `"${text.slice(0, 80)}" did not work: ${problem}. Run id: ${run}`));
      return null;
    });
    return { outcome: "failed" };
  }
}

function answer(context: Context, request: CommandRequest, command: ChatCommand): Promise<Message> {
  switch (command.name) {
    case "status":
      return statusMessage(context, request);
    case "rules":
      return rulesMessage(context);
    case "history":
      return historyMessage(context, request, command.target);
    case "mute":
    case "unmute":
      return muteCommand(context, request, command);
  }
}
