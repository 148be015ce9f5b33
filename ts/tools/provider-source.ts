/** The file tools' answers from any provider's six methods. */
import { listingText } from '#native';
import { callSync, throwIfAborted } from '../call.js';
import { WorkspaceError } from '../errors.js';
import type { DirectoryEntry, EditOptions, FsProvider, HashEdit, HashEditResult, MultiEditResult, Page, TextEdit } from '../providers.js';
import { applyEdits, applyHashEdits, formatPage, normalizeWorkspacePath } from '../text.js';
import type { Written } from './answers.js';
import { asWorkspaceError, ProviderSearch, type Ask } from './provider-search.js';
import { globRequest, grepRequest, listRequest } from './requests.js';
import { hashText, type Seen } from './seen.js';
import type { GrepRequest, PageRequest, SearchSettings, ToolFiles } from './source.js';

export class ProviderSource implements ToolFiles {
  readonly #fs: FsProvider;
  readonly #settings: SearchSettings;
  readonly #seen: Seen | undefined;

  constructor(fs: FsProvider, settings: SearchSettings, seen: Seen | undefined) {
    this.#fs = fs;
    this.#settings = settings;
    this.#seen = seen;
  }

  async page(path: string, request: PageRequest, signal?: AbortSignal): Promise<Page> {
    const text = await this.#read(path, signal);
    const page = formatPage(text, request);
    this.#seen?.set(path, hashText(text));
    return page;
  }

  async write(path: string, content: string, createOnly: boolean, signal?: AbortSignal): Promise<Written> {
    throwIfAborted(signal);
    const before = await this.#fs.stat(path, { signal });
    if (before && createOnly) throw new WorkspaceError(`"${path}" exists: choose another name, or edit it`, 'ALREADY_EXISTS', { path });
    if (before && this.#seen?.get(path) !== undefined) this.#seen.check(path, await this.#read(path, signal));
    await this.#fs.writeFile(path, content, { signal, createOnly });
    this.#seen?.set(path, hashText(content));
    return { created: before === undefined };
  }

  async edit(path: string, edits: TextEdit[], lineEndings: EditOptions['lineEndings'] = 'preserve', signal?: AbortSignal): Promise<MultiEditResult> {
    return await this.#change(path, (text) => applyEdits(text, edits, { lineEndings }), signal);
  }

  async editAtHash(path: string, edits: HashEdit[], hashLength: number, signal?: AbortSignal): Promise<HashEditResult> {
    return await this.#change(path, (text) => applyHashEdits(text, edits, { hashLength }), signal);
  }

  async applyPatch(): Promise<never> {
    throw unsupported('apply_patch');
  }

  async rename(): Promise<never> {
    throw unsupported('rename');
  }

  async image(): Promise<never> {
    throw unsupported('view_image');
  }

  async remove(path: string, recursive: boolean, signal?: AbortSignal): Promise<void> {
    throwIfAborted(signal);
    await this.#fs.rm(path, { recursive, signal });
    this.#seen?.forget(path);
  }

  async #change<R extends { changed: boolean }>(
    path: string,
    change: (text: string) => R & { text: string },
    signal: AbortSignal | undefined,
  ): Promise<R> {
    const before = await this.#read(path, signal);
    this.#seen?.check(path, before);
    const { text, ...result } = change(before);
    if (result.changed) await this.#fs.writeFile(path, text, { signal });
    if (this.#seen?.get(path) !== undefined) this.#seen.set(path, hashText(text));
    return result as unknown as R;
  }

  async list(path: string, recursive: boolean, signal?: AbortSignal): Promise<string> {
    const request = listRequest(path, recursive, this.#settings);
    if (recursive) return await this.#search(path, signal, (mirror, cancel) => mirror.listText(request, cancel));
    throwIfAborted(signal);
    let entries: DirectoryEntry[];
    try {
      entries = await this.#fs.readdir(normalizeWorkspacePath(path, 'posix'), { signal });
    } catch (error) {
      throw asWorkspaceError(error, path);
    }
    const shown = entries.map(({ name, type }) => ({ name, type }));
    return callSync(() => listingText(shown, request.maxResults, request.maxChars));
  }

  async glob(pattern: string, path: string, signal?: AbortSignal): Promise<string> {
    const request = globRequest(pattern, path, this.#settings);
    return await this.#search(path, signal, (mirror, cancel) => mirror.globText(request, cancel));
  }

  async grep(request: GrepRequest, signal?: AbortSignal): Promise<string> {
    const native = grepRequest(request, this.#settings);
    return await this.#search(request.path, signal, (mirror, cancel) => mirror.grepText(native, cancel));
  }

  async #search(path: string, signal: AbortSignal | undefined, ask: Ask): Promise<string> {
    return await new ProviderSearch(this.#fs, signal).answer(path, ask);
  }

  async #read(path: string, signal: AbortSignal | undefined): Promise<string> {
    throwIfAborted(signal);
    return await this.#fs.readFile(path, { signal });
  }
}

function unsupported(tool: string): WorkspaceError {
  return new WorkspaceError(`${tool} needs a NodeWorkspace or a MemoryWorkspace`, 'UNSUPPORTED');
}
