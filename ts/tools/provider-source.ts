/**
 * The file tools' answers from any provider's six methods. Searches copy what they need into a tree in memory and ask
 * that tree, so that their meaning is the one of our own workspaces; the price is one round trip a directory and file.
 */
import { NativeTree } from '#native';
import { call, callSync, throwIfAborted } from '../call.js';
import { WorkspaceError } from '../errors.js';
import type { DirectoryEntry, EditOptions, EditResult, FsProvider, Page } from '../providers.js';
import { applyEdit, formatPage, normalizeWorkspacePath } from '../text.js';
import type { Written } from './answers.js';
import { globRequest, grepRequest, listRequest } from './requests.js';
import type { GrepRequest, PageRequest, SearchSettings, ToolFiles } from './source.js';

/** Content copied for one grep; what is beyond is not searched, and the answer says so. */
const MAX_MIRROR_BYTES = 64 * 1024 * 1024;
/** Stands for a file that cannot be read as text: grep counts it as binary. */
const UNREADABLE = '\0';

export class ProviderSource implements ToolFiles {
  readonly #fs: FsProvider;
  readonly #settings: SearchSettings;

  constructor(fs: FsProvider, settings: SearchSettings) {
    this.#fs = fs;
    this.#settings = settings;
  }

  async page(path: string, request: PageRequest, signal?: AbortSignal): Promise<Page> {
    return formatPage(await this.#read(path, signal), request);
  }

  async write(path: string, content: string, createOnly: boolean, signal?: AbortSignal): Promise<Written> {
    throwIfAborted(signal);
    const before = await this.#fs.stat(path, { signal });
    if (before && createOnly) throw new WorkspaceError(`"${path}" exists: choose another name, or edit it`, 'ALREADY_EXISTS', { path });
    await this.#fs.writeFile(path, content, { signal, createOnly });
    return { created: before === undefined };
  }

  async edit(path: string, edit: EditOptions, signal?: AbortSignal): Promise<EditResult> {
    const { text, ...result } = applyEdit(await this.#read(path, signal), edit);
    if (result.changed) await this.#fs.writeFile(path, text, { signal });
    return result;
  }

  async list(path: string, recursive: boolean, signal?: AbortSignal): Promise<string> {
    const request = listRequest(path, recursive, this.#settings);
    const mirror = await this.#mirror(path, recursive ? this.#settings.maxFilesScanned : 0, signal);
    return await call((cancel) => mirror.tree.listText(request, cancel), signal);
  }

  async glob(pattern: string, path: string, signal?: AbortSignal): Promise<string> {
    const request = globRequest(pattern, path, this.#settings);
    const mirror = await this.#mirror(path, this.#settings.maxFilesScanned, signal);
    return await call((cancel) => mirror.tree.globText(request, cancel), signal);
  }

  async grep(request: GrepRequest, signal?: AbortSignal): Promise<string> {
    const native = grepRequest(request, this.#settings);
    const { maxFilesScanned } = this.#settings;
    const mirror = await this.#mirror(request.path, maxFilesScanned, signal);
    const candidates = { ...native, pattern: '**', maxResults: maxFilesScanned };
    const { paths } = mirror.file ? { paths: [mirror.file] } : await call((cancel) => mirror.tree.glob(candidates, cancel), signal);
    const cut = await this.#fill(mirror.tree, paths, signal);
    const answer = await call((cancel) => mirror.tree.grepText(native, cancel), signal);
    return cut ? `${answer}\n[not every file was searched: the first ${MAX_MIRROR_BYTES / 1024 / 1024} MiB were; narrow path or glob]` : answer;
  }

  async #read(path: string, signal: AbortSignal | undefined): Promise<string> {
    throwIfAborted(signal);
    return await this.#fs.readFile(path, { signal });
  }

  /** The names below `path`, and the ignore files that apply there, as a tree in memory. */
  async #mirror(path: string, maxFiles: number, signal: AbortSignal | undefined): Promise<{ tree: NativeTree; file?: string }> {
    const tree = NativeTree.memory(null);
    const start = normalizeWorkspacePath(path, 'posix');
    const stat = await this.#fs.stat(start, { signal });
    if (!stat) throw new WorkspaceError(`"${path}" does not exist: list its directory`, 'NOT_FOUND', { path });
    if (stat.type === 'file') {
      put(tree, start, '');
      return { tree, file: start };
    }
    if (start !== '.') callSync(() => tree.makeDir(start));
    for (const above of ancestors(start)) await this.#copyIgnoreFile(tree, above, signal);
    await this.#mirrorBelow(tree, start, maxFiles, signal);
    return { tree };
  }

  async #mirrorBelow(tree: NativeTree, start: string, maxFiles: number, signal: AbortSignal | undefined): Promise<void> {
    const pending = [start];
    let files = 0;
    for (let directory = pending.pop(); directory !== undefined; directory = pending.pop()) {
      throwIfAborted(signal);
      for (const entry of await this.#fs.readdir(directory, { signal })) {
        const path = directory === '.' ? entry.name : `${directory}/${entry.name}`;
        if (entry.type === 'directory' && this.#descends(entry, maxFiles)) pending.push(path);
        mirrorEntry(tree, path, entry);
        if (entry.name === '.gitignore' && entry.type === 'file') await this.#copyIgnoreFile(tree, directory, signal);
        files += entry.type === 'file' ? 1 : 0;
      }
      // One more than the limit, so that the answer says that it was reached.
      if (files > maxFiles) return;
    }
  }

  #descends({ name }: DirectoryEntry, maxFiles: number): boolean {
    return maxFiles > 0 && !this.#settings.ignore.includes(name);
  }

  async #copyIgnoreFile(tree: NativeTree, directory: string, signal: AbortSignal | undefined): Promise<void> {
    const path = directory === '.' ? '.gitignore' : `${directory}/.gitignore`;
    try {
      if ((await this.#fs.stat(path, { signal }))?.type === 'file') put(tree, path, await this.#fs.readFile(path, { signal }));
    } catch (error) {
      if (!(error instanceof WorkspaceError)) throw error;
    }
  }

  /** Copies contents until the budget ends; true when some were left out. */
  async #fill(tree: NativeTree, paths: readonly string[], signal: AbortSignal | undefined): Promise<boolean> {
    let bytes = 0;
    for (const path of paths) {
      throwIfAborted(signal);
      if (bytes > MAX_MIRROR_BYTES) return true;
      const text = await this.#readOrSkip(path, signal);
      bytes += text.length;
      put(tree, path, text);
    }
    return false;
  }

  async #readOrSkip(path: string, signal: AbortSignal | undefined): Promise<string> {
    try {
      return await this.#fs.readFile(path, { signal });
    } catch (error) {
      if (error instanceof WorkspaceError && error.code !== 'ABORTED') return UNREADABLE;
      throw error;
    }
  }
}

function mirrorEntry(tree: NativeTree, path: string, { type }: DirectoryEntry): void {
  if (type === 'file') put(tree, path, '');
  if (type === 'directory') callSync(() => tree.makeDir(path));
}

function put(tree: NativeTree, path: string, text: string): void {
  callSync(() => tree.insert(path, text));
}

function ancestors(path: string): string[] {
  if (path === '.') return [];
  const parts = path.split('/').slice(0, -1);
  return ['.', ...parts.map((_, i) => parts.slice(0, i + 1).join('/'))];
}
