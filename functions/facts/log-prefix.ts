/**
 * What stands in front of a log line in a file or behind `grep`, whoever's line it is: the place where it was found, and the head that syslog's newer protocol has. The readers of the kernel's
 * and of the agents' logs see the same line as the classic syslog prints it.
 *
 *     /var/log/kern.log:412:Nov 21 03:51:28 node1 kernel: …
 *     <4>1 2026-11-21T03:51:28.123456Z node1 kernel - - - nf_conntrack: table full, dropping packet
 */

/** grep -r, grep -H and find -exec grep put the path in front, grep -n the line. */
export const PATH_PREFIX = /^(\/[^\s:]{1,400}|[\w.-]{1,100}\.(?:log|txt)(?:\.\d)?):(?:\d{1,9}[:-](?!\d\d-\d\d[T ]))?/;
export const NUMBER_PREFIX = /^\d{1,9}[:-](?=[IWEF]\d{4} \d\d:|\d{4}-\d\d-\d\d[T ]|[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:|\[ {0,12}\d{1,10}\.\d{6}\] )/;
/** talosctl puts the node in front. */
export const NODE_PREFIX = /^(?:\d{1,3}(?:\.\d{1,3}){3}|[a-z][a-z0-9.-]{0,62}): (?=\{"|[IWEF]\d{4} \d\d:|time="\d{4}-)/;

// RFC 5424: priority and version, time, host, program, its process, the message's kind, structured data
const HEAD = /^<\d{1,3}>1 (\d{4}-\d\d-\d\dT\S{8,32}) (\S{1,255}) (\S{1,128}) (\S{1,128}) \S{1,64} (?:-|(?:\[[^\]]{0,1000}\]){1,8})(?: \ufeff?|$)/;
/** The priority, in front of a time. */
const PRIORITY = /^<\d{1,3}>(?=[A-Z][a-z]{2} {1,2}\d{1,2} \d\d:\d\d:\d\d |\d{4}-\d\d-\d\dT)/;

/** A line with the head of RFC 5424, or with a priority before its time, as the classic syslog prints it; any other line as it is. */
export function asSyslog(line: string): string {
  if (line.charCodeAt(0) !== 60 /* < */) return line;
  const head = HEAD.exec(line);
  if (head === null) return line.replace(PRIORITY, "");
  const [all, time, host, program, process] = head as unknown as [string, string, string, string, string];
  return `${time} ${host} ${program}${process === "-" ? "" : `[${process}]`}: ${line.slice(all.length)}`;
}
