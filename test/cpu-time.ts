/** Milliseconds that this thread has had of a processor: unlike the clock it does not go on while others have it. For tests that something stays cheap. */
export function cpuMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
}
