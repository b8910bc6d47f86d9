import { describe, expect, test } from "vitest";
import { readCaptureFiles } from "../../functions/transports/capture-files.ts";
import { oddness, oddOnes, sketchOf } from "../../functions/triage/fleet-odd.ts";
import { groupsOf, headlineOf } from "../../functions/triage/fleet-report.ts";
import { catalogueOf, RULE, root } from "./runbooks.ts";

/** Which nodes of a pool are not like the others. */

const pool = (sketches: readonly (readonly number[])[]) => sketches.map((sketch, at) => ({ node: at + 1, sketch }));

describe("oddness", () => {
  test("nodes that are all alike: none is odd", () => {
    expect(oddOnes(pool(Array(30).fill([1, 2, 3])))).toEqual([]);
  });

  test("what one has, and what one lacks, counts by how large the majority is", () => {
    const members = pool([...Array(9).fill([1, 2, 3]), [1, 2], [1, 2, 3, 4]] as number[][]);
    expect(oddOnes(members).map(({ node }) => node)).toEqual([11, 10]);
    expect(oddness(members).find(({ node }) => node === 1)?.score).toBeCloseTo(0);
  });

  test("peers are the most usual nodes, never the node itself, and three at most", () => {
    const [odd] = oddOnes(
      pool([
        [1, 9],
        [1, 2],
        [1, 2],
        [1, 2],
        [1, 2, 7],
      ]),
    );
    expect(odd?.node).toBe(1);
    expect(odd?.peers).toEqual([2, 3, 4]);
    expect(oddOnes(pool([[1], [1, 2], [1, 2]])).map(({ peers }) => peers)).toEqual([[2, 3]]);
  });

  test.each([[0], [1], [2]])("%d nodes have no majority", (count) => {
    expect(oddOnes(pool(Array.from({ length: count }, (_, at) => [at])))).toEqual([]);
  });

  test("two halves that differ: nobody is clearly odd", () => {
    expect(oddOnes(pool([...Array(5).fill([1, 2]), ...Array(5).fill([1, 3])] as number[][]))).toEqual([]);
  });
});

test("of four nodes recorded live the one with the leftover of a VPN client is the oddest", async () => {
  const members = await Promise.all(
    [1, 2, 3, 4].map(async (number) => ({
      node: `blue-${number}`,
      sketch: sketchOf(await readCaptureFiles(`${root}/functions/local/pool/blue-${number}.tgz`)),
    })),
  );
  expect(members[0]?.sketch.length).toBeGreaterThan(150);
  expect(oddOnes(members)[0]?.node).toBe("blue-3");
});

describe("groups", () => {
  const catalogue = catalogueOf();
  const node = (target: string, more: object) => ({ target, cluster: "lab", verdict: "healthy", causes: [], ...more });
  const lost = (target: string, reason: string) => node(target, { verdict: "not-collected", reason });

  test("one reason on several nodes is one group, whatever names are in it", () => {
    const nodes = [
      lost("a1", "ssm: could not start inc-0123456789ab-fleet-1-1 on a1 (i-00000000000000001): its agent is silent"),
      lost("b2", "ssm: could not start inc-0123456789ab-fleet-1-2 on b2 (i-00000000000000002): its agent is silent"),
    ];
    expect(groupsOf(nodes, [], catalogue)).toMatchObject([
      { kind: "lost", title: "ssm: could not start the collection on the node (the node): its agent is silent", nodes },
    ]);
  });

  test("a node is in one group, by its first cause; a fix is offered only if all of them have it", () => {
    const groups = groupsOf([node("a", { causes: [RULE, "x"], fix: "f" }), node("b", { causes: [RULE] }), node("c", {})], [], catalogue);
    expect(groups.map(({ kind, fix, nodes }) => [kind, fix, nodes.length])).toEqual([
      ["cause", undefined, 2],
      ["healthy", undefined, 1],
    ]);
  });

  test("what somebody muted makes no node healthy", () => {
    const nodes = [node("a", { verdict: "cause-found", muted: [RULE] }), node("b", {})];
    expect(headlineOf(groupsOf(nodes, [], catalogue))).toBe("1 healthy · 1 with muted findings only");
  });

  test("a node that is inconclusive, or has symptoms, is not counted as healthy", () => {
    const nodes = [
      node("a", { verdict: "inconclusive" }),
      node("b", { verdict: "symptoms-only", symptoms: ["conntrack-invalid-drops"] }),
      node("c", { verdict: "symptoms-only" }),
    ];
    expect(headlineOf(groupsOf(nodes, [], catalogue))).toBe("2 with symptoms only · 1 inconclusive");
  });
});
