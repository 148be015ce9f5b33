/** Text meaning for other people's providers: the same Rust functions the workspaces use. */
import * as native from '#native';
import { callSync } from './call.js';
import { checkString } from './check.js';
import { editRequest, pageRequest } from './files.js';
import type * as api from './providers.js';

export function normalizeWorkspacePath(path: string, platform?: api.PathPlatform): string {
  checkString('path', path);
  return callSync(() => native.normalizePath(path, platform ?? null));
}

export function formatPage(text: string, options: api.PageOptions = {}): api.Page {
  checkString('text', text);
  return callSync(() => native.formatPage(text, pageRequest(options)));
}

export function applyEdit(text: string, edit: api.EditOptions): api.EditResult & { text: string } {
  checkString('text', text);
  const { text: edited = text, ...result } = callSync(() => native.applyEdit(text, editRequest(edit)));
  return { ...result, text: edited };
}

export function clipText(text: string, maxChars: number): string {
  return callSync(() => native.clipText(text, maxChars));
}

export function stripAnsi(text: string): string {
  return native.stripAnsi(text);
}
