/** Searches as the addon takes them; V8 judges a regular expression before it is translated. */
import { checkString } from '../check.js';
import { WorkspaceError } from '../errors.js';
import type { GrepRequest, SearchSettings } from './source.js';

export interface NativeWalk {
  path: string;
  maxResults: number;
  maxFilesScanned: number;
  ignore: string[];
  gitignore: boolean;
  /** Characters of a text answer. */
  maxChars: number;
}

export interface NativeGlob extends NativeWalk {
  pattern: string;
}

export interface NativeList extends NativeWalk {
  recursive: boolean;
}

export interface NativeGrep extends NativeWalk {
  pattern: string;
  glob?: string;
  ignoreCase: boolean;
  literal: boolean;
  context: number;
}

export function walkRequest(path: string, settings: SearchSettings): NativeWalk {
  const { maxResults, maxFilesScanned, ignore, gitignore, maxOutputChars } = settings;
  return { path, maxResults, maxFilesScanned, ignore, gitignore, maxChars: maxOutputChars };
}

export function globRequest(pattern: string, path: string, settings: SearchSettings): NativeGlob {
  return { ...walkRequest(path, settings), pattern };
}

export function listRequest(path: string, recursive: boolean, settings: SearchSettings): NativeList {
  return { ...walkRequest(path, settings), recursive };
}

export function grepRequest(request: GrepRequest, settings: SearchSettings): NativeGrep {
  const { pattern, path, glob, ignoreCase, literal, context, includeIgnored } = request;
  checkString('pattern', pattern);
  if (glob !== undefined) checkString('glob', glob);
  if (!literal) checkRegex(pattern, ignoreCase);
  const walk = walkRequest(path, settings);
  if (includeIgnored) walk.gitignore = false;
  return { ...walk, pattern, ignoreCase, literal, context, ...(glob === undefined ? {} : { glob }) };
}

/** The running V8 decides what is valid, in its own words. */
export function checkRegex(pattern: string, ignoreCase: boolean): void {
  try {
    new RegExp(pattern, ignoreCase ? 'i' : '');
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    throw new WorkspaceError(`${message} (set literal to search for plain text)`, 'INVALID_REGEX', { cause: error });
  }
}
