import { type KeyboardEvent, type ReactNode, useId, useRef, useState } from "react";

export interface Choice {
  readonly value: string;
  readonly text: string;
  /** Name of the group it belongs to, if there are any. */
  readonly group?: string;
}

interface FilterSelectProps {
  /** Attributes of the field: id, description, label. */
  readonly field: Readonly<Record<string, unknown>>;
  readonly choices: readonly Choice[];
  /** Value of what is chosen; "" for nothing. */
  readonly chosen: string;
  readonly placeholder: string;
  readonly onChoose: (value: string) => void;
}

/** Choices that are shown at once; the rest comes into view as more is typed. */
const MOST = 50;

/** Slack's long menus: what is typed is searched for in all choices. Arrows move, Enter takes, Escape closes, an empty field chooses nothing. */
export function FilterSelect({ field, choices, chosen, placeholder, onChoose }: FilterSelectProps): ReactNode {
  /** What was typed; undefined while the field shows what is chosen. */
  const [typed, setTyped] = useState<string>();
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  const words = (typed ?? "").trim().toLowerCase();
  const found = choices.filter(({ text, group }) => text.toLowerCase().includes(words) || group?.toLowerCase() === words);
  const shown = found.slice(0, MOST);
  const current = shown[Math.min(at, shown.length - 1)];
  const shut = () => {
    setOpen(false);
    setTyped(undefined);
    setAt(0);
  };
  const take = (choice: Choice) => {
    onChoose(choice.value);
    shut();
  };
  const move = (to: number) => {
    setOpen(true);
    const next = shown.length === 0 ? 0 : (to + shown.length) % shown.length;
    setAt(next);
    list.current?.querySelectorAll("[role=option]")[next]?.scrollIntoView({ block: "nearest" });
  };
  const onKeyDown = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") move(open ? at + 1 : 0);
    else if (event.key === "ArrowUp") move(open ? at - 1 : -1);
    else if (event.key === "Enter" && open && current !== undefined) take(current);
    // the window around it stays
    else if (event.key === "Escape" && open) shut();
    else return;
    event.preventDefault();
  };
  return (
    <div className="filter-select">
      <input
        {...field}
        type="text"
        role="combobox"
        aria-autocomplete="list"
        aria-expanded={open}
        aria-controls={`${id}-list`}
        aria-activedescendant={open && current !== undefined ? `${id}-${shown.indexOf(current)}` : undefined}
        autoComplete="off"
        spellCheck={false}
        placeholder={placeholder}
        value={typed ?? choices.find(({ value }) => value === chosen)?.text ?? ""}
        onChange={(event) => {
          setTyped(event.target.value);
          setAt(0);
          setOpen(true);
          if (event.target.value.trim() === "") onChoose("");
        }}
        onClick={() => setOpen(true)}
        onKeyDown={onKeyDown}
        onBlur={shut}
      />
      <div className="choices-list" role="listbox" id={`${id}-list`} aria-label="Choices" ref={list} hidden={!open}>
        {shown.map((choice, index) => (
          // biome-ignore lint/a11y/useKeyWithClickEvents: the text field has the keys (arrows, Enter).
          <div
            key={choice.value}
            id={`${id}-${index}`}
            role="option"
            tabIndex={-1}
            aria-selected={choice === current}
            onMouseDown={(event) => event.preventDefault()}
            onClick={() => take(choice)}
          >
            <span>{choice.text}</span> {choice.group === undefined ? null : <span className="faint">{choice.group}</span>}
          </div>
        ))}
        {shown.length === 0 ? <p className="faint">Nothing is called like that.</p> : null}
        {found.length > shown.length ? <p className="faint">{found.length - shown.length} more: type more of the name.</p> : null}
      </div>
    </div>
  );
}
