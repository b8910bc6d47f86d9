import { isHmac, isRecent } from "./proof.ts";
import { fields, keyed, labels, link, list, pageOf, severity, text, time } from "./read.ts";
import type { Reading, Source } from "./source.ts";

const ID = /^[\w.:/@-]{1,200}$/;
const TARGET = /^[A-Za-z0-9][A-Za-z0-9_.:-]{0,252}$/;
const STATUSES = ["firing", "acknowledged", "resolved"] as const;

/**
 * What any monitoring system can send: `{"id", "title", "targets": [...]}`, and if it likes `key`, `status`, `severity`, `labels`, `url`, `ref`, `at`. Signed as
 * `X-Netcheck-Signature: v1=<hex HMAC-SHA256 of "<timestamp>.<body>">` with `X-Netcheck-Timestamp` in seconds.
 */
export const generic: Source = {
  name: "generic",
  field: "signingSecret",
  proof:
    "the signature or its time is not valid: X-Netcheck-Timestamp is the time in seconds, X-Netcheck-Signature is v1= and the hex HMAC-SHA256 of <timestamp>.<body>",
  authentic({ headers, body, now }, secrets) {
    const timestamp = headers["x-netcheck-timestamp"] ?? "";
    const given = /^v1=([0-9a-f]{64})$/.exec(headers["x-netcheck-signature"] ?? "")?.[1] ?? "";
    return isRecent(timestamp, now) && isHmac(given, secrets, `${timestamp}.`, body);
  },
  read(value, { now }): Reading {
    const body = fields(value);
    const id = text(body["id"], 201);
    const title = text(body["title"], 501).trim();
    const status = STATUSES.find((word) => word === (body["status"] ?? "firing"));
    const given = body["targets"] === undefined ? undefined : list(body["targets"]);
    if (typeof body["id"] !== "string" || !ID.test(id)) return { problem: 'id: 1 to 200 letters, digits and "_.:/@-"' };
    if (typeof body["title"] !== "string" || title === "" || title.length > 500) return { problem: "title: a text of 1 to 500 characters" };
    if (status === undefined) return { problem: `status: one of ${STATUSES.join(", ")}` };
    const key = text(body["key"]);
    const read = labels(body["labels"]);
    if (given === undefined && status === "firing" && Object.keys(read).length === 0)
      return { problem: "targets: a list of nodes; or labels, from which they are found" };
    const targets = [...new Set(given?.filter((name): name is string => typeof name === "string") ?? [])];
    if (
      given !== undefined &&
      (given.length === 0 || given.length > 50 || targets.some((name) => !TARGET.test(name)) || given.some((name) => typeof name !== "string"))
    )
      return { problem: "targets: a list of 1 to 50 names of nodes, of letters, digits and “_.:-”" };
    const ref = text(body["ref"], 200);
    return {
      page: pageOf("generic", `${id}/${status}`, [
        {
          key: keyed(key === "" ? id : key),
          status,
          severity: severity(text(body["severity"], 50)),
          title,
          labels: read,
          ...(given === undefined ? {} : { targets }),
          ...(ref === "" ? {} : { ref }),
          ...link(body["url"]),
          at: time(body["at"], now),
        },
      ]),
    };
  },
};
