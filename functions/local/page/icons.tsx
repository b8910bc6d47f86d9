import type { ReactNode } from "react";
import { emoji, emojiText } from "../emoji.ts";

const paths = {
  hash: "M9 4 7 20M17 4l-2 16M4 9h16M3.5 15h16",
  send: "M4 12 20 4l-6 16-3-7z",
  close: "M6 6l12 12M18 6 6 18",
  menu: "M4 7h16M4 12h16M4 17h16",
  reply: "M4 5h16v11H9l-5 4z",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7-10-7-10-7zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  file: "M6 3h8l5 5v13H6zM14 3v5h5M9 13h7M9 17h7",
  download: "M12 4v11m0 0 5-5m-5 5-5-5M4 20h16",
  copy: "M9 9h11v11H9zM5 15H4V4h11v1",
  check: "M5 13l4 4L19 7",
  attach: "M20 11.5l-8.2 8.2a5 5 0 0 1-7.1-7.1l8.5-8.5a3.4 3.4 0 0 1 4.8 4.8l-8.4 8.4a1.8 1.8 0 0 1-2.5-2.5l7.6-7.6",
  person: "M12 12a4 4 0 1 0 0-8 4 4 0 0 0 0 8zM4 21c0-4 4-6 8-6s8 2 8 6",
  play: "M7 5l12 7-12 7z",
  bell: "M5 17c2-2 2-4 2-7a5 5 0 0 1 10 0c0 3 0 5 2 7zM10 20h4",
  more: "M5 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2zM12 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2zM19 11a1 1 0 1 0 0 2 1 1 0 0 0 0-2z",
  alert: "M12 4 2.5 20h19zM12 10v5M12 17.5v.5",
} as const;

/** A line drawing; decoration only, so it has no name of its own. */
export function Icon({ name }: { name: keyof typeof paths }): ReactNode {
  return (
    <svg className="icon" viewBox="0 0 24 24" aria-hidden="true">
      <path d={paths[name]} />
    </svg>
  );
}

const disc = (color: string): ReactNode => <circle cx="12" cy="12" r="8.5" fill={color} />;
const stroke = (d: string, color: string, width = 2.4): ReactNode => (
  <path d={d} fill="none" stroke={color} strokeWidth={width} strokeLinecap="round" strokeLinejoin="round" />
);
const tile = (color: string, inside: ReactNode): ReactNode => (
  <>
    <rect x="2.5" y="2.5" width="19" height="19" rx="5" fill={color} />
    {inside}
  </>
);

// The signs that carry meaning are drawn, so that they look the same on a machine without an emoji font.
const drawn: Readonly<Record<string, ReactNode>> = {
  white_check_mark: tile("#1f9d55", stroke("M7 12.5l3.5 3.5L17 8.5", "#fff", 2.8)),
  heavy_check_mark: stroke("M5 12.5l4.5 5L19 6.5", "#1f9d55", 3.4),
  x: stroke("M5.5 5.5l13 13M18.5 5.5l-13 13", "#d92d3a", 3.6),
  warning: (
    <>
      <path d="M12 3 1.8 21h20.4z" fill="#f2b01e" stroke="#f2b01e" strokeWidth="1.6" strokeLinejoin="round" />
      {stroke("M12 9.5v5.5M12 18v.1", "#3b2a00")}
    </>
  ),
  no_entry: (
    <>
      {disc("#d92d3a")}
      {stroke("M7.5 12h9", "#fff", 3.4)}
    </>
  ),
  no_entry_sign: (
    <>
      <circle cx="12" cy="12" r="8" fill="none" stroke="#d92d3a" strokeWidth="3" />
      {stroke("M6.5 6.5l11 11", "#d92d3a", 3)}
    </>
  ),
  octagonal_sign: <path d="M8 3h8l5 5v8l-5 5H8l-5-5V8z" fill="#d92d3a" />,
  rotating_light: (
    <>
      <path d="M6 18v-5a6 6 0 0 1 12 0v5z" fill="#e5484d" />
      <rect x="4" y="18" width="16" height="3" rx="1" fill="#7a8794" />
      {stroke("M12 2v2M4 5l1.4 1.4M20 5l-1.4 1.4", "#e5484d", 2)}
    </>
  ),
  red_circle: disc("#e5484d"),
  large_orange_circle: disc("#f0883e"),
  large_yellow_circle: disc("#f2c037"),
  large_green_circle: disc("#2fa866"),
  large_blue_circle: disc("#3b82f6"),
  white_circle: <circle cx="12" cy="12" r="7.8" fill="#eef2f4" stroke="#98a6b3" strokeWidth="1.6" />,
  black_circle: disc("#39434c"),
  hourglass: stroke("M6.5 3h11M6.5 21h11M7.5 3c0 5 4.5 6 4.5 9s-4.5 4-4.5 9M16.5 3c0 5-4.5 6-4.5 9s4.5 4 4.5 9", "#b7791f", 2),
  mag: stroke("M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5 21 21", "#3f8fb5", 2.4),
  wrench: stroke("M14.5 9.5 5 19l-1-1 9.5-9.5a4.6 4.6 0 0 1 6-5.5l-3 3 1.5 1.5 3-3a4.6 4.6 0 0 1-6.5 5z", "#71808f", 2),
  lock: (
    <>
      {stroke("M8 11V8a4 4 0 0 1 8 0v3", "#8a94a0")}
      <rect x="5" y="11" width="14" height="10" rx="2" fill="#e3a52b" />
    </>
  ),
  information_source: tile("#3b82f6", stroke("M12 11v6M12 7.2v.1", "#fff", 2.8)),
  page_facing_up: (
    <>
      <path d="M5.5 2.5h9l4.5 4.5v14.5h-13.5z" fill="#eef2f4" stroke="#8494a3" strokeWidth="1.5" strokeLinejoin="round" />
      {stroke("M8.5 10.5h7M8.5 14h7M8.5 17.5h5", "#8494a3", 1.5)}
    </>
  ),
  bulb: (
    <>
      <path d="M12 2.5a6.5 6.5 0 0 0-3.5 12V17h7v-2.5a6.5 6.5 0 0 0-3.5-12z" fill="#f2c037" />
      {stroke("M9.5 20h5", "#8494a3")}
    </>
  ),
  arrows_counterclockwise: tile("#3b82f6", stroke("M17 9a6 6 0 0 0-10.5-.5M7 15a6 6 0 0 0 10.5.5M6.5 5.5v3h3M17.5 18.5v-3h-3", "#fff", 1.8)),
  leftwards_arrow_with_hook: tile("#3b82f6", stroke("M10 7l-4 4 4 4M6 11h8a4 4 0 0 1 0 8h-1", "#fff", 2)),
  shield: <path d="M12 2.5 4 5.5v6c0 5 3.5 8.5 8 10 4.5-1.5 8-5 8-10v-6z" fill="#4d8fd1" />,
  bell: (
    <>
      <path d="M5 17c2-2 2-4 2-7a5 5 0 0 1 10 0c0 3 0 5 2 7z" fill="#e3a52b" />
      <circle cx="12" cy="19.5" r="2" fill="#b7791f" />
    </>
  ),
  no_bell: (
    <>
      <path d="M5 17c2-2 2-4 2-7a5 5 0 0 1 10 0c0 3 0 5 2 7z" fill="#8a94a0" />
      {stroke("M4 3.5l16 17", "#d92d3a", 2.4)}
    </>
  ),
  telephone_receiver: stroke("M6 3.5c-2.5 2-2 6.5 2.5 11.5s9.5 5.5 11.5 3l-3.5-3.5-2.5 1.5c-2-1-4.5-3.5-5.5-5.5l1.5-2.5z", "#3f8fb5", 2.2),
  hatching_chick: (
    <>
      <circle cx="12" cy="9" r="5.5" fill="#f2c037" />
      {stroke("M10 8.5v.1M14 8.5v.1M12 10.5v.6", "#4a3800", 2)}
      <path
        d="M4.5 12l3 2 2.2-2 2.3 2 2.3-2 2.2 2 3-2c0 6-3 9.5-7.5 9.5S4.5 18 4.5 12z"
        fill="#eef2f4"
        stroke="#8494a3"
        strokeWidth="1.4"
        strokeLinejoin="round"
      />
    </>
  ),
  checkered_flag: (
    <>
      {stroke("M5 3v18", "#71808f", 2)}
      <path d="M5 4h14v10H5z" fill="#eef2f4" stroke="#39434c" strokeWidth="1.2" />
      <path d="M5 4h4.7v3.3H5zM14.3 4H19v3.3h-4.7zM9.7 7.3h4.6v3.4H9.7zM5 10.7h4.7V14H5zM14.3 10.7H19V14h-4.7z" fill="#39434c" />
    </>
  ),
  zap: <path d="M13.5 2 4.5 13.5h6L9.5 22l9-12h-6z" fill="#f2b01e" />,
  memo: (
    <>
      <path d="M4.5 3.5h11v17h-11z" fill="#eef2f4" stroke="#8494a3" strokeWidth="1.5" />
      {stroke("M7.5 8h5M7.5 11.5h4", "#8494a3", 1.5)}
      {stroke("M20 8l-8 9-1 2.5L13.5 18.5 21 10z", "#e0912f", 1.8)}
    </>
  ),
  grey_question: tile("#7a8794", stroke("M9.3 9.5c0-3.6 5.4-3.6 5.4-.2 0 2.2-2.7 2-2.7 4.4M12 17.2v.1", "#fff", 2.4)),
  raised_hand: tile("#e3a52b", stroke("M8.5 12V7.5M11 11.5V5.5M13.5 11.5V6M16 12V8M16 12c0 4-1 7-4 7-2.5 0-3.5-1.5-5.5-5", "#fff", 2)),
  thinking_face: (
    <>
      <circle cx="12" cy="12" r="9" fill="#f2c037" />
      {stroke("M8.5 10v.1M15 9.5v.1M9 16c1.5-1 3.5-1.5 5.5-1.2", "#4a3800", 2.2)}
    </>
  ),
  eyes: (
    <>
      <ellipse cx="7.5" cy="12" rx="4.5" ry="7" fill="#fff" stroke="#5d6b78" strokeWidth="1.4" />
      <ellipse cx="16.5" cy="12" rx="4.5" ry="7" fill="#fff" stroke="#5d6b78" strokeWidth="1.4" />
      <circle cx="6.3" cy="13" r="2.2" fill="#2b3640" />
      <circle cx="15.3" cy="13" r="2.2" fill="#2b3640" />
    </>
  ),
};
const alike: Readonly<Record<string, string>> = {
  hourglass_flowing_sand: "hourglass",
  stopwatch: "hourglass",
  mag_right: "mag",
  hammer_and_wrench: "wrench",
  gear: "wrench",
  clipboard: "page_facing_up",
  ballot_box_with_check: "white_check_mark",
};

/** `:name:` as a picture. */
export function Emoji({ name }: { name: string }): ReactNode {
  const picture = drawn[name] ?? drawn[alike[name] ?? ""];
  if (picture === undefined) return <span className="emoji-text">{emojiText(name)}</span>;
  return (
    <svg className="emoji" viewBox="0 0 24 24" role="img" aria-label={name.replaceAll("_", " ")}>
      {picture}
    </svg>
  );
}

const names = new Map(Object.entries(emoji).map(([name, sign]) => [sign.replace("\ufe0f", ""), name]));
const signs = new RegExp(`(${[...names.keys()].join("|")})\ufe0f?`, "u");

/** Text in which emoji that were typed as characters are pictures too. */
export function withEmoji(text: string): ReactNode {
  const parts = text.split(signs);
  if (parts.length === 1) return text;
  return parts.map((part, index) => {
    const name = index % 2 === 1 ? names.get(part) : undefined;
    // biome-ignore lint/suspicious/noArrayIndexKey: parts of a text have no other identity.
    return name === undefined ? part : <Emoji key={index} name={name} />;
  });
}
