/**
 * The path of a file below /proc/net, in every spelling: /proc/net/dev, /proc/self/net/dev, /proc/1/net/dev, and /host/proc/net/dev in a debug pod. Of other processes it
 * may be another network namespace: commandLine() takes those for foreign. `file` is a pattern.
 */
export const procNet = (file: string): RegExp => new RegExp(`^(?:/host)?/proc/(?:(?:\\d{1,10}|self|thread-self)/)?net/${file}$`);
