/** The file tools' answers from any provider's six methods. */
import { listingText } from '#native';
import { callSync, throwIfAborted } from '../call.js';
import { WorkspaceError } from '../errors.js';
import type { DirectoryEntry, EditOptions, EditResult, FsProvider, Page } from '../providers.js';
import { applyEdit, formatPage, normalizeWorkspacePath } from '../text.js';
import type { Written } from './answers.js';
import { asWorkspaceError, ProviderSearch, type Ask } from './provider-search.js';
import { globRequest, grepRequest, listRequest } from './requests.js';
import type { GrepRequest, PageRequest, SearchSettings, ToolFiles } from './source.js';

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
