/** The usual short form (RFC 5952) of an IPv6 address given as eight groups of hexadecimal digits. */
function shortIpv6(groups: readonly string[]): string {
  const short = groups.map((group) => group.replace(/^0{1,3}/, "").toLowerCase());
  let best = 0;
  let bestLength = 1;
  for (let start = 0; start < short.length; start++) {
    let length = 0;
    while (short[start + length] === "0") length++;
    if (length > bestLength) [best, bestLength] = [start, length];
  }
  if (bestLength < 2) return short.join(":");
  return `${short.slice(0, best).join(":")}::${short.slice(best + bestLength).join(":")}`;
}

/** The short form of the long form that /proc prints (`fd77:0000:…:0001`); any other text as it is. */
export function fromLongIpv6(address: string): string {
  return address.length === 39 && address[4] === ":" ? shortIpv6(address.split(":")) : address;
}

/** The short form of 32 hexadecimal digits. */
export function fromHexIpv6(hex: string): string {
  return shortIpv6(hex.match(/.{4}/g) ?? []);
}
