/**
 * What viewers and collectors of logs put around a line, and people in front of it: the time once more and the labels (CloudWatch, Grafana, Kibana), the
 * service (docker compose), the machine (pdsh), the mark of a list; and what a script puts in front of what the commands that it runs print.
 */
const TIME = String.raw`(?:\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?|[A-Z][a-z]{2} \d{1,2}, \d{4} @ \d\d:\d\d:\d\d(?:\.\d{1,9})?)`;
const LABELS = String.raw`\{[a-z_]\w{0,60}="?[^{}]{0,1000}\}`;
/** `[12-05-2024 21:39:39.577 INF] `, `[21:39:39 INF] `, `2024-05-12 21:39:39,577 - INFO - ` */
const CLOCK = String.raw`\d\d:\d\d:\d\d(?:[.,]\d{1,9})?(?:Z|[+-]\d\d:?\d\d)?`;
const LEVEL = "(?:[Tt]race|TRACE|DE?BU?G|[Dd]ebug|INFO?|[Ii]nfo|WA?RN|WARNING|[Ww]arn(?:ing)?|ERR(?:OR)?|[Ee]rror)";
const WRAPPERS: readonly RegExp[] = [
  // the mark of a list, also numbered
  /^[ \t]{0,8}(?:[-*•]|\d{1,3}[.)])[ \t]{1,4}(?=\S)/,
  // a border that an installer draws around what failed
  /^[ \t]{0,8}[│┃║][ \t]{1,8}(?=\S)/,
  new RegExp(String.raw`^[ \t]{0,8}\[(?:(?:\d{4}[-/]\d\d[-/]\d\d|\d\d[-/.]\d\d[-/.]\d{4})[T ])?${CLOCK}[ \t|]{1,4}${LEVEL}\][ \t]{1,8}(?=\S)`),
  new RegExp(String.raw`^[ \t]{0,8}\d{4}-\d\d-\d\d[T ]${CLOCK}(?:[ \t]{1,4}| ?[-|] ?)${LEVEL}(?::| ?[-|])?[ \t]{1,8}(?=(?:Normal|Warning)[ \t]{2})`),
  new RegExp(String.raw`^[ \t]{0,8}"?${TIME}"?(?:[ \t]{1,8}|,)(?:${LABELS}[ \t]{0,8})?(?=\S)`),
  new RegExp(String.raw`^[ \t]{0,8}${LABELS}[ \t]{0,8}(?=\S)`),
  /^[ \t]{0,8}[\w.-]{1,100} {0,40}\| (?=\S)/,
  /^[\w.-]{1,100}: (?=\[ {0,12}\d{1,10}\.\d{6}\] )/,
  // columns of a viewer, and the name of a container: pods' own are stern's
  /^[\w./-]{1,253}\t(?=\S)/,
  /^[ \t]{0,2}[a-z][a-z0-9-]{1,62} {1,8}(?=[IWEF]\d{4} \d\d:\d\d:\d\d\.|(?:time="\S{1,60} )?level=\w{4,7} )/,
];
/** More than these stand around no line. */
const MOST = 4;

/** The line inside of each of its wrappers, the outermost first. Empty if there is none. */
export function unwrapped(line: string): string[] {
  const inner: string[] = [];
  let rest = line;
  while (inner.length < MOST) {
    const wrapper = WRAPPERS.map((pattern) => pattern.exec(rest)).find((match) => match !== null);
    if (wrapper === null || wrapper === undefined) break;
    rest = rest.slice(wrapper[0].length);
    inner.push(rest);
  }
  return inner;
}
