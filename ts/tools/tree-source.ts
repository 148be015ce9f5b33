/** The file tools' answers from a workspace of ours: text is made in Rust, one string per answer. */
import type { NativeChange } from '#native';
import { call } from '../call.js';
import { checkString } from '../check.js';
import { hashEditResult, hashEdits, isStrict, multiEditResult, textEdits } from '../edits.js';
import type { TreeFiles } from '../files.js';
import type { EditOptions, HashEdit, HashEditResult, MultiEditResult, Page, PatchedFile, TextEdit } from '../providers.js';
import type { Written } from './answers.js';
import { globRequest, grepRequest, listRequest } from './requests.js';
import type { Seen } from './seen.js';
import type { GrepRequest, ImageFile, PageRequest, SearchSettings, ToolFiles } from './source.js';

export class TreeSource implements ToolFiles {
  readonly #files: TreeFiles;
  readonly #settings: SearchSettings;
  readonly #seen: Seen | undefined;

  constructor(files: TreeFiles, settings: SearchSettings, seen: Seen | undefined) {
    this.#files = files;
    this.#settings = settings;
    this.#seen = seen;
  }

  async page(path: string, request: PageRequest, signal?: AbortSignal): Promise<Page> {
    const tree = this.#files.open(path);
    const track = this.#seen !== undefined;
    const page = await call(() => tree.readPage(path, request, this.#settings.maxFileBytes, track), signal);
    this.#seen?.set(path, page.hash);
    return page;
  }

  async write(path: string, content: string, createOnly: boolean, signal?: AbortSignal): Promise<Written> {
    checkString('content', content);
    const tree = this.#files.open(path);
    const written = await call((cancel) => tree.writeNoted(path, content, createOnly, this.#change(path), cancel), signal);
    this.#seen?.set(path, written.hash);
    return written;
  }

  async edit(path: string, edits: TextEdit[], lineEndings: EditOptions['lineEndings'], signal?: AbortSignal): Promise<MultiEditResult> {
    const tree = this.#files.open(path);
    const [list, strict] = [textEdits(edits), isStrict(lineEndings)];
    const edited = await call((cancel) => tree.edit(path, list, strict, this.#change(path), cancel), signal);
    this.#seen?.set(path, edited.hash);
    return multiEditResult(edited);
  }

  async editAtHash(path: string, edits: HashEdit[], hashLength: number, signal?: AbortSignal): Promise<HashEditResult> {
    const tree = this.#files.open(path);
    const list = hashEdits(edits);
    const edited = await call((cancel) => tree.editAtHash(path, list, hashLength, this.#change(path), cancel), signal);
    this.#seen?.set(path, edited.hash);
    return hashEditResult(edited);
  }

  async applyPatch(patch: string, fuzz: number, signal?: AbortSignal): Promise<PatchedFile[]> {
    const tree = this.#files.open('.');
    checkString('patch', patch);
    const known = this.#seen?.all() ?? [];
    const done = await call((cancel) => tree.applyPatch(patch, fuzz, known, this.#settings.maxFileBytes, cancel), signal);
    for (const { path, hash } of done.hashes) {
      if (hash === undefined) this.#seen?.forget(path);
      else this.#seen?.set(path, hash);
    }
    return done.files;
  }

  async rename(from: string, to: string, overwrite: boolean, signal?: AbortSignal): Promise<void> {
    await this.#files.rename(from, to, { overwrite, signal });
    this.#seen?.move(from, to);
  }

  async remove(path: string, recursive: boolean, signal?: AbortSignal): Promise<void> {
    await this.#files.rm(path, { recursive, signal });
    this.#seen?.forget(path);
  }

  async image(path: string, signal?: AbortSignal): Promise<ImageFile> {
    const tree = this.#files.open(path);
    return await call(() => tree.readImage(path), signal);
  }

  #change(path: string): NativeChange {
    const known = this.#seen?.get(path);
    return { maxBytes: this.#settings.maxFileBytes, track: this.#seen !== undefined, ...(known === undefined ? {} : { known }) };
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
