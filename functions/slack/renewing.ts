import type { HttpEvent, HttpResponse } from "./app.ts";

type Handler = (event: HttpEvent) => Promise<HttpResponse>;

/**
 * A handler that follows the signing secret: a request that does not fit the one in memory is tried once more with the one that is valid now, if that is another.
 * @param secret reads it; `doubtful` asks for a fresh one (bounded by who reads: anybody can send bad signatures)
 */
export function renewingHandler(secret: (doubtful: boolean) => Promise<string>, handlerOf: (signingSecret: string) => Handler): Handler {
  let held: { readonly secret: string; readonly handle: Handler } | undefined;
  const current = async (doubtful: boolean): Promise<Handler> => {
    const now = await secret(doubtful);
    if (held?.secret !== now) held = { secret: now, handle: handlerOf(now) };
    return held.handle;
  };
  return async (event) => {
    const handle = await current(false);
    const response = await handle(event);
    if (response.statusCode !== 401) return response;
    const renewed = await current(true);
    return renewed === handle ? response : renewed(event);
  };
}
