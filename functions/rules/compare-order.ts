/** Something that stands elsewhere than on the other side, and what it passed on the way, in the order of here. */
export interface Move {
  readonly token: string;
  readonly passed: readonly string[];
}

/** More moves than this say only that everything is different. */
const MAX_MOVES = 50;

/**
 * The fewest items of `here` that have to be moved so that those on both sides stand in the order of `there`. Items that are on one side only, or
 * more than once on a side, are left out: they have no place to compare. At most {@link MAX_MOVES}, the furthest first.
 */
export function moves(here: readonly string[], there: readonly string[]): Move[] {
  const place = new Map<string, number>();
  const repeated = new Set<string>();
  there.forEach((token, index) => {
    if (place.has(token)) repeated.add(token);
    place.set(token, index);
  });
  const once = new Set<string>();
  for (const token of here) {
    if (once.has(token)) repeated.add(token);
    once.add(token);
  }
  const common = here.filter((token) => place.has(token) && !repeated.has(token));
  const at = (token: string): number => place.get(token) as number;
  const staying = new Set(longestRise(common.map(at)));
  const moved = common.filter((token) => !staying.has(at(token))).slice(0, MAX_MOVES);
  const positions = new Map(common.map((token, index) => [token, index]));
  return moved
    .map((token) => {
      const index = positions.get(token) as number;
      return { token, passed: common.filter((other, position) => position < index !== at(other) < at(token) && other !== token) };
    })
    .filter(({ passed }) => passed.length > 0)
    .sort((a, b) => b.passed.length - a.passed.length);
}

/** A longest increasing subsequence (patience sorting). */
function longestRise(numbers: readonly number[]): number[] {
  const ends: number[] = [];
  const previous: number[] = [];
  numbers.forEach((value, index) => {
    let low = 0;
    let high = ends.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if ((numbers[ends[middle] as number] as number) < value) low = middle + 1;
      else high = middle;
    }
    previous.push(low === 0 ? -1 : (ends[low - 1] as number));
    ends[low] = index;
  });
  const rise: number[] = [];
  for (let index = ends.at(-1) ?? -1; index >= 0; index = previous[index] as number) rise.push(numbers[index] as number);
  return rise.reverse();
}
