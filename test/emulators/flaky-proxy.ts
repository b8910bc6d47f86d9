import { once } from "node:events";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";

export interface FlakyProxy {
  readonly url: string;
  /** What it did so far. */
  counts(): { readonly passed: number; readonly throttled: number; readonly lost: number };
  close(): Promise<void>;
}

/**
 * Stands before a DynamoDB and fails as the real one does: some requests are throttled before anything is done, and of some the answer is lost after it was done.
 * The same seed makes the same choices, in the order in which requests come.
 */
export async function startFlakyProxy(target: string, { throttled, lost, seed }: { throttled: number; lost: number; seed: number }): Promise<FlakyProxy> {
  const counts = { passed: 0, throttled: 0, lost: 0 };
  let state = seed;
  const random = (): number => {
    // a linear congruential generator (Numerical Recipes)
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return state / 2 ** 32;
  };
  const server = createServer((request, response) => {
    void (async () => {
      const chance = random();
      const body = await text(request);
      if (chance < throttled) {
        counts.throttled++;
        response.writeHead(400, { "content-type": "application/x-amz-json-1.0" });
        response.end(JSON.stringify({ __type: "com.amazonaws.dynamodb.v20120810#ThrottlingException", message: "Rate exceeded" }));
        return;
      }
      const headers = Object.entries(request.headers).filter(([name]) => name.startsWith("x-amz") || name === "content-type" || name === "authorization");
      const answer = await fetch(target, { method: "POST", headers: headers as [string, string][], body });
      const answered = await answer.text();
      if (chance < throttled + lost) {
        counts.lost++;
        request.socket.destroy();
        return;
      }
      counts.passed++;
      response.writeHead(answer.status, { "content-type": "application/x-amz-json-1.0" });
      response.end(answered);
    })();
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const address = server.address();
  return {
    url: `http://127.0.0.1:${typeof address === "object" && address !== null ? address.port : 0}`,
    counts: () => counts,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}
