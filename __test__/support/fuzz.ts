/** Random arguments for every tool, the same for one seed. */
import type { Tool } from 'croft';
import { random } from './random.js';

export const FUZZ_SEED = 0x5eed;

const PIECES = ['t.txt', 'a/b', '..', '/', '', '\0', '€', '\ud800', 'x'.repeat(300), '.git/config', '(', '[', '{a,', '**', '\\', 'a|b', '.*', ' '];
const ODD: unknown[] = [null, undefined, 0, -1, NaN, Infinity, 2 ** 32, 1.5, true, [], {}, Symbol.iterator, () => 1, 10n];
const FIELDS = ['path', 'content', 'old_string', 'new_string', 'pattern', 'glob', 'offset', 'limit', 'replace_all', 'recursive', 'context', 'literal'];

export function randomArguments(seed: number, tools: Map<string, Tool>): () => { tool: Tool; input: unknown } {
  const next = random(seed);
  const fraction = (): number => next(2 ** 32) / 2 ** 32;
  const pick = <T>(items: readonly T[]): T => items[next(items.length)] as T;
  const value = (): unknown => (fraction() < 0.75 ? pick(PIECES) + (fraction() < 0.3 ? pick(PIECES) : '') : pick(ODD));
  const names = [...tools.values()];
  return () => {
    const fields = FIELDS.filter(() => fraction() < 0.55);
    const input = fraction() < 0.02 ? pick(ODD) : Object.fromEntries(fields.map((field) => [field, value()]));
    return { tool: pick(names), input };
  };
}
