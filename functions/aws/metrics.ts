import { Metrics, MetricUnit } from "@aws-lambda-powertools/metrics";
import type { AuditDraft, Incident, Store } from "../triage/ports.ts";

/** Namespace of all our metrics; the names are those that infra/ makes alarms of. */
const NAMESPACE = "netcheck";

/** Counts and times, written as EMF lines into the function's log. */
export interface Meter {
  count(name: "TriageStarted" | "TriageFailed" | "FixOutcomeUnknown" | "FixStarted", value?: number): void;
  gauge(name: "StuckApprovals" | "LeakedPods", value: number): void;
  milliseconds(name: "TriageMs", value: number): void;
}

/** Each value is written at once: an invocation can end at any suspension. */
export function emfMeter(service: string): Meter {
  const metrics = new Metrics({ namespace: NAMESPACE, serviceName: service });
  const emit = (name: string, unit: (typeof MetricUnit)[keyof typeof MetricUnit], value: number): void => {
    metrics.addMetric(name, unit, value);
    metrics.publishStoredMetrics();
  };
  return {
    count: (name, value = 1) => emit(name, MetricUnit.Count, value),
    gauge: (name, value) => emit(name, MetricUnit.Count, value),
    milliseconds: (name, value) => emit(name, MetricUnit.Milliseconds, value),
  };
}

/**
 * The store, telling the meter what goes on record: the audit events are the one place where everything that happens to an incident passes. A step that a
 * crash repeats may count twice; the audit trail, which skips repetitions, is the truth.
 */
export function meteredStore(store: Store, meter: Meter): Store {
  const seen = (events: readonly AuditDraft[], incident?: Incident): void => {
    for (const { key, at, type, data } of events) {
      if (type === "incident-opened") meter.count("TriageStarted");
      if (type === "failed" || type === "collect-failed") meter.count("TriageFailed");
      if (type === "fix-started") meter.count("FixStarted");
      if (type === "fix-finished" && data["outcome"] === "unknown") meter.count("FixOutcomeUnknown");
      if (key === "diagnosed" && incident !== undefined) meter.milliseconds("TriageMs", Date.parse(at) - Date.parse(incident.createdAt));
    }
  };
  return new Proxy(store, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      if (name === "update")
        return async (...[id, change, events]: Parameters<Store["update"]>) => {
          const incident = await target.update(id, change, events);
          seen(events, incident);
          return incident;
        };
      if (name === "open")
        return async (...[incident, event]: Parameters<Store["open"]>) => {
          const opened = await target.open(incident, event);
          seen([event]);
          return opened;
        };
      if (name === "record")
        return async (...[incident, events]: Parameters<Store["record"]>) => {
          await target.record(incident, events);
          seen(events);
        };
      if (name === "transition")
        return async (...[id, from, change, event]: Parameters<Store["transition"]>) => {
          const result = await target.transition(id, from, change, event);
          if (result.applied) seen([event]);
          return result;
        };
      return method.bind(target) as unknown;
    },
  });
}
