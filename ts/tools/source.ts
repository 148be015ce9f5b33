/** Where the file tools get their answers: a workspace of ours answers natively, any other provider through its methods. */
import { TreeFiles } from '../files.js';
import { WorkspaceError } from '../errors.js';
import type { EditOptions, FsExtraToolName, FsProvider, HashEdit, HashEditResult, MultiEditResult, Page, PatchedFile, TextEdit } from '../providers.js';
import type { Written } from './answers.js';
import { ProviderSource } from './provider-source.js';
import { Seen } from './seen.js';
import { TreeSource } from './tree-source.js';

export interface PageRequest {
  offset: number;
  limit: number;
  maxChars: number;
  /** Lines as `L{n}:{hash}:{text}`, with so many digits. */
  hashLength?: number;
}

export interface ImageFile {
  mediaType: string;
  data: Buffer;
}

export interface GrepRequest {
  pattern: string;
  path: string;
  glob: string | undefined;
  ignoreCase: boolean;
  literal: boolean;
  context: number;
  includeIgnored: boolean;
}

export interface SearchSettings {
  maxResults: number;
  maxFilesScanned: number;
  maxOutputChars: number;
  ignore: string[];
  gitignore: boolean;
  maxFileBytes: number;
}

export interface SourceSettings extends SearchSettings {
  staleCheck: boolean;
}

/** What the tools need from a place with files. Searches answer in the model's text. */
export interface ToolFiles {
  page(path: string, request: PageRequest, signal?: AbortSignal): Promise<Page>;
  write(path: string, content: string, createOnly: boolean, signal?: AbortSignal): Promise<Written>;
  edit(path: string, edits: TextEdit[], lineEndings: EditOptions['lineEndings'], signal?: AbortSignal): Promise<MultiEditResult>;
  editAtHash(path: string, edits: HashEdit[], hashLength: number, signal?: AbortSignal): Promise<HashEditResult>;
  applyPatch(patch: string, fuzz: number, signal?: AbortSignal): Promise<PatchedFile[]>;
  rename(from: string, to: string, overwrite: boolean, signal?: AbortSignal): Promise<void>;
  remove(path: string, recursive: boolean, signal?: AbortSignal): Promise<void>;
  image(path: string, signal?: AbortSignal): Promise<ImageFile>;
  list(path: string, recursive: boolean, signal?: AbortSignal): Promise<string>;
  glob(pattern: string, path: string, signal?: AbortSignal): Promise<string>;
  grep(request: GrepRequest, signal?: AbortSignal): Promise<string>;
}

export function toolFiles(fs: FsProvider, settings: SourceSettings): ToolFiles {
  const seen = settings.staleCheck ? new Seen() : undefined;
  return fs instanceof TreeFiles ? new TreeSource(fs, settings, seen) : new ProviderSource(fs, settings, seen);
}

const NEEDS_WORKSPACE: readonly FsExtraToolName[] = ['apply_patch', 'rename', 'view_image'];

/** A provider's six methods cannot undo, rename or read bytes: better no tool than one that does half. */
export function checkIncluded(fs: FsProvider, include: readonly FsExtraToolName[]): void {
  if (fs instanceof TreeFiles) return;
  const missing = include.find((name) => NEEDS_WORKSPACE.includes(name));
  if (missing === undefined) return;
  const message = `createFsTools: ${missing} needs a NodeWorkspace or a MemoryWorkspace, and this is another provider: leave it out of include`;
  throw new WorkspaceError(message, 'UNSUPPORTED');
}
