/**
 * A port whose every call goes through `call`: it may do something before or after `go()`, throw, or answer itself.
 * @param name prefixes the names of the methods, e.g. "store"
 */
export function intercept<T extends object>(
  name: string,
  port: T,
  call: (method: string, args: readonly unknown[], go: () => Promise<unknown>) => Promise<unknown>,
): T {
  return new Proxy(port, {
    get(target, key) {
      const value: unknown = Reflect.get(target, key);
      if (typeof value !== "function" || typeof key !== "string") return value;
      return (...args: unknown[]) => call(`${name}.${key}`, args, async () => (value as (...all: unknown[]) => unknown).apply(target, args));
    },
  });
}
