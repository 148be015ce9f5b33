/** The file surface over a native tree; NodeWorkspace and MemoryWorkspace are this plus commands. */
import type { NativeChange, NativeTree } from '#native';
import { call, callSync, throwIfAborted } from './call.js';
import { checkContent, checkLimit, checkString } from './check.js';
import { editResult, HASH_LENGTH, hashEditResult, hashEdits, isStrict, multiEditResult, plainChange, textEdit, textEdits } from './edits.js';
import { WorkspaceClosedError } from './errors.js';
import { WorkspacePolicy } from './policy.js';
import type * as api from './providers.js';
import { globRequest, grepRequest } from './tools/requests.js';
import type { SearchSettings } from './tools/source.js';

export const MAX_FILE_BYTES = 10 * 1024 * 1024;

/** What `statNow` answers into and with; the order of the types is the core's. */
const STAT_FIELDS = new Float64Array(3);
const FILE_TYPES = ['file', 'directory', 'symlink', 'other'] as const;
const NOTHING_THERE = -1;
const MUST_WAIT = -2;

export interface FileLimits {
  maxFileBytes: number;
  maxWriteBytes: number;
}

export abstract class TreeFiles implements api.WorkspaceFiles {
  /** @internal */
  readonly tree: NativeTree;
  /** @internal */
  readonly limits: FileLimits;
  /** @internal */
  readonly policy: WorkspacePolicy;
  #closed = false;

  protected constructor(tree: NativeTree, limits: Partial<FileLimits> = {}) {
    this.tree = tree;
    this.policy = new WorkspacePolicy(tree);
    const { maxFileBytes = MAX_FILE_BYTES, maxWriteBytes = MAX_FILE_BYTES } = limits;
    this.limits = { maxFileBytes, maxWriteBytes };
  }

  async readFile(path: string, options?: api.CallOptions): Promise<string> {
    this.checkOpen(path);
    return await call(() => this.tree.readText(path, this.limits.maxFileBytes), options?.signal);
  }

  async readFileBytes(path: string, options?: api.CallOptions): Promise<Buffer> {
    this.checkOpen(path);
    return await call(() => this.tree.readBytes(path, this.limits.maxFileBytes), options?.signal);
  }

  async readPage(path: string, options: api.PageOptions & api.CallOptions = {}): Promise<api.Page> {
    this.checkOpen(path);
    return await call(() => this.tree.readPage(path, pageRequest(options), this.limits.maxFileBytes, false), options.signal);
  }

  async writeFile(path: string, content: string | Uint8Array, options: api.WriteFileOptions = {}): Promise<void> {
    this.checkOpen(path);
    checkContent('content', content);
    checkLimit('content', Buffer.byteLength(content), this.limits.maxWriteBytes);
    const { createOnly = false, createParents = true, durable = false, signal } = options;
    await call((cancel) => this.tree.write(path, content, createOnly, createParents, durable, cancel), signal);
  }

  async editFile(path: string, edit: api.EditOptions, options?: api.CallOptions): Promise<api.EditResult> {
    this.checkOpen(path);
    const [edits, strict] = [[textEdit(edit)], isStrict(edit.lineEndings)];
    return editResult(await call((cancel) => this.tree.edit(path, edits, strict, this.#change(), cancel), options?.signal));
  }

  async multiEdit(path: string, edits: api.TextEdit[], options: api.MultiEditOptions = {}): Promise<api.MultiEditResult> {
    this.checkOpen(path);
    const [list, strict] = [textEdits(edits), isStrict(options.lineEndings)];
    return multiEditResult(await call((cancel) => this.tree.edit(path, list, strict, this.#change(), cancel), options.signal));
  }

  async editAtHash(path: string, edits: api.HashEdit[], options: api.HashEditOptions & api.CallOptions = {}): Promise<api.HashEditResult> {
    this.checkOpen(path);
    const { hashLength = HASH_LENGTH, signal } = options;
    const list = hashEdits(edits);
    return hashEditResult(await call((cancel) => this.tree.editAtHash(path, list, hashLength, this.#change(), cancel), signal));
  }

  async applyPatch(patch: string, options: api.PatchOptions = {}): Promise<api.PatchedFile[]> {
    this.checkOpen('.');
    checkString('patch', patch);
    const { fuzz = 0, signal } = options;
    const done = await call((cancel) => this.tree.applyPatch(patch, fuzz, [], this.limits.maxFileBytes, cancel), signal);
    return done.files;
  }

  #change(): NativeChange {
    return plainChange(this.limits.maxFileBytes);
  }

  async glob(pattern: string, options: api.GlobOptions = {}): Promise<api.GlobResult> {
    const path = options.path ?? '.';
    this.checkOpen(path);
    checkString('pattern', pattern);
    const request = globRequest(pattern, path, searchSettings(options));
    return await call((cancel) => this.tree.glob(request, cancel), options.signal);
  }

  async grep(pattern: string, options: api.GrepOptions = {}): Promise<api.GrepResult> {
    const { path = '.', glob, ignoreCase = false, literal = false, context = 0, signal } = options;
    this.checkOpen(path);
    const request = grepRequest({ pattern, path, glob, ignoreCase, literal, context, includeIgnored: false }, searchSettings(options));
    return await call((cancel) => this.tree.grep(request, cancel), signal);
  }

  async stat(path: string, options?: api.CallOptions): Promise<Required<api.FileStat> | undefined> {
    this.checkOpen(path);
    throwIfAborted(options?.signal);
    const type = callSync(() => this.tree.statNow(path, STAT_FIELDS));
    if (type === NOTHING_THERE) return undefined;
    if (type === MUST_WAIT) return (await call(() => this.tree.stat(path), options?.signal)) ?? undefined;
    const [size = 0, mtimeMs = 0, mode = 0] = STAT_FIELDS;
    return { type: FILE_TYPES[type] ?? 'other', size, mtimeMs, mode };
  }

  async readdir(path: string, options?: api.CallOptions): Promise<api.DirectoryEntry[]> {
    this.checkOpen(path);
    return await call(() => this.tree.readDir(path), options?.signal);
  }

  async mkdir(path: string, options?: api.CallOptions): Promise<void> {
    this.checkOpen(path);
    await call(() => this.tree.makeDir(path), options?.signal);
  }

  async rm(path: string, options?: api.CallOptions & { recursive?: boolean }): Promise<void> {
    this.checkOpen(path);
    await call((cancel) => this.tree.remove(path, options?.recursive === true, cancel), options?.signal);
  }

  async rename(from: string, to: string, options?: api.CallOptions & { overwrite?: boolean }): Promise<void> {
    this.checkOpen(from);
    checkString('to', to);
    await call(() => this.tree.rename(from, to, options?.overwrite === true), options?.signal);
  }

  decidePath(path: string, op: 'read' | 'write'): api.PolicyDecision {
    return this.policy.decidePath(path, op);
  }

  decideCommand(command: string | string[], options: { cwd?: string } = {}): api.PolicyDecision {
    return this.policy.decideCommand(command, options.cwd);
  }

  /** @internal The tree, for a tool's call on `path`. */
  open(path: string): NativeTree {
    this.checkOpen(path);
    return this.tree;
  }

  /** Later calls are refused, and the root's descriptor is let go. */
  protected markClosed(): void {
    this.#closed = true;
    this.tree.close();
  }

  protected get isClosed(): boolean {
    return this.#closed;
  }

  protected checkOpen(path: unknown): void {
    if (this.#closed) throw new WorkspaceClosedError();
    checkString('path', path);
  }
}

function searchSettings(options: api.GlobOptions): SearchSettings {
  const { maxResults = 200, maxFilesScanned = 20_000, ignore = ['.git', 'node_modules'], gitignore = true } = options;
  return { maxResults, maxFilesScanned, ignore, gitignore, maxOutputChars: 50_000, maxFileBytes: MAX_FILE_BYTES };
}

export function pageRequest(options: api.PageOptions): { offset: number; limit: number; maxChars: number; hashLength?: number } {
  const { offset = 1, limit = 2000, maxChars = 50_000, hashLength } = options;
  return { offset, limit, maxChars, ...(hashLength === undefined ? {} : { hashLength }) };
}
