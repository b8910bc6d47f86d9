/**
 * For a simulated Slack where much else runs in the app's process or beside it, such as other nodes being examined: the app may take longer than Slack's
 * 3 seconds to answer. The bench measures those.
 */
export const UNHURRIED = { patienceMs: 60_000 };
