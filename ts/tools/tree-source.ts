/** The file tools' answers from a workspace of ours: text is made in Rust, one string per answer. */
import { call } from '../call.js';
import { checkString } from '../check.js';
import { editRequest, type TreeFiles } from '../files.js';
import type { EditOptions, EditResult, Page } from '../providers.js';
import type { Written } from './answers.js';
import { globRequest, grepRequest, listRequest } from './requests.js';
import type { GrepRequest, PageRequest, SearchSettings, ToolFiles } from './source.js';

export class TreeSource implements ToolFiles {
  readonly #files: TreeFiles;
  readonly #settings: SearchSettings;

  constructor(files: TreeFiles, settings: SearchSettings) {
    this.#files = files;
    this.#settings = settings;
  }

  async page(path: string, request: PageRequest, signal?: AbortSignal): Promise<Page> {
    const tree = this.#files.open(path);
    return await call(() => tree.readPage(path, request, this.#settings.maxFileBytes), signal);
  }

  async write(path: string, content: string, createOnly: boolean, signal?: AbortSignal): Promise<Written> {
    checkString('content', content);
    const tree = this.#files.open(path);
    return await call((cancel) => tree.writeNoted(path, content, createOnly, cancel), signal);
  }

  async edit(path: string, edit: EditOptions, signal?: AbortSignal): Promise<EditResult> {
    const tree = this.#files.open(path);
    return await call((cancel) => tree.edit(path, editRequest(edit), this.#settings.maxFileBytes, cancel), signal);
  }

  async list(path: string, recursive: boolean, signal?: AbortSignal): Promise<string> {
    const tree = this.#files.open(path);
    return await call((cancel) => tree.listText(listRequest(path, recursive, this.#settings), cancel), signal);
  }

  async glob(pattern: string, path: string, signal?: AbortSignal): Promise<string> {
    const tree = this.#files.open(path);
    checkString('pattern', pattern);
    return await call((cancel) => tree.globText(globRequest(pattern, path, this.#settings), cancel), signal);
  }

  async grep(request: GrepRequest, signal?: AbortSignal): Promise<string> {
    const tree = this.#files.open(request.path);
    const native = grepRequest(request, this.#settings);
    return await call((cancel) => tree.grepText(native, cancel), signal);
  }
}
