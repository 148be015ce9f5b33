/** The sentences with which tools answer; notes are lines of their own in square brackets. */
import type { EditResult } from '../providers.js';

export interface Written {
  created: boolean;
  note?: string | undefined;
}

export function describeWrite(path: string, bytes: number, { created, note }: Written): string {
  const what = `${created ? 'Created' : 'Wrote'} ${JSON.stringify(path)} (${bytes} ${bytes === 1 ? 'byte' : 'bytes'}).`;
  return withNote(what, note);
}

export function describeEdit(path: string, edit: EditResult): string {
  if (!edit.changed) return withNote(`${JSON.stringify(path)} is unchanged: old_string and new_string are the same.`, edit.note);
  const times = edit.replacements === 1 ? '1 replacement' : `${edit.replacements} replacements`;
  return withNote(`Edited ${JSON.stringify(path)}: ${times}, the first in line ${edit.firstLine}.`, edit.note);
}

function withNote(text: string, note: string | undefined): string {
  return note ? `${text}\n[${note}]` : text;
}
