import { type ClipboardEvent, type KeyboardEvent, type ReactNode, useContext, useEffect, useId, useRef, useState } from "react";
import type { WorkspaceState } from "../workspace.ts";
import { attach, send } from "./client.ts";
import { size } from "./files.tsx";
import { Icon } from "./icons.tsx";
import { Problem } from "./problem.tsx";
import { Directory } from "./rich-text.tsx";

interface Suggestion {
  readonly name: string;
  readonly description: string;
  /** The whole text once it is taken. */
  readonly text: string;
  /** Enter takes it without being asked. A target is only taken with Tab or the arrows: what was typed may be meant as it is. */
  readonly eager?: boolean;
}

/** Slack's own limit for one message, and what the server takes for one file. */
const maxFiles = 10;
const maxBytes = 100 * 1024 * 1024;

/** Where messages and commands are typed, and files attached: chosen, pasted, or dropped anywhere on the conversation. Suggests the command, people and targets; arrows choose, Tab or Enter takes, Escape closes. */
export function Composer({ channel, threadTs, placeholder }: { channel: string; threadTs?: string; placeholder: string }): ReactNode {
  const directory = useContext(Directory);
  const [text, setText] = useState("");
  const [chosen, setChosen] = useState<number>();
  const [closed, setClosed] = useState(false);
  const [busy, setBusy] = useState(false);
  const [problem, setProblem] = useState<string>();
  const [files, setFiles] = useState<readonly File[]>([]);
  const box = useRef<HTMLDivElement>(null);
  const picker = useRef<HTMLInputElement>(null);
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

  const add = (list: Iterable<File>) => {
    const fresh = [...list];
    if (fresh.length === 0) return;
    const refused = fresh.find((file) => file.size === 0 || file.size > maxBytes);
    const all = [...files, ...fresh.filter((file) => file.size > 0 && file.size <= maxBytes)];
    if (refused !== undefined) setProblem(`${refused.name} ${refused.size === 0 ? "is empty, or a folder" : "is larger than 100 MB"}.`);
    else setProblem(all.length > maxFiles ? `A message can have ${maxFiles} files.` : undefined);
    setFiles(all.slice(0, maxFiles));
    field.current?.focus();
  };
  useDrop(box, add);

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
    if ((said === "" && files.length === 0) || busy || directory === undefined) return;
    const command = /^(\/\S+)\s*(.*)$/s.exec(said);
    if (command !== null && threadTs !== undefined) {
      setProblem(`${command[1]} is not supported in threads, as in Slack. Mention @${directory.app.name} instead.`);
      return;
    }
    if (command !== null && files.length > 0) {
      setProblem(`A command takes no files, as in Slack. Mention @${directory.app.name} instead.`);
      return;
    }
    if (command !== null && command[1] === "/invite" && (command[2] ?? "").trim() === `@${directory.app.name}`) {
      const outcome = await send("invite", { user: directory.me, channel });
      if (outcome.ok) setText("");
      else setProblem(outcome.error);
      return;
    }
    if (command !== null && command[1] !== directory.command.name) {
      setProblem(`${command[1]} is not a command here. Try ${directory.command.name} help.`);
      return;
    }
    setBusy(true);
    const ids: string[] = [];
    for (const file of files) {
      const uploaded = await attach(directory.me, file);
      if ("error" in uploaded) {
        setBusy(false);
        setProblem(uploaded.error);
        return;
      }
      ids.push(uploaded.id);
    }
    setText("");
    setFiles([]);
    const outcome =
      command === null
        ? await send("message", { user: directory.me, channel, text: said, threadTs, ...(ids.length === 0 ? {} : { files: ids }) })
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
  const onPaste = (event: ClipboardEvent) => {
    if (event.clipboardData.files.length === 0) return;
    event.preventDefault();
    add(event.clipboardData.files);
  };
  return (
    <div className="composer" ref={box}>
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
      <Problem text={problem} />
      {files.length === 0 ? null : (
        <ul className="attachments" aria-label="Attached files">
          {files.map((file, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: two files may have one name, and none of them moves.
            <li key={`${file.name} ${index}`}>
              <Icon name="file" />
              <span>{file.name}</span>
              <span className="faint">{size(file.size)}</span>
              <button
                type="button"
                className="quiet"
                aria-label={`Remove ${file.name}`}
                onClick={() => {
                  setFiles(files.filter((one) => one !== file));
                  field.current?.focus();
                }}
              >
                <Icon name="close" />
              </button>
            </li>
          ))}
        </ul>
      )}
      <div className="composer-box">
        <button type="button" className="quiet attach" aria-label="Attach files" title="Attach files" onClick={() => picker.current?.click()}>
          <Icon name="attach" />
        </button>
        <input
          ref={picker}
          type="file"
          multiple
          hidden
          onChange={(event) => {
            add(event.target.files ?? []);
            // the same file can be chosen again
            event.target.value = "";
          }}
        />
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
          onPaste={onPaste}
          spellCheck={false}
        />
        <button type="button" className="send" aria-label="Send" disabled={busy || (text.trim() === "" && files.length === 0)} onClick={() => void submit()}>
          {busy ? <span className="spinner" /> : <Icon name="send" />}
        </button>
      </div>
    </div>
  );
}

/** Files can be dropped on the whole conversation around the composer; while they are over it, it is marked. */
function useDrop(box: { readonly current: HTMLElement | null }, add: (files: Iterable<File>) => void): void {
  const latest = useRef(add);
  useEffect(() => {
    latest.current = add;
  });
  useEffect(() => {
    const area = box.current?.parentElement;
    if (area === null || area === undefined) return;
    const done = new AbortController();
    const { signal } = done;
    const withFiles = (event: DragEvent) => event.dataTransfer?.types.includes("Files") === true;
    const over = (event: DragEvent) => {
      if (!withFiles(event)) return;
      event.preventDefault();
      area.classList.add("drop-here");
    };
    const leave = (event: DragEvent) => {
      // into a part of it is not out of it
      if (!(event.relatedTarget instanceof Node && area.contains(event.relatedTarget))) area.classList.remove("drop-here");
    };
    const drop = (event: DragEvent) => {
      area.classList.remove("drop-here");
      if (!withFiles(event)) return;
      event.preventDefault();
      latest.current(event.dataTransfer?.files ?? []);
    };
    area.addEventListener("dragover", over, { signal });
    area.addEventListener("dragleave", leave, { signal });
    area.addEventListener("drop", drop, { signal });
    return () => done.abort();
  }, [box]);
}

/** What could be meant: the command while its name is typed, a target behind it or behind a mention of the app, a name behind an @. */
function suggest(text: string, directory: WorkspaceState, inThread: boolean): readonly Suggestion[] {
  const { command, app } = directory;
  if (/^\/\S*$/.test(text) && !inThread && command.name.startsWith(text)) {
    return [{ name: `${command.name} ${command.usage}`, description: command.description, text: `${command.name} `, eager: true }];
  }
  const [, before, word = ""] = /^(\/\S+ |.*@\S+ )(.*)$/s.exec(text) ?? [];
  if (before?.endsWith(`${command.name} `) === true || before?.endsWith(`@${app.name} `) === true) {
    return directory.targets.filter((target) => target.name.includes(word.toLowerCase())).map((target) => ({ ...target, text: `${before}${target.name}` }));
  }
  const mention = /(^|.*\s)@(\w*)$/s.exec(text);
  if (mention === null) return [];
  return directory.users
    .filter((user) => user.name.startsWith((mention[2] ?? "").toLowerCase()) && user.id !== directory.me && user.title !== "")
    .map((user) => ({ name: `@${user.name}`, description: user.title, text: `${mention[1] ?? ""}@${user.name} `, eager: true }));
}
