/** Where the file tools get their answers: a workspace of ours answers natively, any other provider through its methods. */
import { TreeFiles } from '../files.js';
import type { EditOptions, EditResult, FsProvider, Page } from '../providers.js';
import type { Written } from './answers.js';
import { ProviderSource } from './provider-source.js';
import { TreeSource } from './tree-source.js';

export interface PageRequest {
  offset: number;
  limit: number;
  maxChars: number;
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

/** What the tools need from a place with files. Searches answer in the model's text. */
export interface ToolFiles {
  page(path: string, request: PageRequest, signal?: AbortSignal): Promise<Page>;
  write(path: string, content: string, createOnly: boolean, signal?: AbortSignal): Promise<Written>;
  edit(path: string, edit: EditOptions, signal?: AbortSignal): Promise<EditResult>;
  list(path: string, recursive: boolean, signal?: AbortSignal): Promise<string>;
  glob(pattern: string, path: string, signal?: AbortSignal): Promise<string>;
  grep(request: GrepRequest, signal?: AbortSignal): Promise<string>;
}

export function toolFiles(fs: FsProvider, settings: SearchSettings): ToolFiles {
  return fs instanceof TreeFiles ? new TreeSource(fs, settings) : new ProviderSource(fs, settings);
}
