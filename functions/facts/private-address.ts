import { within } from "./ip-bits.ts";

/** RFC 1918, RFC 6598 and, of IPv6, RFC 4193. */
const PRIVATE = ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7"];

/** True of an address that nobody on the internet can send to. False for text that is no address. */
export const isPrivate = (address: string): boolean => PRIVATE.some((prefix) => within(address, prefix));
