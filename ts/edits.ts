/** Edits as callers give them, checked, and as the addon takes them. */
import type { NativeChange, NativeEdits, NativeHashEdit, NativeHashEdited } from '#native';
import { checkString, invalid } from './check.js';
import type * as api from './providers.js';

export const HASH_LENGTH = 64;

export interface NativeEdit {
  oldString: string;
  newString: string;
  replaceAll: boolean;
}

export function textEdit(edit: api.TextEdit, name = 'edit'): NativeEdit {
  if (edit === null || typeof edit !== 'object') throw invalid(`${name} must be an object with oldString and newString`);
  checkString('oldString', edit.oldString);
  checkString('newString', edit.newString);
  const { oldString, newString, replaceAll = false } = edit;
  return { oldString, newString, replaceAll };
}

export function textEdits(edits: readonly api.TextEdit[]): NativeEdit[] {
  if (!Array.isArray(edits)) throw invalid('edits must be a list of { oldString, newString }');
  return edits.map((edit, index) => textEdit(edit as api.TextEdit, `edits[${index}]`));
}

export function isStrict(lineEndings: api.EditOptions['lineEndings'] = 'preserve'): boolean {
  if (lineEndings !== 'preserve' && lineEndings !== 'strict') {
    throw invalid(`lineEndings must be 'preserve' or 'strict', not '${String(lineEndings)}'`);
  }
  return lineEndings === 'strict';
}

export function hashEdits(edits: readonly api.HashEdit[]): NativeHashEdit[] {
  if (!Array.isArray(edits)) throw invalid('edits must be a list of { line, hash, op, content }');
  return edits.map((edit: api.HashEdit, index) => {
    if (edit === null || typeof edit !== 'object') throw invalid(`edits[${index}] must be an object`);
    const { line, hash, endLine, hashes, op, content } = edit;
    if (typeof line !== 'number') throw invalid(`edits[${index}].line must be a number`);
    checkString('hash', hash);
    checkString('op', op);
    if (content !== undefined) checkString('content', content);
    hashes?.forEach((one) => checkString('hashes', one));
    return {
      line,
      hash,
      op,
      ...(endLine === undefined ? {} : { endLine }),
      ...(hashes === undefined ? {} : { hashes }),
      ...(content === undefined ? {} : { content }),
    };
  });
}

/** A change that no one tracks. */
export function plainChange(maxBytes: number): NativeChange {
  return { maxBytes, track: false };
}

export function editResult({ edits, changed, note }: NativeEdits): api.EditResult {
  const { replacements = 0, firstLine = 0 } = edits[0] ?? {};
  return { replacements, firstLine, changed, ...(note && { note }) };
}

export function multiEditResult({ edits, changed, note }: NativeEdits): api.MultiEditResult {
  return { edits, changed, ...(note && { note }) };
}

export function hashEditResult({ changed, firstLine, linesAdded, linesRemoved }: NativeHashEdited): api.HashEditResult {
  return { changed, firstLine, linesAdded, linesRemoved };
}
