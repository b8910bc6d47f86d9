import { type KeyboardEvent, type ReactNode, useEffect, useId, useRef, useState } from "react";
import { Icon } from "./icons.tsx";

/** One thing that a menu offers. */
export interface MenuItem {
  readonly name: string;
  readonly run: () => void;
}

/** Pixels that a menu needs below its button; with less it opens upwards. */
const ROOM = 150;

/** A button with three dots that opens a menu. Arrows move, Enter chooses, Escape closes and gives the focus back. */
export function Menu({ label, items }: { label: string; items: readonly MenuItem[] }): ReactNode {
  const [open, setOpen] = useState<"up" | "down">();
  const button = useRef<HTMLButtonElement>(null);
  const list = useRef<HTMLDivElement>(null);
  const id = useId();
  useEffect(() => {
    if (open === undefined) return;
    list.current?.querySelector("button")?.focus();
    const outside = (event: PointerEvent) => {
      const { target } = event;
      if (target instanceof Node && list.current?.contains(target) !== true && button.current?.contains(target) !== true) setOpen(undefined);
    };
    document.addEventListener("pointerdown", outside);
    return () => document.removeEventListener("pointerdown", outside);
  }, [open]);
  const close = () => {
    setOpen(undefined);
    button.current?.focus();
  };
  const onKeyDown = (event: KeyboardEvent) => {
    const buttons = [...(list.current?.querySelectorAll("button") ?? [])];
    const at = buttons.indexOf(document.activeElement as HTMLButtonElement);
    const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: -1 }[event.key];
    if (to !== undefined) buttons.at(to % buttons.length)?.focus();
    else if (event.key === "Escape") close();
    else if (event.key === "Tab") return setOpen(undefined);
    else return;
    event.preventDefault();
  };
  return (
    <>
      <button
        type="button"
        className="quiet"
        ref={button}
        aria-label={label}
        title={label}
        aria-haspopup="menu"
        aria-expanded={open !== undefined}
        aria-controls={open === undefined ? undefined : id}
        onClick={(event) => {
          const below = innerHeight - event.currentTarget.getBoundingClientRect().bottom;
          setOpen(open === undefined ? (below < ROOM ? "up" : "down") : undefined);
        }}
      >
        <Icon name="more" />
      </button>
      {open === undefined ? null : (
        <div className={`menu-list ${open}`} role="menu" tabIndex={-1} id={id} ref={list} aria-label={label} onKeyDown={onKeyDown}>
          {items.map((item) => (
            <button
              key={item.name}
              type="button"
              role="menuitem"
              tabIndex={-1}
              onClick={() => {
                close();
                item.run();
              }}
            >
              {item.name}
            </button>
          ))}
        </div>
      )}
    </>
  );
}
