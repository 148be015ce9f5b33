/** Random arguments for every tool, the same for one seed. */
import type { Tool } from 'croft';

export const FUZZ_SEED = 0x5eed;

const PIECES = ['t.txt', 'a/b', '..', '/', '', '\0', '€', '\ud800', 'x'.repeat(300), '.git/config', '(', '[', '{a,', '**', '\\', 'a|b', '.*', ' '];
const ODD: unknown[] = [null, undefined, 0, -1, NaN, Infinity, 2 ** 32, 1.5, true, [], {}, Symbol.iterator, () => 1, 10n];
const FIELDS = ['path', 'content', 'old_string', 'new_string', 'pattern', 'glob', 'offset', 'limit', 'replace_all', 'recursive', 'context', 'literal'];

export function randomArguments(seed: number, tools: Map<string, Tool>): () => { tool: Tool; input: unknown } {
  const random = generator(seed);
  const pick = <T>(items: readonly T[]): T => items[Math.floor(random() * items.length)] as T;
  const value = (): unknown => (random() < 0.75 ? pick(PIECES) + (random() < 0.3 ? pick(PIECES) : '') : pick(ODD));
  const names = [...tools.values()];
  return () => {
    const fields = FIELDS.filter(() => random() < 0.55);
    const input = random() < 0.02 ? pick(ODD) : Object.fromEntries(fields.map((field) => [field, value()]));
    return { tool: pick(names), input };
  };
}

/** mulberry32, a small public-domain generator. */
function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = Math.imul(state ^ (state >>> 15), state | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}
