/** Text meaning for other people's providers: the same Rust functions the workspaces use. */
import * as native from '#native';
import { callSync } from './call.js';
import { checkString } from './check.js';
import { editResult, HASH_LENGTH, hashEditResult, hashEdits, isStrict, multiEditResult, textEdit, textEdits } from './edits.js';
import { pageRequest } from './files.js';
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
  const [edits, strict] = [[textEdit(edit)], isStrict(edit.lineEndings)];
  const edited = callSync(() => native.applyEdits(text, edits, strict));
  return { ...editResult(edited), text: edited.text ?? text };
}

export function applyEdits(
  text: string,
  edits: api.TextEdit[],
  options: Pick<api.EditOptions, 'lineEndings'> = {},
): api.MultiEditResult & { text: string } {
  checkString('text', text);
  const [list, strict] = [textEdits(edits), isStrict(options.lineEndings)];
  const edited = callSync(() => native.applyEdits(text, list, strict));
  return { ...multiEditResult(edited), text: edited.text ?? text };
}

export function applyHashEdits(text: string, edits: api.HashEdit[], options: api.HashEditOptions = {}): api.HashEditResult & { text: string } {
  checkString('text', text);
  const list = hashEdits(edits);
  const edited = callSync(() => native.applyHashEdits(text, list, options.hashLength ?? HASH_LENGTH));
  return { ...hashEditResult(edited), text: edited.text ?? text };
}

export function applyV4aDiff(text: string | undefined, diff: string): string {
  if (text !== undefined) checkString('text', text);
  checkString('diff', diff);
  return callSync(() => native.applyV4aDiff(text, diff));
}

export function hashLine(line: string): string {
  checkString('line', line);
  return native.hashLine(line);
}

export function clipText(text: string, maxChars: number): string {
  return callSync(() => native.clipText(text, maxChars));
}

export function stripAnsi(text: string): string {
  return native.stripAnsi(text);
}
