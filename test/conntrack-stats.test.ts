import { expect, test } from "vitest";
import { captureOf } from "../functions/facts/capture.ts";
import { readFacts } from "../functions/facts/read.ts";

const line = (cpu: number, invalid: number, insertFailed: number) =>
  `cpu=${cpu}   \tfound=0 invalid=${invalid} insert=0 insert_failed=${insertFailed} drop=0 early_drop=0 error=0 search_restart=3 clash_resolve=0 chaintoolong=0 \n`;

interface Sample {
  command?: string;
  text: string;
  startMs?: number;
  sample?: number;
}

function totals(samples: readonly Sample[]) {
  const outputs = samples.map(({ command = "conntrack -S", startMs, sample }, i) => ({
    command,
    file: String(i),
    ...(startMs === undefined ? {} : { startMs }),
    ...(sample === undefined ? {} : { sample }),
  }));
  const capture = captureOf({ schema: "netcheck.capture/1", target: { name: "n" }, outputs }, (file) => ({
    text: samples[Number(file)]?.text ?? "",
    truncated: false,
  }));
  const reading = readFacts(capture, new Set(["conntrack-stats"])).readings.get("conntrack-stats");
  if (reading === undefined) throw new Error("not read");
  return (reading.value as { totals: Record<string, unknown>[] }).totals;
}

test("two samples give growth over all CPUs and the seconds between", () => {
  const rows = totals([
    { text: line(0, 8, 1) + line(1, 6, 0), startMs: 100, sample: 1 },
    { text: line(0, 9, 1) + line(1, 10, 2), startMs: 3350, sample: 2 },
  ]);
  expect(rows).toMatchObject([
    {
      line: 1,
      output: 1,
      sampled: true,
      seconds: 3.25,
      invalid: 19,
      insertFailed: 3,
      invalidDelta: 5,
      insertFailedDelta: 2,
      dropDelta: 0,
      earlyDropDelta: 0,
      searchRestartDelta: 0,
    },
  ]);
});

test("one sample tells totals since boot and no growth", () => {
  const [row] = totals([{ text: line(0, 8, 1) }]);
  expect(row).toMatchObject({ sampled: false, invalid: 8, insertFailed: 1 });
  expect(Object.keys(row ?? {}).filter((key) => key.endsWith("Delta") || key === "seconds")).toEqual([]);
});

test("counters that were reset between the samples have no growth", () => {
  const [row] = totals([
    { text: line(0, 8, 4), sample: 1 },
    { text: line(0, 2, 5), sample: 2 },
  ]);
  expect(row).toMatchObject({ sampled: true, invalid: 2, insertFailed: 5 });
  // one that went down shows that all began anew, or that it is another machine
  expect(Object.keys(row ?? {}).filter((key) => key.endsWith("Delta") || key === "seconds")).toEqual([]);
});

test("samples of different formats are not compared", () => {
  const proc =
    "entries  clashres found new invalid ignore delete chainlength insert insert_failed drop early_drop icmp_error  expect_new expect_create expect_delete search_restart\n";
  const zeros = Array.from({ length: 17 }, () => "000000ff").join(" ");
  const [row] = totals([
    { text: line(0, 8, 4), sample: 1 },
    { command: "cat /proc/net/stat/nf_conntrack", text: `${proc}${zeros}\n`, sample: 2 },
  ]);
  expect(row).toMatchObject({ sampled: false, invalid: 8 });
});
