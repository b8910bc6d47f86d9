import { lines } from "./fact.ts";

/**
 * ebtables rules as nft shows them: `nft list ruleset` has those of ebtables-nft in `table bridge nat`. It hides what arpreply answers with (`xt target
 * arpreply`), and shows dnat:
 *
 *     iifname "eth0" ether type ip ip daddr 10.240.0.32 counter packets 2 bytes 120 ether daddr set a2:96:88:20:cb:c6 accept
 */
const TABLE = /^table bridge (\w{1,20}) \{/;
const CHAIN = /^chain (\S{1,64}) \{/;
const DNAT =
  /^(?:iifname "([^"]{1,15})" )?(?:ether type ip )?ip daddr (\d{1,3}(?:\.\d{1,3}){3}) (?:counter packets (\d{1,15}) bytes (\d{1,18}) )?ether daddr set ([0-9a-f]{2}(?::[0-9a-f]{2}){5}) (accept|drop|continue|return)(?: #.{0,40})?$/;

/** The rules that can be told as ebtables-save has them, each on the line where it stood; the other lines are blank. */
export function savedOfNft(text: string): string {
  let table: string | undefined;
  let chain: string | undefined;
  const saved: string[] = [];
  let last = 0;
  const put = (line: number, content: string): void => {
    for (; last < line - 1; last++) saved.push("");
    saved.push(content);
    last = line;
  };
  for (const { line, text: raw } of lines(text)) {
    const content = raw.trim();
    if (content.startsWith("table ")) {
      table = TABLE.exec(content)?.[1];
      if (table !== undefined) put(line, `*${table}`);
      continue;
    }
    if (table === undefined) continue;
    chain = CHAIN.exec(content)?.[1] ?? chain;
    const [rule, input, address, packets, bytes, mac, verdict] = DNAT.exec(content) ?? [];
    if (rule === undefined || chain === undefined) continue;
    const counters = packets === undefined ? "" : `[${packets}:${bytes}] `;
    const from = input === undefined ? "" : ` -i ${input}`;
    put(line, `${counters}-A ${chain} -p IPv4${from} --ip-dst ${address} -j dnat --to-dst ${mac} --dnat-target ${verdict?.toUpperCase()}`);
  }
  return saved.join("\n");
}
