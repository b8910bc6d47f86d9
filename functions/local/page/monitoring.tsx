import { type ReactNode, useContext, useState } from "react";
import type { SampleSource, SampleStatus, SentSample } from "../sample-pages.ts";
import { sendPage } from "./client.ts";
import { Icon } from "./icons.tsx";
import { Problem } from "./problem.tsx";
import { Directory } from "./rich-text.tsx";

const TITLES: Readonly<Record<SampleSource, string>> = {
  pagerduty: "PagerDuty",
  alertmanager: "Alertmanager",
  grafana: "Grafana",
  cloudwatch: "CloudWatch through SNS",
  opsgenie: "Opsgenie",
  generic: "Any other (signed JSON)",
};
const PROOFS: Readonly<Record<SampleSource, string>> = {
  pagerduty: "signature over the body",
  alertmanager: "bearer token",
  grafana: "signature over time and body",
  cloudwatch: "signature of SNS; here a key of this workspace stands in for it",
  opsgenie: "bearer token",
  generic: "signature over time and body",
};
const DEEDS: Readonly<Record<SampleStatus, string>> = { firing: "Fire", acknowledged: "Acknowledge", resolved: "Resolve" };

/** A page that was sent in this tab. */
export interface Sent {
  readonly title: string;
  /** "14:05:09" */
  readonly at: string;
  readonly sent: SentSample;
}

interface MonitoringProps {
  /** What the pages are about; undefined: nothing was chosen yet. */
  readonly about: string | undefined;
  readonly onAbout: (about: string) => void;
  readonly sent: readonly Sent[];
  readonly onSent: (one: Sent) => void;
  /** Opens the channel where pages are answered. */
  readonly onOpen: (channel: string) => void;
}

/** Buttons that send pages as monitoring systems do, and what was sent and answered. */
export function Monitoring({ about, onAbout, sent, onSent, onOpen }: MonitoringProps): ReactNode {
  const directory = useContext(Directory);
  const samples = directory?.samples;
  const [forged, setForged] = useState(false);
  const [pending, setPending] = useState<string>();
  const [problem, setProblem] = useState<string>();
  if (samples === undefined) return null;
  const chosen = about ?? samples.about[0]?.value ?? "";
  const storm = samples.about.find(({ value }) => value === chosen)?.grouped === true;
  const press = async (source: SampleSource, status: SampleStatus) => {
    setPending(`${source} ${status}`);
    setProblem(undefined);
    const outcome = await sendPage({ source, status, about: chosen, forged });
    setPending(undefined);
    if ("error" in outcome) setProblem(outcome.error);
    else onSent({ title: `${TITLES[source]}: ${DEEDS[status].toLowerCase()}, ${chosen}`, at: new Date().toLocaleTimeString("en-GB"), sent: outcome });
  };
  const channel = directory?.channels.find(({ id }) => id === samples.channel);
  return (
    <div className="monitoring">
      <p>
        Each button sends what that system would send, signed with a secret of this workspace, over HTTP to the same code that takes pages in production.
        netcheck answers in{" "}
        {channel === undefined ? (
          "the channel that netcheck.yaml names"
        ) : (
          <button type="button" className="link" onClick={() => onOpen(channel.id)}>
            #{channel.name}
          </button>
        )}
        .
      </p>
      <div className="monitoring-about">
        <label>
          What the page is about
          <select value={chosen} onChange={(event) => onAbout(event.target.value)}>
            {samples.about.map(({ value, text }) => (
              <option key={value} value={value}>
                {text}
              </option>
            ))}
          </select>
        </label>
        <label className="check">
          <input type="checkbox" checked={forged} onChange={(event) => setForged(event.target.checked)} />
          with a proof that does not fit
        </label>
      </div>
      <ul className="sources">
        {samples.sources.map(({ name, statuses, grouped }) => (
          <li key={name}>
            <div>
              <b>{TITLES[name]}</b>
              <span className="faint">{storm && !grouped ? "one alert per page: it cannot send a storm" : PROOFS[name]}</span>
            </div>
            <div className="block-actions">
              {statuses.map((status) => (
                <button
                  key={status}
                  type="button"
                  className={`button${status === "firing" ? " primary" : ""}`}
                  aria-label={`${DEEDS[status]}: ${TITLES[name]}`}
                  disabled={storm && !grouped}
                  aria-busy={pending === `${name} ${status}`}
                  onClick={() => void press(name, status)}
                >
                  {pending === `${name} ${status}` ? <span className="spinner" /> : null}
                  {DEEDS[status]}
                </button>
              ))}
            </div>
          </li>
        ))}
      </ul>
      <Problem text={problem} />
      <h2>Sent and answered</h2>
      {sent.length === 0 ? <p className="faint">Nothing has been sent from this tab yet.</p> : null}
      <ol className="sent" role="log" aria-label="Sent and answered">
        {sent.map((one) => (
          <li key={`${one.at} ${one.sent.body}`}>
            <SentPage one={one} />
          </li>
        ))}
      </ol>
    </div>
  );
}

function SentPage({ one: { title, at, sent } }: { one: Sent }): ReactNode {
  const { path, headers, body, status, answer } = sent;
  const taken = status >= 200 && status < 300;
  const request = [`POST ${path}`, ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`), "", indented(body)].join("\n");
  return (
    <details>
      <summary>
        <Icon name={taken ? "check" : "alert"} />
        <span>
          <b>{title}</b> <span className="faint">{at}</span>
          <br />
          {status === 0 ? "No answer" : status}: {messageOf(answer)}
        </span>
      </summary>
      {/* biome-ignore lint/a11y/noNoninteractiveTabindex: a scrollable region has to be reachable by keyboard. */}
      <pre tabIndex={0}>{request}</pre>
    </details>
  );
}

function indented(body: string): string {
  return JSON.stringify(JSON.parse(body), null, 2);
}

/** The sentence in an answer of the pager, or the answer as it is. */
function messageOf(answer: string): string {
  try {
    const { message } = JSON.parse(answer) as { message?: unknown };
    return typeof message === "string" ? message : answer;
  } catch {
    return answer;
  }
}
