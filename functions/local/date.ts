const tokens: Readonly<Record<string, Intl.DateTimeFormatOptions>> = {
  date_num: { year: "numeric", month: "2-digit", day: "2-digit" },
  date: { year: "numeric", month: "long", day: "numeric" },
  date_short: { year: "numeric", month: "short", day: "numeric" },
  date_long: { weekday: "long", year: "numeric", month: "long", day: "numeric" },
  time: { hour: "2-digit", minute: "2-digit" },
  time_secs: { hour: "2-digit", minute: "2-digit", second: "2-digit" },
};

/**
 * A date as Slack words it: `{date_short_pretty} {time}` and the like. "Pretty" says today, tomorrow or yesterday; unknown tokens stay as they are.
 * @param timestamp seconds since 1970
 * @param now milliseconds since 1970
 * @param timeZone "UTC", …; absent: that of this machine
 */
export function formatDate(timestamp: number, format: string, now: number, timeZone?: string): string {
  const zone = timeZone === undefined ? {} : { timeZone };
  const at = new Date(timestamp * 1000);
  const dayOf = (ms: number) => new Date(ms).toLocaleDateString("en-CA", zone);
  const near = new Map([-1, 0, 1].map((days) => [dayOf(now + days * 86_400_000), ["yesterday", "today", "tomorrow"][days + 1] ?? ""]));
  return format.replace(/\{(\w+)\}/g, (all, token: string) => {
    const options = tokens[token.replace("_pretty", "")];
    if (options === undefined) return all;
    if (token.startsWith("time")) return at.toLocaleTimeString("en-GB", { ...options, ...zone });
    return (token.endsWith("_pretty") ? near.get(dayOf(timestamp * 1000)) : undefined) ?? at.toLocaleDateString("en-GB", { ...options, ...zone });
  });
}
