/**
 * Searches over somebody else's provider: the native search runs over a copy and says what it misses, which is fetched
 * until nothing is missing. So the meaning is the one of our own workspaces, and only what a search enters is asked for;
 * the price is a round trip for every directory and file.
 */
import { NativeMirror, type CancelHandle, type NativeMirrorAnswer } from '#native';
import { call, callSync, throwIfAborted } from '../call.js';
import { WorkspaceError } from '../errors.js';
import type { DirectoryEntry, FsProvider, WorkspaceErrorCode } from '../providers.js';
import { normalizeWorkspacePath } from '../text.js';

/** Content copied for one grep; what is beyond is not searched, and the answer says so. */
const MAX_MIRROR_CHARS = 64 * 1024 * 1024;
/** Requests under way at a time. */
const CONCURRENCY = 16;
/** Files fetched before the first look at whether the answer is complete; doubled each time. */
const FIRST_BATCH = 64;
/** Stands for a file that the provider calls binary. */
const BINARY = '\0';

export type Ask = (mirror: NativeMirror, cancel: CancelHandle | null) => Promise<NativeMirrorAnswer>;

export class ProviderSearch {
  readonly #fs: FsProvider;
  readonly #mirror = new NativeMirror();
  readonly #signal: AbortSignal | undefined;
  #charsLeft = MAX_MIRROR_CHARS;
  #leftOut = 0;

  constructor(fs: FsProvider, signal: AbortSignal | undefined) {
    this.#fs = fs;
    this.#signal = signal;
  }

  async answer(path: string, ask: Ask): Promise<string> {
    await this.#start(path);
    for (let batch = FIRST_BATCH; ; batch *= 2) {
      const { text, directories, files } = await call((cancel) => ask(this.#mirror, cancel), this.#signal);
      if (directories.length === 0 && files.length === 0) return this.#withNote(text);
      await this.#each(directories, async (directory) => await this.#list(directory, false));
      await this.#each(files.slice(0, batch), async (file) => await this.#read(file));
    }
  }

  #withNote(text: string): string {
    if (this.#leftOut === 0) return text;
    const size = `${MAX_MIRROR_CHARS / 1024 / 1024} Mi characters`;
    return `${text}\n[${this.#leftOut} files were not searched: one search of this file system reads ${size}; narrow path or glob]`;
  }

  /** The start, and the ignore files of the directories above it. */
  async #start(path: string): Promise<void> {
    const start = normalizeWorkspacePath(path, 'posix');
    throwIfAborted(this.#signal);
    const stat = await this.#fs.stat(start, { signal: this.#signal });
    if (!stat) throw new WorkspaceError(`${JSON.stringify(path)} does not exist: list its directory`, 'NOT_FOUND', { path });
    for (const above of ancestors(start)) await this.#ignoreFiles(above, ['.git', '.gitignore']);
    if (stat.type !== 'file') return await this.#list(start, true);
    const [folder, name] = split(start);
    callSync(() => this.#mirror.list(folder, [{ name, type: 'file' }]));
  }

  async #list(directory: string, isStart: boolean): Promise<void> {
    let entries: DirectoryEntry[];
    try {
      entries = await this.#fs.readdir(directory, { signal: this.#signal });
    } catch (error) {
      if (isStart) throw asWorkspaceError(error, directory);
      this.#rethrowAbort(error);
      callSync(() => this.#mirror.shut(directory));
      return;
    }
    callSync(() => this.#mirror.list(directory, entries.map(({ name, type }) => ({ name, type }))));
    await this.#ignoreFiles(directory, entries.map(({ name }) => name));
  }

  /** Those that the walk looks for before it goes on; most providers do not hold `.git`. */
  async #ignoreFiles(directory: string, names: readonly string[]): Promise<void> {
    if (names.includes('.gitignore')) await this.#ignoreFile(directory, '.gitignore');
    if (!names.includes('.git')) return;
    const git = join(directory, '.git');
    const found = await this.#quiet(async () => await this.#fs.stat(git, { signal: this.#signal }));
    if (!found || (found.type !== 'directory' && found.type !== 'file')) return;
    callSync(() => this.#mirror.list(directory, [{ name: '.git', type: found.type }]));
    if (found.type === 'directory') await this.#ignoreFile(directory, '.git/info/exclude');
  }

  async #ignoreFile(directory: string, name: string): Promise<void> {
    const path = join(directory, name);
    const text = await this.#quiet(async () => {
      const stat = await this.#fs.stat(path, { signal: this.#signal });
      return stat?.type === 'file' ? await this.#fs.readFile(path, { signal: this.#signal }) : undefined;
    });
    if (text !== undefined) callSync(() => this.#mirror.fill(path, text));
  }

  async #read(path: string): Promise<void> {
    if (this.#charsLeft <= 0) {
      this.#leftOut += 1;
      callSync(() => this.#mirror.fill(path, ''));
      return;
    }
    try {
      const text = await this.#fs.readFile(path, { signal: this.#signal });
      this.#charsLeft -= text.length;
      callSync(() => this.#mirror.fill(path, text));
    } catch (error) {
      this.#rethrowAbort(error);
      const binary = error instanceof WorkspaceError && error.code === 'BINARY_FILE';
      callSync(() => this.#mirror.fill(path, binary ? BINARY : null));
    }
  }

  /** What cannot be had is as good as absent. */
  async #quiet<T>(ask: () => Promise<T>): Promise<T | undefined> {
    try {
      return await ask();
    } catch (error) {
      this.#rethrowAbort(error);
      return undefined;
    }
  }

  #rethrowAbort(error: unknown): void {
    throwIfAborted(this.#signal);
    if (error instanceof WorkspaceError && (error.code === 'ABORTED' || error.code === 'CLOSED')) throw error;
  }

  async #each(items: readonly string[], work: (item: string) => Promise<void>): Promise<void> {
    let next = 0;
    const worker = async (): Promise<void> => {
      for (let item = items[next++]; item !== undefined; item = items[next++]) {
        throwIfAborted(this.#signal);
        await work(item);
      }
    };
    await Promise.all(Array.from({ length: Math.min(CONCURRENCY, items.length) }, worker));
  }
}

const CODES: Record<string, WorkspaceErrorCode> = { ENOENT: 'NOT_FOUND', ENOTDIR: 'NOT_DIRECTORY', EACCES: 'ACCESS_DENIED', EPERM: 'ACCESS_DENIED' };

/** A provider's own error may name places on its host; only its code is passed on. */
export function asWorkspaceError(error: unknown, path: string): unknown {
  if (error instanceof WorkspaceError || (error instanceof Error && error.name === 'AbortError')) return error;
  const code = String((error as { code?: unknown } | null)?.code ?? 'unknown reason');
  const message = `${JSON.stringify(path)} cannot be listed (${code}): give an existing directory`;
  return new WorkspaceError(message, CODES[code] ?? 'IO', { path, cause: error });
}

function join(directory: string, name: string): string {
  return directory === '.' ? name : `${directory}/${name}`;
}

function split(path: string): [string, string] {
  const slash = path.lastIndexOf('/');
  return slash < 0 ? ['.', path] : [path.slice(0, slash), path.slice(slash + 1)];
}

function ancestors(path: string): string[] {
  if (path === '.') return [];
  const parts = path.split('/').slice(0, -1);
  return ['.', ...parts.map((_, i) => parts.slice(0, i + 1).join('/'))];
}
