/** A small generator with a seed that a failure can name (mulberry32). */

/** A whole number from 0 up to, not including, `end`. */
export type Random = (end: number) => number;

export function random(seed: number): Random {
  let state = seed >>> 0;
  return (end) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t = (t + Math.imul(t ^ (t >>> 7), t | 61)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % end;
  };
}
