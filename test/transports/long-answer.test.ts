import { randomBytes } from "node:crypto";
import { describe, expect, test } from "vitest";
import type { Capture } from "../../functions/facts/capture.ts";
import { scripts } from "../../functions/transports/script.ts";
import { packCapture, packLongCapture, unpackCapture } from "../../functions/triage/captures.ts";
import { type CaptureAbout, type Plan, TransportError } from "../../functions/triage/ports.ts";
import { collectorAnswer, framed } from "../emulators/collector.ts";

/** A long answer is read in pieces, and comes to the same as one that is read at once. */

const nonce = "0123456789abcdef0123456789abcdef";
const plan: Plan = {
  runbook: "test",
  commands: [{ argv: ["a"], samples: 2 }, { argv: ["b"] }, { argv: ["c"] }, { argv: ["d"] }],
  timeoutSeconds: 5,
  maxBytes: 1 << 20,
  intervalSeconds: 1,
  budgetSeconds: 20,
};
const about: CaptureAbout = { nonce, plan, target: "node1", transport: "ssm", startedAt: "", truncated: false };
const output = (command: string, text: string, sample = 1) => ({
  command,
  argv: [command],
  file: `outputs/${command}${sample}.txt`,
  text,
  exitCode: 0,
  stderr: sample === 2 ? "said on the side" : "",
  truncated: false,
  sample,
});
const capture = {
  target: "node1",
  transport: "ssm",
  runbook: "test",
  startedAt: "",
  redacted: 0,
  notCollected: [],
  outputs: [output("a", "1\n"), output("a", "2\n", 2), output("b", `${"zeile ü [redacted]\n".repeat(300)}#${nonce} 9`), output("c", "")],
} as unknown as Capture;

/** The answer in pieces of some size, after what a node may print before it. */
async function* pieces(answer: Buffer, size: number): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < answer.length; at += size) yield answer.subarray(at, at + size);
}
const long = (answer: Buffer, size = 1000, more: Partial<CaptureAbout> = {}) => scripts.readLongCapture(pieces(answer, size), { ...about, ...more });
const whole = (answer: Buffer) => scripts.readCapture(answer.toString("latin1"), about);

const bodies = [
  { name: "gz", answer: collectorAnswer(capture, plan, nonce) },
  {
    name: "raw",
    answer: collectorAnswer({ ...capture, outputs: capture.outputs.map((one) => ({ ...one, text: one.text.replaceAll("ü", "u") })) }, plan, nonce, "raw"),
  },
];

describe.each(bodies)("$name", ({ answer }) => {
  test.each([1, 7, 64, 1000, 1 << 20])("in pieces of %i bytes: the same capture", async (size) => {
    expect(await long(answer, size)).toEqual(whole(answer));
    expect(await long(Buffer.concat([Buffer.from("motd\n"), answer]), size)).toEqual(whole(answer));
  });

  test("cut anywhere: as when it is read at once", async () => {
    const header = answer.indexOf(10) + 1;
    for (let length = header; length < answer.length; length += 37) {
      const cut = answer.subarray(0, length);
      const once = (() => {
        try {
          return whole(cut).outputs.map(({ text, truncated }) => [text, truncated]);
        } catch {
          return [];
        }
      })();
      const { outputs, notCollected } = await long(cut);
      expect(
        outputs.map(({ text, truncated }) => [text, truncated]),
        `cut at ${length}`,
      ).toEqual(once);
      if (length < answer.length - 60) expect(notCollected.map(({ reason }) => reason)).toContain("the transport cut the node's answer off");
    }
  });

  test("changed on its way", async () => {
    const changed = Buffer.from(answer);
    const at = answer.indexOf(10) + 30;
    changed[at] = changed[at] === 65 ? 66 : 65;
    await expect(long(changed)).rejects.toThrow(/checksum does not match|could not be unpacked/);
  });
});

test("no frame", async () => {
  await expect(long(Buffer.from("sh: permission denied\n"))).rejects.toThrow("the node sent no result frame; it said: sh: permission denied");
  await expect(long(Buffer.alloc(0))).rejects.toThrow("the node sent no result frame (nothing at all)");
  await expect(long(Buffer.from(`NETCHECK/1 ${nonce} collect zip 0 -\n\n`))).rejects.toThrow("no result frame");
  await expect(long(collectorAnswer(capture, plan, "f".repeat(32)))).rejects.toThrow("no result frame");
});

test("a gzip bomb is not unpacked", async () => {
  const record = Buffer.concat([Buffer.from(`#${nonce} 0 - 1 0 0 1 ${30 << 20} 0 0\n`), Buffer.alloc(30 << 20)]);
  const bomb = framed(Buffer.concat(Array.from({ length: 10 }, () => record)), nonce, "collect");
  await expect(long(bomb, 1 << 16)).rejects.toThrow("the node's answer could not be unpacked: it is larger than 256 MB");
});

test("what is no gzip is told as such", async () => {
  const body = randomBytes(300).toString("base64");
  await expect(long(Buffer.from(`NETCHECK/1 ${nonce} collect gz ${body.length} -\n${body}\nNETCHECK/1 ${nonce} end\n`))).rejects.toThrow(
    "could not be unpacked",
  );
});

test("a source that breaks is passed on as it is", async () => {
  const { answer } = bodies[0] ?? { answer: Buffer.alloc(0) };
  async function* broken(): AsyncGenerator<Uint8Array> {
    yield answer.subarray(0, answer.length / 2);
    throw new TransportError("ssm: the connection broke", { retryable: true });
  }
  await expect(scripts.readLongCapture(broken(), about)).rejects.toMatchObject({ name: "TransportError", retryable: true });
});

test("a large capture is packed piece by piece, into the same", async () => {
  const packed = await packLongCapture(capture);
  expect(unpackCapture(packed)).toEqual(unpackCapture(packCapture(capture)));
  expect(unpackCapture(await packLongCapture({ ...capture, outputs: [] })).outputs).toEqual([]);
});
