import { createContext, lazy, type ReactNode, Suspense, useContext, useId, useRef } from "react";
import type { Block, Element } from "../../slack/block-schema.ts";
import { optionsOf } from "../../slack/elements.ts";
import { Problem } from "./problem.tsx";
import { Directory, RichText, Text } from "./rich-text.tsx";
import { type Choice, FilterSelect } from "./select.tsx";

/** What elements are wired to: the message or view around them. */
export interface Surface {
  /** What was entered so far, by `blockId actionId`. */
  readonly entered: ReadonlyMap<string, string | readonly string[]>;
  /** Remembers what was entered; tells the app too if the element asks for that. */
  enter(block: Block, element: Element, value: string | readonly string[]): void;
  /** Presses a button. */
  press(block: Block, element: Element): void;
  /** The element whose answer is awaited, as `blockId actionId`. */
  readonly pending: string | undefined;
  /** What is wrong with an input, by block id. */
  readonly errors: Readonly<Record<string, string>>;
}

/** Around the blocks of one message or view. */
export const SurfaceContext = createContext<Surface | undefined>(undefined);

/** The identity of an element on its surface. */
export function keyOf(block: Block, element: Element): string {
  return `${block.block_id ?? ""} ${element.action_id ?? ""}`;
}

// What netcheck hardly uses (images, tables, markdown) is left to a library, loaded when it is needed.
const LibraryBlock = lazy(() => import("./library-block.tsx"));

/** Block Kit, top to bottom. */
export function Blocks({ blocks }: { blocks: readonly Block[] }): ReactNode {
  return (
    <div className="blocks">
      {blocks.map((block) => (
        <BlockView key={block.block_id} block={block} />
      ))}
    </div>
  );
}

function BlockView({ block }: { block: Block }): ReactNode {
  switch (block.type) {
    case "header":
      return (
        <h3 className="block-header">
          <Text text={block.text} />
        </h3>
      );
    case "divider":
      return <hr />;
    case "section":
      return (
        <div className="block-section">
          <div className="block-body">
            {block.text === undefined ? null : <Text text={block.text} />}
            {block.fields === undefined ? null : (
              <div className="fields">
                {block.fields.map((field, index) => (
                  // biome-ignore lint/suspicious/noArrayIndexKey: fields have no other identity.
                  <div key={index}>
                    <Text text={field} />
                  </div>
                ))}
              </div>
            )}
          </div>
          {block.accessory === undefined ? null : block.accessory.type === "image" ? (
            <img src={block.accessory.image_url} alt={block.accessory.alt_text} />
          ) : (
            <ElementView block={block} element={block.accessory} />
          )}
        </div>
      );
    case "context":
      return (
        <div className="block-context">
          {block.elements.map((one, index) => (
            // biome-ignore lint/suspicious/noArrayIndexKey: elements of a context have no other identity.
            <span key={index}>{one.type === "image" ? <img src={one.image_url} alt={one.alt_text} /> : <Text text={one} />}</span>
          ))}
        </div>
      );
    case "actions":
      return (
        <div className="block-actions">
          {block.elements.map((element) => (
            <ElementView key={element.action_id} block={block} element={element} />
          ))}
        </div>
      );
    case "input":
      return <InputBlock block={block} />;
    case "rich_text":
      return <RichText elements={block.elements} />;
    default:
      return (
        <Suspense fallback={null}>
          <LibraryBlock block={block} />
        </Suspense>
      );
  }
}

function InputBlock({ block }: { block: Extract<Block, { type: "input" }> }): ReactNode {
  const surface = useContext(SurfaceContext);
  const id = useId();
  const error = surface?.errors[block.block_id ?? ""];
  return (
    <div className={`block-input${error === undefined ? "" : " wrong"}`}>
      <label htmlFor={id}>
        {block.label.text}
        {block.optional === true ? <span className="faint"> (optional)</span> : null}
      </label>
      <ElementView block={block} element={block.element} id={id} />
      <div id={`${id}-about`}>
        <Problem text={error} />
        {block.hint === undefined ? null : <p className="faint">{block.hint.text}</p>}
      </div>
    </div>
  );
}

function ElementView({ block, element, id }: { block: Block; element: Element; id?: string }): ReactNode {
  const surface = useContext(SurfaceContext);
  const directory = useContext(Directory);
  const key = keyOf(block, element);
  const pending = surface?.pending === key;
  const value = surface?.entered.get(key);
  const one = typeof value === "string" ? value : undefined;
  const many = typeof value === "object" ? value : undefined;
  const enter = (now: string | readonly string[]) => surface?.enter(block, element, now);
  const about =
    id === undefined
      ? {}
      : { "aria-describedby": `${id}-about`, "aria-invalid": surface?.errors[block.block_id ?? ""] !== undefined, "aria-required": required(block) };
  const common = {
    id,
    ...about,
    "aria-label": id === undefined ? ("placeholder" in element ? element.placeholder?.text : undefined) : undefined,
    disabled: pending,
    "data-focus": "focus_on_load" in element && element.focus_on_load === true ? true : undefined,
  };
  const choose = (options: readonly { value: string; text: string }[], initial: string | undefined, placeholder: string) => (
    <select {...common} value={one ?? initial ?? ""} onChange={(event) => enter(event.target.value)}>
      <option value="" disabled>
        {placeholder}
      </option>
      {options.map((option) => (
        <option key={option.value} value={option.value}>
          {option.text}
        </option>
      ))}
    </select>
  );
  const offered = optionsOf(element).map((option) => ({ value: option.value, text: option.text.text }));
  switch (element.type) {
    case "button":
      return <ActionButton element={element} pending={pending} onPress={() => surface?.press(block, element)} />;
    case "static_select": {
      const placeholder = element.placeholder?.text ?? "Choose…";
      if (offered.length <= LONG) return choose(offered, element.initial_option?.value, placeholder);
      const chosen = one ?? element.initial_option?.value ?? "";
      return <FilterSelect field={common} choices={choicesOf(element)} chosen={chosen} placeholder={placeholder} onChoose={enter} />;
    }
    case "overflow":
      return (
        <select {...common} aria-label="More" value="" onChange={(event) => enter(event.target.value)}>
          <option value="" disabled>
            More…
          </option>
          {offered.map((option) => (
            <option key={option.value} value={option.value}>
              {option.text}
            </option>
          ))}
        </select>
      );
    case "users_select": {
      const users = directory?.users.filter((user) => user.bot !== true) ?? [];
      return choose(
        users.map((user) => ({ value: user.id, text: user.realName })),
        element.initial_user,
        element.placeholder?.text ?? "Choose a person…",
      );
    }
    case "channels_select": {
      const channels = directory?.channels.filter((channel) => channel.kind === "channel") ?? [];
      return choose(
        channels.map((channel) => ({ value: channel.id, text: `#${channel.name}` })),
        element.initial_channel,
        element.placeholder?.text ?? "Choose a channel…",
      );
    }
    case "checkboxes":
    case "radio_buttons":
    case "multi_static_select": {
      const single = element.type === "radio_buttons";
      const initial = element.type === "radio_buttons" ? [element.initial_option?.value ?? ""] : (element.initial_options ?? []).map((option) => option.value);
      const chosen = single ? [one ?? initial[0] ?? ""] : (many ?? initial);
      return (
        <fieldset className="choices" id={id} disabled={pending}>
          {optionsOf(element).map((option) => (
            <label key={option.value}>
              <input
                type={single ? "radio" : "checkbox"}
                name={key}
                checked={chosen.includes(option.value)}
                onChange={(event) =>
                  enter(single ? option.value : event.target.checked ? [...chosen, option.value] : chosen.filter((other) => other !== option.value))
                }
              />
              <span>
                <Text text={option.text} />
                {option.description === undefined ? null : (
                  <span className="faint">
                    <Text text={option.description} />
                  </span>
                )}
              </span>
            </label>
          ))}
        </fieldset>
      );
    }
    case "datepicker":
      return <input {...common} type="date" value={one ?? element.initial_date ?? ""} onChange={(event) => enter(event.target.value)} />;
    case "timepicker":
      return <input {...common} type="time" value={one ?? element.initial_time ?? ""} onChange={(event) => enter(event.target.value)} />;
    case "plain_text_input":
    case "number_input":
    case "email_text_input":
    case "url_text_input": {
      const field = {
        ...common,
        placeholder: element.placeholder?.text,
        value: one ?? element.initial_value ?? "",
        onChange: (event: { target: { value: string } }) => enter(event.target.value),
      };
      if (element.type === "plain_text_input" && element.multiline === true) return <textarea {...field} rows={4} />;
      return <input {...field} type="text" inputMode={element.type === "number_input" ? "decimal" : "text"} autoComplete="off" spellCheck={false} />;
    }
  }
  return null;
}

/** A menu with more choices is searched by typing. */
const LONG = 12;

/** What a menu offers, each with the name of its group. */
function choicesOf(element: Extract<Element, { type: "static_select" }>): readonly Choice[] {
  const groups = [
    ...(element.options === undefined ? [] : [{ label: undefined, options: element.options }]),
    ...(element.option_groups ?? []).map(({ label, options }) => ({ label: label.text, options })),
  ];
  return groups.flatMap(({ label, options }) =>
    options.map(({ value, text }) => ({ value, text: text.text, ...(label === undefined ? {} : { group: label }) })),
  );
}

const required = (block: Block): boolean => block.type === "input" && block.optional !== true;

function ActionButton({ element, pending, onPress }: { element: Extract<Element, { type: "button" }>; pending: boolean; onPress: () => void }): ReactNode {
  const dialog = useRef<HTMLDialogElement>(null);
  const { confirm } = element;
  return (
    <>
      <button
        type="button"
        className={`button ${element.style ?? ""}`}
        // Not disabled: that would take the focus away, and with it the way back from a modal.
        aria-disabled={pending}
        aria-busy={pending}
        aria-label={element.accessibility_label}
        data-action={element.action_id}
        onClick={() => {
          if (pending) return;
          if (confirm === undefined) onPress();
          else dialog.current?.showModal();
        }}
      >
        {pending ? <span className="spinner" /> : null}
        <Text text={element.text} />
      </button>
      {confirm === undefined ? null : (
        <dialog className="modal small" ref={dialog} aria-label={confirm.title.text}>
          <h2>{confirm.title.text}</h2>
          <div className="modal-body">
            <Text text={confirm.text} />
          </div>
          <footer>
            <button type="button" className="button" onClick={() => dialog.current?.close()}>
              {confirm.deny.text}
            </button>
            <button
              type="button"
              className={`button ${confirm.style ?? "primary"}`}
              onClick={() => {
                dialog.current?.close();
                onPress();
              }}
            >
              {confirm.confirm.text}
            </button>
          </footer>
        </dialog>
      )}
    </>
  );
}
