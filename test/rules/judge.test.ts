import { describe, expect, test } from "vitest";
import { captureOf } from "../../functions/facts/capture.ts";
import { pastedCaptures } from "../../functions/imports/index.ts";
import { diagnose } from "../../functions/rules/diagnose.ts";
import { latest } from "../../functions/rules/judge.ts";
import { loadCatalogue } from "../../functions/rules/load.ts";

const catalogue = loadCatalogue(new URL("../../runbooks/", import.meta.url).pathname);
const causes = (text: string) => diagnose(pastedCaptures(text, "paste.txt", "paste.txt")[0], catalogue, "paste", () => 0).causes;

const NODE = "root@w4:~# kubectl get nodes\nNAME   STATUS   ROLES    AGE   VERSION\nw4     Ready    <none>   90d   v1.30.2\n";
const NETS = "10.0.0.0/24 dev eth0 proto kernel scope link src 10.0.0.4\n10.244.1.0/24 dev cni0 proto kernel scope link src 10.244.1.1\n";
const WELL = `root@w4:~# ip route\ndefault via 10.0.0.1 dev eth0\n${NETS}`;
const ILL = `root@w4:~# ip route\n${NETS}`;

describe("a question that was asked twice", () => {
  test("well, then what happened, then ill: the later answer counts, and is quoted", () => {
    const [cause] = causes(`${WELL}root@w4:~# nmcli con up eth0\n${ILL}${NODE}`);
    expect(cause?.rule).toBe("default-route-missing");
    expect(cause?.summary).not.toContain("later answer");
    expect(cause?.evidence.filter(({ command }) => command === "ip route").every(({ line }) => line >= 7)).toBe(true);
  });

  test("ill, then repaired: the first answer counts, and the later one is told", () => {
    const [cause] = causes(`${ILL}root@w4:~# ip route add default via 10.0.0.1\n${WELL}${NODE}`);
    expect(cause?.rule).toBe("default-route-missing");
    expect(cause?.summary).toContain("A later answer to the same question does not show it any more.");
  });

  test("well twice: nothing", () => expect(causes(`${WELL}${WELL}${NODE}`)).toEqual([]));
});

describe("the later answers", () => {
  const capture = (outputs: readonly { command: string | string[]; text: string }[]) =>
    captureOf({ schema: "netcheck.capture/1", target: { name: "n" }, outputs: outputs.map(({ command }, i) => ({ command, file: `${i}` })) }, (file) => ({
      text: outputs[Number(file)]?.text ?? "",
      truncated: false,
    }));
  const commands = (outputs: readonly { command: string | string[]; text: string }[]) =>
    latest(capture(outputs))?.outputs.map(({ text, sample }) => [text, sample]);

  test("take the place of the first ones, and are no second samples", () =>
    expect(
      commands([
        { command: "ip rule", text: "1" },
        { command: "ip route", text: "2" },
        { command: "sudo ip rule", text: "3" },
      ]),
    ).toEqual([
      ["2", 1],
      ["3", 1],
    ]));

  test.each([
    ["the same words", "ip rule", "1", "1"],
    ["nothing was printed", "ip rule", "1", "\n"],
    ["it may not be asked", "ip rule", "1", "Operation not permitted\n"],
    ["counters", "conntrack -S", "1", "2"],
    ["counters of a card", "ethtool -S eth0", "1", "2"],
    ["counters of links", "ip -s link", "1", "2"],
    ["rules with counters", "iptables -nvL", "1", "2"],
    ["saved rules with counters", "iptables-save -c", "1", "2"],
    ["a log", "journalctl -u kubelet", "1", "2"],
    ["the time", "date", "1", "2"],
  ])("are none: %s", (_, command, before, after) =>
    expect(
      commands([
        { command, text: before },
        { command, text: after },
      ]),
    ).toBeUndefined(),
  );

  test("are none of a runbook's, which asks twice for counters alone", () =>
    expect(
      commands([
        { command: ["ip", "rule"], text: "1" },
        { command: ["ip", "rule"], text: "2" },
      ]),
    ).toBeUndefined());
});
