/** What the tools have read and written, as the hash of each file's content: `staleCheck` refuses to change others. */
import { createHash } from 'node:crypto';
import { WorkspaceError } from '../errors.js';
import { normalizeWorkspacePath } from '../text.js';

export class Seen {
  readonly #hashes = new Map<string, string>();

  get(path: string): string | undefined {
    return this.#hashes.get(normalizeWorkspacePath(path));
  }

  /** `undefined`: nothing new is known, or nothing is there any more. */
  set(path: string, hash: string | undefined): void {
    if (hash !== undefined) this.#hashes.set(normalizeWorkspacePath(path), hash);
  }

  all(): { path: string; hash: string }[] {
    return [...this.#hashes].map(([path, hash]) => ({ path, hash }));
  }

  /** The path, and what was below it if it was a directory. */
  forget(path: string): void {
    this.#take(normalizeWorkspacePath(path));
  }

  move(from: string, to: string): void {
    const [source, target] = [normalizeWorkspacePath(from), normalizeWorkspacePath(to)];
    const moved = this.#take(source);
    this.#take(target);
    for (const [path, hash] of moved) this.#hashes.set(target + path.slice(source.length), hash);
  }

  #take(path: string): [string, string][] {
    const below = [...this.#hashes].filter(([one]) => one === path || one.startsWith(`${path}/`));
    for (const [one] of below) this.#hashes.delete(one);
    return below;
  }

  /** For providers that cannot compare under a lock. */
  check(path: string, text: string): void {
    const known = this.get(path);
    if (known === undefined || known === hashText(text)) return;
    const message = `"${path}" changed since you last read it: read it again, then make the change on what it holds now. Nothing was changed`;
    throw new WorkspaceError(message, 'STALE', { path });
  }
}

export function hashText(text: string): string {
  return createHash('sha256').update(text, 'utf8').digest('hex');
}
