import { type KeyboardEvent, type ReactNode, useContext, useEffect, useId, useRef, useState } from "react";
import type { WorkspaceState } from "../workspace.ts";
import { send } from "./client.ts";
import { Icon } from "./icons.tsx";
import { Directory } from "./rich-text.tsx";

interface Suggestion {
  readonly name: string;
  readonly description: string;
  /** The whole text once it is taken. */
  readonly text: string;
  /** Enter takes it without being asked. A target is only taken with Tab or the arrows: what was typed may be meant as it is. */
  readonly eager?: boolean;
}

/** Where messages and commands are typed. Suggests the command, people and targets; arrows choose, Tab or Enter takes, Escape closes. */
export function Composer({ channel, threadTs, placeholder }: { channel: string; threadTs?: string; placeholder: string }): ReactNode {
  const directory = useContext(Directory);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState<number>();
  const [closed, setClosed] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const field = useRef<HTMLTextAreaElement>(null);
  const listId = useId();
  const suggestions = directory === undefined || closed ? [] : suggest(text, directory, threadTs !== undefined);
  const at = chosen ?? (suggestions[0]?.eager === true ? 0 : -1);
  const current = suggestions[Math.min(at, suggestions.length - 1)];

  // biome-ignore lint/correctness/useExhaustiveDependencies: the height follows the text.
  useEffect(() => {
    const area = field.current;
    if (area === null) return;
    area.style.height = "auto";
    area.style.height = `${Math.min(area.scrollHeight, 200)}px`;
  }, [text]);

  const type = (now: string) => {
    setText(now);
    setChosen(undefined);
    setClosed(false);
    setProblem(undefined);
  };
  const take = (suggestion: Suggestion) => {
    type(suggestion.text);
    field.current?.focus();
  };
  const submit = async () => {
    const said = text.trim();
    if (said === "" || busy || directory === undefined) return;
    const command = /^(\/\S+)\s*(.*)$/s.exec(said);
    if (command !== null && threadTs !== undefined) {
      setProblem(`${command[1]} is not supported in threads, as in Slack. Mention @${directory.app.name} instead.`);
      return;
    }
    if (command !== null && command[1] !== directory.command.name) {
      setProblem(`${command[1]} is not a command here. Try ${directory.command.name} help.`);
      return;
    }
    setBusy(true);
    setText("");
    const outcome =
      command === null
        ? await send("message", { user: directory.me, channel, text: said, threadTs })
        : await send("command", { user: directory.me, channel, command: command[1], text: command[2] ?? "" });
    setBusy(false);
    if (outcome.ok) return;
    setProblem(outcome.error);
    // As Slack does: what failed stays to be sent again.
    if (command !== null) setText((now) => (now === "" ? said : now));
  };
  const first = current ?? suggestions[0];
  const onKeyDown = (event: KeyboardEvent) => {
    const move = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (suggestions.length > 0 && move !== undefined) {
      event.preventDefault();
      setChosen(at < 0 && move < 0 ? suggestions.length - 1 : (at + move + suggestions.length) % suggestions.length);
    } else if (suggestions.length > 0 && event.key === "Escape") {
      event.preventDefault();
      setClosed(true);
    } else if (first !== undefined && event.key === "Tab" && !event.shiftKey && first.text !== text) {
      event.preventDefault();
      take(first);
    } else if (current !== undefined && event.key === "Enter" && current.text.trimEnd() !== text.trimEnd()) {
      event.preventDefault();
      take(current);
    } else if (event.key === "Enter" && !event.shiftKey && !event.nativeEvent.isComposing) {
      event.preventDefault();
      void submit();
    }
  };
  return (
    <div className="composer">
      {suggestions.length === 0 ? null : (
        <div className="suggestions" role="listbox" id={listId} aria-label="Suggestions">
          {suggestions.map((one, index) => (
            // biome-ignore lint/a11y/useKeyWithClickEvents: the text field has the keys (arrows, Tab, Enter).
            <div
              key={one.name}
              id={`${listId}-${index}`}
              role="option"
              tabIndex={-1}
              aria-selected={one === current}
              onMouseDown={(event) => event.preventDefault()}
              onClick={() => take(one)}
            >
              <b>{one.name}</b> <span className="faint">{one.description}</span>
            </div>
          ))}
        </div>
      )}
      {problem === undefined ? null : (
        <p className="error" role="alert">
          {problem}
        </p>
      )}
      <div className="composer-box">
        <textarea
          ref={field}
          rows={1}
          value={text}
          placeholder={placeholder}
          aria-label={placeholder}
          role="combobox"
          aria-autocomplete="list"
          aria-expanded={suggestions.length > 0}
          aria-controls={listId}
          aria-activedescendant={current === undefined ? undefined : `${listId}-${suggestions.indexOf(current)}`}
          onChange={(event) => type(event.target.value)}
          onKeyDown={onKeyDown}
          spellCheck={false}
        />
        <button type="button" className="send" aria-label="Send" disabled={busy || text.trim() === ""} onClick={() => void submit()}>
          {busy ? <span className="spinner" /> : <Icon name="send" />}
        </button>
      </div>
    </div>
  );
}

/** What could be meant: the command while its name is typed, a target behind it or behind a mention of the app, a name behind an @. */
function suggest(text: string, directory: WorkspaceState, inThread: boolean): readonly Suggestion[] {
  const { command, app } = directory;
  if (/^\/\S*$/.test(text) && !inThread && command.name.startsWith(text)) {
    return [{ name: `${command.name} ${command.usage}`, description: command.description, text: `${command.name} `, eager: true }];
  }
  const [, before, word = ""] = /^(\/\S+ |.*@\S+ )(\S*)$/s.exec(text) ?? [];
  if (before?.endsWith(`${command.name} `) === true || before?.endsWith(`@${app.name} `) === true) {
    return directory.targets.filter((target) => target.name.includes(word.toLowerCase())).map((target) => ({ ...target, text: `${before}${target.name}` }));
  }
  const mention = /(^|.*\s)@(\w*)$/s.exec(text);
  if (mention === null) return [];
  return directory.users
    .filter((user) => user.name.startsWith((mention[2] ?? "").toLowerCase()) && user.id !== directory.me && user.title !== "")
    .map((user) => ({ name: `@${user.name}`, description: user.title, text: `${mention[1] ?? ""}@${user.name} `, eager: true }));
}
